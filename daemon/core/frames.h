/*
 * A frame stream's statistics: ticks -> FPS both ways, frame times, jitter (G0.1, G0.2, golden
 * vector A). Times are monotonic ns. 1/dt with dt = 0 is left out and counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAMES_FPS_TICKS = 60 };

struct frames_stats {
	/* G0.1, over the last FRAMES_FPS_TICKS ticks */
	double fps;	      /* (n-1)/(t_last-t_first); NAN below 2 ticks */
	double frame_time_ms; /* 1000/fps; NAN likewise */
	/* G0.2, over the last window of deltas; NAN below 2 deltas */
	double fps_mean, fps_min, fps_max, fps_p5, fps_p95;
	double frame_time_mean_ms, frame_time_p95_ms, frame_time_p99_ms, jitter_ms;
	size_t frame_count; /* deltas in the window */
	/* end-to-end latency of frames that were begun and ended; NAN when none */
	double end_to_end_mean_ms, end_to_end_p95_ms;
	bool sufficient; /* at least 2 deltas */
};

struct frames {
	uint64_t count;	       /* ticks since the start */
	uint64_t misses;       /* frames over the deadline */
	uint64_t zero_deltas;  /* two ticks of the same time */
	uint64_t out_of_order; /* tick time or id before the last one's */
	uint64_t skipped_ids;  /* ids left out between consecutive frames */
	uint64_t deadline_ns;  /* 0 = none */
	uint64_t last_tick_ns, last_id;
	struct {
		uint64_t count, misses;
	} interval;
	/* rings */
	size_t window, filled, next;
	uint64_t *deltas_ns;
	size_t latency_filled, latency_next;
	uint64_t *latencies_ns;
	uint64_t ticks_ns[FRAMES_FPS_TICKS];
	size_t ticks_filled, ticks_next;
	struct metric *metric[5]; /* owned by apps.c */
};

int frames_create(size_t window, struct frames **ret); /* -ENOMEM; window >= 2 */
void frames_destroy(struct frames *frames);

/* A frame ended at tick_ns. id PROTO_NO_FRAME = none; latency_ns 0 = a bare tick. A tick before the
 * last one is counted out_of_order and makes no delta. */
void frames_tick(struct frames *frames, uint64_t tick_ns, uint64_t id, uint64_t latency_ns);

/* scratch holds 2 * window doubles. */
void frames_stats(const struct frames *frames, double *scratch, struct frames_stats *ret);
void frames_interval_reset(struct frames *frames);
