/* Whether the hardware takes clock away, and why: throttle/active and the single flags, from
 * whatever this machine has (the Raspberry Pi's word, cooling devices, a Jetson's event counters,
 * Intel's counters, at last the clock itself). What no source tells is null. The temperature has no
 * part in it. Own key: vcgencmd = the program's absolute path (devices.md part 2, 2); never run
 * without. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/naming.h"
#include "daemon/collect/throttle/throttle_clock.h"
#include "daemon/collect/throttle/throttle_cooling.h"
#include "daemon/collect/throttle/throttle_oc.h"
#include "daemon/collect/throttle/throttle_pi.h"
#include "daemon/collect/throttle/throttle_x86.h"
#include "daemon/util/sysops.h"

#define NOT_READ "the source throttle is not read now"

struct throttle_collector {
	struct throttle_status *status;
	struct throttle_status looked; /* of the probe: what was tried */
	size_t found;
	struct throttle_edges edges;
	struct throttle_pi pi;
	struct throttle_cooling cooling;
	struct throttle_oc oc;
	struct throttle_x86 x86;
	struct throttle_clock clock;
	struct metric *flag[THROTTLE_FLAGS];
};

static const char *const throttle_keys[] = {"vcgencmd", NULL};

static void throttle_close(void *state)
{
	struct throttle_collector *throttle = state;
	if (throttle) {
		throttle_pi_close(&throttle->pi);
		throttle_cooling_close(&throttle->cooling);
		throttle_oc_close(&throttle->oc);
		throttle_x86_close(&throttle->x86);
		throttle_clock_close(&throttle->clock);
	}
	free(throttle);
}

static int add_flags(struct throttle_collector *throttle, struct naming *naming)
{
	for (size_t i = 0; i < THROTTLE_FLAGS; i++) {
		char path[PROTO_PATH_SIZE];
		snprintf(path, sizeof(path), "throttle/%s",
			throttle_flag_name((enum throttle_flag)i));
		int r = naming_add_exact(naming, path, UNIT_BOOL, &throttle->flag[i]);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

/* How many places tell something; -ENOMEM. */
static int look(struct throttle_collector *throttle, const struct root *root, const char *vcgencmd)
{
	struct throttle_status *status = &throttle->looked;
	const int found[] = {
		throttle_pi_probe(&throttle->pi, root, vcgencmd, status),
		throttle_cooling_open(&throttle->cooling, root, status),
		throttle_oc_probe(&throttle->oc, root, status),
		throttle_x86_probe(&throttle->x86, root, status),
	};
	int sum = 0;
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
		if (found[i] < 0) {
			return found[i];
		}
		sum += found[i];
	}
	/* the alarm of a Raspberry Pi alone says nothing about the clock */
	if (sum > 0 && !throttle_pi_only_alarm(&throttle->pi, sum)) {
		return sum;
	}
	throttle->clock.low_only = sum > 0;
	int clocks = throttle_clock_open(&throttle->clock, root, status);
	return clocks < 0 ? clocks : sum + clocks;
}

/* A machine that tells nothing is found out by open, so that what was tried gets there. */
static int throttle_probe(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	(void)reason;
	struct throttle_collector *throttle = mem_zalloc(sizeof(*throttle));
	if (!throttle) {
		return -ENOMEM;
	}
	int r = look(throttle, ctx->root, pi_tool_path(ctx->options));
	if (r < 0) {
		throttle_close(throttle);
		return r;
	}
	throttle->found = (size_t)r;
	*state = throttle;
	return 0;
}

static int make_names(struct throttle_collector *throttle, const struct collector_context *ctx)
{
	struct naming naming;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	int r = add_flags(throttle, &naming);
	r = r < 0 ? r : throttle_oc_name(&throttle->oc, &naming);
	r = r < 0 ? r : throttle_x86_name(&throttle->x86, &naming);
	if (r == 0) {
		naming_retire_rest(&naming);
	}
	return r;
}

static int throttle_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	struct throttle_collector *throttle = *state;
	struct throttle_status *status = ctx->core->throttle;
	throttle->status = status;
	status->tried_count = throttle->looked.tried_count;
	memcpy(status->tried, throttle->looked.tried, sizeof(status->tried));
	status->sampled = false;
	int r = make_names(throttle, ctx);
	if (r == 0 && throttle->found == 0) {
		snprintf(reason, SOURCE_REASON_SIZE,
			"nothing tells of throttling: no Raspberry Pi firmware, no cooling device, "
			"no event counter (edgeprofctl throttle lists what was tried)");
		r = -ENOENT;
	}
	if (r < 0) {
		throttle_clear(
			status, r == -ENOENT ? "no source on this machine tells it" : NOT_READ);
	}
	return r;
}

static int throttle_fetch(const struct collector_context *ctx, void *state)
{
	struct throttle_collector *throttle = state;
	throttle_pi_fetch(&throttle->pi, ctx->root);
	throttle_cooling_fetch(&throttle->cooling, ctx->root);
	throttle_oc_fetch(&throttle->oc, ctx->root);
	throttle_x86_fetch(&throttle->x86, ctx->root);
	throttle_clock_fetch(&throttle->clock, ctx->root);
	return 0;
}

/* What open found out about a machine that tells nothing stays. */
static void throttle_forget(const struct collector_context *ctx)
{
	struct throttle_status *status = ctx->core->throttle;
	if (status->sampled) {
		status->sampled = false;
		throttle_clear(status, NOT_READ);
	}
}

static int throttle_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	struct throttle_collector *throttle = state;
	struct throttle_status *status = throttle->status;
	(void)reason;
	throttle_clear(status, "no source on this machine tells it");
	throttle_pi_sample(&throttle->pi, status, now_ns);
	throttle_cooling_sample(&throttle->cooling, status);
	throttle_oc_sample(&throttle->oc, status, now_ns);
	throttle_x86_sample(&throttle->x86, status, now_ns);
	throttle_clock_sample(&throttle->clock, status);
	throttle_occurred(status);
	status->sampled = true;
	status->t_ns = now_ns;
	for (size_t i = 0; i < THROTTLE_FLAGS; i++) {
		if (status->flag[i].value == THROTTLE_UNKNOWN) {
			metric_set_null(throttle->flag[i], status->flag[i].reason);
		} else {
			metric_set(throttle->flag[i], status->flag[i].value == THROTTLE_YES);
		}
	}
	throttle_edges_update(&throttle->edges, status, ctx->core->timeline, now_ns);
	return 0;
}

const struct collector_ops collector_throttle = {
	.name = "throttle",
	.config_keys = throttle_keys,
	.refuse = pi_tool_refuse,
	.probe = throttle_probe,
	.open = throttle_open,
	.fetch = throttle_fetch,
	.sample = throttle_sample,
	.forget = throttle_forget,
	.close = throttle_close,
};
