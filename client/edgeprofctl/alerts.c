/* alerts: what is pending or fires, with --all also what is fine. */
#include "client/edgeprofctl/verbs.h"

#include <string.h>

#include "client/edgeprofctl/format.h"
#include "client/edgeprofctl/json.h"
#include "client/edgeprofctl/table.h"

void show_alerts(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"STATE", false, false},
		{"SEVERITY", false, false},
		{"RULE", false, false},
		{"METRIC", false, true},
		{"VALUE", true, false},
		{"THRESHOLD", true, false},
		{"SINCE", false, false},
		{"TEXT", false, true},
	};
	bool utf8 = ctl->style.utf8;
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *alert = json_first(reply, "alerts"); alert != NULL; alert = alert->next) {
		const char *state = json_word(alert, "state");
		const char *severity = json_word(alert, "severity");
		const char *unit = json_word(alert, "unit");
		bool firing = strcmp(state, "firing") == 0;
		enum tone tone = firing ? style_of_state(severity) : style_of_state(state);
		table_add(&table, tone, "%s", state);
		table_add(&table, firing ? tone : TONE_DIM, "%s", severity);
		table_add(&table, TONE_NONE, "%s", json_word(alert, "rule"));
		table_add(&table, TONE_NONE, "%s", json_word(alert, "metric"));
		table_add(&table, TONE_NONE, "%s",
			format_value(json_number(alert, "value"), unit, utf8).text);
		table_add(&table, TONE_NONE, "%s",
			format_value(json_number(alert, "threshold"), unit, utf8).text);
		table_add(
			&table, TONE_DIM, "%s", format_time(json_integer(alert, "since_us")).text);
		table_add(&table, TONE_DIM, "%s", json_word(alert, "text"));
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

static int count_firing(const cJSON *reply)
{
	int firing = 0;
	for (const cJSON *alert = json_first(reply, "alerts"); alert != NULL; alert = alert->next) {
		firing += strcmp(json_word(alert, "state"), "firing") == 0;
	}
	return firing;
}

int verb_alerts(struct ctl *ctl)
{
	cJSON *parameters = ctl_parameters("", NULL);
	if (ctl->options.given & OPTION_ALL) {
		cJSON_AddTrueToObject(parameters, "all");
	}
	cJSON *reply;
	int status = ctl_call(ctl, "ListAlerts", parameters, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		if (json_count(reply, "alerts") == 0) {
			fputs("No alerts.\n", ctl->output.stream);
		}
		show_alerts(ctl, reply);
	}
	if ((ctl->options.given & OPTION_CHECK) && count_firing(reply) > 0) {
		status = CTL_BAD_NEWS;
	}
	cJSON_Delete(reply);
	return status;
}
