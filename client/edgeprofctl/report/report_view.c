/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_view.c: shows the tree of a report as tables, for a terminal or in Markdown. Both have the
 * same lines and sections, described by templates; rows that only people want (totals, operations
 * below their category) are made here.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/report/report.h"
#include "client/edgeprofctl/template.h"
#include "proto/name.h"

enum { TOP = 3, METRICS = 24, EVENTS = 20, CELL_SIZE = 1024 };

static const struct line lines[] = {
	{"App", "{session.app}"},
	{"State", "[{session.state}[: {session.error}]]"},
	{"When", "{session.started_us:time}[, {session.elapsed_s:s}]"},
	{"Device", "[{environment.device}|{environment.model}]"
		   "[{environment.os:is}{, }{environment.os}]"
		   "[{environment.kernel:is}{, }{environment.kernel}]"
		   "[{environment.governor:is}{, }governor {environment.governor}]"},
	{"Model", "[{summary.model}[, input {summary.input_size}]]"},
	{"Tags", "[{*tags,, }{name}={value}{/}]"},
	{"Frames", "{summary.frames_profiled:count}"
		   "[{?frames.warmup_skipped}, {frames.warmup_skipped:0} of warm-up skipped]"},
	{"Rate", "[{?frames.fps}{frames.fps:1} fps[, {frames.fps_1s_min:0} to "
		 "{frames.fps_1s_max:0} in full seconds]]"},
	{"1/dt", "[{?frames.fps}mean {frames.fps_mean:1}, p5 {frames.fps_p5:1}, p95 "
		 "{frames.fps_p95:1} fps]"},
	{"Frame time", "[{?frames.fps}mean {frames.frame_time_mean_ms:1}, p95 "
		       "{frames.frame_time_p95_ms:1}, p99 {frames.frame_time_p99_ms:1} ms]"},
	{"Jitter", "[{?frames.fps}{frames.jitter_ms:1} ms]"},
	{"End to end", "[{frames.end_to_end_mean_ms:is}mean {frames.end_to_end_mean_ms:1}, p95 "
		       "{frames.end_to_end_p95_ms:1}, p99 {frames.end_to_end_p99_ms:1} ms]"},
	{"Deadline", "[{frames.deadline_ms:is}{frames.deadline_ms:g4} ms, {frames.misses:0} missed"
		     "[{?frames.misses} ({frames.miss_rate:share})]]"},
	{"Misses", "[{?frames.misses}at most {frames.longest_consecutive_misses:0} in a row, worst "
		   "{frames.worst_ms:1} ms]"},
	{"Most time in", "[{*top,, }{label} {percent_of_total:1} %{/}]"},
	{"Memory", "[{memory.peak:is}peak {memory.peak:bytes}, {memory.first:bytes} at the start]"},
	{"", "[{memory.peak:is}{memory.last:bytes} at the end]"},
	{"Target", "[{target.name}[ ({target.note})]]"},
	{"", "[{*verdicts,; }{text}{/}]"},
};

