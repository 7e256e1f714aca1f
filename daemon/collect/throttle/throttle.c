/* SPDX-License-Identifier: Apache-2.0 */
/* throttle.c: reports whether hardware throttling is active, and why: throttle/active and the
 * single flags, from whatever this machine has (the Raspberry Pi's word, cooling devices, a
 * Jetson's event counters, Intel's counters, at last the clock itself). What no source reports is
 * null. The temperature has no part in it. Own key: vcgencmd = the program's absolute path; never
 * run without. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/board/pi_tool.h"
#include "daemon/collect/sched/registry.h"
#include "daemon/collect/throttle/detector.h"
#include "daemon/util/sysops.h"

#define NOT_READ "the source throttle is not read now"

static const struct throttle_detector *const detectors[] = {
	&throttle_pi, &throttle_cooling, &throttle_soctherm, &throttle_x86, &throttle_clock};

enum { DETECTORS = sizeof(detectors) / sizeof(detectors[0]) };

struct throttle {
	struct throttle_status *status;
	struct throttle_status probed; /* what was tried */
	int found;
	struct throttle_edges edges;
	void *detector[DETECTORS]; /* their states */
	struct metric *flag[THROTTLE_FLAGS];
};

static const char *const throttle_keys[] = {"vcgencmd", NULL};

static void throttle_close(void *state)
{
	struct throttle *throttle = state;
	for (size_t i = 0; i < DETECTORS; i++) {
		void *detector = throttle->detector[i];
		if (detector && detectors[i]->close) {
			detectors[i]->close(detector);
		} else if (detector) {
			gauges_finish(detector);
		}
		free(detector);
	}
}

/* 0 or more: how many places it reads; -ENOMEM. */
static int probe_one(
	void **state, const struct throttle_detector *detector, struct throttle_search *search)
{
	*state = mem_zalloc(detector->size);
	if (!*state) {
		return -ENOMEM;
	}
	if (detector->element_size == 0) {
		return detector->probe(*state, search);
	}
	struct gauges *gauges = *state;
	gauges_init(gauges, search->root, detector->element_size, 0);
	gauges->kept = detector->kept > 0 ? detector->kept : gauges->kept;
	int r = detector->probe(*state, search);
	return gauges->no_memory ? -ENOMEM : r;
}

/* A machine that reports nothing is found out by open, so that what was tried gets there. */
static int throttle_probe(const struct collector_context *ctx, void *state)
{
	struct throttle *throttle = state;
	struct throttle_search search = {.root = ctx->root,
		.vcgencmd = source_option(ctx->options, throttle_keys[0]),
		.status = &throttle->probed};
	for (size_t i = 0; i < DETECTORS; i++) {
		int found = probe_one(&throttle->detector[i], detectors[i], &search);
		if (found < 0) {
			return found;
		}
		search.found += found;
	}
	throttle->found = search.found;
	return 0;
}

static int add_metrics(struct throttle *throttle, const struct collector_context *ctx)
{
	struct naming naming;
	int r = 0;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	for (size_t i = 0; i < THROTTLE_FLAGS && r == 0; i++) {
		char path[PROTO_PATH_SIZE];
		snprintf(path, sizeof(path), "throttle/%s",
			throttle_flag_name((enum throttle_flag)i));
		r = naming_add_exact(&naming, path, UNIT_BOOL, &throttle->flag[i]);
	}
	for (size_t i = 0; i < DETECTORS && r == 0; i++) {
		r = detectors[i]->name ? detectors[i]->name(throttle->detector[i], &naming) : 0;
	}
	return naming_finish(&naming, r);
}

static int throttle_open(const struct collector_context *ctx, void *state)
{
	struct throttle *throttle = state;
	struct throttle_status *status = ctx->core->throttle;
	throttle->status = status;
	status->tried_count = throttle->probed.tried_count;
	memcpy(status->tried, throttle->probed.tried, sizeof(status->tried));
	status->sampled = false;
	int r = add_metrics(throttle, ctx);
	if (r == 0 && throttle->found == 0) {
		r = collector_fail(ctx, -ENOENT,
			"nothing reports throttling: no Raspberry Pi firmware, no cooling device, "
			"no event counter (edgeprofctl throttle lists what was tried)");
	}
	if (r < 0) {
		throttle_clear(
			status, r == -ENOENT ? "no source on this machine reports it" : NOT_READ);
	}
	return r;
}

static int throttle_fetch(const struct collector_context *ctx, void *state)
{
	struct throttle *throttle = state;
	for (size_t i = 0; i < DETECTORS; i++) {
		if (detectors[i]->fetch) {
			detectors[i]->fetch(throttle->detector[i], ctx->root);
		} else {
			gauges_read(throttle->detector[i], ctx->root);
		}
	}
	return 0;
}

/* What open found out about a machine that reports nothing stays. */
static void throttle_forget(const struct collector_context *ctx)
{
	struct throttle_status *status = ctx->core->throttle;
	if (status->sampled) {
		status->sampled = false;
		throttle_clear(status, NOT_READ);
	}
}

static int throttle_sample(const struct collector_context *ctx, void *state)
{
	struct throttle *throttle = state;
	struct throttle_status *status = throttle->status;
	uint64_t now_ns = ctx->now_ns;
	throttle_clear(status, "no source on this machine reports it");
	for (size_t i = 0; i < DETECTORS; i++) {
		detectors[i]->sample(throttle->detector[i], status, now_ns);
	}
	throttle_occurred(status);
	status->sampled = true;
	status->t_ns = now_ns;
	for (size_t i = 0; i < THROTTLE_FLAGS; i++) {
		bool unknown = status->flag[i].value == THROTTLE_UNKNOWN;
		metric_set_or_null(throttle->flag[i], status->flag[i].value == THROTTLE_YES,
			unknown ? status->flag[i].reason : NULL);
	}
	throttle_edges_update(&throttle->edges, status, ctx->core->timeline, now_ns);
	return 0;
}

const struct collector_ops collector_throttle = {
	.name = "throttle",
	.state_size = sizeof(struct throttle),
	.config_keys = throttle_keys,
	.refuse = pi_tool_refuse,
	.probe = throttle_probe,
	.open = throttle_open,
	.fetch = throttle_fetch,
	.sample = throttle_sample,
	.forget = throttle_forget,
	.close = throttle_close,
};
