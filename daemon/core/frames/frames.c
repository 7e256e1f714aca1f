/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.c: accumulates a frame stream: ticks become deltas, finished frames become latencies.
 * app_frames.c hands them in in the order of time; frame_stats.c makes the numbers.
 */
#include "daemon/core/frames/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

static const uint64_t SECOND_NS = 1000000000;

int frames_create(size_t window, struct frames **ret)
{
	struct frames *frames = mem_zalloc(sizeof(*frames));
	if (!frames) {
		return -ENOMEM;
	}
	frames->times.words = mem_calloc(window, sizeof(*frames->times.words));
	frames->latencies.words = mem_calloc(window, sizeof(*frames->latencies.words));
	frames->sums_ns = mem_calloc(window, sizeof(*frames->sums_ns));
	if (!frames->times.words || !frames->latencies.words || !frames->sums_ns) {
		frames_destroy(frames);
		return -ENOMEM;
	}
	proto_histogram_init(&frames->times.all, mem_calloc);
	proto_histogram_init(&frames->latencies.all, mem_calloc);
	frames->window = window;
	frames->second.min = UINT32_MAX;
	frames->restarted = true;
	*ret = frames;
	return 0;
}

static void series_finish(struct frames_series *series)
{
	free(series->words);
	proto_histogram_finish(&series->all);
	proto_histogram_finish(series->throttled);
	free(series->throttled);
}

void frames_destroy(struct frames *frames)
{
	if (!frames) {
		return;
	}
	series_finish(&frames->times);
	series_finish(&frames->latencies);
	free(frames->sums_ns);
	free(frames);
}

static void choose_deadline(struct frames *frames)
{
	uint64_t deadline_ns = frames->settings.deadline_ns > 0 ? frames->settings.deadline_ns
								: frames->app_deadline_ns;
	if (deadline_ns != frames->deadline_ns) {
		frames->deadline_ns = deadline_ns;
		frames->consecutive_misses = 0;
	}
}

void frames_configure(struct frames *frames, const struct frames_settings *settings)
{
	frames->settings = *settings;
	choose_deadline(frames);
	if (frames->count + frames->warmup_skipped == 0) {
		frames->warmup_left = frames->warmup_latencies = settings->warmup;
	}
}

void frames_set_deadline(struct frames *frames, uint64_t deadline_ns)
{
	frames->app_deadline_ns = deadline_ns;
	choose_deadline(frames);
}

/* The next tick makes no delta. */
static void interrupt(struct frames *frames)
{
	frames->restarted = true;
	frames->ticks_filled = frames->ticks_next = 0;
	frames->second.start_ns = 0;
}

void frames_restart(struct frames *frames)
{
	interrupt(frames);
	frames->consecutive_misses = 0;
	frames->warmup_left = frames->warmup_latencies = frames->settings.warmup;
}

static void series_add(struct frames *frames, struct frames_series *series, uint64_t duration_ns,
	enum throttle_value throttled)
{
	series->words[series->next] = stage_word(duration_ns, throttled);
	if (++series->next == frames->window) {
		series->next = 0;
	}
	series->filled += series->filled < frames->window;
	proto_histogram_add(&series->all, duration_ns);
	if (throttled == THROTTLE_YES && !series->throttled) {
		series->throttled = mem_zalloc(sizeof(*series->throttled));
		if (series->throttled) {
			proto_histogram_init(series->throttled, mem_calloc);
		}
	}
	if (throttled == THROTTLE_YES && series->throttled) {
		proto_histogram_add(series->throttled, duration_ns);
	} else if (throttled != THROTTLE_NO) {
		series->unknown_count++; /* without memory, too: it is not known from now on */
	}
}

static void second_ended(struct frames *frames)
{
	uint32_t fps = frames->second.count;
	frames->second.fps[frames->second.next] = fps;
	frames->second.next = (frames->second.next + 1) % FRAMES_SECONDS;
	frames->second.filled += frames->second.filled < FRAMES_SECONDS;
	frames->second.min = fps < frames->second.min ? fps : frames->second.min;
	frames->second.max = fps > frames->second.max ? fps : frames->second.max;
	frames->second.count = 0;
	frames->second.start_ns += SECOND_NS;
}

