/*
 * Frame streams: ticks become deltas, deltas become the FPS numbers people know. Both meanings are
 * kept: fps counts ticks over time, fps_mean averages 1/dt (acceptance, golden vector A).
 */
#include "daemon/core/frames.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/seam.h"
#include "proto/mapping.h"
#include "proto/percentile.h"

int frames_create(size_t window, struct frames **ret)
{
	struct frames *frames = mem_zalloc(sizeof(*frames));
	if (!frames) {
		return -ENOMEM;
	}
	frames->deltas_ns = mem_calloc(window, sizeof(*frames->deltas_ns));
	frames->latencies_ns = mem_calloc(window, sizeof(*frames->latencies_ns));
	if (!frames->deltas_ns || !frames->latencies_ns) {
		frames_destroy(frames);
		return -ENOMEM;
	}
	frames->window = window;
	frames->last_id = PROTO_NO_FRAME;
	*ret = frames;
	return 0;
}

void frames_destroy(struct frames *frames)
{
	if (!frames) {
		return;
	}
	free(frames->deltas_ns);
	free(frames->latencies_ns);
	free(frames);
}

/* Notes the id; true when it is before the last one's. */
static bool note_id(struct frames *frames, uint64_t id)
{
	if (id == PROTO_NO_FRAME) {
		return false;
	}
	if (frames->last_id != PROTO_NO_FRAME) {
		if (id < frames->last_id) {
			return true;
		}
		if (id > frames->last_id + 1) {
			uint64_t skipped = id - frames->last_id - 1;
			bool fits = skipped <= UINT64_MAX - frames->skipped_ids;
			frames->skipped_ids = fits ? frames->skipped_ids + skipped : UINT64_MAX;
		}
	}
	frames->last_id = id;
	return false;
}

static void note_latency(struct frames *frames, uint64_t latency_ns)
{
	frames->latencies_ns[frames->latency_next] = latency_ns;
	frames->latency_next = (frames->latency_next + 1) % frames->window;
	frames->latency_filled += frames->latency_filled < frames->window;
}

static void note_delta(struct frames *frames, uint64_t delta_ns)
{
	frames->zero_deltas += delta_ns == 0;
	frames->deltas_ns[frames->next] = delta_ns;
	frames->next = (frames->next + 1) % frames->window;
	frames->filled += frames->filled < frames->window;
}

void frames_tick(struct frames *frames, uint64_t tick_ns, uint64_t id, uint64_t latency_ns)
{
	bool first = frames->count == 0;
	frames->count++;
	frames->interval.count++;
	bool late = note_id(frames, id);
	uint64_t judged_ns = latency_ns;
	if (latency_ns) {
		note_latency(frames, latency_ns);
	}
	if (!first && tick_ns < frames->last_tick_ns) {
		late = true;
	} else {
		if (!first) {
			note_delta(frames, tick_ns - frames->last_tick_ns);
			if (!judged_ns) { /* a bare tick is late when the next took too long */
				judged_ns = tick_ns - frames->last_tick_ns;
			}
		}
		frames->last_tick_ns = tick_ns;
		frames->ticks_ns[frames->ticks_next] = tick_ns;
		frames->ticks_next = (frames->ticks_next + 1) % FRAMES_FPS_TICKS;
		frames->ticks_filled += frames->ticks_filled < FRAMES_FPS_TICKS;
	}
	frames->out_of_order += late;
	if (frames->deadline_ns && judged_ns > frames->deadline_ns) {
		frames->misses++;
		frames->interval.misses++;
	}
}

static void fps_of_ticks(const struct frames *frames, struct frames_stats *ret)
{
	if (frames->ticks_filled < 2) {
		return;
	}
	size_t oldest = frames->ticks_filled < FRAMES_FPS_TICKS ? 0 : frames->ticks_next;
	uint64_t elapsed_ns = frames->last_tick_ns - frames->ticks_ns[oldest];
	if (elapsed_ns == 0) {
		return;
	}
	ret->fps = (double)(frames->ticks_filled - 1) / ((double)elapsed_ns / 1e9);
	ret->frame_time_ms = 1000.0 / ret->fps;
}

static void stats_of_deltas(
	const struct frames *frames, double *times_ms, double *rates, struct frames_stats *ret)
{
	size_t rate_count = 0;
	for (size_t i = 0; i < frames->filled; i++) {
		double ms = (double)frames->deltas_ns[i] / 1e6;
		times_ms[i] = ms;
		if (ms > 0) {
			rates[rate_count++] = 1000.0 / ms;
		}
	}
	struct proto_summary times, fps;
	proto_summarize(times_ms, frames->filled, &times);
	proto_summarize(rates, rate_count, &fps);
	ret->fps_mean = fps.mean;
	ret->fps_min = fps.min;
	ret->fps_max = fps.max;
	ret->fps_p5 = proto_percentile(rates, rate_count, 5);
	ret->fps_p95 = fps.p95;
	ret->frame_time_mean_ms = times.mean;
	ret->frame_time_p95_ms = times.p95;
	ret->frame_time_p99_ms = times.p99;
	ret->jitter_ms = times.std;
}

void frames_stats(const struct frames *frames, double *scratch, struct frames_stats *ret)
{
	*ret = (struct frames_stats){.fps = NAN,
		.frame_time_ms = NAN,
		.fps_mean = NAN,
		.fps_min = NAN,
		.fps_max = NAN,
		.fps_p5 = NAN,
		.fps_p95 = NAN,
		.frame_time_mean_ms = NAN,
		.frame_time_p95_ms = NAN,
		.frame_time_p99_ms = NAN,
		.jitter_ms = NAN,
		.frame_count = frames->filled,
		.end_to_end_mean_ms = NAN,
		.end_to_end_p95_ms = NAN,
		.sufficient = frames->filled >= 2};
	fps_of_ticks(frames, ret);
	if (ret->sufficient) {
		stats_of_deltas(frames, scratch, scratch + frames->window, ret);
	}
	if (frames->latency_filled > 0) {
		for (size_t i = 0; i < frames->latency_filled; i++) {
			scratch[i] = (double)frames->latencies_ns[i] / 1e6;
		}
		struct proto_summary latency;
		proto_summarize(scratch, frames->latency_filled, &latency);
		ret->end_to_end_mean_ms = latency.mean;
		ret->end_to_end_p95_ms = latency.p95;
	}
}

void frames_interval_reset(struct frames *frames)
{
	memset(&frames->interval, 0, sizeof(frames->interval));
}
