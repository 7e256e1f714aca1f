/* SPDX-License-Identifier: Apache-2.0 */
/* cooling.c: sees throttling in cur_state of sys/class/thermal/cooling_device*: Jetson's alerts,
 * and caps of CPU, GPU and memory. Chargers, wifi, backlights, TCC Offset and the "hot surface"
 * alert lower no clock of the processor and are skipped. */
#include <errno.h>
#include <fnmatch.h>

#include "daemon/collect/lib/gauge.h"
#include "daemon/collect/throttle/detector.h"
#include "proto/text.h"

struct device_class {
	const char *glob;
	bool alert; /* of the firmware; else a cap */
};

static const struct device_class classes[] = {
	{"*-throttle-alert", true},
	{"cpufreq-*", false},
	{"thermal-cpufreq-*", false},
	{"devfreq-*", false},
	{"thermal-devfreq-*", false},
	{"*-balanced", false},
	{"tegra-heavy", false},
	{"*idle-*", false},
	{"Processor", false},
	{"intel_powerclamp", false},
};

enum { CLASSES = sizeof(classes) / sizeof(classes[0]), DEVICES_KEPT = 64 };

struct device {
	struct gauge gauge;
	const struct device_class *class;
};

static const struct device_class *class_of(const char *type)
{
	for (size_t i = 0; i < CLASSES; i++) {
		if (fnmatch(classes[i].glob, type, 0) == 0) {
			return fnmatch("*[Ff]an*", type, 0) == 0 ? NULL : &classes[i];
		}
	}
	return NULL;
}

/* The classes that were found, once each: "*-throttle-alert, cpufreq-*". */
static void note(const struct gauges *devices, struct throttle_status *status)
{
	char result[THROTTLE_RESULT] = "";
	struct text text = TEXT_IN(result);
	for (size_t c = 0; c < CLASSES; c++) {
		bool found = false;
		for (size_t i = 0; i < devices->count; i++) {
			const struct device *device = gauges_at(devices, i);
			found = found || device->class == &classes[c];
		}
		if (found) {
			text_join(&text, ", ", "%s%s",
				text.length > 0 ? "" : "used: ", classes[c].glob);
		}
	}
	throttle_add_tried(status, "cooling devices", "%s",
		text.length > 0 ? result : "none that lowers a clock");
}

static void add_device(void *ctx, const struct root *root, const char *path, const char *name)
{
	static const struct gauge_kind state = {0};
	char type[GAUGE_NAME_SIZE];
	(void)name;
	bool typed = device_text(root, type, sizeof(type), "%s/type", path);
	const struct device_class *class = typed ? class_of(type) : NULL;
	struct device *device = class ? gauges_add(ctx, &state, type, "%s/cur_state", path) : NULL;
	if (device) {
		device->class = class;
	}
}

static int probe(void *state, struct throttle_search *search)
{
	struct gauges *devices = state;
	int r = device_each(
		search->root, "sys/class/thermal", "cooling_device", add_device, devices);
	if (r == -ENOMEM) {
		return r;
	}
	note(devices, search->status);
	return (int)devices->count;
}

static void sample(void *state, struct throttle_status *status, uint64_t now_ns)
{
	const struct gauges *devices = state;
	const struct device_class *shown = NULL; /* alerts first, then what is on */
	int shown_rank = -1;
	(void)now_ns;
	for (size_t i = 0; i < devices->count; i++) {
		const struct device *device = gauges_at(devices, i);
		const struct device_class *class = device->class;
		if (device->gauge.result < 0) {
			continue;
		}
		bool on = device->gauge.number > 0;
		throttle_join(status, class->alert ? THROTTLE_THROTTLED : THROTTLE_FREQ_CAPPED, on);
		throttle_join(status, THROTTLE_ACTIVE, on);
		int rank = (class->alert ? 2 : 0) + (on ? 1 : 0);
		if (rank > shown_rank) {
			shown = class;
			shown_rank = rank;
		}
	}
	if (shown) {
		char source[THROTTLE_SOURCE];
		struct text text = TEXT_IN(source);
		text_add(&text, "cooling_device %s", shown->glob);
		throttle_add_source(status, source);
	}
}

const struct throttle_detector throttle_cooling = {
	.size = sizeof(struct gauges),
	.element_size = sizeof(struct device),
	.kept = DEVICES_KEPT,
	.probe = probe,
	.sample = sample,
};