static void note_second(struct frames *frames, uint64_t tick_ns)
{
	if (frames->second.start_ns == 0 ||
		tick_ns - frames->last_tick_ns > FRAMES_PAUSE_S * SECOND_NS) {
		frames->second.start_ns = tick_ns; /* this one belongs to the time before it */
		frames->second.count = 0;
		return;
	}
	while (tick_ns - frames->second.start_ns > SECOND_NS) {
		second_ended(frames);
	}
	frames->second.count++;
}

void frames_gap(struct frames *frames, uint64_t t_ns)
{
	frames->gap_ns = t_ns;
}

/* Returns the delta that counts. */
static uint64_t note_tick(struct frames *frames, uint64_t tick_ns, enum throttle_value throttled)
{
	uint64_t delta_ns = 0;
	if (frames->gap_ns > 0 && tick_ns >= frames->gap_ns) {
		if (frames->last_tick_ns < frames->gap_ns) {
			interrupt(frames);
		}
		frames->gap_ns = 0;
	}
	note_second(frames, tick_ns);
	if (!frames->restarted) {
		delta_ns = tick_ns - frames->last_tick_ns;
		frames->zero_deltas += delta_ns == 0;
		series_add(frames, &frames->times, delta_ns, throttled);
	} else if (frames->first_tick_ns == 0) {
		frames->first_tick_ns = tick_ns;
	} else {
		frames->paused_ns += tick_ns - frames->last_tick_ns;
	}
	frames->restarted = false;
	frames->last_tick_ns = tick_ns;
	frames->ticks_ns[frames->ticks_next] = tick_ns;
	frames->ticks_next = (frames->ticks_next + 1) % FRAMES_FPS_TICKS;
	frames->ticks_filled += frames->ticks_filled < FRAMES_FPS_TICKS;
	return delta_ns;
}

uint64_t frames_tick(
	struct frames *frames, uint64_t tick_ns, uint64_t id, enum throttle_value throttled)
{
	bool behind = id != PROTO_NO_FRAME && frame_ids_append(&frames->ids, id);
	if (tick_ns > frames->last_tick_ns + PULSE_IDLE_MIN_NS &&
		pulse_idle_ns(&frames->pulse, tick_ns) > 0) {
		frames->ticks_filled = frames->ticks_next = 0; /* the rate of now has no pause */
	}
	frames->skipped_ids = frames->ids.skipped;
	frames->interval.count += tick_ns >= frames->interval_from_ns;
	pulse_note(&frames->pulse, tick_ns);
	if (frames->warmup_left > 0) {
		frames->warmup_left--;
		frames->warmup_skipped++;
		if (frames->warmup_left > 0 || tick_ns < frames->last_tick_ns) {
			return 0;
		}
		/* the last one of the warm-up: the next delta counts from here */
		note_tick(frames, tick_ns, throttled);
		return 0;
	}
	frames->count++;
	if (tick_ns < frames->last_tick_ns) {
		frames->out_of_order++;
		return 0;
	}
	frames->out_of_order += behind;
	return note_tick(frames, tick_ns, throttled);
}

void frames_latency(
	struct frames *frames, uint64_t latency_ns, uint64_t sum_ns, enum throttle_value throttled)
{
	if (frames->warmup_latencies > 0) {
		frames->warmup_latencies--;
		return;
	}
	frames->sums_ns[frames->latencies.next] = sum_ns;
	series_add(frames, &frames->latencies, latency_ns, throttled);
}

bool frames_judge(struct frames *frames, uint64_t took_ns)
{
	if (frames->deadline_ns == 0 || frames->warmup_left > 0) {
		return false;
	}
	frames->judged++;
	if (took_ns <= frames->deadline_ns) {
		frames->consecutive_misses = 0;
		return false;
	}
	frames->misses++;
	frames->interval.misses += frames->last_tick_ns >= frames->interval_from_ns;
	frames->worst_ns = took_ns > frames->worst_ns ? took_ns : frames->worst_ns;
	frames->consecutive_misses++;
	if (frames->consecutive_misses > frames->longest_misses) {
		frames->longest_misses = frames->consecutive_misses;
	}
	return true;
}

void frames_interval_reset(struct frames *frames)
{
	memset(&frames->interval, 0, sizeof(frames->interval));
}
