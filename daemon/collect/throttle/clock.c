/* clock: sees throttling on boards where nothing else reports it: cpuinfo_cur_freq (of the
 * hardware, readable by root) far below scaling_cur_freq (what the governor set). A Jetson that
 * sheds current runs at half its clock, and only the former shows it. */
#include <errno.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/throttle/detector.h"
#include "daemon/core/metrics/metrics.h"

enum { POLICIES_MAX = 16, LOW_PERCENT = 75 };

struct policy {
	struct device_file is, set;
	int result; /* of the last reads, and what they gave */
	long long is_khz, set_khz;
	unsigned low; /* samples in a row */
};

struct clock {
	size_t count;
	bool low_only; /* a clock as it was set proves nothing: the firmware has other means */
	int error;     /* of the last policy that cannot be read */
	struct policy policy[POLICIES_MAX];
};

static int read_policy(struct policy *policy, const struct root *root)
{
	int r = device_file_read_i64(&policy->is, root, &policy->is_khz);
	return r < 0 ? r : device_file_read_i64(&policy->set, root, &policy->set_khz);
}

static void add_policy(void *ctx, const struct root *root, const char *path, const char *name)
{
	struct clock *clock = ctx;
	struct policy *policy = &clock->policy[clock->count];
	(void)name;
	if (clock->count == POLICIES_MAX) {
		return;
	}
	(void)device_file_init(&policy->is, true, "%s/cpuinfo_cur_freq", path);
	(void)device_file_init(&policy->set, true, "%s/scaling_cur_freq", path);
	int r = read_policy(policy, root);
	if (r < 0) {
		device_file_close(&policy->is);
		device_file_close(&policy->set);
		clock->error = r;
	} else {
		clock->count++;
	}
}

static int probe(void *state, struct throttle_search *search)
{
	struct clock *clock = state;
	if (search->found != search->clockless) {
		return 0;
	}
	clock->low_only = search->found > 0;
	clock->error = -ENOENT;
	int r = device_each(
		search->root, "sys/devices/system/cpu/cpufreq", "policy", add_policy, clock);
	if (r == -ENOMEM) {
		return r;
	}
	throttle_add_tried(search->status, "cpuinfo_cur_freq", "%s",
		clock->count > 0 ? "used" : errno_reason(r < 0 ? r : clock->error));
	return (int)clock->count;
}

static void fetch(void *state, const struct root *root)
{
	struct clock *clock = state;
	for (size_t i = 0; i < clock->count; i++) {
		clock->policy[i].result = read_policy(&clock->policy[i], root);
	}
}

static void sample(void *state, struct throttle_status *status, uint64_t now_ns)
{
	struct clock *clock = state;
	bool known = false;
	(void)now_ns;
	for (size_t i = 0; i < clock->count; i++) {
		struct policy *policy = &clock->policy[i];
		if (policy->result < 0 || policy->is_khz <= 0 || policy->set_khz <= 0 ||
			policy->set_khz > INT32_MAX) {
			policy->low = 0;
			continue;
		}
		bool low = policy->is_khz < policy->set_khz * LOW_PERCENT / 100;
		policy->low = low ? policy->low + 1 : 0;
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

static void finish(void *state)
{
	struct clock *clock = state;
	for (size_t i = 0; i < clock->count; i++) {
		device_file_close(&clock->policy[i].is);
		device_file_close(&clock->policy[i].set);
	}
	clock->count = 0;
}

const struct throttle_detector throttle_clock = {
	.size = sizeof(struct clock),
	.probe = probe,
	.fetch = fetch,
	.sample = sample,
	.close = finish,
};
