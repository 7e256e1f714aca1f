/* SPDX-License-Identifier: Apache-2.0 */
/* report_view.c: shows the tree of a report as tables, for a terminal, in Markdown, or as an HTML
 * page. All have the same lines and sections, described by templates; the page has charts, too, and
 * needs nothing else: no network, no script. */
#include "client/edgeprofctl/report/report_private.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/report/html.h"
#include "client/edgeprofctl/template.h"

enum { CELL_SIZE = 1024 };

static const struct line lines[] = {
	{"App", "{session.app}"},
	{"State", "[{session.state}[: {session.error}]]"},
	{"When", "{session.started_us:time}[, {session.elapsed_s:s}]"},
	{"Model", "[{summary.model}[, input {summary.input_size}]]"},
	{"Tags", "[{*session.tags,, }{name}={value}{/}]"},
	{"Diagnosis", "{diagnosis}"},
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
	{"Slow",
		"[{frames.slow_over_ms:is}{frames.slow_count:count} "
		"[{?frames.slow_count>=2}frames|{?frames.slow_count}frame|frames] took longer than "
		"{frames.slow_over_ms:1} ms]"},
	{"Memory", "[{memory.max:is}peak {memory.max:bytes}, {memory.first:bytes} at the start, "
		   "{memory.last:bytes} at the end|{?recording.unsampled}- (no sensor was read in "
		   "this time)]"},
	{"Target", "[{target.name}[ ({target.note})]]"},
	{"Verdict", "[{*target.verdicts,; }{text}{/}]"},
};

