/* stages --by category|unit: where the time goes. Groups, and the operations in them, stand in the
 * order of their total time. */
#include "client/edgeprofctl/stages/stage_views.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/table.h"

static bool is_of(const cJSON *item, const char *app)
{
	return strcmp(json_word(item, "app"), app) == 0;
}

/* A stage's time without that of the stages inside, which counts there; a group's. */
static double own_ms(const cJSON *item)
{
	double self = json_number(item, "self_ms");
	return isnan(self) ? json_number(item, "total_ms") : self;
}

/* True when a comes behind b: less total time, or listed later. */
static bool behind(const cJSON *a, const cJSON *b, bool a_is_later)
{
	double x = own_ms(a), y = own_ms(b);
	return x < y || (x == y && a_is_later);
}

/* The next item of the app (and of the category, when it is not NULL) behind `last` in the order of
 * total time; NULL: none. The lists are short. */
static const cJSON *next_by_total(const cJSON *reply, const char *list, const char *app,
	const char *category, const cJSON *last)
{
	const cJSON *best = NULL;
	bool seen_last = false;
	for (const cJSON *item = json_first(reply, list); item; item = item->next) {
		if (item == last) {
			seen_last = true;
			continue;
		}
		if (!is_of(item, app) ||
			(category && strcmp(json_word(item, "category"), category) != 0)) {
			continue;
		}
		if ((!last || behind(item, last, seen_last)) &&
			(!best || behind(best, item, false))) {
			best = item;
		}
	}
	return best;
}

static void show_total(struct ctl *ctl, const cJSON *reply, const char *app)
{
	const cJSON *total = json_first(reply, "totals");
	while (total && !is_of(total, app)) {
		total = total->next;
	}
	fprintf(ctl->output.stream, "%s%s%s: total profiled time %.3f s\n",
		style_on(&ctl->style, TONE_BOLD), app, style_off(&ctl->style, TONE_BOLD),
		!total ? 0 : json_number(total, "total_ms") / 1000);
}

static void add_operation(struct table *table, const cJSON *stage)
{
	table_add(table, TONE_NONE, "  %s", stage_name(stage).text);
	table_add_number(table, json_number(stage, "total_count"), 0);
	table_add_number(table, own_ms(stage), 1);
	table_add_number(table, json_number(stage, "mean_ms"), 1);
	table_add_number(table, json_number(stage, "min_ms"), 1);
	table_add_number(table, json_number(stage, "max_ms"), 1);
	table_add_number(table, json_number(stage, "percent_of_category"), 2);
	table_add_number(table, json_number(stage, "percent_of_total"), 2);
}

static void add_category(struct table *table, const cJSON *category)
{
	const char *name = json_word(category, "category");
	table_add(table, TONE_BOLD, "%s", name[0] == '\0' ? "(no category)" : name);
	table_add_number(table, json_number(category, "count"), 0);
	table_add_number(table, json_number(category, "total_ms"), 1);
	table_add_number(table, json_number(category, "mean_ms"), 1);
	for (int i = 0; i < 3; i++) {
		table_add(table, TONE_NONE, "%s", "");
	}
	table_add_number(table, json_number(category, "percent_of_total"), 2);
}

void stage_view_categories(struct ctl *ctl, const cJSON *reply, const char *app)
{
	static const struct column columns[] = {
		{"Category", false, true},
		{"Count", true, false},
		{"Total ms", true, false},
		{"Avg ms", true, false},
		{"Min ms", true, false},
		{"Max ms", true, false},
		{"% category", true, false},
		{"% total", true, false},
	};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	const cJSON *category = NULL;
	while ((category = next_by_total(reply, "categories", app, NULL, category))) {
		const cJSON *stage = NULL;
		const char *name = json_word(category, "category");
		add_category(&table, category);
		while ((stage = next_by_total(reply, "stages", app, name, stage))) {
			if (json_get(stage, "percent_of_total")) { /* else a total itself */
				add_operation(&table, stage);
			}
		}
	}
	show_total(ctl, reply, app);
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

void stage_view_units(struct ctl *ctl, const cJSON *reply, const char *app)
{
	static const struct column columns[] = {
		{"Unit", false, true},
		{"Stages", true, false},
		{"Count", true, false},
		{"Total ms", true, false},
		{"Mean ms", true, false},
		{"P50 ms", true, false},
		{"P95 ms", true, false},
		{"P99 ms", true, false},
		{"% total", true, false},
	};
	static const char *const numbers[] = {
		"total_ms", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "percent_of_total"};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	const cJSON *unit = NULL;
	while ((unit = next_by_total(reply, "units", app, NULL, unit))) {
		const char *name = json_word(unit, "unit");
		table_add(&table, TONE_NONE, "%s", name[0] == '\0' ? "(none)" : name);
		table_add_number(&table, json_number(unit, "stages"), 0);
		table_add_number(&table, json_number(unit, "count"), 0);
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			table_add_number(&table, json_number(unit, numbers[i]), 1);
		}
	}
	show_total(ctl, reply, app);
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}
