/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_read.c: reads what was measured from a file, a session or recording of the daemon, or a live
 * app. All of them answer as the daemon does, so one way of reading fits all (trace.h). A session's
 * warm-up, and what ran after its last frame, is cut.
 */
#include "client/edgeprofctl/data/data_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/trace/replay.h"
#include "proto/text.h"

bool data_is_file(const char *what)
{
	return strchr(what, '/') || text_ends_with(what, ".jsonl");
}

/* An ordinary user may have no recording, whether there is one of that name or not. */
static bool is_recording(struct ctl *ctl, const char *name)
{
	cJSON *reply = NULL, *row = NULL;
	bool found = false;
	ctl_try(ctl, "ListRecordings", NULL, &reply);
	cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, "recordings"))
	{
		found = found || strcmp(json_word(row, "name"), name) == 0;
	}
	cJSON_Delete(reply);
	return found;
}

/* Opens what has that name; what is not a recording or session stays with the daemon. */
static int find(struct ctl *ctl, const char *what)
{
	static const char *const methods[] = {"GetSession", "GetRecording"};
	if (data_is_file(what)) {
		return replay_load(ctl, what, NULL);
	}
	int status = ctl_connect(ctl);
	for (size_t i = 0; status == CTL_FINE && !ctl->replay && i < 2; i++) {
		status = replay_load(ctl, what, methods[i]);
		bool absent = status == CTL_NO_DATA || (status == CTL_UNREACHABLE && ctl->client) ||
			      (status == CTL_NOT_PERMITTED && !is_recording(ctl, what));
		status = absent ? CTL_FINE : status;
	}
	return status;
}

/* A reply that the file may not have; NULL. */
static cJSON *ask(struct ctl *ctl, const char *method, cJSON *parameters)
{
	cJSON *reply = NULL;
	ctl_call(ctl, method, parameters, true, &reply);
	json_clean(reply, true);
	return reply;
}

/* What the file says about itself. */
static void read_ends(struct ctl *ctl, struct data *data)
{
	const cJSON *header = replay_header(ctl->replay), *end = replay_end(ctl->replay);
	const cJSON *session = json_get(header, "session");
	const cJSON *about = session && end ? end : session;
	data->about = about ? cJSON_Duplicate(about, true) : NULL;
	json_clean(data->about, true);
	snprintf(data->name, sizeof(data->name), "%s",
		json_word(about ? data->about : header, "name"));
	text_clean(data->name, true);
	double kept = json_number(data->about, "kept_share");
	data->kept_share = kept >= 0 && kept < 1 ? kept : 1;
	if (!end) { /* how it began, which is past */
		cJSON_DeleteItemFromObjectCaseSensitive(data->about, "state");
		cJSON_DeleteItemFromObjectCaseSensitive(data->about, "elapsed_s");
		data->incomplete = "the session was still running or broke off";
	} else if (json_text(end, "cut")) {
		data->incomplete = about ? json_word(data->about, "cut")
					 : "the recording reached its size limit";
	} else if (data->kept_share < 1) {
		data->incomplete = "blocks of time were dropped to keep the file small";
	}
}

/* Deadlines are with the daemon's own rows; the last one in a file is of the session's end. */
static void read_expectations(struct ctl *ctl, struct data *data)
{
	cJSON *stages = ask(ctl, "ListStages", ctl_parameters("app", data->app));
	cJSON *frames = ask(ctl, "GetFrames", ctl_parameters("app", data->app));
	data->frame_deadline_ms = NAN;
	for (size_t i = 0; i < data->stage_count; i++) {
		data->stage[i].deadline_ms = NAN;
	}
	for (const cJSON *row = json_first(stages, "stages"); row; row = row->next) {
		for (size_t i = 0; i < data->stage_count; i++) {
			struct data_stage *stage = &data->stage[i];
			if (strcmp(json_word(row, "stage"), stage->shown) == 0 &&
				strcmp(json_word(row, "app"), data->app) == 0 &&
				(!stage->unit[0] ||
					strcmp(json_word(row, "unit"), stage->unit) == 0)) {
				bool fallback = json_true(row, "cpu_fallback");
				stage->deadline_ms = json_number(row, "deadline_ms");
				snprintf(stage->expected, sizeof(stage->expected), "%s",
					fallback ? json_word(row, "expected_unit") : "");
				text_clean(stage->expected, true);
			}
		}
	}
	for (const cJSON *row = json_first(frames, "frames"); row; row = row->next) {
		if (strcmp(json_word(row, "app"), data->app) == 0) {
			data->frame_deadline_ms = json_number(row, "deadline_ms");
		}
	}
	cJSON_Delete(stages);
	cJSON_Delete(frames);
}

