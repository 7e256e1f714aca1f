/* SPDX-License-Identifier: Apache-2.0 */
/* advice.c: turns pressure into advice, with hysteresis. Once per sample it reads the machine's
 * state for all apps together, then judges each app by its frames and logs changes of the level. */
#include "daemon/core/apps/advice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "proto/text.h"

static const uint64_t PAUSE_NS = 500000000; /* at least, between two judgements */

/* What the inputs of one moment ask for. */
struct demand {
	enum proto_advice_level level;
	bool known, calm;
	char reason[ADVICE_REASON];
};

void advice_defaults(struct advice_options *options)
{
	*options = (struct advice_options){
		.enabled = true,
		.reduce_headroom = 8,
		.minimal_headroom = 3,
		.miss_share = 20,
		.recover_after_ns = UINT64_C(30000000000),
		.critical_celsius = NAN,
	};
}

const char *advice_level_name(enum proto_advice_level level)
{
	static const char *const names[] = {
		[PROTO_ADVICE_NONE] = "none",
		[PROTO_ADVICE_FULL] = "full",
		[PROTO_ADVICE_REDUCED] = "reduced",
		[PROTO_ADVICE_MINIMAL] = "minimal",
	};
	return names[level];
}

/* The frames of the window, of this level only. */
static struct advice_seen note_frames(
	struct advice *advice, const struct advice_input *input, uint64_t now_ns)
{
	struct advice_seen *window = advice->window;
	size_t seen = advice->seen;
	if (seen > 0 && (input->judged < window[seen - 1].judged ||
				input->misses < window[seen - 1].misses ||
				input->frames < window[seen - 1].frames)) {
		seen = 0; /* counters restarted */
	}
	if (seen == ADVICE_WINDOW) {
		memmove(window, window + 1, --seen * sizeof(*window));
	}
	window[seen++] = (struct advice_seen){now_ns, input->frames, input->judged, input->misses};
	advice->seen = seen;
	return (struct advice_seen){now_ns - window[0].t_ns, input->frames - window[0].frames,
		input->judged - window[0].judged, input->misses - window[0].misses};
}

static double limit_of(const struct advice_options *options, enum proto_advice_level level)
{
	return level == PROTO_ADVICE_MINIMAL ? options->minimal_headroom : options->reduce_headroom;
}

static void ask_headroom(const struct advice *advice, const struct advice_options *options,
	const struct advice_input *input, struct demand *demand)
{
	double headroom = input->headroom_celsius;
	if (isnan(headroom)) {
		return;
	}
	demand->known = true;
	demand->calm &= headroom > limit_of(options, advice->level) + ADVICE_DISTANCE_CELSIUS;
	if (headroom > options->reduce_headroom && headroom > options->minimal_headroom) {
		return;
	}
	demand->level =
		headroom <= options->minimal_headroom ? PROTO_ADVICE_MINIMAL : PROTO_ADVICE_REDUCED;
	snprintf(demand->reason, sizeof(demand->reason), "headroom %.1f °C of %s", headroom,
		input->headroom_of);
}

static void ask_throttled(const struct advice_input *input, struct demand *demand)
{
	demand->known |= input->throttled != THROTTLE_UNKNOWN;
	if (input->throttled != THROTTLE_YES) {
		return;
	}
	demand->calm = false;
	if (demand->level < PROTO_ADVICE_REDUCED) {
		demand->level = PROTO_ADVICE_REDUCED;
		snprintf(demand->reason, sizeof(demand->reason), "hardware throttling active");
	}
}

/* Misses show that a level is not enough, not which one is: one step more, once it has shown. */
static void ask_misses(const struct advice *advice, const struct advice_options *options,
	const struct advice_input *input, const struct advice_seen *span, uint64_t now_ns,
	struct demand *demand)
{
	demand->known |= input->has_deadline;
	if (!input->has_deadline || span->judged < ADVICE_MIN_FRAMES) {
		return;
	}
	double share = 100.0 * (double)span->misses / (double)span->judged;
	demand->calm &= share <= options->miss_share / 2;
	bool settled =
		advice->level <= PROTO_ADVICE_FULL || now_ns - advice->since_ns >= ADVICE_SETTLE_NS;
	if (share <= options->miss_share || !settled) {
		return;
	}
	enum proto_advice_level level =
		advice->level <= PROTO_ADVICE_FULL ? PROTO_ADVICE_REDUCED : PROTO_ADVICE_MINIMAL;
	if (level > demand->level) {
		demand->level = level;
		snprintf(demand->reason, sizeof(demand->reason),
			"%.0f %% of frames missed their deadline", share);
	}
}

static void enter(struct advice *advice, enum proto_advice_level level, uint64_t now_ns)
{
	advice->level = level;
	advice->since_ns = now_ns;
	advice->pressed_ns = advice->calm_ns = 0;
	advice->seen = 0;
}

