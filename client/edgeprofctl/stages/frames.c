/* SPDX-License-Identifier: Apache-2.0 */
/* frames.c: shows frame rate, frame time and jitter of each app, more about one app, and single
 * frames: a row each with their stages in columns, or their stages as bars over time. */

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/verb.h"
#include "proto/text.h"

enum { STAGES_MAX = 10, BAR_WIDTH = 40, NOTE_SIZE = 256, DEFAULT_RECENT = 10 };

void show_frames(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"APP", FIELD_LONG, "{app}"},
		{"FPS", FIELD_NUMBER, "{fps:1}"},
		{"FRAME ms", FIELD_NUMBER, "{frame_time_ms:1}"},
		{"P95 ms", FIELD_NUMBER, "{frame_time_p95_ms:1}"},
		{"P99 ms", FIELD_NUMBER, "{frame_time_p99_ms:1}"},
		{"JITTER ms", FIELD_NUMBER, "{jitter_ms:1}"},
		{"FRAMES", FIELD_NUMBER, "{total_count:0}"},
		{"NOTE", FIELD_LONG,
			"[{~dim}last {last_fps:1} fps {idle_ms:ago}|"
			"{?status}{!status=ok}{~dim}insufficient data|"
			"{~dim}{fps_reason}|"
			"{?misses}{~warn}{misses:0} missed|"
			"{~dim}end to end p95 {end_to_end_p95_ms:1} ms]"},
	};
	listing_show(ctl, reply, "frames", fields, sizeof(fields) / sizeof(fields[0]));
}

/* Everything about one app's frames, line by line. */
static void show_detail(struct ctl *ctl, const cJSON *frames)
{
	static const struct line lines[] = {
		{"Span", "{span}, [{?exact}exact|percentiles within 1 %]"
			 "[{?percentile_method=nearest}, nearest rank]"},
		{"No numbers", "{reason}"},
		{"FPS of 1/dt",
			"[mean {fps_mean:1}[, min {fps_min:1}][, p5 {fps_p5:1}][, p95 {fps_p95:1}]"
			"[, max {fps_max:1}]]"},
		{"FPS range", "[{fps_1s_min:1}[ to {fps_1s_max:1}] in full seconds]"},
		{"Target", "[{target_fps:1} FPS[{?on_target}, reached|{fps:is}, not reached]]"},
		{"End to end",
			"[mean {end_to_end_mean_ms:1}[, p50 {end_to_end_p50_ms:1}]"
			"[, p95 {end_to_end_p95_ms:1}][, p99 {end_to_end_p99_ms:1}]"
			"[, max {end_to_end_max_ms:1}][, in stages {stage_sum_mean_ms:1}] ms]"},
		{"In flight", "[{in_flight:1} frames at a time]"},
		{"Deadline",
			"[{deadline_ms:g4} ms, [{misses:0}|0] missed[ ({miss_rate:share}), at most "
			"[{longest_consecutive_misses:0}|0] in a row][, worst {worst_ms:1} ms]]"},
		{"Frames", "[{total_count:0}|0][{?skipped_ids}, {skipped_ids:0} lost]"
			   "[{?out_of_order}, {out_of_order:0} out of order]"
			   "[{?unfinished}, {unfinished:0} never ended][{?late}, {late:0} late "
			   "records]"
			   "[{?forced}, {forced:0} closed early]"
			   "[{?zero_deltas}, {zero_deltas:0} with the same time]"
			   "[{?slow_count}, {slow_count:0} slow]"
			   "[{?throttled_count}, {throttled_count:0} throttled]"
			   "[{?warmup_skipped}, {warmup_skipped:0} of warm-up skipped]"},
		{"Energy", "[{energy_mj_per_frame:1} mJ a frame ([{energy_origin}])]"},
	};
	listing_facts(ctl, frames, lines, sizeof(lines) / sizeof(lines[0]));
}

static double took_ms(const cJSON *frame)
{
	double ms = json_number(frame, "end_to_end_ms");
	return isnan(ms) ? json_number(frame, "frame_time_ms") : ms;
}