/* Of the daemon's report, the remarks that cannot be made here: about the machine, and what the app
 * itself dropped. */
static void read_notes(struct ctl *ctl, struct data *data)
{
	static const char *const known[] = {
		"- a virtual machine", "- other processes", " events were dropped: "};
	/* not cleaned: it has lines */
	cJSON *reply = NULL;
	data->notes = cJSON_CreateArray();
	ctl_call(ctl, "GetReport", ctl_run_parameters(ctl, data->app), false, &reply);
	const char *line = json_word(reply, "text");
	for (; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
		char text[160];
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
		text_clean(text, true);
		if (text_starts_with(text, known[0]) || text_starts_with(text, known[1]) ||
			strstr(text, known[2])) {
			cJSON_AddItemToArray(data->notes, cJSON_CreateString(text + 2));
		}
	}
	cJSON_Delete(reply);
}

enum { ATTACH_US = 250000 };

enum { TIME_SIZE = 32 };

/* When the run before that ended; 0 = none is kept. */
static double end_before(struct ctl *ctl, const char *app, const char *run)
{
	cJSON *reply, *parameters = ctl_parameters("app", app);
	cJSON_AddNumberToObject(parameters, "run", run ? (double)strtol(run, NULL, 10) - 1 : -1);
	ctl_try(ctl, "ListStages", parameters, &reply);
	double until_us = json_number(json_first(reply, "totals"), "until_us");
	cJSON_Delete(reply);
	return until_us > 0 ? until_us : 0;
}

/* When an app's run began and ended ("" = it goes on); fails for an unknown app or run. */
static int read_run(struct ctl *ctl, const char *app, char since[TIME_SIZE], char until[TIME_SIZE])
{
	cJSON *reply;
	const char *earlier = ctl->options.runs.run;
	int status = ctl_call(ctl, "ListStages", ctl_run_parameters(ctl, app), true, &reply);
	if (status == CTL_NO_DATA && !earlier) {
		ctl_unknown(ctl, status, "app, recording, session", app,
			"no session, recording, app or file is named '%s'", app);
	} else if (status == CTL_FINE) {
		/* it counts from the moment of attaching, which may follow the first frame */
		const cJSON *run = json_first(reply, "totals");
		double since_us = json_number(run, "since_us") - ATTACH_US;
		since_us = fmax(since_us, end_before(ctl, app, earlier));
		double until_us = json_number(run, "until_us");
		snprintf(since, TIME_SIZE, "@%.6f", since_us > 0 ? since_us / 1e6 : 0);
		until[0] = '\0';
		if (until_us > 0) { /* with the event that says how it ended, before the next run */
			until_us += earlier && earlier[0] == '-' ? 0 : ATTACH_US;
			snprintf(until, TIME_SIZE, "@%.6f", until_us / 1e6);
		}
		cJSON_Delete(reply);
	}
	return status;
}

/* All events into the gather. Without any, there is nothing to report, but no error either. */
static int run_trace(struct ctl *ctl, struct data_gather *gather, const char *what)
{
	int status = trace_run(ctl, &data_format, gather);
	size_t line = ctl->replay ? replay_damaged_line(ctl->replay) : 0;
	if (gather->out_of_memory) {
		return ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	}
	if (line > 0) {
		return ctl_fail(ctl, CTL_NO_INPUT, "'%s', line %zu: damaged", what, line);
	}
	return status == CTL_NO_DATA ? CTL_FINE : status;
}

static int by_time(const void *a, const void *b)
{
	const struct data_happening *x = a, *y = b;
	return (x->at_s > y->at_s) - (x->at_s < y->at_s);
}

