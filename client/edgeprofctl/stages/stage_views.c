/* SPDX-License-Identifier: Apache-2.0 */
/* stage_views.c: shows the stages of an app as a tree, by category, by compute unit, and with every
 * number. Nesting depth, groups and percentages are the daemon's; only the order is made here. */
#include "client/edgeprofctl/stages/stage_views.h"

#include <math.h>
#include <string.h>

enum { DEPTH_MAX = 16 /* ends a cycle, too */ };

static bool is_of(const cJSON *row, const char *app)
{
	return strcmp(json_word(row, "app"), app) == 0;
}

static const cJSON *from(const cJSON *row, const char *app)
{
	while (row && !is_of(row, app)) {
		row = row->next;
	}
	return row;
}

const cJSON *stage_first(const cJSON *reply, const char *array, const char *app)
{
	return from(json_first(reply, array), app);
}

const cJSON *stage_next(const cJSON *row)
{
	return from(row->next, json_word(row, "app"));
}

static bool is_parent(const cJSON *stage, const cJSON *child)
{
	return is_of(stage, json_word(child, "app")) &&
	       strcmp(json_word(stage, "stage"), json_word(child, "parent")) == 0 &&
	       strcmp(json_word(stage, "unit"), json_word(child, "parent_unit")) == 0;
}

/* NULL: the stage is a root, or its parent is not listed. */
static const cJSON *parent_of(const cJSON *reply, const cJSON *child)
{
	const cJSON *stage = json_first(reply, "stages");
	while (stage && (stage == child || !is_parent(stage, child))) {
		stage = stage->next;
	}
	return stage;
}

/* Adds the children of `parent` (NULL: the roots), each with its own. Each stage is one row,
 * whatever the parents say: rows_left. */
static void add_children(struct listing *listing, const cJSON *reply, const char *app,
	const cJSON *parent, int depth, int *rows_left)
{
	const cJSON *stage = stage_first(reply, "stages", app);
	for (; stage && *rows_left > 0; stage = stage_next(stage)) {
		if (parent_of(reply, stage) == parent) {
			listing->depth = depth;
			listing_add(listing, stage);
			--*rows_left;
			if (depth < DEPTH_MAX) {
				add_children(listing, reply, app, stage, depth + 1, rows_left);
			}
		}
	}
}

void stage_tree_add(struct listing *listing, const cJSON *reply, const char *app)
{
	int rows_left = json_count(reply, "stages");
	add_children(listing, reply, app, NULL, 0, &rows_left);
}

/* Where the recent window was asked for in a view of what is of the lifetime. */
static const char mixed[] =
	"[{?span=recent}(mean, min, max of stages: recent; the rest: lifetime)\n]";

void stage_view_tree(struct ctl *ctl, const cJSON *reply, const char *app)
{
	static const struct field fields[] = {
		{"Stage", FIELD_LONG, STAGE_NAME},
		{"Mean ms", FIELD_NUMBER, "{mean_ms:1}"},
		{"Total ms", FIELD_NUMBER, "{total_ms:1}"},
		{"Own ms", FIELD_NUMBER, "{self_ms:1}"},
		{"% parent", FIELD_NUMBER, "{percent_of_parent:1}"},
		{"% total", FIELD_NUMBER, "{percent_of_total:1}"},
		{"Count", FIELD_NUMBER, "{total_count:0}"},
		{"", FIELD_LONG, "[{?parents>=2}{~dim}in others, too]"},
	};
	struct listing listing;
	listing_begin(&listing, ctl, fields, sizeof(fields) / sizeof(fields[0]));
	stage_tree_add(&listing, reply, app);
	listing_text(ctl, "{~bold}{app}", stage_first(reply, "stages", app));
	fputc('\n', ctl->output.stream);
	listing_text(ctl, mixed, stage_first(reply, "stages", app));
	listing_end(&listing);
}

/* A stage's time without that of the stages inside, which counts there; a group's. */
static double own_ms(const cJSON *item)
{
	double self = json_number(item, "self_ms");
	return isnan(self) ? json_number(item, "total_ms") : self;
}

/* True when a comes after b: less total time, or listed later. */
static bool after(const cJSON *a, const cJSON *b, bool a_is_later)
{
	double x = own_ms(a), y = own_ms(b);
	return x < y || (x == y && a_is_later);
}

/* The next item of the app (and of the category, unless it is NULL) after `last` in the order of
 * total time; NULL: none. The lists are short. */
