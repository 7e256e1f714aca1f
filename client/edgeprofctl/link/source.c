/* source: the sensor sources, and switching them on and off. */
#include "client/edgeprofctl/verbs.h"

#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"

static const struct column columns[] = {
	{"SOURCE", false, false},
	{"STATE", false, false},
	{"EVERY", true, false},
	{"METRICS", true, false},
	{"TICKS", true, false},
	{"ERRORS", true, false},
	{"COST us", true, false},
	{"AGE", true, false},
	{"NOTE", false, true},
};

static void add_source(struct table *table, const cJSON *source)
{
	const char *state = json_word(source, "state");
	double interval_ms = json_number(source, "interval_ms");
	double errors = json_number(source, "errors");
	const char *reason = json_word(source, "reason");
	bool enabled = json_true(source, "enabled");
	table_add(table, TONE_NONE, "%s", json_word(source, "name"));
	table_add(table, style_of_state(state), "%s", state);
	if (interval_ms > 0) {
		table_add(table, TONE_NONE, "%s", format_span(interval_ms / 1000).text);
	} else {
		table_add(table, TONE_DIM, "-");
	}
	table_add_number(table, json_number(source, "metrics"), 0);
	table_add_number(table, json_number(source, "ticks"), 0);
	table_add(table, errors > 0 ? TONE_WARN : TONE_NONE, "%.0f", errors > 0 ? errors : 0.0);
	table_add_number(table, json_number(source, "duration_us"), 0);
	table_add(table, TONE_DIM, "%s", format_span(json_number(source, "age_ms") / 1000).text);
	table_add(table, TONE_DIM, "%s", enabled || reason[0] != '\0' ? reason : "switched off");
}

static int list_sources(struct ctl *ctl)
{
	cJSON *reply;
	int status = ctl_call(ctl, "ListSources", NULL, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		struct table table;
		table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
		for (const cJSON *source = json_first(reply, "sources"); source != NULL;
			source = source->next) {
			add_source(&table, source);
		}
		table_print(&table, &ctl->style, ctl->output.stream, 0);
		table_finish(&table);
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}

static int set_source(struct ctl *ctl, bool enabled)
{
	cJSON *parameters = ctl_parameters("name", ctl->words[1]);
	cJSON_AddBoolToObject(parameters, "enabled", enabled);
	if (ctl->options.given & OPTION_INTERVAL) {
		cJSON_AddNumberToObject(parameters, "interval_ms", ctl->options.interval_ms);
	}
	cJSON *reply;
	int status = ctl_call(ctl, "SetSource", parameters, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		struct table table;
		table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
		add_source(&table, json_get(reply, "source"));
		table_print(&table, &ctl->style, ctl->output.stream, 0);
		table_finish(&table);
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}

int verb_source(struct ctl *ctl)
{
	const char *action = ctl->word_count > 0 ? ctl->words[0] : "list";
	bool disable = strcmp(action, "disable") == 0;
	bool has_interval = (ctl->options.given & OPTION_INTERVAL) != 0;
	if (strcmp(action, "list") == 0 && ctl->word_count <= 1 && !has_interval) {
		return list_sources(ctl);
	}
	if ((disable || strcmp(action, "enable") == 0) && ctl->word_count == 2 &&
		!(disable && has_interval)) {
		return set_source(ctl, !disable);
	}
	return ctl_fail(ctl, CTL_USAGE,
		"usage: edgeprofctl source list | enable NAME [--interval 1s] | disable NAME");
}
