/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.h: declares the statistics of a frame stream: ticks -> FPS both ways, frame times, jitter
 * (G0.1, G0.2, golden vector A); latencies, deadlines. The recent window is exact, the lifetime
 * (since the app's since_ns, warm-up skipped) a histogram within 1 %. Times are monotonic ns.
 * 1/dt with dt = 0 is skipped and counted. An event allocates nothing, but the first throttled
 * one a histogram, and the first one far from the others makes its histogram larger.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/frames/frame_ids.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/core/stages/pulse.h"
#include "daemon/core/stages/window.h"
#include "proto/histogram.h"
#include "proto/mapping.h"

enum {
	FRAMES_FPS_TICKS = 60,
	FRAMES_SECONDS = 60, /* of FPS as a range */
	FRAMES_PAUSE_S = 10, /* longer without a frame is a pause, not a slow second */
};

/* Everything is NAN that there are too few frames for. */
struct frames_stats {
	/* G0.1, over the last FRAMES_FPS_TICKS ticks since the stream was idle (pulse.h); lifetime:
	 * over all time but those without a process */
	double fps;	      /* (n-1)/(t_last-t_first); NAN below 2 ticks */
	double frame_time_ms; /* 1000/fps; NAN likewise */
	/* G0.2, over the last window of deltas; NAN below 2 deltas */
	double fps_mean, fps_min, fps_max, fps_p5, fps_p95;
	struct proto_summary times;    /* deltas of the span and filter, ms; jitter: its std */
	double fps_1s_min, fps_1s_max; /* G3.13: frames of full seconds; not of a filter */
	/* from the frame's start to its end, where it has a start, ms; NAN when none */
	struct proto_summary latencies;
	double stage_sum_mean_ms; /* time in stages per frame; recent window only */
	double in_flight; /* frames at work at one time: mean latency / mean frame time; > 1 is a
			     pipeline */
	bool exact;
	const char *reason; /* why the filter has no numbers; static text; NULL */
	bool sufficient;    /* at least 2 deltas */
};

/* What the operator says about an app's frames; zero = nothing. */
struct frames_settings {
	uint64_t deadline_ns; /* wins over the app's */
	double target_fps;
	uint32_t warmup; /* frames to skip at the start of the app */
	uint32_t unused; /* 0: padding, which is saved, would be any bytes of the stack */
};

/* Two windows and their lifetime. */
struct frames_series {
	size_t filled, next;
	uint64_t *words; /* duration and throttle state (window.h) */
	uint64_t unknown_count;
	struct proto_histogram all, *throttled; /* the latter NULL until the first throttled */
};

struct frames {
	struct frames_settings settings;
	uint64_t count;	    /* ticks since the start */
	uint64_t misses;    /* frames over the deadline */
	uint64_t judged;    /* frames that had a deadline */
	uint64_t slow_seen; /* counted by app_frames.c */
	uint64_t consecutive_misses, longest_misses;
	uint64_t worst_ns;	  /* longest frame over its deadline; 0 = none */
	uint64_t zero_deltas;	  /* two ticks of the same time */
	uint64_t out_of_order;	  /* tick before the last one's, or id behind a later one */
	uint64_t skipped_ids;	  /* ids that are missing (frame_ids.h) */
	uint64_t deadline_ns;	  /* 0 = none */
	uint64_t app_deadline_ns; /* what the app itself wants */
	uint64_t warmup_skipped;
	uint32_t warmup_left, warmup_latencies;
	uint64_t first_tick_ns, last_tick_ns;
	uint64_t paused_ns; /* between first and last tick, without a process */
	bool restarted;	    /* the next tick makes no delta */
	struct pulse pulse; /* of all ticks, those of the warm-up as well */
	/* The interval counts ticks from here on: what queued while nobody read is not of now. */
	uint64_t interval_from_ns;
	uint64_t gap_ns; /* ticks from before and after it have no delta; 0 = none */
	struct frame_ids ids;
	struct {
		uint64_t count, misses;
	} interval;
	size_t window;
	struct frames_series times, latencies;
	uint64_t *sums_ns; /* parallel to the latencies' window */
	uint64_t ticks_ns[FRAMES_FPS_TICKS];
	size_t ticks_filled, ticks_next;
	struct {
		uint64_t start_ns; /* of the second that runs; 0 = none */
		uint32_t count;
		size_t filled, next;
		uint32_t fps[FRAMES_SECONDS];
		uint32_t min, max; /* of the lifetime; min UINT32_MAX before the first */
	} second;
	struct metric *metric[8];    /* owned by metrics.c, as are the next two */
	struct frames_stats sampled; /* for the metrics, if sampled_ahead */
	bool sampled_ahead;
};

int frames_create(size_t window, struct frames **ret); /* -ENOMEM; window >= 2 */
void frames_destroy(struct frames *frames);

/* Takes the settings (a copy). The warm-up is that of the app's next start when frames came
 * already. */
void frames_configure(struct frames *frames, const struct frames_settings *settings);
/* The deadline that the app itself declares; 0 = none. */
void frames_set_deadline(struct frames *frames, uint64_t deadline_ns);

/* The app starts again: no delta to the tick before, the warm-up again. */
void frames_restart(struct frames *frames);

/* Events are missing just before t_ns: the ticks around it make no delta. */
void frames_gap(struct frames *frames, uint64_t t_ns);

/* A frame ended at tick_ns. id PROTO_NO_FRAME = none. A tick before the last one is counted
 * out_of_order and makes no delta. Returns the delta; 0 = none, or a skipped one. */
uint64_t frames_tick(
	struct frames *frames, uint64_t tick_ns, uint64_t id, enum throttle_value throttled);

/* What a frame took from its start to its end (not 0), and its stages together. */
void frames_latency(
	struct frames *frames, uint64_t latency_ns, uint64_t sum_ns, enum throttle_value throttled);

/* Once for each frame: what it took (latency, else the delta to the frame before) against the
 * deadline. True when it missed. Nothing is judged during warm-up or without a deadline. */
bool frames_judge(struct frames *frames, uint64_t took_ns);

/* scratch holds 2 * window doubles. */
void frames_ask(const struct frames *frames, const struct window_query *query, double *scratch,
	struct frames_stats *ret);
/* The recent window of all frames. */
void frames_stats(const struct frames *frames, double *scratch, struct frames_stats *ret);
/* The fps of that alone. */
double frames_fps(const struct frames *frames);
void frames_interval_reset(struct frames *frames);