static void raise_level(
	struct advice *advice, const struct advice_options *options, uint64_t now_ns)
{
	bool soon = advice->lowered_ns > 0 &&
		    now_ns - advice->lowered_ns < 2 * options->recover_after_ns;
	advice->wait_ns = soon ? 2 * advice->wait_ns : options->recover_after_ns;
	enter(advice, advice->pressed_level, now_ns);
}

/* Asked for more for long enough? */
static void press(struct advice *advice, const struct advice_options *options,
	const struct demand *demand, uint64_t now_ns)
{
	if (demand->level <= advice->level) {
		advice->pressed_ns = 0;
		return;
	}
	if (advice->pressed_ns == 0 || demand->level < advice->pressed_level) {
		advice->pressed_level = demand->level;
	}
	advice->pressed_ns = advice->pressed_ns ? advice->pressed_ns : now_ns;
	if (now_ns - advice->pressed_ns >= ADVICE_HOLD_NS) {
		memcpy(advice->reason, demand->reason, sizeof(advice->reason));
		raise_level(advice, options, now_ns);
	}
}

/* Calm for long enough? */
static void relax(struct advice *advice, const struct advice_options *options,
	const struct demand *demand, uint64_t now_ns)
{
	uint64_t min = options->recover_after_ns, max = ADVICE_PATIENCE * min;
	if (advice->level == PROTO_ADVICE_FULL || !demand->calm) {
		advice->calm_ns = 0;
		return;
	}
	advice->wait_ns = advice->wait_ns < min	  ? min
			  : advice->wait_ns > max ? max
						  : advice->wait_ns;
	advice->calm_ns = advice->calm_ns ? advice->calm_ns : now_ns;
	if (now_ns - advice->calm_ns >= advice->wait_ns) {
		snprintf(advice->reason, sizeof(advice->reason), "calm for %s",
			text_span((now_ns - advice->calm_ns) / 1000000000).text);
		enter(advice, (enum proto_advice_level)(advice->level - 1), now_ns);
		advice->lowered_ns = now_ns;
	}
}

/* The level in numbers: of every three frames, and of what the rate is or should be. */
static void derive(struct advice *advice, double wanted_fps)
{
	double base = wanted_fps > 0 ? wanted_fps : advice->typical_fps;
	advice->skip_frames = 0;
	advice->of_frames = 1;
	advice->target_fps = wanted_fps;
	if (advice->level > PROTO_ADVICE_FULL) {
		advice->skip_frames = advice->level == PROTO_ADVICE_REDUCED ? 1 : 2;
		advice->of_frames = ADVICE_OF_FRAMES;
		advice->target_fps =
			base * (ADVICE_OF_FRAMES - advice->skip_frames) / (double)ADVICE_OF_FRAMES;
	}
}

/* Nothing to judge by. What was seen before counts on as long as calm would take. */
static bool blind(struct advice *advice, const struct advice_options *options, uint64_t now_ns)
{
	advice->calm_ns = advice->pressed_ns = 0;
	advice->blind_ns = advice->blind_ns ? advice->blind_ns : now_ns;
	if (advice->level != PROTO_ADVICE_NONE &&
		now_ns - advice->blind_ns < options->recover_after_ns) {
		return false;
	}
	return advice_clear(advice, "no thermal zone, no throttle state, no deadline", now_ns);
}

/* About half a minute's mean: the base must not follow every hiccup. */
static void learn_rate(
	struct advice *advice, const struct demand *demand, const struct advice_seen *span)
{
	if (advice->level != PROTO_ADVICE_FULL || demand->level != PROTO_ADVICE_FULL ||
		span->frames == 0 || span->t_ns == 0) {
		return;
	}
	double fps = (double)span->frames * 1e9 / (double)span->t_ns;
	advice->typical_fps += advice->typical_fps > 0 ? (fps - advice->typical_fps) / 30 : fps;
}

bool advice_update(struct advice *advice, const struct advice_options *options,
	const struct advice_input *input, uint64_t now_ns)
{
	if (!options->enabled) {
		return advice_clear(advice, "switched off ([advice] enabled)", now_ns);
	}
	uint64_t word = advice_word(advice);
	struct demand demand = {.level = PROTO_ADVICE_FULL, .calm = true};
	struct advice_seen span = note_frames(advice, input, now_ns);
	ask_headroom(advice, options, input, &demand);
	ask_throttled(input, &demand);
	ask_misses(advice, options, input, &span, now_ns, &demand);
	if (!demand.known) {
		return blind(advice, options, now_ns);
	}
	advice->blind_ns = 0;
	if (advice->level == PROTO_ADVICE_NONE) {
		advice->level = PROTO_ADVICE_FULL;
		advice->since_ns = now_ns;
		snprintf(advice->reason, sizeof(advice->reason), "no pressure");
	}
	learn_rate(advice, &demand, &span);
	press(advice, options, &demand, now_ns);
	relax(advice, options, &demand, now_ns);
	derive(advice, input->target_fps);
	return advice_word(advice) != word;
}

