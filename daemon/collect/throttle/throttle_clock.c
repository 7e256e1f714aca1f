/* Part of the throttle collector, for boards where nothing else tells: cpuinfo_cur_freq (of the
 * hardware, readable by root) far below scaling_cur_freq (what the governor set). A Jetson that
 * sheds current runs at half its clock, and only the former shows it. */
#include "daemon/collect/throttle/throttle_clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"

#define FOLDER "sys/devices/system/cpu/cpufreq"

enum { LOW_PERCENT = 75 };

int throttle_clock_open(
	struct throttle_clock *clock, const struct root *root, struct throttle_status *status)
{
	struct root_name *names = mem_calloc(THROTTLE_CLOCK_MAX, sizeof(*names));
	if (!names) {
		return -ENOMEM;
	}
	int count = root_list(root, FOLDER, names, THROTTLE_CLOCK_MAX);
	int error = count < 0 ? count : -ENOENT;
	for (int i = 0; i < count; i++) {
		struct device_file *is = &clock->policy[clock->count].is;
		struct device_file *set = &clock->policy[clock->count].set;
		const char *name = names[i].text;
		long long value;
		if (strncmp(name, "policy", 6) != 0) {
			continue;
		}
		device_file_init(is, true, FOLDER "/%s/cpuinfo_cur_freq", name);
		device_file_init(set, true, FOLDER "/%s/scaling_cur_freq", name);
		int r = device_file_read_i64(is, root, &value);
		r = r < 0 ? r : device_file_read_i64(set, root, &value);
		if (r == 0) {
			clock->count++;
			continue;
		}
		error = r;
		device_file_close(is);
		device_file_close(set);
	}
	free(names);
	throttle_add_tried(
		status, "cpuinfo_cur_freq", "%s", clock->count > 0 ? "used" : errno_reason(error));
	return (int)clock->count;
}

void throttle_clock_fetch(struct throttle_clock *clock, const struct root *root)
{
	for (size_t i = 0; i < clock->count; i++) {
		struct throttle_policy *policy = &clock->policy[i];
		policy->result = device_file_read_i64(&policy->is, root, &policy->is_khz);
		if (policy->result == 0) {
			policy->result = device_file_read_i64(&policy->set, root, &policy->set_khz);
		}
	}
}

void throttle_clock_sample(struct throttle_clock *clock, struct throttle_status *status)
{
	bool told = false;
	for (size_t i = 0; i < clock->count; i++) {
		struct throttle_policy *policy = &clock->policy[i];
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
		told = true;
	}
	if (told) {
		throttle_add_source(status, "cpuinfo_cur_freq");
	}
}

void throttle_clock_close(struct throttle_clock *clock)
{
	for (size_t i = 0; i < clock->count; i++) {
		device_file_close(&clock->policy[i].is);
		device_file_close(&clock->policy[i].set);
	}
	memset(clock, 0, sizeof(*clock));
}
