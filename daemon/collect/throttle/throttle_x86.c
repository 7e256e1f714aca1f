/* Part of the throttle collector: sys/devices/system/cpu/cpu<n>/thermal_throttle. A count moves
 * when an episode begins, its total_time_ms when it ends: between the two the processor throttles.
 * SMT siblings show the counter of their core, all cores that of their package: each is read once.
 */
#include "daemon/collect/throttle/throttle_x86.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/text.h"
#include "daemon/util/sysops.h"

enum { ENTRIES_MAX = 2048, COUNTERS_KEPT = 32 };

#define FOLDER "sys/devices/system/cpu"

struct throttle_counter {
	struct device_file count, time;
	bool package;
	long long package_id, core_id; /* core_id -1: of the package */
	int count_result, time_result; /* of the last reads, and what they gave */
	long long count_value, time_value;
	long long last_count, last_time; /* -1 = none */
	uint64_t since_ns;		 /* of the episode that has not ended; 0 = none */
};

static long long read_number(const struct root *root, const char *cpu, const char *file)
{
	char path[DEVICE_FILE_PATH];
	struct device_file once;
	long long value;
	snprintf(path, sizeof(path), FOLDER "/%s/topology/%s", cpu, file);
	if (device_file_init(&once, false, "%s", path) < 0 ||
		device_file_read_i64(&once, root, &value) < 0) {
		return -1;
	}
	return value;
}

static bool known(
	const struct throttle_x86 *x86, bool package, long long package_id, long long core_id)
{
	for (size_t i = 0; i < x86->count; i++) {
		const struct throttle_counter *counter = &x86->counter[i];
		if (counter->package == package && counter->package_id == package_id &&
			(package || counter->core_id == core_id)) {
			return true;
		}
	}
	return false;
}

static void add_counter(struct throttle_x86 *x86, const struct root *root, const char *cpu,
	bool package, long long package_id, long long core_id)
{
	struct throttle_counter *counter = &x86->counter[x86->count];
	const char *what = package ? "package" : "core";
	bool keep = x86->count < COUNTERS_KEPT;
	long long value;
	if (known(x86, package, package_id, core_id)) {
		return;
	}
	device_file_init(
		&counter->count, keep, FOLDER "/%s/thermal_throttle/%s_throttle_count", cpu, what);
	if (device_file_read_i64(&counter->count, root, &value) < 0) {
		device_file_close(&counter->count);
		return;
	}
	device_file_init(&counter->time, keep,
		FOLDER "/%s/thermal_throttle/%s_throttle_total_time_ms", cpu, what);
	counter->package = package;
	counter->package_id = package_id;
	counter->core_id = core_id;
	counter->last_count = counter->last_time = -1;
	x86->count++;
}

int throttle_x86_name(struct throttle_x86 *x86, struct naming *naming)
{
	if (x86->count == 0) {
		return 0;
	}
	int r = naming_add_exact(naming, "throttle/events_rate", UNIT_PER_SECOND, &x86->rate);
	r = r < 0 ? r : naming_add_exact(naming, "throttle/core_events", UNIT_COUNT, &x86->core);
	return r < 0 ? r
		     : naming_add_exact(
			       naming, "throttle/package_events", UNIT_COUNT, &x86->package);
}

static int add_all(struct throttle_x86 *x86, const struct root *root, const struct root_name *names,
	size_t count)
{
	x86->counter = mem_calloc(2 * count, sizeof(x86->counter[0]));
	if (!x86->counter) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		const char *name = names[i].text;
		const char *digits = name + 3;
		uint64_t cpu;
		if (strncmp(name, "cpu", 3) != 0 || !text_u64(&digits, &cpu) || *digits != '\0') {
			continue;
		}
		long long package = read_number(root, name, "physical_package_id");
		long long core = read_number(root, name, "core_id");
		/* A core that does not tell its number is one of its own. */
		add_counter(
			x86, root, name, false, package, core >= 0 ? core : -2 - (long long)cpu);
		add_counter(x86, root, name, true, package, -1);
	}
	return 0;
}

int throttle_x86_probe(
	struct throttle_x86 *x86, const struct root *root, struct throttle_status *status)
{
	struct root_name *names = mem_calloc(ENTRIES_MAX, sizeof(*names));
	if (!names) {
		return -ENOMEM;
	}
	int count = root_list(root, FOLDER, names, ENTRIES_MAX);
	int r = count > 0 ? add_all(x86, root, names, (size_t)count) : 0;
	free(names);
	if (r < 0) {
		return r;
	}
	throttle_add_tried(
		status, "thermal_throttle counters", "%s", x86->count > 0 ? "used" : "absent");
	return (int)x86->count;
}

void throttle_x86_fetch(struct throttle_x86 *x86, const struct root *root)
{
	for (size_t i = 0; i < x86->count; i++) {
		struct throttle_counter *counter = &x86->counter[i];
		counter->count_result =
			device_file_read_i64(&counter->count, root, &counter->count_value);
		counter->time_result =
			device_file_read_i64(&counter->time, root, &counter->time_value);
	}
}

/* The events since the previous sample, -1 when they cannot be told; follows the episode. */
static long long step(struct throttle_counter *counter, uint64_t now_ns)
{
	long long value = counter->count_value, time = counter->time_value;
	long long last = counter->last_count, last_time = counter->last_time;
	if (counter->count_result < 0 || value < 0) {
		counter->last_count = -1;
		counter->since_ns = 0;
		return -1;
	}
	bool has_time = counter->time_result == 0;
	counter->last_count = value;
	counter->last_time = has_time ? time : -1;
	if (last < 0 || value < last) {
		return -1;
	}
	if (value > last) {
		counter->since_ns = now_ns;
	}
	bool ended = !has_time || last_time < 0 || time != last_time ||
		     now_ns - counter->since_ns > THROTTLE_X86_EPISODE_NS;
	if (ended) {
		counter->since_ns = 0;
	}
	return value - last;
}

void throttle_x86_sample(struct throttle_x86 *x86, struct throttle_status *status, uint64_t now_ns)
{
	long long events = 0, sum[2] = {0, 0};
	bool told = false, on = false;
	if (x86->count == 0) {
		return;
	}
	for (size_t i = 0; i < x86->count; i++) {
		struct throttle_counter *counter = &x86->counter[i];
		long long delta = step(counter, now_ns);
		sum[counter->package] += counter->last_count > 0 ? counter->last_count : 0;
		if (delta >= 0) {
			told = true;
			events += delta;
			on = on || delta > 0 || counter->since_ns != 0;
		}
	}
	metric_set(x86->core, (double)sum[false]);
	metric_set(x86->package, (double)sum[true]);
	double seconds = x86->t_ns != 0 ? (double)(now_ns - x86->t_ns) / 1e9 : 0;
	x86->t_ns = now_ns;
	if (!told || seconds <= 0) {
		metric_set_null(x86->rate, "needs two samples");
		status->flag[THROTTLE_THROTTLED].reason = "needs two samples";
		status->flag[THROTTLE_ACTIVE].reason = "needs two samples";
		return;
	}
	metric_set(x86->rate, (double)events / seconds);
	throttle_join(status, THROTTLE_THROTTLED, on);
	throttle_join(status, THROTTLE_ACTIVE, on);
	throttle_add_source(status, "thermal_throttle");
}

void throttle_x86_close(struct throttle_x86 *x86)
{
	for (size_t i = 0; i < x86->count; i++) {
		device_file_close(&x86->counter[i].count);
		device_file_close(&x86->counter[i].time);
	}
	free(x86->counter);
	memset(x86, 0, sizeof(*x86));
}
