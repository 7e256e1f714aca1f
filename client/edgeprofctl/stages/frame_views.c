/* frames APP, frames --recent N, frames --slow: the numbers of one app, and its single frames. */
#include "client/edgeprofctl/stages/frame_views.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/table.h"

enum { STAGES_MAX = 10, BAR_WIDTH = 40, NOTE_SIZE = 256 };

static void row(struct table *table, const char *name, const char *text)
{
	table_add(table, TONE_DIM, "%s", name);
	table_add(table, TONE_NONE, "%s", text);
}

/* A row of numbers with their words, when the first one is there. */
static void numbers(struct table *table, const cJSON *frames, const char *name,
	const char *const (*parts)[2], size_t count, const char *unit)
{
	char text[NOTE_SIZE];
	size_t at = 0;
	if (isnan(json_number(frames, parts[0][1]))) {
		return;
	}
	for (size_t i = 0; i < count && at < sizeof(text); i++) {
		double value = json_number(frames, parts[i][1]);
		if (!isnan(value)) {
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s%.1f",
				at > 0 ? ", " : "", parts[i][0], value);
		}
	}
	if (at < sizeof(text)) {
		snprintf(text + at, sizeof(text) - at, "%s", unit);
	}
	row(table, name, text);
}

static void deadline_row(struct table *table, const cJSON *frames)
{
	char text[NOTE_SIZE];
	double deadline = json_number(frames, "deadline_ms");
	double rate = json_number(frames, "miss_rate");
	if (isnan(deadline)) {
		return;
	}
	size_t at = (size_t)snprintf(text, sizeof(text), "%.4g ms, %lld missed", deadline,
		(long long)json_integer(frames, "misses"));
	if (!isnan(rate)) {
		at += (size_t)snprintf(text + at, sizeof(text) - at,
			" (%.2f %%), at most %lld in a row", 100 * rate,
			(long long)json_integer(frames, "longest_consecutive_misses"));
	}
	if (!isnan(json_number(frames, "worst_ms"))) {
		snprintf(text + at, sizeof(text) - at, ", worst %.1f ms",
			json_number(frames, "worst_ms"));
	}
	row(table, "Deadline", text);
}

static void counts_row(struct table *table, const cJSON *frames)
{
	static const struct {
		const char *member, *text;
	} counts[] = {
		{"skipped_ids", "lost"},
		{"out_of_order", "out of order"},
		{"unfinished", "never ended"},
		{"late", "late records"},
		{"forced", "taken for done early"},
		{"zero_deltas", "of the same time"},
		{"slow_count", "slow"},
		{"throttled_count", "throttled"},
		{"warmup_skipped", "of warm-up left out"},
	};
	char text[NOTE_SIZE];
	size_t at = (size_t)snprintf(
		text, sizeof(text), "%lld", (long long)json_integer(frames, "total_count"));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && at < sizeof(text); i++) {
		int64_t count = json_integer(frames, counts[i].member);
		if (count > 0) {
			at += (size_t)snprintf(text + at, sizeof(text) - at, ", %lld %s",
				(long long)count, counts[i].text);
		}
	}
	row(table, "Frames", text);
}