bool advice_clear(struct advice *advice, const char *reason, uint64_t now_ns)
{
	bool changed = advice_word(advice) != 0;
	struct advice none = {.serial = advice->serial, .since_ns = advice->since_ns};
	if (changed || none.since_ns == 0) {
		none.since_ns = now_ns;
	}
	snprintf(none.reason, sizeof(none.reason), "%s", reason);
	*advice = none;
	return changed;
}

uint64_t advice_word(const struct advice *advice)
{
	double mfps = advice->target_fps * 1000 + 0.5;
	const struct proto_advice word = {
		.level = advice->level,
		.skip_frames = (uint8_t)advice->skip_frames,
		.of_frames = (uint8_t)advice->of_frames,
		.target_mfps = mfps > 1 && mfps < UINT32_MAX ? (uint32_t)mfps : 0,
	};
	return proto_advice_pack(&word);
}

/* Of a metric that is read again and again; one whose source stopped is not known any more. */
static bool is_current(const struct metric *metric, uint64_t now_ns)
{
	const uint64_t min_ns = 5000000000u;
	uint64_t hold_ns = 3 * metric->source->interval_ns;
	hold_ns = hold_ns > min_ns ? hold_ns : min_ns;
	return !isnan(metric->value) && metric->t_ns > 0 && now_ns <= metric->t_ns + hold_ns;
}

/* The smallest headroom of any zone whose throttling point is known; else how far the hottest
 * one is from the temperature that the operator calls critical. */
static void sample_zones(struct apps *apps, struct advice_input *input, uint64_t now_ns)
{
	static const char prefix[] = "headroom/";
	const struct metric *metric;
	uint32_t cursor = 0;
	input->headroom_celsius = NAN;
	while ((metric = metrics_next(apps->metrics, &cursor))) {
		if (metric->unit == UNIT_CELSIUS && text_starts_with(metric->name, prefix) &&
			is_current(metric, now_ns) && !(metric->value >= input->headroom_celsius)) {
			input->headroom_celsius = metric->value;
			input->headroom_of = metric->name + sizeof(prefix) - 1;
		}
	}
	metric = metrics_find(apps->metrics, "temperature/max");
	if (isnan(input->headroom_celsius) && metric && is_current(metric, now_ns)) {
		input->headroom_celsius = apps->config.advice.critical_celsius - metric->value;
		input->headroom_of = metric->name;
	}
}

static void report_change(
	struct apps *apps, const struct app *app, enum proto_advice_level before, uint64_t now_ns)
{
	const struct advice *advice = &app->advice;
	bool raised = advice->level > before && advice->level > PROTO_ADVICE_FULL;
	enum timeline_level level = raised ? TIMELINE_WARNING : TIMELINE_INFO;
	if (advice->level == before || (before == PROTO_ADVICE_NONE && !raised) ||
		!apps_may_log(apps, app->uid, level, now_ns)) {
		return;
	}
	timeline_add(apps->timeline, now_ns, TIMELINE_APP, level, app->name, "advice: %s (%s)",
		advice_level_name(advice->level), advice->reason);
}

static void advise(struct apps *apps, struct app *app, struct advice_input *input, uint64_t now_ns)
{
	const struct frames *frames = app->frames;
	enum proto_advice_level before = app->advice.level;
	bool changed;
	if (app->processes == 0) {
		changed = advice_clear(&app->advice, "app ended", now_ns);
		before = PROTO_ADVICE_NONE; /* its end is logged */
	} else {
		input->has_deadline = frames && frames->deadline_ns > 0;
		input->frames = frames ? frames->count : 0;
		input->judged = frames ? frames->judged : 0;
		input->misses = frames ? frames->misses : 0;
		input->target_fps = frames ? frames->settings.target_fps : 0;
		changed = advice_update(&app->advice, &apps->config.advice, input, now_ns);
		report_change(apps, app, before, now_ns);
	}
	if (changed || app->advice.serial == 0) {
		app->advice.serial = ++apps->counts.advice_serial;
	}
}

void apps_advise(struct apps *apps, uint64_t now_ns)
{
	struct advice_input input = {.throttled = app_throttled_at(apps, now_ns)};
	if (apps->advised_ns > 0 && now_ns < apps->advised_ns + PAUSE_NS) {
		return;
	}
	apps->advised_ns = now_ns;
	sample_zones(apps, &input, now_ns);
	for (size_t i = 0; i < apps->count; i++) {
		advise(apps, apps->app[i], &input, now_ns);
	}
}