static const struct field pipeline[] = {
	{"Stage", FIELD_LONG, "{label}"},
	{"Mean ms", FIELD_NUMBER, "{mean_ms:1}"},
	{"P95 ms", FIELD_NUMBER, "[{p95_ms:is}{p95_ms:1}]"},
	{"P99 ms", FIELD_NUMBER, "[{p99_ms:is}{p99_ms:1}]"},
	{"Count", FIELD_NUMBER, "[{count:is}{count:0}]"},
};
static const struct field stages[] = {
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

static const struct field slow_frames[] = {
	{"Frame", FIELD_NUMBER, "{frame:0}"},
	{"At", FIELD_NUMBER, "{at_s:2} s"},
	{"Took ms", FIELD_NUMBER, "{total_ms:1}"},
	{"Cause", FIELD_LONG, "{cause}"},
};
static const struct field facts[] = {
	{"Environment", FIELD_TEXT, "{name}"},
	{"Value", FIELD_LONG, "{value}"},
};

#define SECTION(title, fields, chart)                                                     \
	{                                                                                 \
		(title), #fields, (fields), sizeof(fields) / sizeof((fields)[0]), (chart) \
	}
static const struct section {
	const char *title, *array;
	const struct field *fields;
	size_t count;
	void (*chart)(const struct page *page); /* of the HTML page */
} sections[] = {
	SECTION("PIPELINE PROFILING REPORT", pipeline, html_latency),
	SECTION("Breakdown in ms", stages, html_stages),
	SECTION("Total profiled time", operations, NULL),
	SECTION("By compute unit", units, NULL),
	SECTION("Deadlines", deadlines, NULL),
	SECTION("Slow frames", slow_frames, NULL),
	SECTION("Metrics", metrics, html_time),
	SECTION("Events", events, NULL),
	SECTION("Environment", facts, NULL),
};

void report_text(struct ctl *ctl, cJSON *tree)
{
	FILE *out = ctl->output.stream;
	ctl->style.fit = true;
	report_prepare(tree, ctl->style.utf8);
	listing_text(ctl, "{~bold}Report of [{session.name}|{session.app}]", tree);
	fputc('\n', out);
	listing_facts(ctl, tree, lines, sizeof(lines) / sizeof(lines[0]));
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

/* What stands around the parts of a document; of cells, those of numbers come second. */
struct form {
	const char *title[2], *name[2], *value[2], *lines_end, *section[2], *table[2];
	const char *head[2][2], *rule[2], *row[2], *cell[2][2], *notes[2], *note[2], *end;
};

static const struct form markdown = {.title = {"# Report of ", "\n\n"},
	.name = {"- ", ": "},
	.value = {"", "\n"},
	.lines_end = "",
	.section = {"\n## ", "\n"},
	.table = {"\n|", "\n"},
	.head = {{" ", " |"}, {" ", " |"}},
	.rule = {" --- |", " ---: |"},
	.row = {"\n|", ""},
	.cell = {{" ", " |"}, {" ", " |"}},
	.notes = {"\n## Keep in mind\n\n", ""},
	.note = {"- ", "\n"},
	.end = ""};

static const struct form html = {.title = {"<h1>Report of ", "</h1>\n<dl>\n"},
	.name = {"<dt>", "</dt>"},
	.value = {"<dd>", "</dd>\n"},
	.lines_end = "</dl>\n",
	.section = {"<section><h2>", "</h2>\n"},
	.table = {"<table><tr>", "</table>\n"},
	.head = {{"<th>", "</th>"}, {"<th class=\"n\">", "</th>"}},
	.rule = {"", ""},
	.row = {"<tr>", "</tr>\n"},
	.cell = {{"<td>", "</td>"}, {"<td class=\"n\">", "</td>"}},
	.notes = {"<section><h2>Keep in mind</h2>\n<ul>\n", "</ul></section>\n"},
	.note = {"<li>", "</li>\n"},
	.end = "</section>\n"};

/* A template's text between two others, with what the form would act on escaped; in Markdown,
 * spaces in front indent. */
static void put(const struct page *page, const struct form *form, const char *const around[2],
	const char *template, const cJSON *object)
{
	char bytes[CELL_SIZE], *cell = bytes;
	struct text text = TEXT_IN(bytes);
	template_add(&text, template, object, true);
	style_take(bytes, TONE_NONE);
	fputs(around[0], page->out);
	for (; *cell == ' '; cell++) {
		fputs("&nbsp;", page->out);
	}
	for (; form == &markdown && *cell != '\0'; cell++) {
		fputs(strchr("\\`*_[]<>|~#&", *cell) ? "\\" : "", page->out);
		fputc(*cell, page->out);
	}
	fprintf(page->out, "%s%s", html_text(cell).text, around[1]);
}

static void put_section(
	const struct page *page, const struct form *form, const struct section *section)
{
	FILE *out = page->out;
	bool empty = json_count(page->tree, section->array) == 0;
	bool measured = page->data->stage_count + page->data->frame_count > 0;
	bool chart = form == &html && section->chart && measured;
	if (empty && !chart) {
		return;
	}
	fprintf(out, "%s%s%s", form->section[0], section->title, form->section[1]);
	if (chart) {
		section->chart(page);
	}
	fputs(form->table[0], out);
	for (size_t i = 0; i < section->count; i++) {
		bool number = section->fields[i].kind == FIELD_NUMBER;
		put(page, form, form->head[number], section->fields[i].title, NULL);
	}
	fputs(form->row[form == &markdown ? 0 : 1], out);
	for (size_t i = 0; i < section->count; i++) {
		fputs(form->rule[section->fields[i].kind == FIELD_NUMBER], out);
	}
	for (const cJSON *row = json_first(page->tree, section->array); row; row = row->next) {
		fputs(form->row[0], out);
		for (size_t i = 0; i < section->count; i++) {
			bool number = section->fields[i].kind == FIELD_NUMBER;
			put(page, form, form->cell[number], section->fields[i].template, row);
		}
		fputs(form->row[1], out);
	}
	fprintf(out, "%s%s", form->table[1], form->end);
}

static void put_document(const struct page *page, const struct form *form)
{
	const cJSON *tree = page->tree;
	put(page, form, form->title, "[{session.name}|{session.app}]", tree);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char value[CELL_SIZE];
		struct text text = TEXT_IN(value);
		template_add(&text, lines[i].values, tree, true);
		if (!style_is_blank(value)) {
			put(page, form, form->name, lines[i].name, tree);
			put(page, form, form->value, lines[i].values, tree);
		}
	}
	fputs(form->lines_end, page->out);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		put_section(page, form, &sections[i]);
	}
	if (json_count(tree, "warnings") > 0) {
		fputs(form->notes[0], page->out);
		for (const cJSON *one = json_first(tree, "warnings"); one; one = one->next) {
			put(page, form, form->note, "{}", one);
		}
		fputs(form->notes[1], page->out);
	}
}

void report_markdown(const struct data *data, cJSON *tree, FILE *out)
{
	struct page page = {out, data, tree, data->span_s};
	report_prepare(tree, true);
	put_document(&page, &markdown);
}

/* The browser is denied network and scripts by the content security policy. */
void report_html(const struct data *data, cJSON *tree, FILE *out)
{
	bool known = data->span_s > 0 && isfinite(data->span_s);
	struct page page = {out, data, tree, known ? data->span_s : 1e-3};
	report_prepare(tree, true);
	fprintf(out,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'unsafe-inline'\">\n<title>%s: edgeprof report</title>\n<style>\n"
		"%s</style></head>\n<body><main>\n",
		html_text(data->name[0] != '\0' ? data->name : data->app).text, report_css);
	put_document(&page, &html);
	fputs("<footer>edgeprofctl " EDGEPROF_VERSION "</footer>\n</main></body></html>\n", out);
}
