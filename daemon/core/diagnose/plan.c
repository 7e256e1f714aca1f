/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: replays measured frames through queues at another rate. */
#include "daemon/core/diagnose/plan.h"

#include <math.h>

#include "proto/percentile.h"

enum { BISECTIONS = 14 };

static const double Z95 = 1.959964;

struct replay {
	const struct plan_input *input;
	const float *ms; /* of the first frame that counts */
	size_t frames;
	bool pipelined;
	double mean_ms;	  /* of a frame on the busiest server */
	double latest_ms; /* deadline */
	size_t count;	  /* of latencies: PLAN_PASSES - 1 over the frames */
	double latency[(PLAN_PASSES - 1) * PLAN_FRAMES_MAX];
};

static double duration(const struct replay *replay, size_t frame, size_t stage)
{
	const double ms = (double)replay->ms[frame * replay->input->stages + stage];
	return ms > 0 && isfinite(ms) ? ms : 0;
}

/* Latencies at one frame each interval_ms, from the camera to the end of the last stage. */
static void run(struct replay *replay, double interval_ms)
{
	double free_at[FACTS_STAGES] = {0}; /* when a server is done with the previous frame */
	const size_t total = replay->frames * PLAN_PASSES;
	replay->count = 0;
	for (size_t n = 0; n < total; n++) {
		const double arrival = (double)n * interval_ms;
		double done = arrival;
		for (size_t k = 0; k < replay->input->stages; k++) {
			double *server = &free_at[replay->pipelined ? k : 0];
			done = fmax(done, *server) + duration(replay, n % replay->frames, k);
			*server = done;
		}
		if (n >= replay->frames) {
			replay->latency[replay->count++] = done - arrival;
		}
	}
}

static double busiest_ms(const struct replay *replay)
{
	double sum[FACTS_STAGES] = {0}, most = 0;
	for (size_t n = 0; n < replay->frames; n++) {
		for (size_t k = 0; k < replay->input->stages; k++) {
			double *server = &sum[replay->pipelined ? k : 0];
			*server += duration(replay, n, k) / (double)replay->frames;
			most = fmax(most, *server);
		}
	}
	return most;
}

static double miss_share(const struct replay *replay)
{
	size_t missed = 0;
	for (size_t i = 0; i < replay->count; i++) {
		missed += replay->latency[i] > replay->latest_ms;
	}
	return (double)missed / (double)replay->count;
}

/* Of the frames of one pass, those that say something new: n / (1 + 2 sum of autocorrelations) of
 * being late, as far as these are positive. */
static double effective_count(const struct replay *replay, double share)
{
	const double n = (double)replay->frames, variance = share * (1 - share);
	double inflation = 1;
	for (size_t lag = 1; variance > 0 && lag < replay->frames / 3; lag++) {
		double product = 0;
		for (size_t i = 0; i + lag < replay->frames; i++) {
			product += ((replay->latency[i] > replay->latest_ms) - share) *
				   ((replay->latency[i + lag] > replay->latest_ms) - share);
		}
		if (!(product > 0)) {
			break;
		}
		inflation += 2 * product / n / variance;
	}
	return n / inflation;
}

/* Wilson, J. Am. Stat. Assoc. 22(158), 1927. */
static void set_interval(struct plan_execution *ret, double share, double count)
{
	const double z2 = Z95 * Z95, middle = (share + z2 / (2 * count)) / (1 + z2 / count);
	const double half = Z95 * sqrt(share * (1 - share) / count + z2 / (4 * count * count)) /
			    (1 + z2 / count);
	ret->miss = share;
	ret->miss_low = fmin(fmax(0, middle - half), share);
	ret->miss_high = fmax(fmin(1, middle + half), share);
}

/* The rate below which the share of late frames is small enough; more frames are never earlier. */
static double max_fps(struct replay *replay)
{
	const double given_ms = replay->input->deadline_ms;
	double fast = replay->mean_ms, slow = fmax(1000, 100 * fast); /* intervals */
	for (int i = 0; i <= BISECTIONS; i++) {
		const double middle = i == 0 ? slow : sqrt(fast * slow);
		replay->latest_ms = isnan(given_ms) ? middle : given_ms;
		run(replay, middle);
		const bool good = 100 * miss_share(replay) <= replay->input->miss_percent;
		if (i == 0 && !good) {
			return 0;
		}
		*(good ? &slow : &fast) = middle;
	}
	return 1000 / slow;
}

static void predict(struct replay *replay, bool pipelined, struct plan_execution *ret)
{
	const double fps = replay->input->fps, given_ms = replay->input->deadline_ms;
	replay->pipelined = pipelined;
	replay->mean_ms = busiest_ms(replay);
	ret->max_fps = replay->mean_ms > 0 ? max_fps(replay) : 0;
	if (!(fps > 0)) {
		return;
	}
	replay->latest_ms = isnan(given_ms) ? 1000 / fps : given_ms;
	run(replay, 1000 / fps);
	const bool sustainable = replay->mean_ms * fps < 1000; /* else its queue grows */
	/* Without an end, all frames of a queue that grows are late. */
	const double share = sustainable ? miss_share(replay) : 1;
	set_interval(ret, share, effective_count(replay, share));
	if (sustainable) {
		proto_sort(replay->latency, replay->count);
		ret->latency_p50_ms = proto_percentile(replay->latency, replay->count, 50);
		ret->latency_p95_ms = proto_percentile(replay->latency, replay->count, 95);
		ret->latency_p99_ms = proto_percentile(replay->latency, replay->count, 99);
	}
}

bool plan_predict(const struct plan_input *input, struct plan_execution *sequential,
	struct plan_execution *pipelined)
{
	const size_t skip = input->frames > PLAN_FRAMES_MAX ? input->frames - PLAN_FRAMES_MAX : 0;
	*sequential = *pipelined = (struct plan_execution){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	if (input->frames < PLAN_FRAMES_MIN || input->stages == 0 || input->stages > FACTS_STAGES) {
		return false;
	}
	struct replay replay = {.input = input,
		.ms = input->ms + skip * input->stages,
		.frames = input->frames - skip};
	predict(&replay, false, sequential);
	predict(&replay, true, pipelined);
	return true;
}

/* Normal approximation of the median's standard error, 1.2533 sigma / sqrt(n), with sigma from the
 * interquartile range (1.349 sigma): both hold for a normal distribution. */
static double median_error(const struct fact_scatter *scatter)
{
	return scatter->count > 0 ? 1.2533 * scatter->iqr_ms / 1.349 / sqrt(scatter->count)
				  : (double)NAN;
}

void throttle_tax(const struct facts *facts, struct throttle_tax *ret)
{
	const double off = Z95 * median_error(&facts->unthrottled), usual = facts->unthrottled_ms;
	*ret = (struct throttle_tax){.share = facts->throttled_share,
		.lost_ms = facts->throttled_ms - usual,
		.fps = 1000 / facts->frame_ms.now,
		.unthrottled_fps = 1000 / usual,
		.unthrottled_low_fps = 1000 / (usual + off),
		.unthrottled_high_fps = off < usual ? 1000 / (usual - off) : (double)NAN,
		.throttled_joules = facts->throttled_joules,
		.unthrottled_joules = facts->unthrottled_joules};
	ret->reason = isnan(ret->share) ? "it is not known when the hardware throttled"
		      : ret->share == 0 ? "the hardware did not throttle"
		      : isnan(ret->lost_ms)
			      ? "too few frames with, or without, throttling to compare"
			      : NULL;
}
