/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c: compares a frame with usual ones. The excess over them is divided among the places
 * where it was spent, in proportion to how much longer each took; among causes it is divided in
 * explain_causes.c.
 */
#include "daemon/core/diagnose/explain_private.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "daemon/core/metrics/throttle.h"
#include "proto/percentile.h"
#include "proto/text.h"

static const double SLOW = 1.25;       /* times the median */
static const double SHARE_MAIN = 0.25; /* of the excess: so much is in the summary */
static const uint64_t SECOND = 1000000000;

/* What has no id may contain a pause; then the delta is not known. */
static double took_ms(const struct past_frame *frame)
{
	bool timed = frame->id != PROTO_NO_FRAME && frame->end_ns > frame->start_ns;
	uint64_t ns = timed ? frame->end_ns - frame->start_ns : frame->delta_ns;
	return ns > 0 ? (double)ns / 1e6 : (double)NAN;
}

static void values_of(
	const struct past_frames *frames, const struct past_frame *frame, double ret[VALUES])
{
	double known = frame->has_context ? 1 : (double)NAN, inside_ms = 0;
	bool delayed = frame->has_context && frame->run_delay_us != PROTO_CPU_NOT_MEASURED;
	memset(ret, 0, VALUES * sizeof(ret[0]));
	ret[TOOK] = took_ms(frame);
	ret[DELTA] = frame->delta_ns > 0 ? (double)frame->delta_ns / 1e6 : (double)NAN;
	ret[RUN_DELAY] = delayed ? frame->run_delay_us / 1e3 : (double)NAN;
	ret[INVOLUNTARY] = known * frame->involuntary;
	ret[MAJOR_FAULTS] = known * frame->major_faults;
	ret[MINOR_FAULTS] = known * frame->minor_faults;
	ret[CPU] = (double)frame->cpu_ms;
	double blocked_ms = ret[TOOK] - ret[CPU] - ret[RUN_DELAY];
	ret[BLOCKED] = blocked_ms >= 0 ? blocked_ms : (double)NAN; /* several threads computed */
	ret[THROTTLED] = frame->throttled == THROTTLE_UNKNOWN ? (double)NAN
							      : frame->throttled == THROTTLE_YES;
	for (size_t i = 0; i < frames->stages; i++) { /* what did not run took no time */
		ret[STAGE + i] = isnan(frame->stage_ms[i]) ? 0 : (double)frame->stage_ms[i];
		ret[WAIT + i] = isnan(frame->wait_ms[i]) ? 0 : (double)frame->wait_ms[i];
		inside_ms += ret[STAGE + i] + ret[WAIT + i];
	}
	ret[OUTSIDE] = frames->stages > 0 ? fmax(ret[TOOK] - inside_ms, 0) : (double)NAN;
}

double usual_of(double *values, size_t count, double *scatter)
{
	size_t known = 0;
	*scatter = NAN;
	for (size_t i = 0; i < count; i++) {
		if (isfinite(values[i])) {
			values[known++] = values[i];
		}
	}
	if (known * 2 < count) {
		return NAN;
	}
	proto_sort(values, known);
	double median = proto_percentile(values, known, 50);
	for (size_t i = 0; i < known; i++) {
		values[i] = fabs(values[i] - median);
	}
	proto_sort(values, known);
	*scatter = proto_percentile(values, known, 50);
	return median;
}

/* Where the frames around it are slow as well, these are from before and after that time. After a
 * change for good they are from before it, as far as there are any. */
static size_t select_compared(struct slow_frame *slow, size_t index, uint64_t changed_ns)
{
	double values[PAST_FRAMES], scatter;
	const struct past_frames *frames = slow->frames;
	size_t count = 0, end = 0;
	while (end < frames->count && frames->frame[end].end_ns < changed_ns) {
		end++;
	}
	end = end < EXPLAIN_FRAMES_MIN ? frames->count : end;
	for (size_t i = 0; i < end; i++) {
		values[i] = took_ms(&frames->frame[i]);
	}
	double limit_ms = SLOW * usual_of(values, end, &scatter);
	for (size_t i = 2; i < 2 * frames->count && count < EXPLAIN_FRAMES; i++) {
		/* one before, one after; an index before the first wraps around */
		size_t next = i % 2 == 0 ? index - i / 2 : index + i / 2;
		if (next < end && took_ms(&frames->frame[next]) <= limit_ms) {
			slow->compared[count++] = &frames->frame[next];
		}
	}
	return count;
}

