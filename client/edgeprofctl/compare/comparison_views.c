/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_views.c: writes comparisons as text, Markdown and JUnit, which share their templates.
 */

#include "client/edgeprofctl/compare/comparison.h"
#include "client/edgeprofctl/compare/document.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/template.h"
#include "proto/text.h"

enum { LINE_SIZE = 4096 };

#define VALUE(member) "[{?name=memory/peak_bytes}{" member ":bytes}|{" member ":g4}|-]"
/* Without the other end it could be anything. */
#define INTERVAL "[{?high_percent>=1000}too wide|{low_percent:+1} to {high_percent:+1} %|-]"
#define SIDE(side)                                                                \
	"{" side "}[{?" side "_runs>=2}, mean of {" side "_runs:0} runs][{?" side \
	"_warmup}, {" side "_warmup:0} values of warm-up skipped]"
#define MATCHING(side) "{thermal." side "_kept:0} of {thermal." side "_frames:0}"

#define TITLE                                                                                    \
	"[{?verdict=no data}Not comparable ({reason})|{?regressions}Regression|No regression]: " \
	"{current} compared with {baseline}"

static const struct line lines[] = {
	{"Threshold", "{threshold_percent:g4} %"},
	{"Baseline", SIDE("baseline")},
	{"Current", SIDE("current")},
	{"Same conditions", "[{thermal.current_kept:is}" MATCHING("baseline") ", " MATCHING(
				    "current") " frames]"},
	{"{*incomplete}Incomplete", "{~warn}{name}: {reason}"},
	{"{*environment}Not the same", "{~warn}{name} [{baseline}|none]/[{current}|none]"},
};

/* Columns that a narrow terminal can do without are last. */
static const struct field fields[] = {
	{"METRIC", FIELD_LONG, "{name}"},
	{"DIFF %", FIELD_NUMBER, "{difference_percent:+1}"},
	{"VERDICT", FIELD_TEXT,
		"[{?regression}{~bad}regression|{?verdict=slower}{~warn}{verdict}|"
		"{?verdict=faster}{~good}{verdict}|{~dim}{verdict}]"},
	{"CURRENT", FIELD_NUMBER, VALUE("current")},
	{"BASELINE", FIELD_NUMBER, VALUE("baseline")},
	{"95 % INTERVAL", FIELD_NUMBER, "{~dim}" INTERVAL},
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static void add_conditions(struct ctl *ctl, const cJSON *comparison)
{
	listing_facts(ctl, comparison, lines, sizeof(lines) / sizeof(lines[0]));
}

void comparison_text(struct ctl *ctl, const cJSON *result)
{
	const cJSON *comparison = json_first(result, "comparisons");
	ctl->style.fit = true;
	for (; comparison; comparison = comparison->next) {
		listing_text(ctl, "[{?regressions}{~bad}|{~bold}]" TITLE "{~none}\n", comparison);
		add_conditions(ctl, comparison);
		fputc('\n', ctl->output.stream);
		listing_show(ctl, comparison, "rows", fields, FIELDS);
		fputs(comparison->next ? "\n" : "", ctl->output.stream);
	}
}

void comparison_table(struct ctl *ctl, const cJSON *result)
{
	static const struct field variants[] = {
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
	listing_show(ctl, result, "variants", variants, sizeof(variants) / sizeof(variants[0]));
}

/* What the template says, with the characters escaped that Markdown or HTML would act on. */
static void add_markdown(const struct ctl *ctl, const char *template, const cJSON *object)
{
	char bytes[LINE_SIZE];
	struct text text = TEXT_IN(bytes);
	template_add(&text, template, object, true);
	bool bad = style_take(bytes, TONE_NONE) == TONE_BAD;
	fputs(bad ? "**" : "", ctl->output.stream);
	document_escape(ctl->output.stream, bytes, "|\\`*_[]#");
	fputs(bad ? "**" : "", ctl->output.stream);
}

static void add_markdown_rows(const struct ctl *ctl, const cJSON *comparison, bool decide)
{
	FILE *out = ctl->output.stream;
	for (size_t i = 0; i < FIELDS; i++) {
		fprintf(out, "%s| %s ", i == 0 ? "\n" : "", fields[i].title);
	}
	fputs("|\n|---|---:|---|---:|---:|---:|\n", out);
	for (const cJSON *row = json_first(comparison, "rows"); row; row = row->next) {
		for (size_t i = 0; i < FIELDS && json_true(row, "decides") == decide; i++) {
			fputs("| ", out);
			add_markdown(ctl, fields[i].template, row);
			fputs(i + 1 == FIELDS ? " |\n" : " ", out);
		}
	}
}

void comparison_markdown(struct ctl *ctl, const cJSON *result)
{
	FILE *out = ctl->output.stream;
	const cJSON *comparison = json_first(result, "comparisons");
	for (; comparison; comparison = comparison->next) {
		fputs("### ", out);
		add_markdown(ctl, TITLE, comparison);
		fputs("\n", out);
		add_markdown_rows(ctl, comparison, true);
		fputs("\n<details><summary>Other metrics and conditions</summary>\n", out);
		add_markdown_rows(ctl, comparison, false);
		fputs("\n```\n", out);
		add_conditions(ctl, comparison);
		fputs("```\n\n</details>\n\n", out);
	}
}

void comparison_junit(struct ctl *ctl, const cJSON *result)
{
	static const char format[] = "{name} = " VALUE("current") ", baseline " VALUE(
		"baseline") ": [{difference_percent:+1} % (95 % interval " INTERVAL "), ]{verdict}";
	cJSON *cases = cJSON_CreateArray();
	const cJSON *comparison = json_first(result, "comparisons");
	for (; comparison; comparison = comparison->next) {
		const char *current = json_word(comparison, "current");
		const char *reason = json_text(comparison, "reason");
		if (reason) {
			document_add_case(cases, current, "unknown", reason);
		}
		for (const cJSON *row = json_first(comparison, "rows"); row; row = row->next) {
			char name[LINE_SIZE], message[LINE_SIZE];
			struct text text = TEXT_IN(message);
			snprintf(name, sizeof(name), "%s: %s", current, json_word(row, "name"));
			template_add(&text, format, row, true);
			if (json_true(row, "decides")) {
				document_add_case(cases, name,
					json_true(row, "regression") ? "failed"
					: json_get(row, "p")	     ? "passed"
								     : "skipped",
					message);
			}
		}
	}
	document_junit(ctl->output.stream, "compare", cases);
	cJSON_Delete(cases);
}