static const cJSON *next_by_total(const cJSON *reply, const char *list, const char *app,
	const char *category, const cJSON *last)
{
	const cJSON *best = NULL;
	bool seen_last = false;
	for (const cJSON *item = stage_first(reply, list, app); item; item = stage_next(item)) {
		if (item == last) {
			seen_last = true;
		} else if ((!category || strcmp(json_word(item, "category"), category) == 0) &&
			   (!last || after(item, last, seen_last)) &&
			   (!best || after(best, item, false))) {
			best = item;
		}
	}
	return best;
}

static void show_total(struct ctl *ctl, const cJSON *reply, const char *app)
{
	const cJSON *total = stage_first(reply, "totals", app);
	fprintf(ctl->output.stream, "%s%s%s: total profiled time %.3f s\n",
		style_on(&ctl->style, TONE_BOLD), app, style_off(&ctl->style, TONE_BOLD),
		total ? json_number(total, "total_ms") / 1000 : 0);
}

void stage_view_categories(struct ctl *ctl, const cJSON *reply, const char *app)
{
	static const struct field categories[] = {
		{"Category", FIELD_LONG, "{~bold}[{category}|(no category)]"},
		{"Count", FIELD_NUMBER, "{count:0}"},
		{"Total ms", FIELD_NUMBER, "{total_ms:1}"},
		{"Avg ms", FIELD_NUMBER, "{mean_ms:1}"},
		{"Min ms", FIELD_NUMBER, ""},
		{"Max ms", FIELD_NUMBER, ""},
		{"% category", FIELD_NUMBER, ""},
		{"% total", FIELD_NUMBER, "{percent_of_total:2}"},
	};
	static const struct field operations[] = {
		{"", FIELD_LONG, "  " STAGE_NAME},
		{"", FIELD_NUMBER, "{total_count:0}"},
		{"", FIELD_NUMBER, "[{self_ms:1}|{total_ms:1}|-]"},
		{"", FIELD_NUMBER, "{mean_ms:1}"},
		{"", FIELD_NUMBER, "{min_ms:1}"},
		{"", FIELD_NUMBER, "{max_ms:1}"},
		{"", FIELD_NUMBER, "{percent_of_category:2}"},
		{"", FIELD_NUMBER, "{percent_of_total:2}"},
	};
	struct listing listing;
	listing_begin(&listing, ctl, categories, sizeof(categories) / sizeof(categories[0]));
	const cJSON *category = NULL;
	while ((category = next_by_total(reply, "categories", app, NULL, category))) {
		const cJSON *stage = NULL;
		const char *name = json_word(category, "category");
		listing.fields = categories;
		listing_add(&listing, category);
		listing.fields = operations;
		while ((stage = next_by_total(reply, "stages", app, name, stage))) {
			if (json_get(stage, "percent_of_total")) { /* else a total itself */
				listing_add(&listing, stage);
			}
		}
	}
	show_total(ctl, reply, app);
	listing_text(ctl, mixed, stage_first(reply, "stages", app));
	listing_end(&listing);
}

void stage_view_units(struct ctl *ctl, const cJSON *reply, const char *app)
{
	static const struct field fields[] = {
		{"Unit", FIELD_LONG, "[{unit}|(none)]"},
		{"Stages", FIELD_NUMBER, "{stages:0}"},
		{"Count", FIELD_NUMBER, "{count:0}"},
		{"Total ms", FIELD_NUMBER, "{total_ms:1}"},
		{"Mean ms", FIELD_NUMBER, "{mean_ms:1}"},
		{"P50 ms", FIELD_NUMBER, "{p50_ms:1}"},
		{"P95 ms", FIELD_NUMBER, "{p95_ms:1}"},
		{"P99 ms", FIELD_NUMBER, "{p99_ms:1}"},
		{"% total", FIELD_NUMBER, "{percent_of_total:1}"},
	};
	struct listing listing;
	const cJSON *unit = NULL;
	listing_begin(&listing, ctl, fields, sizeof(fields) / sizeof(fields[0]));
	while ((unit = next_by_total(reply, "units", app, NULL, unit))) {
		listing_add(&listing, unit);
	}
	show_total(ctl, reply, app);
	listing_end(&listing);
}

static const struct field durations[] = {
	{"Stage", FIELD_LONG, STAGE_NAME},
	{"Count", FIELD_NUMBER, "{count:0}"},
	{"Mean", FIELD_NUMBER, "{mean_ms:3}"},
	{"Median", FIELD_NUMBER, "{median_ms:3}"},
	{"P90", FIELD_NUMBER, "{p90_ms:3}"},
	{"P95", FIELD_NUMBER, "{p95_ms:3}"},
	{"P99", FIELD_NUMBER, "{p99_ms:3}"},
	{"Min", FIELD_NUMBER, "{min_ms:3}"},
	{"Max", FIELD_NUMBER, "{max_ms:3}"},
	{"Std", FIELD_NUMBER, "{std_ms:3}"},
	{"Std n-1", FIELD_NUMBER, "{std_sample_ms:3}"},
	{"P99/mean", FIELD_NUMBER, "{tail_ratio:2}"},
	{"FPS", FIELD_NUMBER, "{throughput_fps:1}"},
};

