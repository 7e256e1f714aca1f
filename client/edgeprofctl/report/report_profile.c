/* SPDX-License-Identifier: Apache-2.0 */
/* report_profile.c: writes the short forms of a report: profiling_report.json, and JUnit for build
 * servers. */
#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/report/report.h"

static double rounded(double value, double steps)
{
	return round(value * steps) / steps;
}

static double fps_of(double ms)
{
	return ms > 0 ? 1000 / ms : (double)NAN;
}

static void add_text(cJSON *to, const char *name, const char *text)
{
	cJSON_AddItemToObject(to, name, text ? cJSON_CreateString(text) : cJSON_CreateNull());
}

cJSON *report_summary(const struct data *data)
{
	cJSON *summary = cJSON_CreateObject();
	json_add_number(summary, "frames_profiled", (double)data->frame_count);
	json_add_number(summary, "mean_fps", fps_of(data->total_ms.mean));
	json_add_number(summary, "p95_fps", fps_of(data->total_ms.p95));
	add_text(summary, "model", data_tag(data, "model"));
	add_text(summary, "input_size", data_tag(data, "input_size"));
	return summary;
}

static void add_profile(cJSON *to, const char *name, const struct data_numbers *n)
{
	const struct {
		const char *name;
		double value;
	} members[] = {{"mean_ms", n->mean}, {"median_ms", n->p50}, {"p95_ms", n->p95},
		{"p99_ms", n->p99}, {"min_ms", n->min}, {"max_ms", n->max}};
	cJSON *row = cJSON_AddObjectToObject(to, name);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		json_add_number(row, members[i].name, rounded(members[i].value, 100));
	}
}

cJSON *report_profile(const struct data *data)
{
	cJSON *profile = cJSON_CreateObject();
	for (size_t i = 0; i < data->stage_count; i++) {
		const struct data_stage *stage = &data->stage[i];
		char name[sizeof(stage->name) + sizeof(stage->unit)];
		bool taken = cJSON_HasObjectItem(profile, stage->name);
		snprintf(name, sizeof(name), "%s%s%s", stage->name, taken ? "_" : "",
			taken ? stage->unit : "");
		if (strcmp(name, "total") != 0 && strcmp(name, "summary") != 0) {
			add_profile(profile, name, &stage->ms);
		}
	}
	add_profile(profile, "total", &data->total_ms);
	cJSON *summary = report_summary(data);
	cJSON_ReplaceItemInObject(summary, "mean_fps", cJSON_CreateNull());
	cJSON_ReplaceItemInObject(summary, "p95_fps", cJSON_CreateNull());
	if (data->total_ms.mean > 0) {
		cJSON_ReplaceItemInObject(summary, "mean_fps",
			cJSON_CreateNumber(rounded(1000 / data->total_ms.mean, 10)));
		cJSON_ReplaceItemInObject(summary, "p95_fps",
			cJSON_CreateNumber(rounded(1000 / data->total_ms.p95, 10)));
	}
	cJSON_AddItemToObject(profile, "summary", summary);
	return profile;
}

/* Text of XML: what it may not contain is "?". */
static void put_text(FILE *out, const char *text)
{
	static const char special[] = "<>&\"'";
	static const char *const names[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&apos;"};
	for (; *text != '\0'; text++) {
		const char *at = strchr(special, *text);
		if (at) {
			fputs(names[at - special], out);
		} else {
			fputc((unsigned char)*text < 0x20 ? '?' : *text, out);
		}
	}
}

static void put_case(FILE *out, const char *suite, const char *name, double ms, const char *failure)
{
	fputs("    <testcase classname=\"", out);
	put_text(out, suite);
	fputs("\" name=\"", out);
	put_text(out, name);
	fprintf(out, "\" time=\"%.6f\"", isnan(ms) ? 0 : ms / 1000);
	if (failure[0] == '\0') {
		fputs("/>\n", out);
		return;
	}
	fputs(">\n      <failure message=\"", out);
	put_text(out, failure);
	fputs("\"/>\n    </testcase>\n", out);
}

/* Why the stage or the frames fail; "" = they do not. */
static void failure_of(const cJSON *row, char *ret, size_t size)
{
	double misses = json_number(row, "misses"), failed = json_number(row, "failed");
	ret[0] = '\0';
	if (misses > 0) {
		snprintf(ret, size, "%.0f over the deadline of %g ms, worst %.1f ms", misses,
			json_number(row, "deadline_ms"), json_number(row, "worst_ms"));
	} else if (failed > 0) {
		snprintf(ret, size, "%.0f failed", failed);
	}
}

/* With out NULL only counts the failures. */
static int put_cases(FILE *out, const cJSON *tree, const char *suite)
{
	char name[128], failure[256];
	const cJSON *frames = json_get(tree, "frames");
	int failures = 0;
	failure_of(frames, failure, sizeof(failure));
	if (json_number(json_get(tree, "summary"), "frames_profiled") == 0) {
		snprintf(failure, sizeof(failure), "no frames");
	}
	failures += failure[0] != '\0';
	if (out) {
		put_case(out, suite, "frames", json_number(frames, "frame_time_mean_ms"), failure);
	}
	for (const cJSON *row = json_first(tree, "stages"); row; row = row->next) {
		failure_of(row, failure, sizeof(failure));
		failures += failure[0] != '\0';
		if (out) {
			snprintf(name, sizeof(name), "stage %s", json_word(row, "stage"));
			put_case(out, suite, name, json_number(row, "mean_ms"), failure);
		}
	}
	for (const cJSON *row = json_first(json_get(tree, "target"), "verdicts"); row;
		row = row->next) {
		bool outside = json_true(row, "outside");
		failures += outside;
		if (out) {
			snprintf(name, sizeof(name), "target %s", json_word(row, "what"));
			put_case(out, suite, name, NAN, outside ? json_word(row, "text") : "");
		}
	}
	return failures;
}

void report_junit(struct ctl *ctl, const cJSON *tree)
{
	FILE *out = ctl->output.stream;
	const cJSON *session = json_get(tree, "session");
	const char *suite =
		json_text(session, "name") ? json_word(session, "name") : json_word(session, "app");
	int cases =
		1 + json_count(tree, "stages") + json_count(json_get(tree, "target"), "verdicts");
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"",
		out);
	put_text(out, suite);
	fprintf(out, "\" tests=\"%d\" failures=\"%d\">\n", cases, put_cases(NULL, tree, suite));
	put_cases(out, tree, suite);
	fputs("  </testsuite>\n</testsuites>\n", out);
}
