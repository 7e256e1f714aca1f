/* power: the rails of the board, the total and where it comes from, the energy since the start. */
#include "client/edgeprofctl/verbs.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"

static void add_row(struct ctl *ctl, struct table *table, const char *name, const cJSON *metric)
{
	double value = json_number(metric, "value");
	const char *state = json_word(metric, "state");
	const char *reason = json_word(metric, "reason");
	struct label label = format_value(value, json_word(metric, "unit"), ctl->style.utf8);
	table_add(table, TONE_NONE, "%s", name);
	table_add(table, isnan(value) ? TONE_DIM : TONE_NONE, "%s", label.text);
	table_add(table, TONE_DIM, "%s", json_word(metric, "source"));
	table_add(table, style_of_state(state), "%s", strcmp(state, "ok") == 0 ? "" : state);
	table_add(table, TONE_DIM, "%s", reason[0] == '\0' ? json_word(metric, "origin") : reason);
}

static void show_power(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"RAIL", false, true},
		{"VALUE", true, false},
		{"SOURCE", false, false},
		{"STATE", false, false},
		{"NOTE", false, true},
	};
	/* What the rails add up to comes below them. */
	static const struct {
		const char *metric, *name;
	} sums[] = {
		{"power/total", "Total"},
		{"energy/total", "Energy since start"},
		{"energy/gap_time", "Time not measured"},
	};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *metric = json_first(reply, "metrics"); metric != NULL;
		metric = metric->next) {
		const char *name = json_word(metric, "name");
		if (strncmp(name, "power/", 6) == 0 && strcmp(name, sums[0].metric) != 0) {
			add_row(ctl, &table, name + 6, metric);
		}
	}
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		for (const cJSON *metric = json_first(reply, "metrics"); metric != NULL;
			metric = metric->next) {
			/* no gap is no news */
			if (strcmp(json_word(metric, "name"), sums[i].metric) == 0 &&
				(i < 2 || json_number(metric, "value") > 0)) {
				add_row(ctl, &table, sums[i].name, metric);
			}
		}
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

/* Moves the metrics of one answer behind those of the other. */
static void append(cJSON *to, cJSON *from)
{
	cJSON *all = cJSON_GetObjectItemCaseSensitive(to, "metrics");
	cJSON *more = cJSON_GetObjectItemCaseSensitive(from, "metrics");
	while (cJSON_IsArray(all) && cJSON_IsArray(more) && more->child != NULL) {
		cJSON_AddItemToArray(all, cJSON_DetachItemFromArray(more, 0));
	}
}

int verb_power(struct ctl *ctl)
{
	cJSON *reply, *energy;
	int status = ctl_call(ctl, "ListMetrics", ctl_parameters("glob", "power/*"), true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	status = ctl_call(ctl, "ListMetrics", ctl_parameters("glob", "energy/*"), true, &energy);
	if (status != CTL_FINE) {
		cJSON_Delete(reply);
		return status;
	}
	append(reply, energy);
	cJSON_Delete(energy);
	bool empty = json_count(reply, "metrics") == 0;
	if (!ctl_json(ctl, reply) && !empty) {
		show_power(ctl, reply);
	}
	cJSON_Delete(reply);
	return empty ? ctl_fail(ctl, CTL_NO_DATA,
			       "no rail is measured here; 'edgeprofctl source list' says what "
			       "was looked for")
		     : CTL_FINE;
}