static const struct field pipeline[] = {
	{"Stage", FIELD_LONG, "{label}"},
	{"Mean ms", FIELD_NUMBER, "{mean_ms:1}"},
	{"P95 ms", FIELD_NUMBER, "[{p95_ms:is}{p95_ms:1}]"},
	{"P99 ms", FIELD_NUMBER, "[{p99_ms:is}{p99_ms:1}]"},
	{"Count", FIELD_NUMBER, "[{count:is}{count:0}]"},
};
static const struct field breakdown[] = {
	{"Stage", FIELD_LONG, "{label}"},
	{"Per call", FIELD_NUMBER, "{mean_ms:2}"},
	{"Calls", FIELD_NUMBER, "{runs_per_frame:2}"},
	{"Per frame", FIELD_NUMBER, "{per_frame_ms:2}"},
	{"% total", FIELD_NUMBER, "{percent_of_total:1}"},
	{"% parent", FIELD_NUMBER, "[{parent:is}{percent_of_parent:1}]"},
	{"P99/mean", FIELD_NUMBER, "{tail_ratio:2}"},
	{"Priority", FIELD_TEXT, "[{priority}]"},
};
static const struct field operations[] = {
	{"Category", FIELD_LONG, "{label}"},
	{"Count", FIELD_NUMBER, "[{count:is}{count:0}]"},
	{"Total s", FIELD_NUMBER, "{own_s:3}"},
	{"% cat.", FIELD_NUMBER, "[{percent_of_category:is}{percent_of_category:2}]"},
	{"% total", FIELD_NUMBER, "{percent_of_total:2}"},
	{"Avg ms", FIELD_NUMBER, "[{mean_ms:is}{mean_ms:2}]"},
	{"Min ms", FIELD_NUMBER, "[{min_ms:is}{min_ms:2}]"},
	{"Max ms", FIELD_NUMBER, "[{max_ms:is}{max_ms:2}]"},
};
static const struct field units[] = {
	{"Unit", FIELD_LONG, "[{unit}|(none)]"},
	{"Stages", FIELD_NUMBER, "{stages:0}"},
	{"Count", FIELD_NUMBER, "{count:0}"},
	{"Mean ms", FIELD_NUMBER, "{mean_ms:2}"},
	{"P99 ms", FIELD_NUMBER, "{p99_ms:2}"},
	{"% total", FIELD_NUMBER, "{percent_of_total:1}"},
};
static const struct field deadlines[] = {
	{"Stage", FIELD_LONG, "{label}"},
	{"Deadline ms", FIELD_NUMBER, "{deadline_ms:g4}"},
	{"Missed", FIELD_NUMBER, "[{?misses}{~bad}]{misses:0}"},
	{"Share", FIELD_NUMBER, "{miss_rate:share}"},
	{"In a row", FIELD_NUMBER, "{longest_consecutive_misses:0}"},
	{"Worst ms", FIELD_NUMBER, "{worst_ms:1}"},
};
static const struct field metrics[] = {
	{"Metric", FIELD_LONG, "{name}"},
	{"Mean", FIELD_NUMBER, "{mean:value}"},
	{"Min", FIELD_NUMBER, "{min:value}"},
	{"Max", FIELD_NUMBER, "{max:value}"},
};
static const struct field events[] = {
	{"At", FIELD_NUMBER, "{at_s:1} s"},
	{"Kind", FIELD_TEXT, "{kind}"},
	{"What", FIELD_LONG, "[{~:severity}]{text}"},
};

#define SECTION(title, fields)                                                   \
	{                                                                        \
		(title), #fields, (fields), sizeof(fields) / sizeof((fields)[0]) \
	}
static const struct section {
	const char *title, *array;
	const struct field *fields;
	size_t count;
} sections[] = {
	SECTION("PIPELINE PROFILING REPORT", pipeline),
	SECTION("Breakdown in ms", breakdown),
	SECTION("Total profiled time", operations),
	SECTION("By compute unit", units),
	SECTION("Deadlines", deadlines),
	SECTION("Metrics", metrics),
	SECTION("Events", events),
};

static cJSON *copy_row(cJSON *array, const cJSON *row, const char *indent, const char *name)
{
	char label[CELL_SIZE];
	const char *unit = json_word(row, "unit");
	cJSON *copy = row ? cJSON_Duplicate(row, true) : cJSON_CreateObject();
	bool with_unit = unit[0] != '\0' && json_text(row, "stage");
	snprintf(label, sizeof(label), "%s%s%s%s", indent, name, with_unit ? "@" : "",
		with_unit ? unit : "");
	cJSON_AddStringToObject(copy, "label", label);
	cJSON_AddItemToArray(array, copy);
	return copy;
}

static void add_pipeline(cJSON *tree)
{
	cJSON *rows = cJSON_AddArrayToObject(tree, "pipeline");
	cJSON *parts = cJSON_AddArrayToObject(tree, "breakdown");
	cJSON *late = cJSON_AddArrayToObject(tree, "deadlines");
	const cJSON *total = json_first(tree, "totals");
	for (const cJSON *row = json_first(tree, "stages"); row; row = row->next) {
		char indent[32];
		double depth = fmin(json_number(row, "depth"), 8);
		snprintf(indent, sizeof(indent), "%*s", 2 * (int)depth, "");
		copy_row(rows, row, indent, json_word(row, "stage"));
		copy_row(parts, row, indent, json_word(row, "stage"));
		if (json_get(row, "deadline_ms")) {
			copy_row(late, row, "", json_word(row, "stage"));
		}
	}
	json_add_number(
		copy_row(rows, NULL, "", "TOTAL"), "mean_ms", json_number(total, "mean_ms"));
	json_add_number(
		copy_row(rows, NULL, "", "MAX FPS"), "mean_ms", json_number(total, "max_fps"));
}