void frame_view_detail(struct ctl *ctl, const cJSON *frames)
{
	static const struct column columns[] = {{NULL, false, false}, {NULL, false, true}};
	static const char *const range[][2] = {{"", "fps_1s_min"}, {"to ", "fps_1s_max"}};
	static const char *const rates[][2] = {{"mean ", "fps_mean"}, {"min ", "fps_min"},
		{"p5 ", "fps_p5"}, {"p95 ", "fps_p95"}, {"max ", "fps_max"}};
	static const char *const ends[][2] = {{"mean ", "end_to_end_mean_ms"},
		{"p50 ", "end_to_end_p50_ms"}, {"p95 ", "end_to_end_p95_ms"},
		{"p99 ", "end_to_end_p99_ms"}, {"max ", "end_to_end_max_ms"},
		{"in stages ", "stage_sum_mean_ms"}};
	static const char *const flight[][2] = {{"", "in_flight"}};
	static const char *const target[][2] = {{"", "target_fps"}};
	struct table table;
	char text[NOTE_SIZE];
	table_init(&table, columns, 2);
	snprintf(text, sizeof(text), "%s, %s", json_word(frames, "span"),
		json_true(frames, "exact") ? "exact" : "percentiles within 1 %");
	row(&table, "Span", text);
	if (json_word(frames, "reason")[0] != '\0') {
		row(&table, "No numbers", json_word(frames, "reason"));
	}
	numbers(&table, frames, "FPS of 1/dt", rates, 5, "");
	numbers(&table, frames, "FPS range", range, 2, " in full seconds");
	numbers(&table, frames, "Target", target, 1,
		json_true(frames, "on_target") ? " FPS, reached" : " FPS, not reached");
	numbers(&table, frames, "End to end", ends, 6, " ms");
	numbers(&table, frames, "In flight", flight, 1, " frames at a time");
	deadline_row(&table, frames);
	counts_row(&table, frames);
	if (!isnan(json_number(frames, "energy_mj_per_frame"))) {
		snprintf(text, sizeof(text), "%.1f mJ a frame (%s)",
			json_number(frames, "energy_mj_per_frame"),
			json_word(frames, "energy_origin"));
		row(&table, "Energy", text);
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

static double took_ms(const cJSON *frame)
{
	double ms = json_number(frame, "end_to_end_ms");
	return isnan(ms) ? json_number(frame, "frame_time_ms") : ms;
}

/* "missed the deadline, 9 times preempted, …" */
static void note_of(const cJSON *frame, char note[NOTE_SIZE])
{
	static const struct {
		const char *member, *text;
	} counts[] = {{"involuntary_switches", "times preempted"},
		{"major_faults", "pages read from disk"}, {"late", "records late"}};
	double waited = json_number(frame, "run_delay_ms");
	size_t at = 0;
	note[0] = '\0';
	if (json_true(frame, "missed")) {
		at += (size_t)snprintf(note, NOTE_SIZE, "missed the deadline");
	}
	if (json_true(frame, "throttled")) {
		at += (size_t)snprintf(
			note + at, NOTE_SIZE - at, "%sthrottled", at > 0 ? ", " : "");
	}
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		int64_t count = json_integer(frame, counts[i].member);
		if (count > 0) {
			at += (size_t)snprintf(note + at, NOTE_SIZE - at, "%s%lld %s",
				at > 0 ? ", " : "", (long long)count, counts[i].text);
		}
	}
	if (waited >= 0.1) {
		snprintf(note + at, NOTE_SIZE - at, "%swaited %.1f ms to run", at > 0 ? ", " : "",
			waited);
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

void frame_view_list(struct ctl *ctl, const cJSON *reply)
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
	char note[NOTE_SIZE];
	table_init(&table, columns, stages + 5);
	for (const cJSON *frame = json_first(reply, "list"); frame; frame = frame->next) {
		table_add(&table, TONE_NONE, "%s", json_word(frame, "app"));
		table_add(&table, TONE_NONE, "%.0f", json_number(frame, "frame"));
		table_add_number(&table, took_ms(frame), 1);
		table_add_number(&table, json_number(frame, "stage_sum_ms"), 1);
		for (size_t i = 0; i < stages; i++) {
			table_add_number(&table, busy_of(frame, names[i]), 1);
		}
		note_of(frame, note);
		table_add(&table, json_true(frame, "missed") ? TONE_WARN : TONE_DIM, "%s", note);
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

static void add_bar(
	struct table *table, const struct style *style, double start, double busy, double whole_ms)
{
	const char *mark = style->utf8 ? "\xe2\x96\x88" : "#";
	char bar[BAR_WIDTH * 4 + 1];
	size_t at = 0;
	double scale = whole_ms > 0 ? BAR_WIDTH / whole_ms : 0;
	int from = (int)fmin(fmax(start * scale, 0), BAR_WIDTH - 1);
	int to = (int)fmin(fmax(ceil((start + busy) * scale), from + 1), BAR_WIDTH);
	for (int i = 0; i < to; i++) {
		const char *piece = i < from ? " " : mark;
		size_t length = strlen(piece);
		memcpy(bar + at, piece, length);
		at += length;
	}
	bar[at] = '\0';
	table_add(table, TONE_GOOD, "%s", bar);
}

static void show_waterfall(struct ctl *ctl, const cJSON *frame)
{
	static const struct column columns[] = {{NULL, false, true}, {NULL, true, false},
		{NULL, true, false}, {NULL, false, false}};
	FILE *out = ctl->output.stream;
	struct table table;
	char note[NOTE_SIZE];
	note_of(frame, note);
	fprintf(out, "%s%s frame %.0f%s  %.1f ms%s%s\n", style_on(&ctl->style, TONE_BOLD),
		json_word(frame, "app"), json_number(frame, "frame"),
		style_off(&ctl->style, TONE_BOLD), took_ms(frame), note[0] ? ", " : "", note);
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

void frame_view_waterfall(struct ctl *ctl, const cJSON *reply)
{
	for (const cJSON *frame = json_first(reply, "list"); frame; frame = frame->next) {
		show_waterfall(ctl, frame);
		if (frame->next) {
			fputc('\n', ctl->output.stream);
		}
	}
}
