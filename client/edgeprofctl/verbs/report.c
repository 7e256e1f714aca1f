/* report: an app's report as the daemon makes it; without a name that of the last app that ended,
 * else of the only one, else who there is to choose from. */
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/verbs.h"

enum { NAMES_SIZE = 400, LINE_SIZE = 512 };

/* "cam, detector" of ListApps. */
static void names_of(const cJSON *reply, char names[NAMES_SIZE])
{
	size_t at = 0;
	names[0] = '\0';
	for (const cJSON *app = json_first(reply, "apps"); app != NULL && at < NAMES_SIZE;
		app = app->next) {
		at += (size_t)snprintf(names + at, NAMES_SIZE - at, "%s%s", at > 0 ? ", " : "",
			json_word(app, "name"));
	}
}

static int several(struct ctl *ctl)
{
	char names[NAMES_SIZE];
	cJSON *reply, *parameters = ctl_parameters("", NULL);
	cJSON_AddTrueToObject(parameters, "all");
	int status = ctl_call(ctl, "ListApps", parameters, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	names_of(reply, names);
	cJSON_Delete(reply);
	return names[0] == '\0'
		       ? ctl_fail(ctl, CTL_NO_DATA, "no app has attached yet; see edgeprof(3)")
		       : ctl_fail(ctl, CTL_NO_DATA, "several apps run; name one of %s", names);
}

static void show_lines(struct ctl *ctl, const char *text)
{
	while (*text != '\0') {
		char line[LINE_SIZE];
		size_t length = strcspn(text, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)length, text);
		text_clean(line, ctl->style.utf8);
		fprintf(ctl->output.stream, "%s\n", line);
		text += length + (text[length] == '\n');
	}
}

/* The call; its text still has its newlines, so it is not clean for a terminal. */
static int ask(struct ctl *ctl, const char *app, cJSON **ret)
{
	bool quiet = ctl->quiet;
	enum json_mode json = ctl->options.json;
	ctl->quiet = quiet || app == NULL; /* that nobody is meant gets an answer of its own */
	ctl->options.json = JSON_SHORT;
	int status = ctl_call(ctl, "GetReport", ctl_run_parameters(ctl, app), false, ret);
	ctl->options.json = json;
	ctl->quiet = quiet;
	return status;
}

int verb_report(struct ctl *ctl)
{
	const char *app = ctl->word_count > 0 ? ctl->words[0] : NULL;
	cJSON *reply;
	int status = ask(ctl, app, &reply);
	if (status == CTL_NO_DATA && app == NULL) {
		return several(ctl);
	}
	if (status != CTL_FINE) {
		return app == NULL ? ctl_fail(ctl, status, "%s", ctl->failure) : status;
	}
	if (!ctl_json(ctl, reply)) {
		show_lines(ctl, json_word(reply, "text"));
	}
	cJSON_Delete(reply);
	return status;
}
