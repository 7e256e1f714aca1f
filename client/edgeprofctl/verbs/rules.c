/* rules: the alert rules with their conditions, how they stand and where they are from. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"
#include "client/edgeprofctl/verbs.h"
#include "proto/name.h"

/* "above 75, critical 82, for 5.0 s" */
static void add_condition(struct table *table, const cJSON *rule)
{
	const char *kind = json_word(rule, "condition");
	const bool slope = strcmp(kind, "slope_above") == 0;
	double threshold = json_number(rule, "threshold"), critical = json_number(rule, "critical");
	double seconds = json_number(rule, "for_s");
	char limit[32] = "", worse[48] = "", hold[80] = "";
	if (!isnan(threshold)) {
		snprintf(limit, sizeof(limit), " %.10g", threshold);
	}
	if (!isnan(critical)) {
		snprintf(worse, sizeof(worse), ", critical %.10g", critical);
	}
	if (seconds > 0) {
		snprintf(hold, sizeof(hold), ", for %s", format_span(seconds).text);
	}
	table_add(table, TONE_NONE, "%s%s%s%s%s", slope ? "grows by more than" : kind, limit,
		slope ? " per minute" : "", worse, hold);
}

static void show(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"RULE", false, false},
		{"STATE", false, false},
		{"SEVERITY", false, false},
		{"METRIC", false, false},
		{"CONDITION", false, true},
		{"INSTANCES", true, false},
		{"FROM", false, false},
	};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *rule = json_first(reply, "rules"); rule != NULL; rule = rule->next) {
		const char *state = json_word(rule, "state");
		const char *severity = json_word(rule, "severity");
		bool firing = strcmp(state, "firing") == 0;
		table_add(&table, TONE_NONE, "%s", json_word(rule, "rule"));
		table_add(&table, style_of_state(firing ? severity : state), "%s", state);
		table_add(&table, TONE_DIM, "%s", severity);
		table_add(&table, TONE_NONE, "%s", json_word(rule, "metric"));
		add_condition(&table, rule);
		table_add(&table, TONE_NONE, "%lld", (long long)json_integer(rule, "instances"));
		table_add(&table, TONE_DIM, "%s", json_word(rule, "origin"));
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

/* Leaves the rules whose name or metric the glob meets; how many. */
static int narrow(cJSON *reply, const char *glob)
{
	cJSON *rules = cJSON_GetObjectItemCaseSensitive(reply, "rules"), *next;
	int left = 0;
	for (cJSON *rule = cJSON_IsArray(rules) ? rules->child : NULL; rule != NULL; rule = next) {
		next = rule->next;
		if (glob == NULL || proto_query_match(glob, json_word(rule, "rule")) ||
			proto_query_match(glob, json_word(rule, "metric"))) {
			left++;
		} else {
			cJSON_Delete(cJSON_DetachItemViaPointer(rules, rule));
		}
	}
	return left;
}

int verb_rules(struct ctl *ctl)
{
	const char *glob = ctl->word_count > 0 ? ctl->words[0] : NULL;
	cJSON *reply;
	int status = ctl_call(ctl, "ListRules", NULL, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (narrow(reply, glob) == 0 && glob != NULL) {
		status = ctl_fail(ctl, CTL_NO_DATA,
			"no alert rule matches '%s'; 'edgeprofctl rules' lists them", glob);
	} else if (!ctl_json(ctl, reply)) {
		show(ctl, reply);
	}
	cJSON_Delete(reply);
	return status;
}