/* The stage of the category (NULL: any) with most own time below `below_ms`, or equal and later. */
static const cJSON *next_stage(const cJSON *tree, const char *category, const cJSON *last)
{
	const cJSON *best = NULL;
	bool behind = false;
	for (const cJSON *row = json_first(tree, "stages"); row; row = row->next) {
		double ms = json_number(row, "self_ms"), last_ms = json_number(last, "self_ms");
		bool fits = json_get(row, "percent_of_total") && row != last &&
			    (!category || strcmp(json_word(row, "category"), category) == 0);
		if (fits && (!last || ms < last_ms || (ms == last_ms && behind)) &&
			(!best || ms > json_number(best, "self_ms"))) {
			best = row;
		}
		behind = behind || row == last;
	}
	return best;
}

static void add_operations(cJSON *tree)
{
	cJSON *rows = cJSON_AddArrayToObject(tree, "operations");
	cJSON *top = cJSON_AddArrayToObject(tree, "top");
	for (const cJSON *row = json_first(tree, "categories"); row; row = row->next) {
		const char *category = json_word(row, "category");
		cJSON *copy = copy_row(rows, row, "", category[0] ? category : "(no category)");
		json_add_number(copy, "own_s", json_number(row, "total_ms") / 1000);
		const cJSON *stage = NULL;
		while ((stage = next_stage(tree, category, stage))) {
			copy = copy_row(rows, stage, "  ", json_word(stage, "stage"));
			json_add_number(copy, "own_s", json_number(stage, "self_ms") / 1000);
		}
	}
	const cJSON *stage = next_stage(tree, NULL, NULL);
	for (int i = 0; stage && i < TOP; i++, stage = next_stage(tree, NULL, stage)) {
		copy_row(top, stage, "", json_word(stage, "stage"));
	}
	if (rows->child) {
		cJSON *total = copy_row(rows, NULL, "", "TOTAL");
		json_add_number(
			total, "own_s", json_number(json_first(tree, "totals"), "total_ms") / 1000);
		json_add_number(total, "percent_of_total", 100);
	}
}

static void add_metrics(cJSON *tree)
{
	static const char *const globs[] = {"temperature/*", "throttle/active", "power/*", "gpu/*",
		"cpu/utilization", "cpu/*/frequency", "memory/used_percent", "fan/*",
		"process/%s/cpu", "process/%s/threads", "process/%s/run_delay"};
	cJSON *rows = cJSON_AddArrayToObject(tree, "metrics");
	const cJSON *series = json_get(tree, "series");
	const char *app = json_word(json_get(tree, "session"), "app");
	char own[128];
	for (size_t g = 0; g < sizeof(globs) / sizeof(globs[0]); g++) {
		const char *rest = strchr(globs[g], '%');
		snprintf(own, sizeof(own), "%.*s%s%s", rest ? (int)(rest - globs[g]) : 100,
			globs[g], rest ? app : "", rest ? rest + 2 : "");
		for (const cJSON *one = series ? series->child : NULL; one; one = one->next) {
			if (cJSON_GetArraySize(rows) < METRICS &&
				proto_glob_match(own, one->string)) {
				cJSON *copy = copy_row(rows, one, "", "");
				cJSON_AddStringToObject(copy, "name", one->string);
			}
		}
	}
	snprintf(own, sizeof(own), "process/%s/rss", app);
	const cJSON *rss = json_get(series, own);
	if (rss) {
		cJSON *memory = cJSON_AddObjectToObject(tree, "memory");
		json_add_number(memory, "peak", json_number(rss, "max"));
		json_add_number(memory, "first", json_number(rss, "first"));
		json_add_number(memory, "last", json_number(rss, "last"));
	}
}

/* Rows for people, in place: the tree is not used for anything else after that. */
static void prepare(struct ctl *ctl, const cJSON *tree)
{
	cJSON *own = (cJSON *)(uintptr_t)tree;
	cJSON *list = cJSON_GetObjectItemCaseSensitive(own, "events");
	const cJSON *tags = json_get(json_get(tree, "session"), "tags");
	const cJSON *verdicts = json_get(json_get(tree, "target"), "verdicts");
	cJSON_AddItemToObject(own, "tags", cJSON_Duplicate(tags, true));
	cJSON_AddItemToObject(own, "verdicts", cJSON_Duplicate(verdicts, true));
	json_clean(own, ctl->style.utf8);
	add_pipeline(own);
	add_operations(own);
	add_metrics(own);
	while (cJSON_GetArraySize(list) > EVENTS) {
		cJSON_DeleteItemFromArray(list, 0);
	}
}