static void measure(struct slow_frame *slow, size_t count)
{
	double value[EXPLAIN_FRAMES][VALUES], column[EXPLAIN_FRAMES];
	values_of(slow->frames, slow->frame, slow->value);
	for (size_t i = 0; i < count; i++) {
		values_of(slow->frames, slow->compared[i], value[i]);
	}
	for (size_t k = 0; k < VALUES; k++) {
		for (size_t i = 0; i < count; i++) {
			column[i] = value[i][k];
		}
		slow->usual[k] = usual_of(column, count, &slow->scatter[k]);
	}
}

double excess_of(const struct slow_frame *slow, size_t k, double min)
{
	double excess = slow->value[k] - slow->usual[k];
	return excess >= min && excess > SCATTERS * slow->scatter[k] ? excess : 0;
}

void explanation_add(struct explanation *ret, const struct difference *difference)
{
	size_t at = ret->differences;
	while (at > 0 && ret->difference[at - 1].rank < difference->rank) {
		at--;
	}
	if (at < EXPLAIN_MAX) {
		ret->differences += ret->differences < EXPLAIN_MAX;
		memmove(&ret->difference[at + 1], &ret->difference[at],
			(ret->differences - 1 - at) * sizeof(*difference));
		ret->difference[at] = *difference;
	}
}

/* The stage before is the one listed before that ran. One that never waits may be nested in this
 * one: then it is not known. */
static void name_wait(const struct slow_frame *slow, size_t stage, struct text *text)
{
	size_t before = stage;
	while (before > 0 && isnan(slow->frame->stage_ms[before - 1])) {
		before--;
	}
	if (before > 0 && !(slow->frame->wait_ms[before - 1] <= 0)) {
		text_add(text, "between %s and ", slow->frames->stage[before - 1]);
	} else {
		text_add(text, "before ");
	}
	text_add(text, "%s", slow->frames->stage[stage]);
}

/* Without the word "stage". */
static const char *name_of(const struct difference *difference)
{
	bool stage = text_starts_with(difference->what, "stage ");
	return difference->what + (stage ? strlen("stage ") : 0);
}

static void add_place(struct slow_frame *slow, size_t k, double share)
{
	struct difference difference = {.kind = DIFFERENCE_WHERE,
		.unit = UNIT_MILLISECONDS,
		.value = slow->value[k],
		.usual = slow->usual[k],
		.explained_ms = share * slow->excess_ms,
		.rank = RANK_WHERE + share};
	struct text what = TEXT_IN(difference.what), text = TEXT_IN(difference.text);
	if (k >= WAIT) {
		name_wait(slow, k - WAIT, &what);
	} else if (k >= STAGE) {
		text_add(&what, "stage %s", slow->frames->stage[k - STAGE]);
	} else {
		text_add(&what, "outside of stages");
	}
	text_add(&text, "%s%s %.1f ms, usually %.1f", name_of(&difference),
		k >= STAGE && k < WAIT ? " took" : ":", slow->value[k], slow->usual[k]);
	explanation_add(slow->ret, &difference);
}

static void explain_places(struct slow_frame *slow)
{
	double min_ms = fmax(SHARE_MIN * slow->excess_ms, MS_MIN), sum_ms = 0;
	for (size_t k = OUTSIDE; k < VALUES; k++) {
		sum_ms += excess_of(slow, k, min_ms);
	}
	for (size_t k = OUTSIDE; k < VALUES; k++) {
		double share = excess_of(slow, k, min_ms) / fmax(sum_ms, slow->excess_ms);
		if (share > 0) {
			add_place(slow, k, share);
		}
	}
}

/* A cause, and the first sensor that confirms it. */
static void put_cause(
	const struct explanation *ret, const struct difference *cause, struct text *text)
{
	text_add(text, "; %s", cause->text);
	for (size_t i = 0; i < ret->differences && cause->sensors; i++) {
		if (text_starts_with(ret->difference[i].what, cause->sensors)) {
			text_add(text, " (%s)", ret->difference[i].text);
			return;
		}
	}
}