static int make(struct ctl *ctl, struct data_gather *gather)
{
	struct data *data = gather->data;
	double skip = json_number(data->about, "warmup"), most = json_number(data->about, "frames");
	const char *app = gather->best.app[0] ? gather->best.app : gather->wanted;
	snprintf(data->app, sizeof(data->app), "%s", app ? app : json_word(data->about, "app"));
	text_clean(data->app, true);
	for (size_t i = 0; i < data->series_count; i++) {
		text_clean(data->series[i].name, true);
		text_clean(data->series[i].unit, true);
	}
	if (data->happening_count > 0) {
		qsort(data->happening, data->happening_count, sizeof(data->happening[0]), by_time);
	}
	if (data->kept_share == 1) { /* else the time is right, not the count */
		gather->measured_ns = 0;
	}
	int r = data_make_frames(gather, skip > 0 && skip < 1e9 ? (size_t)skip : 0,
		most > 0 && most < 1e9 ? (size_t)most : SIZE_MAX);
	r = r < 0 ? r : data_make_stages(gather);
	if (gather->skipped && !data->incomplete) {
		data->incomplete = "there are more stages or metrics than can be shown";
	}
	return r < 0 ? ctl_fail(ctl, CTL_OUTPUT, "out of memory") : CTL_FINE;
}

/* As the app itself was named: any name finds its app. */
static void want(struct data_gather *gather, const char *app)
{
	proto_name_clean(app, strlen(app), gather->wanted_name);
	gather->wanted = gather->wanted_name;
}

/* From the open replay, or the daemon. */
static int gather_all(struct ctl *ctl, struct data_gather *gather, const char *what)
{
	char since[TIME_SIZE], until[TIME_SIZE];
	char *word = (char *)(uintptr_t)what;
	gather->data->device = ask(ctl, "GetStatus", NULL);
	if (ctl->replay) {
		ctl->word_count = 0;
	} else {
		int status = read_run(ctl, what, since, until);
		if (status != CTL_FINE) {
			return status;
		}
		want(gather, what);
		ctl->options.since = since;
		ctl->options.until = until[0] ? until : NULL;
		ctl->words = &word;
		ctl->word_count = 1;
	}
	int status = run_trace(ctl, gather, what);
	status = status == CTL_FINE ? make(ctl, gather) : status;
	if (status == CTL_FINE) {
		read_expectations(ctl, gather->data);
		read_notes(ctl, gather->data);
	}
	return status;
}

int data_read(struct ctl *ctl, const char *what, const char *app, struct data *ret)
{
	struct data data = {.kept_share = 1};
	struct ctl saved = *ctl;
	struct data_gather *gather = ctl_memory(1, sizeof(*gather));
	ctl->quiet = true; /* where one source fails, the next may have the answer */
	int status = find(ctl, what);
	if (status == CTL_FINE && ctl->replay && ctl->options.runs.run) {
		status = ctl_fail(
			ctl, CTL_USAGE, "--run works with apps only; '%s' is recorded", what);
	}
	if (status == CTL_FINE) {
		gather->data = &data;
		gather->replay = ctl->replay;
		if (app) {
			want(gather, app);
		}
		ctl->options.since = ctl->options.until = ctl->options.output = NULL;
		ctl->options.sensors = "**";
		ctl->options.json = JSON_SHORT; /* texts are cleaned here */
		if (ctl->replay) {
			read_ends(ctl, &data);
		}
		status = gather_all(ctl, gather, what);
		if (status == CTL_FINE && app && gather->best.app[0] == '\0') {
			status = ctl_fail(
				ctl, CTL_NO_DATA, "no records of app '%s' in '%s'", app, what);
		}
		data_gather_finish(gather);
	}
	replay_destroy(ctl->replay);
	ctl->replay = NULL;
	ctl->quiet = saved.quiet;
	ctl->options = saved.options;
	ctl->words = saved.words;
	ctl->word_count = saved.word_count;
	free(gather);
	if (status == CTL_FINE) {
		*ret = data;
	} else {
		data_finish(&data);
	}
	if (status != CTL_FINE && !ctl->quiet) {
		ctl_fail(ctl, status, "%s", ctl->failure);
	}
	return status;
}
