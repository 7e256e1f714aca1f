/* SPDX-License-Identifier: Apache-2.0 */
/* report_json.c: makes the tree of a report: the session, its environment, metrics, events, and
 * what makes the numbers less trustworthy; and its short forms, profiling_report.json and JUnit. */
#include "client/edgeprofctl/report/report_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/compare/document.h"

cJSON *report_add_row(cJSON *array)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddItemToArray(array, row);
	return row;
}

/* cJSON_InsertItemInArray of Debian 12 refuses each place between two others. */
void report_insert(cJSON *array, cJSON *row, const char *member)
{
	cJSON *after = array->child, *next;
	while (after && json_number(after, member) >= json_number(row, member)) {
		after = after->next;
	}
	cJSON_AddItemToArray(array, row);
	for (; after && after != row; after = next) {
		next = after->next;
		cJSON_AddItemToArray(array, cJSON_DetachItemViaPointer(array, after));
	}
}

void report_add_word(cJSON *to, const char *name, const char *word)
{
	if (word && word[0] != '\0') {
		cJSON_AddStringToObject(to, name, word);
	}
}

double report_percent(double part, double all)
{
	return all > 0 ? 100 * part / all : (double)NAN;
}

static void add_series(cJSON *tree, const struct data *data)
{
	cJSON *series = cJSON_AddObjectToObject(tree, "series");
	for (size_t i = 0; i < data->series_count; i++) {
		const struct data_series *one = &data->series[i];
		double *values = calloc(one->count + 1, sizeof(*values));
		if (values && one->count > 0) {
			memcpy(values, one->value, one->count * sizeof(*values));
			struct proto_summary numbers = data_numbers_of(values, one->count);
			cJSON *row = cJSON_AddObjectToObject(series, one->name);
			report_add_word(row, "unit", one->unit);
			json_add_number(row, "mean", numbers.mean);
			json_add_number(row, "min", numbers.min);
			json_add_number(row, "max", numbers.max);
			json_add_number(row, "first", one->value[0]);
			json_add_number(row, "last", one->value[one->count - 1]);
		}
		free(values);
	}
}

static void add_events(cJSON *tree, const struct data *data)
{
	cJSON *events = cJSON_AddArrayToObject(tree, "events");
	for (size_t i = 0; i < data->happening_count; i++) {
		const struct data_happening *one = &data->happening[i];
		cJSON *row = report_add_row(events);
		json_add_number(row, "at_s", one->at_s);
		json_add_number(row, "time_us", (double)data->begin_us + floor(one->at_s * 1e6));
		report_add_word(row, "kind", one->kind);
		report_add_word(row, "severity", one->severity);
		report_add_word(row, "text", one->text);
	}
}

/* How the numbers came about, and what makes them less trustworthy. */
static void add_warnings(cJSON *tree, const struct data *data)
{
	static const char *const remarks[] = {"[{recording.incomplete}]",
		"[{!summary.frames_profiled>=100}only {summary.frames_profiled:0} "
		"[{?summary.frames_profiled>=2}frames|{?summary.frames_profiled}frame|frames]: "
		"percentiles want 100 or more]",
		"[{recording.measured_s:is}{!recording.measured_s>=10}only "
		"{recording.measured_s:1} s: caches, clocks and heat settle later]",
		"[{recording.kept_percent:is}{!recording.kept_percent>=100}"
		"{recording.kept_percent:0} % of the time was kept: counts and sums are too low]",
		"[{?recording.overwritten}the run began earlier: its older records were "
		"overwritten|{!frames.warmup_skipped>=1}{!session.warmup>=1}no warm-up: the first "
		"frames count]",
		"[{?recording.lost}{recording.lost:0} records were lost: counts and sums are too "
		"low]",
		"[{?recording.unsampled}no sensor was read in this time: memory, temperature and "
		"power are not known]",
		"[{?frames.throttled_percent}the hardware throttled in "
		"{frames.throttled_percent:1} % of the frames]",
		"[{?series.process/edgeprofd/cpu.mean>=5}edgeprofd used "
		"{series.process/edgeprofd/cpu.mean:1} % of a core]"};
	cJSON *recording = cJSON_AddObjectToObject(tree, "recording");
	cJSON *warnings = cJSON_AddArrayToObject(tree, "warnings");
	const char *build = data_tag(data, "build");
	report_add_word(recording, "incomplete", data->incomplete);
	ctl_add_flag(recording, "overwritten", data->overwritten);
	ctl_add_flag(recording, "unsampled", data->series_count == 0);
	json_add_number(recording, "measured_s",
		data->frame_time_ms.mean * (double)data->frame_time_ms.count / 1000);
	json_add_number(recording, "kept_percent", 100 * data->kept_share);
	json_add_number(recording, "lost", (double)data->lost);
	for (size_t i = 0; i < sizeof(remarks) / sizeof(remarks[0]); i++) {
		char remark[256];
		struct text text = TEXT_IN(remark);
		template_add(&text, remarks[i], tree, true);
		if (remark[0] != '\0') {
			cJSON_AddItemToArray(warnings, cJSON_CreateString(remark));
		}
	}
	for (size_t i = 0; i < data->stage_count; i++) {
		const struct data_stage *stage = &data->stage[i];
		char remark[512];
		snprintf(remark, sizeof(remark), "%s: running on CPU fallback, expected on %s",
			stage->shown, stage->expected);
		if (stage->expected[0]) {
			cJSON_AddItemToArray(warnings, cJSON_CreateString(remark));
		}
	}
	if (build && strcmp(build, "debug") == 0) {
		cJSON_AddItemToArray(warnings, cJSON_CreateString("a debug build"));
	}
	for (const cJSON *note = data->notes ? data->notes->child : NULL; note; note = note->next) {
		cJSON_AddItemToArray(warnings, cJSON_Duplicate(note, true));
	}
}

