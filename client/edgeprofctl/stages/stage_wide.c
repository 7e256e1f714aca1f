/* stages --wide: every number, in tables that go together: durations, costs, counts, and the
 * attributes of the stages that have some. */
#include "client/edgeprofctl/stages/stage_views.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"

struct field {
	const char *title, *member;
	int decimals;
};

static const struct field durations[] = {
	{"Count", "count", 0},
	{"Mean", "mean_ms", 3},
	{"Median", "median_ms", 3},
	{"P90", "p90_ms", 3},
	{"P95", "p95_ms", 3},
	{"P99", "p99_ms", 3},
	{"Min", "min_ms", 3},
	{"Max", "max_ms", 3},
	{"Std", "std_ms", 3},
	{"Std n-1", "std_sample_ms", 3},
	{"P99/mean", "tail_ratio", 2},
	{"FPS", "throughput_fps", 1},
};

static const struct field costs[] = {
	{"Total ms", "total_ms", 1},
	{"% category", "percent_of_category", 1},
	{"% total", "percent_of_total", 1},
	{"Runs/frame", "runs_per_frame", 2},
	{"ms/frame", "per_frame_ms", 3},
	{"CPU ms", "cpu_ms", 3},
	{"All CPU ms", "process_cpu_ms", 3},
	{"CPU/wall", "cpu_ratio", 2},
};

static const struct field counts[] = {
	{"Deadline", "deadline_ms", 1},
	{"Misses", "misses", 0},
	{"Worst", "worst_ms", 1},
	{"In a row", "consecutive_misses", 0},
	{"Longest", "longest_consecutive_misses", 0},
	{"Failed", "failed", 0},
	{"Warm-up", "warmup_skipped", 0},
	{"Throttled", "throttled_count", 0},
	{"Unknown", "throttle_unknown_count", 0},
	{"No begin", "orphan_end", 0},
	{"No end", "abandoned", 0},
};

enum { FIELDS_MAX = 12, MORE = 2 };

static void add_costs(struct table *table, const cJSON *stage)
{
	double growth = json_number(stage, "rss_growth_max_bytes");
	table_add(table, TONE_NONE, "%s", isnan(growth) ? "-" : format_bytes(growth).text);
	table_add(table, TONE_NONE, "%s", json_word(stage, "category"));
}

static void add_age(struct table *table, const cJSON *stage)
{
	table_add(table, TONE_NONE, "%s", format_span(json_number(stage, "age_ms") / 1000).text);
}

/* A table of these fields; more: the cells behind them. */
static void show(struct ctl *ctl, const cJSON *reply, const char *app, const struct field *fields,
	size_t count, void (*more)(struct table *table, const cJSON *stage))
{
	struct column columns[1 + FIELDS_MAX + MORE] = {{"Stage", false, true}};
	size_t width = 1;
	for (size_t i = 0; i < count; i++) {
		columns[width++] = (struct column){fields[i].title, true, false};
	}
	if (more == add_costs) {
		columns[width++] = (struct column){"RSS growth", true, false};
		columns[width++] = (struct column){"Category", false, true};
	} else if (more == add_age) {
		columns[width++] = (struct column){"Age", true, false};
	}
	struct table table;
	table_init(&table, columns, width);
	for (const cJSON *stage = json_first(reply, "stages"); stage; stage = stage->next) {
		if (strcmp(json_word(stage, "app"), app) != 0) {
			continue;
		}
		table_add(&table, TONE_NONE, "%s", stage_name(stage).text);
		for (size_t i = 0; i < count; i++) {
			table_add_number(
				&table, json_number(stage, fields[i].member), fields[i].decimals);
		}
		if (more) {
			more(&table, stage);
		}
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

/* What the executions of a stage carried; nothing when none did. */
static void show_attributes(struct ctl *ctl, const cJSON *reply, const char *app)
{
	static const struct column columns[] = {
		{"Stage", false, true},
		{"Attribute", false, true},
		{"Count", true, false},
		{"Last", true, false},
		{"Mean", true, false},
		{"Min", true, false},
		{"Max", true, false},
	};
	static const char *const members[] = {"last", "mean", "min", "max"};
	struct table table;
	bool any = false;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *stage = json_first(reply, "stages"); stage; stage = stage->next) {
		if (strcmp(json_word(stage, "app"), app) != 0) {
			continue;
		}
		for (const cJSON *one = json_first(stage, "attributes"); one; one = one->next) {
			table_add(&table, TONE_NONE, "%s", stage_name(stage).text);
			table_add(&table, TONE_NONE, "%s", json_word(one, "name"));
			table_add_number(&table, json_number(one, "count"), 0);
			for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
				table_add(&table, TONE_NONE, "%.6g", json_number(one, members[i]));
			}
			any = true;
		}
	}
	if (any) {
		fputc('\n', ctl->output.stream);
		table_print(&table, &ctl->style, ctl->output.stream, 0);
	}
	table_finish(&table);
}

void stage_view_wide(struct ctl *ctl, const cJSON *reply, const char *app)
{
	const cJSON *first = json_first(reply, "stages");
	fprintf(ctl->output.stream, "%s%s%s, %s, %s\n", style_on(&ctl->style, TONE_BOLD), app,
		style_off(&ctl->style, TONE_BOLD), json_word(first, "span"),
		json_true(first, "exact") ? "exact" : "percentiles within 1 %");
	show(ctl, reply, app, durations, sizeof(durations) / sizeof(durations[0]), NULL);
	fputc('\n', ctl->output.stream);
	show(ctl, reply, app, costs, sizeof(costs) / sizeof(costs[0]), add_costs);
	fputc('\n', ctl->output.stream);
	show(ctl, reply, app, counts, sizeof(counts) / sizeof(counts[0]), add_age);
	show_attributes(ctl, reply, app);
}