void report_text(struct ctl *ctl, const cJSON *tree)
{
	static const struct column columns[] = {{NULL, false, false}, {NULL, false, true}};
	FILE *out = ctl->output.stream;
	struct table table;
	ctl->style.fit = true;
	prepare(ctl, tree);
	listing_text(ctl, "{~bold}Report of [{session.name}|{session.app}]", tree);
	fputc('\n', out);
	table_init(&table, columns, 2);
	listing_lines(ctl, &table, tree, lines, sizeof(lines) / sizeof(lines[0]));
	ctl_table(ctl, &table);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (json_count(tree, sections[i].array) > 0) {
			fprintf(out, "\n%s%s%s\n", style_on(&ctl->style, TONE_BOLD),
				sections[i].title, style_off(&ctl->style, TONE_BOLD));
			listing_show(ctl, tree, sections[i].array, sections[i].fields,
				sections[i].count);
		}
	}
	if (json_count(tree, "warnings") > 0) {
		fprintf(out, "\n%sKeep in mind%s\n", style_on(&ctl->style, TONE_BOLD),
			style_off(&ctl->style, TONE_BOLD));
		listing_texts(ctl, "- {}\n", tree, "warnings");
	}
}

/* A template's text, with what Markdown would act on escaped; spaces in front indent. */
static void markdown_cell(struct ctl *ctl, const char *template, const cJSON *object)
{
	char cell[CELL_SIZE];
	struct text text = TEXT_IN(cell);
	template_add(&text, template, object, ctl->style.utf8);
	style_take(cell, TONE_NONE);
	const char *at = cell;
	for (; *at == ' '; at++) {
		fputs("&nbsp;", ctl->output.stream);
	}
	for (; *at != '\0'; at++) {
		fputs(strchr("\\`*_[]<>|~#&", *at) ? "\\" : "", ctl->output.stream);
		fputc(*at, ctl->output.stream);
	}
}

static void markdown_table(struct ctl *ctl, const cJSON *tree, const struct section *section)
{
	FILE *out = ctl->output.stream;
	fprintf(out, "\n## %s\n\n|", section->title);
	for (size_t i = 0; i < section->count; i++) {
		fprintf(out, " %s |", section->fields[i].title);
	}
	fputs("\n|", out);
	for (size_t i = 0; i < section->count; i++) {
		fputs(section->fields[i].kind == FIELD_NUMBER ? " ---: |" : " --- |", out);
	}
	for (const cJSON *row = json_first(tree, section->array); row; row = row->next) {
		fputs("\n|", out);
		for (size_t i = 0; i < section->count; i++) {
			fputc(' ', out);
			markdown_cell(ctl, section->fields[i].template, row);
			fputs(" |", out);
		}
	}
	fputc('\n', out);
}

void report_markdown(struct ctl *ctl, const cJSON *tree)
{
	FILE *out = ctl->output.stream;
	prepare(ctl, tree);
	fputs("# Report of ", out);
	markdown_cell(ctl, "[{session.name}|{session.app}]", tree);
	fputs("\n\n", out);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char value[CELL_SIZE];
		struct text text = TEXT_IN(value);
		template_add(&text, lines[i].values, tree, ctl->style.utf8);
		if (!style_is_blank(value)) {
			fprintf(out, "- %s%s", lines[i].name, lines[i].name[0] ? ": " : "");
			markdown_cell(ctl, lines[i].values, tree);
			fputc('\n', out);
		}
	}
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (json_count(tree, sections[i].array) > 0) {
			markdown_table(ctl, tree, &sections[i]);
		}
	}
	if (json_count(tree, "warnings") > 0) {
		fputs("\n## Keep in mind\n\n", out);
	}
	for (const cJSON *one = json_first(tree, "warnings"); one; one = one->next) {
		fputs("- ", out);
		markdown_cell(ctl, "{}", one);
		fputc('\n', out);
	}
}
