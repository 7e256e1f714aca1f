/* mark, reload and version: one call, one line. */
#include "client/edgeprofctl/verbs.h"

#include <stdlib.h>

#include "client/edgeprofctl/link/json.h"

int verb_mark(struct ctl *ctl)
{
	cJSON *parameters = ctl_parameters("label", ctl->words[0]);
	if (ctl->options.app != NULL) {
		cJSON_AddStringToObject(parameters, "app", ctl->options.app);
	}
	cJSON *reply;
	int status = ctl_call(ctl, "Mark", parameters, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		fprintf(ctl->output.stream, "Marked as event %lld.\n",
			(long long)json_integer(reply, "serial"));
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}

int verb_reload(struct ctl *ctl)
{
	cJSON *reply;
	int status = ctl_call(ctl, "Reload", NULL, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		fputs("Configuration read again.\n", ctl->output.stream);
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}

int verb_version(struct ctl *ctl)
{
	cJSON *reply;
	if (ctl->options.json == JSON_OFF) {
		fputs("edgeprofctl " EDGEPROF_VERSION "\n", ctl->output.stream);
	}
	int status = ctl_call(ctl, "org.varlink.service.GetInfo", NULL, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		fprintf(ctl->output.stream, "%s %s\n", json_word(reply, "product"),
			json_word(reply, "version"));
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}