static const struct field costs[] = {
	{"Stage", FIELD_LONG, STAGE_NAME},
	{"Total ms", FIELD_NUMBER, "{total_ms:1}"},
	{"% category", FIELD_NUMBER, "{percent_of_category:1}"},
	{"% total", FIELD_NUMBER, "{percent_of_total:1}"},
	{"Runs/frame", FIELD_NUMBER, "{runs_per_frame:2}"},
	{"ms/frame", FIELD_NUMBER, "{per_frame_ms:3}"},
	{"CPU ms", FIELD_NUMBER, "{cpu_ms:3}"},
	{"All CPU ms", FIELD_NUMBER, "{process_cpu_ms:3}"},
	{"CPU/wall", FIELD_NUMBER, "{cpu_ratio:2}"},
	{"RSS growth", FIELD_NUMBER, "{rss_growth_max_bytes:bytes}"},
	{"Category", FIELD_LONG, "{category}"},
};

static const struct field counts[] = {
	{"Stage", FIELD_LONG, STAGE_NAME},
	{"Deadline", FIELD_NUMBER, "{deadline_ms:1}"},
	{"Misses", FIELD_NUMBER, "{misses:0}"},
	{"Worst", FIELD_NUMBER, "{worst_ms:1}"},
	{"In a row", FIELD_NUMBER, "{consecutive_misses:0}"},
	{"Longest", FIELD_NUMBER, "{longest_consecutive_misses:0}"},
	{"Failed", FIELD_NUMBER, "{failed:0}"},
	{"Warm-up", FIELD_NUMBER, "{warmup_skipped:0}"},
	{"Throttled", FIELD_NUMBER, "{throttled_count:0}"},
	{"Unknown", FIELD_NUMBER, "{throttle_unknown_count:0}"},
	{"No begin", FIELD_NUMBER, "{orphan_end:0}"},
	{"No end", FIELD_NUMBER, "{abandoned:0}"},
	{"Age", FIELD_NUMBER, "{age_ms:ms}"},
};

static void show_fields(struct ctl *ctl, const cJSON *reply, const char *app,
	const struct field *fields, size_t count)
{
	struct listing listing;
	listing_begin(&listing, ctl, fields, count);
	const cJSON *stage = stage_first(reply, "stages", app);
	for (; stage; stage = stage_next(stage)) {
		listing_add(&listing, stage);
	}
	listing_end(&listing);
}

/* What the executions of a stage carried; nothing when none did. */
static void show_attributes(struct ctl *ctl, const cJSON *reply, const char *app)
{
	static const struct column columns[] = {{"Stage", false, true}, {"Attribute", false, true},
		{"Count", true, false}, {"Last", true, false}, {"Mean", true, false},
		{"Min", true, false}, {"Max", true, false}};
	static const char *const cells[] = {
		"{name}", "{count:0}", "{last:g6}", "{mean:g6}", "{min:g6}", "{max:g6}"};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	const cJSON *stage = stage_first(reply, "stages", app);
	for (; stage; stage = stage_next(stage)) {
		const cJSON *one = json_first(stage, "attributes");
		for (; one; one = one->next) {
			listing_cell(ctl, &table, STAGE_NAME, stage);
			for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
				listing_cell(ctl, &table, cells[i], one);
			}
		}
	}
	fputs(table.cell_count > 0 ? "\n" : "", ctl->output.stream);
	ctl_table(ctl, &table);
}

void stage_view_wide(struct ctl *ctl, const cJSON *reply, const char *app)
{
	fprintf(ctl->output.stream, "%s%s%s", style_on(&ctl->style, TONE_BOLD), app,
		style_off(&ctl->style, TONE_BOLD));
	listing_text(ctl, ", {span}, [{?exact}exact|percentiles within 1 %]\n",
		json_first(reply, "stages"));
	show_fields(ctl, reply, app, durations, sizeof(durations) / sizeof(durations[0]));
	fputs("\nTotal, %: lifetime. Per frame, CPU: recent window.\n", ctl->output.stream);
	show_fields(ctl, reply, app, costs, sizeof(costs) / sizeof(costs[0]));
	listing_text(ctl, "\nLifetime; throttled, unknown: {span}.\n", json_first(reply, "stages"));
	show_fields(ctl, reply, app, counts, sizeof(counts) / sizeof(counts[0]));
	show_attributes(ctl, reply, app);
}