/* "missed the deadline, 9 times preempted, …" */
static void add_frame_note(struct text *note, const cJSON *frame)
{
	static const struct {
		const char *member, *text;
	} counts[] = {{"involuntary_switches", "times preempted"},
		{"major_faults", "pages read from disk"}, {"late", "records late"}};
	double waited = json_number(frame, "run_delay_ms");
	if (json_true(frame, "missed")) {
		text_add(note, "missed the deadline");
	}
	if (json_true(frame, "throttled")) {
		text_join(note, ", ", "throttled");
	}
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		int64_t count = json_integer(frame, counts[i].member);
		if (count > 0) {
			text_join(note, ", ", "%lld %s", (long long)count, counts[i].text);
		}
	}
	if (waited >= 0.1) {
		text_join(note, ", ", "waited %.1f ms to run", waited);
	}
}

/* The names of the stages of the listed frames, in the order in which they appear. */
static size_t stage_names(const cJSON *reply, const char *names[STAGES_MAX])
{
	size_t count = 0;
	for (const cJSON *frame = json_first(reply, "list"); frame; frame = frame->next) {
		for (const cJSON *s = json_first(frame, "stages"); s; s = s->next) {
			size_t i = 0;
			while (i < count && strcmp(names[i], json_word(s, "stage")) != 0) {
				i++;
			}
			if (i == count && count < STAGES_MAX) {
				names[count++] = json_word(s, "stage");
			}
		}
	}
	return count;
}

static double busy_of(const cJSON *frame, const char *name)
{
	const cJSON *stage = json_first(frame, "stages");
	while (stage && strcmp(json_word(stage, "stage"), name) != 0) {
		stage = stage->next;
	}
	return stage ? json_number(stage, "busy_ms") : (double)NAN;
}

/* A row for each listed frame, its stages in columns. */
static void show_rows(struct ctl *ctl, const cJSON *reply)
{
	const char *names[STAGES_MAX];
	size_t stages = stage_names(reply, names);
	struct column columns[STAGES_MAX + 5] = {{"APP", false, true}, {"FRAME", true, false},
		{"MS", true, false}, {"IN STAGES", true, false}};
	for (size_t i = 0; i < stages; i++) {
		columns[i + 4] = (struct column){names[i], true, false};
	}
	columns[stages + 4] = (struct column){"NOTE", false, true};
	struct table table;
	table_init(&table, columns, stages + 5);
	for (const cJSON *frame = json_first(reply, "list"); frame; frame = frame->next) {
		table_add(&table, TONE_NONE, "%s", json_word(frame, "app"));
		table_add(&table, TONE_NONE, "%.0f", json_number(frame, "frame"));
		table_add_number(&table, took_ms(frame), 1);
		table_add_number(&table, json_number(frame, "stage_sum_ms"), 1);
		for (size_t i = 0; i < stages; i++) {
			table_add_number(&table, busy_of(frame, names[i]), 1);
		}
		char bytes[NOTE_SIZE];
		struct text note = TEXT_IN(bytes);
		add_frame_note(&note, frame);
		table_add(&table, json_true(frame, "missed") ? TONE_WARN : TONE_DIM, "%s", bytes);
	}
	ctl_table(ctl, &table);
}

static void add_bar(
	struct table *table, const struct style *style, double start, double busy, double whole_ms)
{
	char bytes[BAR_WIDTH * 4 + 1];
	struct text bar = TEXT_IN(bytes);
	bool narrow = style->width > 16 && style->width < 2 * BAR_WIDTH;
	int width = narrow ? (int)style->width / 2 - 8 : BAR_WIDTH;
	double scale = whole_ms > 0 ? width / whole_ms : 0;
	int from = (int)fmin(fmax(start * scale, 0), width - 1);
	int to = (int)fmin(fmax(ceil((start + busy) * scale), from + 1), width);
	text_add(&bar, "%*s", from, "");
	for (int i = from; i < to; i++) {
		text_add(&bar, "%s", style->utf8 ? "\xe2\x96\x88" : "#");
	}
	table_add(table, TONE_GOOD, "%s", bytes);
}

