/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c: sees throttling on boards where nothing else reports it: cpuinfo_cur_freq (of the
 * hardware, readable by root) far below scaling_cur_freq (what the governor set). A Jetson that
 * sheds current runs at half its clock, and only the former shows it. */
#include <errno.h>

#include "daemon/collect/lib/gauge.h"
#include "daemon/collect/throttle/detector.h"
#include "daemon/core/metrics/metrics.h"

enum { POLICIES_MAX = 16, LOW_PERCENT = 75 };

/* The clock of the hardware; the element behind it is the one that was set. */
struct policy {
	struct gauge gauge;
	unsigned low; /* samples in a row */
};

struct clock {
	struct gauges policies;
	bool low_only; /* a clock as it was set proves nothing: the firmware has other means */
	int error;     /* of the last policy that cannot be read */
};

static void add_policy(void *ctx, const struct root *root, const char *path, const char *name)
{
	static const struct gauge_kind khz = {.min = 1, .max = INT32_MAX};
	struct clock *clock = ctx;
	long long value;
	(void)name;
	int r = device_number(root, &value, "%s/cpuinfo_cur_freq", path);
	r = r < 0 ? r : device_number(root, &value, "%s/scaling_cur_freq", path);
	if (r < 0) {
		clock->error = r;
	} else if (gauges_add(&clock->policies, &khz, "", "%s/cpuinfo_cur_freq", path)) {
		(void)gauges_add(&clock->policies, &khz, "", "%s/scaling_cur_freq", path);
	}
}

static int probe(void *state, struct throttle_search *search)
{
	struct clock *clock = state;
	if (search->found != search->clockless) {
		return 0;
	}
	clock->policies.max = (size_t)2 * POLICIES_MAX;
	clock->low_only = search->found > 0;
	clock->error = -ENOENT;
	int r = device_each(
		search->root, "sys/devices/system/cpu/cpufreq", "policy", add_policy, clock);
	if (r == -ENOMEM) {
		return r;
	}
	throttle_add_tried(search->status, "cpuinfo_cur_freq", "%s",
		clock->policies.count > 0 ? "used" : errno_reason(r < 0 ? r : clock->error));
	return (int)(clock->policies.count / 2);
}

static void sample(void *state, struct throttle_status *status, uint64_t now_ns)
{
	struct clock *clock = state;
	bool known = false;
	(void)now_ns;
	for (size_t i = 0; i < clock->policies.count; i += 2) {
		struct policy *policy = gauges_at(&clock->policies, i);
		double is_khz, set_khz;
		if (gauge_value(&policy->gauge, &is_khz) ||
			gauge_value(gauges_at(&clock->policies, i + 1), &set_khz)) {
			policy->low = 0;
			continue;
		}
		policy->low = is_khz * 100 < set_khz * LOW_PERCENT ? policy->low + 1 : 0;
		bool on = policy->low >= THROTTLE_CLOCK_SAMPLES;
		if (clock->low_only && !on) {
			continue;
		}
		throttle_join(status, THROTTLE_FREQ_CAPPED, on);
		throttle_join(status, THROTTLE_ACTIVE, on);
		known = true;
	}
	if (known) {
		throttle_add_source(status, "cpuinfo_cur_freq");
	}
}

const struct throttle_detector throttle_clock = {
	.size = sizeof(struct clock),
	.element_size = sizeof(struct policy),
	.probe = probe,
	.sample = sample,
};
