/* frames: frame rate, frame time and jitter of each app; more about one app, and single frames, in
 * frame_views.c. */
#include "client/edgeprofctl/stages/frame_views.h"

#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"
#include "client/edgeprofctl/verb.h"

static void add_note(struct table *table, const cJSON *frames)
{
	const char *status = json_word(frames, "status");
	double end_to_end = json_number(frames, "end_to_end_p95_ms");
	int64_t misses = json_integer(frames, "misses");
	struct label last =
		format_last_fps(json_number(frames, "last_fps"), json_number(frames, "idle_ms"));
	if (last.text[0] != '\0') {
		table_add(table, TONE_DIM, "%s", last.text);
	} else if (strncmp(status, "insufficient", 12) == 0) {
		table_add(table, TONE_DIM, "insufficient data");
	} else if (misses > 0) {
		table_add(table, TONE_WARN, "%lld missed", (long long)misses);
	} else if (end_to_end == end_to_end) {
		table_add(table, TONE_DIM, "end to end p95 %.1f ms", end_to_end);
	} else {
		table_add(table, TONE_NONE, "%s", "");
	}
}

void show_frames(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"APP", false, true},
		{"FPS", true, false},
		{"FRAME ms", true, false},
		{"P95 ms", true, false},
		{"P99 ms", true, false},
		{"JITTER ms", true, false},
		{"FRAMES", true, false},
		{"NOTE", false, true},
	};
	static const char *const members[] = {
		"fps", "frame_time_ms", "frame_time_p95_ms", "frame_time_p99_ms", "jitter_ms"};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *frames = json_first(reply, "frames"); frames; frames = frames->next) {
		table_add(&table, TONE_NONE, "%s", json_word(frames, "app"));
		for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
			table_add_number(&table, json_number(frames, members[i]), 1);
		}
		table_add_number(&table, json_number(frames, "total_count"), 0);
		add_note(&table, frames);
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

struct frames_options {
	struct run_options runs;
	const char *span, *method, *throttle;
	long recent; /* 0: not given, -1: without a number */
	bool all, slow;
};

static cJSON *parameters_of(const struct ctl *ctl, const char *app)
{
	const struct frames_options *options = ctl->verb_options;
	cJSON *parameters = ctl_run_parameters(&options->runs, app);
	if (options->span) {
		cJSON_AddStringToObject(parameters, "span", options->span);
	}
	if (options->method) {
		cJSON_AddStringToObject(parameters, "percentile_method", options->method);
	}
	if (options->throttle) {
		cJSON_AddStringToObject(parameters, "throttle", options->throttle);
	}
	if (options->slow) {
		cJSON_AddBoolToObject(parameters, "slow", true);
	}
	if (options->recent != 0) {
		double frames = options->recent > 0 ? (double)options->recent : 0;
		cJSON_AddNumberToObject(parameters, "recent", frames);
	}
	return ctl_all(options->all, parameters);
}

/* Single frames. True when there are any. */
static bool show_list(struct ctl *ctl, const cJSON *reply)
{
	const struct frames_options *options = ctl->verb_options;
	if (json_count(reply, "list") == 0) {
		return false;
	}
	(options->slow ? frame_view_waterfall : frame_view_list)(ctl, reply);
	int64_t left_out = json_integer(reply, "list_left_out");
	if (left_out > 0) {
		fprintf(ctl->output.stream, "(%lld more did not fit into the answer)\n",
			(long long)left_out);
	}
	return true;
}

static int say_no_list(struct ctl *ctl, const cJSON *reply)
{
	const struct frames_options *options = ctl->verb_options;
	double over = json_number(json_first(reply, "frames"), "slow_over_ms");
	if (!options->slow) {
		return ctl_fail(ctl, CTL_NO_DATA,
			"no frame carries an id yet; edgeprof_frame_begin(ID) gives it one");
	}
	if (over == over) {
		return ctl_fail(
			ctl, CTL_NO_DATA, "no frame with an id took longer than %.1f ms", over);
	}
	return ctl_fail(
		ctl, CTL_NO_DATA, "no slow frame yet; --recent N lists those that were not slow");
}

static int run(struct ctl *ctl)
{
	const struct frames_options *options = ctl->verb_options;
	const char *app = ctl->word_count > 0 ? ctl->words[0] : NULL;
	bool list = options->slow || options->recent != 0;
	cJSON *reply;
	int status = ctl_call(ctl, "GetFrames", parameters_of(ctl, app), true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	bool shown = ctl_json(ctl, reply);
	if (json_count(reply, "frames") == 0) {
		status = ctl_fail(ctl, CTL_NO_DATA,
			"no frames of %s yet; 'edgeprofctl apps' lists the apps",
			!app ? "any app" : app);
	} else if (list) {
		if (shown ? json_count(reply, "list") == 0 : !show_list(ctl, reply)) {
			status = say_no_list(ctl, reply);
		}
	} else if (!shown) {
		show_frames(ctl, reply);
		if (app) {
			fputc('\n', ctl->output.stream);
			frame_view_detail(ctl, json_first(reply, "frames"));
		}
	}
	cJSON_Delete(reply);
	return status;
}

static const struct option_spec options[] = {
	{"slow", 0, NULL, "show single frames that took long, and where the time went", option_flag,
		offsetof(struct frames_options, slow)},
	{"recent", 0, "[N]", "show the last N frames that carry an id", option_count,
		offsetof(struct frames_options, recent)},
	{"span", 0, "recent|lifetime", "cover the recent window, or the run from its start",
		option_word, offsetof(struct frames_options, span)},
	{"method", 0, "linear|nearest", "how to take percentiles", option_word,
		offsetof(struct frames_options, method)},
	{"throttle", 0, "all|throttled|unthrottled",
		"count only what ended while the hardware throttled, or did not", option_word,
		offsetof(struct frames_options, throttle)},
	{"run", 0, "0|-1|-2", "show the current or latest run (0), or an earlier one (-1 to -8)",
		option_run, offsetof(struct frames_options, runs.run)},
	{"all-runs", 0, NULL, "combine all runs that are kept", option_flag,
		offsetof(struct frames_options, runs.all_runs)},
	{"all", 'a', NULL, "include apps that ended more than 10 s ago", option_flag,
		offsetof(struct frames_options, all)},
	{.name = NULL},
};

const struct verb verb_frames = {"frames", "[APP]",
	"Show frame rate, frame time and jitter, or single frames.", "frames cam --slow", options,
	sizeof(struct frames_options), run};
