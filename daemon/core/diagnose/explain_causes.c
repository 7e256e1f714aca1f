/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_causes.c: divides a frame's excess among causes. They draw on what is left of it, those
 * that were measured first. What was CPU time can only be due to slower clocks, minor faults or
 * more work; what was neither that nor a wait for a processor, only to major faults, other clocks
 * or whatever else blocked the app.
 */
#include "daemon/core/diagnose/explain_private.h"

#include <math.h>

#include "proto/text.h"

static const double SENSOR_SHARE = 0.05, SENSOR_MIN = 2; /* changes that are listed */
static const double PRESSED = 20;			 /* percent of the time: high in itself */
static const uint64_t SAMPLE_NS = UINT64_C(15000000000); /* older is not known */

static const struct cause {
	const char *what, *before, *after;
	const char *sensors; /* paths of what confirms it begin so */
	enum value value;
	enum unit unit;
	double ms_each; /* the most that one may take */
} causes[] = {
	{"run-queue wait", "waited", " ms for a processor", "pressure/cpu/", RUN_DELAY,
		UNIT_MILLISECONDS, 1},
	/* The shortest time slice of Linux is about 3 ms. */
	{"involuntary switches", "was preempted", " times", "pressure/cpu/", INVOLUNTARY,
		UNIT_COUNT, 3},
	/* One read of a slow card that is busy. */
	{"major faults", "waited for", " major faults", "pressure/memory/", MAJOR_FAULTS,
		UNIT_COUNT, 50},
	/* A page that is cleared and mapped, on a small core. */
	{"minor faults", "had", " minor faults", "pressure/memory/", MINOR_FAULTS, UNIT_COUNT,
		0.002},
	{"throttle/active", "throttle/active", "", "temperature/", THROTTLED, UNIT_BOOL, 0},
	/* after the clocks */
	{"CPU time", "computed for", " ms", "cpu/utilization", CPU, UNIT_MILLISECONDS, 1},
	{"blocked", "was blocked for", " ms", "pressure/io/", BLOCKED, UNIT_MILLISECONDS, 1},
};

/* How values are written; all others as they are. */
static const struct {
	double size;
	const char *suffix;
} scales[UNIT_COUNT_OF_UNITS] = {[UNIT_PERCENT] = {1, " %"},
	[UNIT_CELSIUS] = {1, " °C"},
	[UNIT_HERTZ] = {1e6, " MHz"},
	[UNIT_BYTES] = {1 << 20, " MiB"},
	[UNIT_MILLIWATTS] = {1e3, " W"},
	[UNIT_PER_SECOND] = {1, "/s"}};

/* Takes from what is not explained yet; NAN when nothing noteworthy is left of it. */
static double take(struct slow_frame *slow, bool of_cpu, double ms)
{
	double *left_ms = of_cpu && slow->divided ? &slow->cpu_ms : &slow->other_ms;
	double taken_ms = fmin(ms, *left_ms);
	if (!(taken_ms >= SHARE_MIN * slow->excess_ms)) {
		return NAN;
	}
	*left_ms -= taken_ms;
	return taken_ms;
}

/* deviation: ranks what is not known in ms. */
static void add_cause(struct slow_frame *slow, const struct cause *cause, double value,
	double usual, double explained_ms, double deviation)
{
	struct difference difference = {.kind = DIFFERENCE_WHY,
		.unit = cause->unit,
		.value = value,
		.usual = usual,
		.explained_ms = explained_ms,
		.rank = isnan(explained_ms) ? deviation : RANK_KNOWN + explained_ms,
		.sensors = cause->sensors};
	struct text what = TEXT_IN(difference.what), text = TEXT_IN(difference.text);
	double size = scales[cause->unit].suffix ? scales[cause->unit].size : 1;
	text_add(&what, "%s", cause->what);
	text_add(&text, "%s %.5g%s, usually %.5g", cause->before, round(value / size * 10) / 10,
		cause->after, round(usual / size * 10) / 10);
	explanation_add(slow->ret, &difference);
}

