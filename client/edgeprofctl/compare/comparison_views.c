/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_views.c: writes comparisons as text, Markdown and JUnit. */
#include "client/edgeprofctl/compare/comparison_views.h"

#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/compare/document.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/template.h"
#include "proto/text.h"

enum { LINE_SIZE = 4096 };

#define VALUE(member) "[{?name=memory/peak_bytes}{" member ":bytes}|{" member ":g4}|-]"
/* Without the other end it could be anything. */
#define INTERVAL "[{?high_percent>=1000}too wide|{low_percent:+1} to {high_percent:+1} %|-]"
#define RUNS(side) "[{?" side "_runs>=2}, mean of {" side "_runs:0} runs]"
#define WARMUP(side) "[{?" side "_warmup}, {" side "_warmup:0} values of warm-up skipped]"
#define MATCHING(side) "{thermal." side "_kept:0} of {thermal." side "_frames:0}"
#define VERDICT(otherwise)                                                  \
	"[{?regression}{~bad}regression|{?verdict=slower}{~warn}{verdict}|" \
	"{?verdict=faster}{~good}{verdict}|{~dim}" otherwise "]"

enum { NARROW = 82, WIDE = 108 };

static void add_heading(struct ctl *ctl, const cJSON *comparison, const cJSON *result)
{
	static const struct column columns[] = {{NULL, false, false}, {NULL, false, true}};
	static const struct line lines[] = {
		{"Baseline", "{baseline}" RUNS("baseline") WARMUP("baseline")},
		{"Current", "{current}" RUNS("current") WARMUP("current")},
		{"Same conditions", "[{thermal.current_kept:is}" MATCHING("baseline") ", " MATCHING(
					    "current") " frames]"},
		{"{*incomplete}Incomplete", "{~warn}{name}: {reason}"},
		{"{*environment}Not the same", "{~warn}{name}: [{baseline}|-] / [{current}|-]"},
	};
	struct table table;
	const char *verdict = json_word(comparison, "verdict");
	long long regressions = (long long)json_integer(comparison, "regressions");
	enum tone tone = regressions > 0 ? TONE_BAD : TONE_BOLD;
	fputs(style_on(&ctl->style, tone), ctl->output.stream);
	if (regressions > 0) {
		fprintf(ctl->output.stream, "%lld %s", regressions,
			regressions == 1 ? "regression" : "regressions");
	} else {
		fputs(strcmp(verdict, "no data") == 0 ? "Not comparable" : "No regression",
			ctl->output.stream);
	}
	fprintf(ctl->output.stream, " (threshold %.4g %%)%s\n",
		json_number(result, "threshold_percent"), style_off(&ctl->style, tone));
	table_init(&table, columns, 2);
	listing_lines(ctl, &table, comparison, lines, sizeof(lines) / sizeof(lines[0]));
	ctl_table(ctl, &table);
}

static void add_rows(struct ctl *ctl, const cJSON *comparison)
{
	static const struct field narrow[] = {
		{"METRIC", FIELD_LONG, "{name}"},
		{"CURRENT", FIELD_NUMBER, VALUE("current")},
		{"DIFF %", FIELD_NUMBER, "{difference_percent:+1}"},
		{"VERDICT", FIELD_TEXT, VERDICT("[{?verdict=no difference shown}|{verdict}]")},
	};
	static const struct field wide[] = {
		{"METRIC", FIELD_LONG, "{name}"},
		{"BASELINE", FIELD_NUMBER, VALUE("baseline")},
		{"CURRENT", FIELD_NUMBER, VALUE("current")},
		{"DIFF %", FIELD_NUMBER, "{difference_percent:+1}"},
		{"VERDICT", FIELD_TEXT, VERDICT("{verdict}")},
		{"95 % INTERVAL", FIELD_NUMBER, "{~dim}" INTERVAL},
	};
	unsigned width = ctl->style.width;
	if (width > 0 && width < NARROW) {
		listing_show(ctl, comparison, "rows", narrow, sizeof(narrow) / sizeof(narrow[0]));
	} else {
		listing_show(ctl, comparison, "rows", wide,
			sizeof(wide) / sizeof(wide[0]) - (width > 0 && width < WIDE));
	}
}

void comparison_text(struct ctl *ctl, const cJSON *result)
{
	const cJSON *comparison = json_first(result, "comparisons");
	for (; comparison; comparison = comparison->next) {
		add_heading(ctl, comparison, result);
		fputc('\n', ctl->output.stream);
		add_rows(ctl, comparison);
		fputs(comparison->next ? "\n" : "", ctl->output.stream);
	}
}

void comparison_table(struct ctl *ctl, const cJSON *result)
{
	static const struct field fields[] = {
		{"NAME", FIELD_LONG, "{name}"},
		{"FRAMES", FIELD_NUMBER, "{frames:0}"},
		{"MEAN ms", FIELD_NUMBER, "{mean_ms:2}"},
		{"P95 ms", FIELD_NUMBER, "{p95_ms:2}"},
		{"MAX FPS", FIELD_NUMBER, "{max_fps:1}"},
		{"DIFF %", FIELD_NUMBER, "[{mean_difference_percent:+1}]"},
		{"SIZE MB", FIELD_NUMBER, "[{size_mb:1}]"},
		{"ACCURACY", FIELD_NUMBER, "[{accuracy:g4}[ ({accuracy_diff:+4})]]"},
		{"ERROR", FIELD_LONG, "{~bad}[{error}]"},
	};
	listing_show(ctl, result, "variants", fields, sizeof(fields) / sizeof(fields[0]));
}