/* What explains most of the excess, at least one cause if there are any; else what went on. */
static void summarize(const struct slow_frame *slow, struct text *text)
{
	const struct explanation *ret = slow->ret;
	const char *separator = ":";
	bool caused = false, explained = false;
	for (size_t i = 0; i < ret->differences; i++) {
		const struct difference *difference = &ret->difference[i];
		bool where = difference->kind == DIFFERENCE_WHERE;
		bool main = difference->explained_ms >= SHARE_MAIN * slow->excess_ms;
		/* governors change clocks all the time */
		bool step = difference->unit == UNIT_HERTZ && isnan(difference->explained_ms);
		if (where && main) {
			text_add(text, "%s %s +%.1f ms", separator, name_of(difference),
				difference->explained_ms);
			separator = ",";
		} else if (!where && (main || (!caused && !step))) {
			put_cause(ret, difference, text);
			caused = true;
			explained |= main;
		}
	}
	if (slow->pressed && !explained && !strstr(text->data, slow->pressed)) {
		text_add(
			text, "; %s was %.0f %% at the time", slow->pressed, slow->pressed_percent);
	} else if (!caused) {
		text_add(text, "; no cause was measured");
	}
}

void explain_frame(const struct past_frames *frames, size_t index, uint64_t changed_ns,
	const struct explain_series *series, size_t series_count, struct explanation *ret)
{
	struct slow_frame slow = {.frames = frames, .frame = &frames->frame[index], .ret = ret};
	memset(ret, 0, sizeof(*ret));
	struct text text = TEXT_IN(ret->summary), reason = TEXT_IN(ret->reason);
	ret->compared = select_compared(&slow, index, changed_ns);
	measure(&slow, ret->compared);
	ret->took_ms = slow.value[TOOK];
	ret->usual_ms = slow.usual[TOOK];
	slow.excess_ms = ret->took_ms - ret->usual_ms;
	if (slow.frame->id == PROTO_NO_FRAME) {
		text_add(&text, frames->of_stages ? "this iteration" : "this frame");
	} else {
		text_add(&text, "frame %" PRIu64, slow.frame->id);
	}
	if (isnan(ret->took_ms)) {
		text_add(&reason, "how long it took is not known");
	} else if (ret->compared < EXPLAIN_FRAMES_MIN) {
		text_add(&reason, "%zu comparable frames, at least %d are required", ret->compared,
			EXPLAIN_FRAMES_MIN);
	}
	if (reason.length > 0) {
		text_add(&text, ": %s", ret->reason);
		return;
	}
	ret->slow = ret->took_ms > SLOW * ret->usual_ms;
	if (slow.excess_ms > MS_MIN) {
		explain_places(&slow);
		explain_causes(&slow, series, series_count);
	}
	if (ret->slow) {
		text_add(&text, " took %.1f ms, usually %.1f", ret->took_ms, ret->usual_ms);
		summarize(&slow, &text);
	} else {
		text_add(
			&text, " was not slow: %.1f ms, usually %.1f", ret->took_ms, ret->usual_ms);
		if (slow.value[DELTA] > SLOW * slow.usual[DELTA]) {
			text_add(&text, "; it came %.1f ms after the one before, usually %.1f",
				slow.value[DELTA], slow.usual[DELTA]);
		}
	}
	if (changed_ns > 0) {
		text_add(&text, "; all %s have been slow for %.0f s: see 'edgeprofctl diagnose'",
			frames->of_stages ? "iterations" : "frames",
			(double)(slow.frame->end_ns - changed_ns) / 1e9);
	}
}

/* How far a frame is from the time; 0 = it covers it. */
static uint64_t distance_ns(const struct past_frame *frame, uint64_t t_ns)
{
	bool tick = frame->start_ns == frame->end_ns;
	uint64_t start_ns = tick ? frame->end_ns - frame->delta_ns : frame->start_ns;
	if (t_ns < start_ns) {
		return start_ns - t_ns;
	}
	return t_ns > frame->end_ns ? t_ns - frame->end_ns : 0;
}

size_t explain_find(const struct past_frames *frames, enum explain_by by, uint64_t value)
{
	size_t found = SIZE_MAX;
	uint64_t nearest_ns = SECOND;
	double slowest_ms = -1;
	for (size_t i = 0; i < frames->count; i++) {
		const struct past_frame *frame = &frames->frame[i];
		uint64_t ns = by == EXPLAIN_TIME ? distance_ns(frame, value) : 0;
		double ms = by == EXPLAIN_ID ? 0 : fmax(took_ms(frame), 0); /* NAN becomes 0 */
		if (by == EXPLAIN_WORST && i == 0 && frames->whole) {
			ms = 0; /* the first of a run warms up */
		}
		bool candidate = by != EXPLAIN_ID || frame->id == value;
		if (candidate && (ns < nearest_ns || (ns == nearest_ns && ms >= slowest_ms))) {
			found = i;
			nearest_ns = ns;
			slowest_ms = ms;
		}
	}
	return found;
}