static void show_waterfall(struct ctl *ctl, const cJSON *frame)
{
	static const struct column columns[] = {{NULL, false, true}, {NULL, true, false},
		{NULL, true, false}, {NULL, false, false}};
	FILE *out = ctl->output.stream;
	struct table table;
	char bytes[NOTE_SIZE];
	struct text note = TEXT_IN(bytes);
	add_frame_note(&note, frame);
	fprintf(out, "%s%s frame %.0f%s  %.1f ms%s%s\n", style_on(&ctl->style, TONE_BOLD),
		json_word(frame, "app"), json_number(frame, "frame"),
		style_off(&ctl->style, TONE_BOLD), took_ms(frame), note.length > 0 ? ", " : "",
		bytes);
	table_init(&table, columns, 4);
	for (const cJSON *stage = json_first(frame, "stages"); stage; stage = stage->next) {
		double start = json_number(stage, "start_ms"), busy = json_number(stage, "busy_ms");
		table_add(&table, TONE_NONE, "%s", json_word(stage, "stage"));
		table_add(&table, TONE_DIM, "+%.1f", start);
		table_add(&table, TONE_NONE, "%.1f ms", busy);
		add_bar(&table, &ctl->style, start, busy, took_ms(frame));
	}
	table_print(&table, &ctl->style, out, 2);
	table_finish(&table);
}

/* The same frame by frame: its stages as bars over time, and what kept it from running. */
static void show_waterfalls(struct ctl *ctl, const cJSON *reply)
{
	for (const cJSON *frame = json_first(reply, "list"); frame; frame = frame->next) {
		show_waterfall(ctl, frame);
		if (frame->next) {
			fputc('\n', ctl->output.stream);
		}
	}
}

static cJSON *parameters_of(const struct ctl *ctl, const char *app)
{
	const struct options *options = &ctl->options;
	cJSON *parameters = ctl_window_parameters(ctl, app);
	if (options->slow) {
		cJSON_AddBoolToObject(parameters, "slow", true);
	}
	if (options->recent > 0 || (options->recent < 0 && !options->slow)) {
		double frames = options->recent > 0 ? (double)options->recent : DEFAULT_RECENT;
		cJSON_AddNumberToObject(parameters, "recent", frames);
	}
	return parameters;
}

/* Single frames. True when there are any. */
static bool show_list(struct ctl *ctl, const cJSON *reply)
{
	const struct options *options = &ctl->options;
	if (json_count(reply, "list") == 0) {
		return false;
	}
	(options->slow ? show_waterfalls : show_rows)(ctl, reply);
	listing_text(ctl, "[{?list_left_out}({list_left_out:0} more did not fit into the reply)\n]",
		reply);
	return true;
}

static int no_list(struct ctl *ctl, const cJSON *reply)
{
	const struct options *options = &ctl->options;
	double over = json_number(json_first(reply, "frames"), "slow_over_ms");
	if (!options->slow) {
		return ctl_fail(ctl, CTL_NO_DATA,
			"no frame carries an id yet; edgeprof_frame_begin(ID) gives it one");
	}
	if (!isnan(over)) {
		return ctl_fail(
			ctl, CTL_NO_DATA, "no frame with an id took longer than %.1f ms", over);
	}
	return ctl_fail(
		ctl, CTL_NO_DATA, "no slow frame yet; --recent N lists those that were not slow");
}

static int run(struct ctl *ctl)
{
	const struct options *options = &ctl->options;
	const char *app = ctl_word(ctl, 0);
	bool list = options->slow || options->recent != 0;
	cJSON *reply;
	int status = ctl_call(ctl, "GetFrames", parameters_of(ctl, app), true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	bool shown = ctl_json(ctl, reply);
	if (json_count(reply, "frames") == 0) {
		status = ctl_fail(ctl, CTL_NO_DATA, "no frames of %s%s", app ? app : "",
			ctl_window_nothing(ctl, app));
	} else if (list) {
		if (shown ? json_count(reply, "list") == 0 : !show_list(ctl, reply)) {
			status = no_list(ctl, reply);
		}
	} else if (!shown) {
		show_frames(ctl, reply);
		if (app) {
			fputc('\n', ctl->output.stream);
			show_detail(ctl, json_first(reply, "frames"));
		}
	}
	cJSON_Delete(reply);
	return status;
}

static const struct option_spec options[] = {
	{"slow", 0, NULL, "show single frames that took long, and where the time went", option_flag,
		offsetof(struct options, slow)},
	{"recent", 0, "[N]", "show the last N frames that carry an id; default: 10", option_count,
		offsetof(struct options, recent)},
	CTL_WINDOW_OPTIONS,
	{.name = NULL},
};

const struct verb verb_frames = {"frames", "[APP]",
	"Show frame rate, frame time and jitter, or single frames.", "frames cam --slow", options,
	run};