/* What the template says, with the characters escaped that Markdown or HTML would act on. */
static void add_escaped(const struct ctl *ctl, const char *template, const cJSON *object)
{
	char bytes[LINE_SIZE], one[2] = "";
	struct text text = TEXT_IN(bytes);
	template_add(&text, template, object, true);
	style_take(bytes, TONE_NONE);
	for (const char *at = bytes; *at != '\0'; at++) {
		one[0] = *at;
		fputs(strchr("|\\`*_[]#", *at) ? "\\" : "", ctl->output.stream);
		document_xml(ctl->output.stream, one);
	}
}

static void add_markdown_row(const struct ctl *ctl, const cJSON *row)
{
	static const char *const cells[] = {"{name}", VALUE("baseline"), VALUE("current"),
		"[{difference_percent:+1} %|-]", INTERVAL};
	FILE *out = ctl->output.stream;
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		fputs("| ", out);
		add_escaped(ctl, cells[i], row);
		fputc(' ', out);
	}
	fputs(json_true(row, "regression") ? "| **" : "| ", out);
	add_escaped(ctl, VERDICT("{verdict}"), row);
	fputs(json_true(row, "regression") ? "** |\n" : " |\n", out);
}

static void add_markdown_rows(const struct ctl *ctl, const cJSON *comparison, bool decide)
{
	fputs("\n| Metric | Baseline | Current | Difference | 95 % interval | Verdict |\n"
	      "|---|---:|---:|---:|---:|---|\n",
		ctl->output.stream);
	for (const cJSON *row = json_first(comparison, "rows"); row; row = row->next) {
		if (json_true(row, "decides") == decide) {
			add_markdown_row(ctl, row);
		}
	}
}

void comparison_markdown(struct ctl *ctl, const cJSON *result)
{
	static const char *const conditions[] = {"{baseline}" RUNS("baseline") WARMUP("baseline"),
		"; {current}" RUNS("current") WARMUP("current") ". ",
		"[{thermal.current_kept:is}Frames of the same temperature and clock: " MATCHING(
			"baseline") ", " MATCHING("current") ". ]",
		"[Incomplete: {*incomplete,, }{name} ({reason}){/}. ]",
		("[Not the same configuration: "
		 "{*environment,, }{name} [{baseline}|none]/[{current}|none]{/}.]")};
	FILE *out = ctl->output.stream;
	const cJSON *comparison = json_first(result, "comparisons");
	for (; comparison; comparison = comparison->next) {
		fputs("### ", out);
		add_escaped(ctl,
			"[{?verdict=no data}Not comparable ({reason})|{?regressions}Regression|"
			"No regression]: {current} compared with {baseline}",
			comparison);
		fputs("\n", out);
		add_markdown_rows(ctl, comparison, true);
		fputs("\n<details><summary>Other metrics and conditions</summary>\n", out);
		add_markdown_rows(ctl, comparison, false);
		fprintf(out, "\nThreshold: %.4g %%. ", json_number(result, "threshold_percent"));
		for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
			add_escaped(ctl, conditions[i], comparison);
		}
		fputs("\n\n</details>\n\n", out);
	}
}

void comparison_junit(struct ctl *ctl, const cJSON *result)
{
	cJSON *cases = cJSON_CreateArray();
	const cJSON *comparison = json_first(result, "comparisons");
	for (; comparison; comparison = comparison->next) {
		if (strcmp(json_word(comparison, "verdict"), "no data") == 0) {
			cJSON *item = ctl_parameters("name", json_word(comparison, "current"));
			ctl_add_text(item, "message", json_word(comparison, "reason"));
			ctl_add_text(item, "result", "unknown");
			cJSON_AddItemToArray(cases, item);
		}
		for (const cJSON *row = json_first(comparison, "rows"); row; row = row->next) {
			char name[LINE_SIZE], message[LINE_SIZE];
			struct text text = TEXT_IN(message);
			if (!json_true(row, "decides")) {
				continue;
			}
			snprintf(name, sizeof(name), "%s: %s", json_word(comparison, "current"),
				json_word(row, "name"));
			template_add(&text,
				"{name} = " VALUE("current") ", baseline " VALUE(
					"baseline") ": "
						    "[{difference_percent:+1} % (95 % "
						    "interval " INTERVAL "), ]{verdict}",
				row, true);
			cJSON *item = ctl_parameters("name", name);
			ctl_add_text(item, "message", message);
			ctl_add_text(item, "result",
				json_true(row, "regression") ? "failed"
				: json_get(row, "p")	     ? "passed"
							     : "skipped");
			cJSON_AddItemToArray(cases, item);
		}
	}
	document_junit(ctl->output.stream, "compare", cases);
	cJSON_Delete(cases);
}