static void add_environment(cJSON *tree, const struct data *data)
{
	static const char *const facts[] = {
		"model", "os", "kernel", "version", "power_mode_name", "governor", "cpus"};
	cJSON *environment = cJSON_AddObjectToObject(tree, "environment");
	for (const cJSON *one = json_first(data->about, "environment"); one; one = one->next) {
		cJSON_AddStringToObject(
			environment, json_word(one, "name"), json_word(one, "value"));
	}
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		const cJSON *fact = json_get(data->device, facts[i]);
		if (fact && !json_get(environment, facts[i])) {
			cJSON_AddItemToObject(environment, facts[i], cJSON_Duplicate(fact, true));
		}
	}
}

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

/* frames_profiled, mean_fps and p95_fps (of the total, in steps of 1 / steps), model, input_size.
 */
static cJSON *report_summary(const struct data *data, double steps)
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

/* Of an app that runs: what slows it down now. */
static const char *diagnosis_of(const struct data *data)
{
	const cJSON *app = data->name[0] == '\0' ? json_first(data->device, "apps") : NULL;
	while (app && strcmp(json_word(app, "name"), data->app) != 0) {
		app = app->next;
	}
	return json_word(app, "diagnosis");
}

cJSON *report_tree(const struct data *data)
{
	cJSON *tree = cJSON_CreateObject();
	cJSON *session = data->about ? cJSON_Duplicate(data->about, true) : cJSON_CreateObject();
	if (!data->about) {
		report_add_word(session, "name", data->name);
		report_add_word(session, "app", data->app);
		json_add_number(session, "started_us", (double)data->begin_us);
		json_add_number(session, "elapsed_s", data->span_s);
	}
	cJSON_AddItemToObject(tree, "session", session);
	report_add_word(tree, "diagnosis", diagnosis_of(data));
	add_environment(tree, data);
	cJSON_AddItemToObject(tree, "summary", report_summary(data, 1e9));
	report_add_frames(tree, data);
	report_add_stages(tree, data);
	add_series(tree, data);
	add_events(tree, data);
	add_warnings(tree, data);
	return tree;
}

/* Why the stage or the frames fail; "" = they do not. */
static const char failure[] =
	"[{?misses}{misses:0} over the deadline of {deadline_ms:g} ms, worst {worst_ms:1} ms|"
	"{?failed}{failed:0} failed]";

static void add_case(
	cJSON *cases, const cJSON *tree, const char *name, const char *message, const cJSON *row)
{
	char title[256], why[256];
	struct text text = TEXT_IN(title);
	template_add(&text, "[{session.name}|{session.app}]: ", tree, true);
	template_add(&text, name, row, true);
	text = TEXT_IN(why);
	template_add(&text, message, row, true);
	document_add_case(cases, title, why[0] == '\0' ? "passed" : "failed", why);
}

void report_junit(const cJSON *tree, FILE *out)
{
	cJSON *cases = cJSON_CreateArray();
	bool none = json_number(json_get(tree, "summary"), "frames_profiled") == 0;
	add_case(cases, tree, "frames", none ? "no frames" : failure, json_get(tree, "frames"));
	for (const cJSON *row = json_first(tree, "stages"); row; row = row->next) {
		add_case(cases, tree, "stage {stage}[{unit:is}@{unit}]", failure, row);
	}
	const cJSON *row = json_first(json_get(tree, "target"), "verdicts");
	for (; row; row = row->next) {
		add_case(cases, tree, "target {what}", "[{?outside}{text}]", row);
	}
	document_junit(out, "report", cases);
	cJSON_Delete(cases);
}
