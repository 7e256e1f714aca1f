/* SPDX-License-Identifier: Apache-2.0 */
/* report_profile.c: writes the short forms of a report: profiling_report.json, and JUnit for build
 * servers. */
#include <math.h>
#include <string.h>

#include "client/edgeprofctl/compare/document.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/report/report.h"
#include "client/edgeprofctl/template.h"

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

cJSON *report_summary(const struct data *data, double steps)
{
	cJSON *summary = cJSON_CreateObject();
	json_add_number(summary, "frames_profiled", (double)data->frame_count);
	json_add_number(summary, "mean_fps", rounded(fps_of(data->total_ms.mean), steps));
	json_add_number(summary, "p95_fps", rounded(fps_of(data->total_ms.p95), steps));
	add_text(summary, "model", data_tag(data, "model"));
	add_text(summary, "input_size", data_tag(data, "input_size"));
	return summary;
}

static void add_profile(cJSON *to, const char *name, const struct proto_summary *n)
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
	cJSON_AddItemToObject(profile, "summary", report_summary(data, 10));
	return profile;
}

/* Why the stage or the frames fail; "" = they do not. */
static const char failure[] =
	"[{?misses}{misses:0} over the deadline of {deadline_ms:g} ms, worst {worst_ms:1} ms|"
	"{?failed}{failed:0} failed]";

static void add_case(
	cJSON *cases, const cJSON *tree, const char *name, const char *message, const cJSON *row)
{
	char bytes[256];
	struct text text = TEXT_IN(bytes);
	cJSON *one = cJSON_CreateObject();
	template_add(&text, "[{session.name}|{session.app}]: ", tree, true);
	template_add(&text, name, row, true);
	cJSON_AddStringToObject(one, "name", bytes);
	text = TEXT_IN(bytes);
	template_add(&text, message, row, true);
	cJSON_AddStringToObject(one, "result", bytes[0] == '\0' ? "passed" : "failed");
	cJSON_AddStringToObject(one, "message", bytes);
	cJSON_AddItemToArray(cases, one);
}

void report_junit(const cJSON *tree, FILE *out)
{
	cJSON *cases = cJSON_CreateArray();
	bool none = json_number(json_get(tree, "summary"), "frames_profiled") == 0;
	add_case(cases, tree, "frames", none ? "no frames" : failure, json_get(tree, "frames"));
	for (const cJSON *row = json_first(tree, "stages"); row; row = row->next) {
		add_case(cases, tree, "stage {stage}", failure, row);
	}
	const cJSON *row = json_first(json_get(tree, "target"), "verdicts");
	for (; row; row = row->next) {
		add_case(cases, tree, "target {what}", "[{?outside}{text}]", row);
	}
	document_junit(out, "report", cases);
	cJSON_Delete(cases);
}