static void explain_cause(struct slow_frame *slow, const struct cause *cause)
{
	bool of_cpu = cause->value == CPU || cause->value == MINOR_FAULTS;
	bool of_time = cause->unit == UNIT_MILLISECONDS;
	double explained_ms = NAN, excess = excess_of(slow, cause->value, of_time ? MS_MIN : 1);
	/* Preempted threads wait in the run queue: where that is measured, it says how long. */
	if (cause->value != INVOLUNTARY || isnan(slow->usual[RUN_DELAY])) {
		explained_ms = take(slow, of_cpu, excess * cause->ms_each);
	}
	if (excess > 0 && !(of_time && isnan(explained_ms))) {
		add_cause(slow, cause, slow->value[cause->value], slow->usual[cause->value],
			explained_ms, 1);
	}
}

/* The last sample in a frame that has several, else the first after its end, else the last before;
 * NAN = none is near. */
static double sample_at(const struct explain_series *series, const struct past_frame *frame)
{
	const uint64_t t_ns = frame->end_ns;
	size_t i = 0;
	while (i + 1 < series->count && series->point[i].t_ns < t_ns) {
		i++;
	}
	i -= i >= 2 && series->point[i - 2].t_ns > frame->start_ns;
	const struct history_point *point = &series->point[i];
	bool known = series->count > 0 && isfinite(point->mean) &&
		     point->t_ns + SAMPLE_NS >= t_ns && point->t_ns <= t_ns + SAMPLE_NS;
	return known ? point->mean : (double)NAN;
}

static void explain_sensor(struct slow_frame *slow, const struct explain_series *series)
{
	double values[EXPLAIN_FRAMES], scatter;
	double value = sample_at(series, slow->frame);
	for (size_t i = 0; i < slow->ret->compared; i++) {
		values[i] = sample_at(series, slow->compared[i]);
	}
	double usual = usual_of(values, slow->ret->compared, &scatter), explained_ms = NAN;
	const char *suffix = scales[series->unit].suffix, *path = series->path;
	const bool own = text_starts_with(path, "process/"); /* the app's, before the board's */
	const char *confirmed = text_ends_with(path, "/run_delay") ? "pressure/cpu/" : NULL;
	const struct cause cause = {
		path, path, suffix ? suffix : "", confirmed, 0, series->unit, 0};
	bool clock = series->unit == UNIT_HERTZ, of_cpu = text_starts_with(path, "cpu/");
	bool falls =
		clock || text_starts_with(path, "headroom/") || text_ends_with(path, "/available");
	double worse = falls ? usual - value : value - usual;
	const bool stopped = text_ends_with(path, "/stopped"); /* a count of processes */
	double limit = fmax((stopped ? 0.5 : SENSOR_MIN) * (suffix ? scales[series->unit].size : 1),
		fmax(SENSOR_SHARE * fabs(usual), SCATTERS * scatter));
	/* what is always high does not differ, but says what went on */
	if (text_starts_with(path, "pressure/") && value >= fmax(PRESSED, slow->pressed_percent)) {
		slow->pressed = path;
		slow->pressed_percent = value;
	}
	if (!(worse > limit) || (clock && of_cpu && slow->clocked[true])) {
		return; /* processors slow down together: one of them says it */
	}
	/* A lower clock lengthens what was computed by it, at most all that usually takes. But
	 * clocks also fall because there is nothing to compute: so CPU time or throttling must
	 * confirm it. */
	bool computed = (of_cpu && slow->divided) || excess_of(slow, THROTTLED, 1) > 0;
	if (clock && value > 0 && computed && !slow->clocked[of_cpu]) {
		double base_ms = slow->usual[of_cpu && slow->divided ? CPU : TOOK];
		explained_ms = take(slow, of_cpu, base_ms * (usual / value - 1));
	}
	if (stopped) {
		explained_ms = take(slow, false, slow->excess_ms);
	}
	slow->clocked[of_cpu] |= clock;
	add_cause(slow, &cause, value, usual, explained_ms, worse / limit * (own ? RANK_OWN : 1));
}

void explain_causes(
	struct slow_frame *slow, const struct explain_series *series, size_t series_count)
{
	double cpu_ms = slow->value[CPU] - slow->usual[CPU];
	slow->other_ms = slow->excess_ms;
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (causes[i].value == MAJOR_FAULTS && !isnan(cpu_ms)) {
			slow->divided = true;
			slow->cpu_ms = fmin(fmax(cpu_ms, 0), slow->other_ms);
			slow->other_ms -= slow->cpu_ms;
		}
		for (size_t k = 0; causes[i].value == CPU && k < series_count; k++) {
			explain_sensor(slow, &series[k]);
		}
		explain_cause(slow, &causes[i]);
	}
}
