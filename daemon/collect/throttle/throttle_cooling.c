/* Part of the throttle collector: cur_state of sys/class/thermal/cooling_device*. Which types mean
 * throttling: devices.md part 3, sections 2 and 5. Chargers, wifi, backlights, TCC Offset and the
 * "hot surface" alert take no clock from the processor and are left out. */
#include "daemon/collect/throttle/throttle_cooling.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/util/sysops.h"

enum { ENTRIES_MAX = 2048, DEVICES_KEPT = 64 };

#define FOLDER "sys/class/thermal"

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

struct throttle_device {
	struct device_file file;
	const struct device_class *class;
	int result; /* of the last read, and what it gave */
	long long state;
};

static const struct device_class *class_of(const char *type)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (fnmatch(classes[i].glob, type, 0) == 0) {
			return fnmatch("*[Ff]an*", type, 0) == 0 ? NULL : &classes[i];
		}
	}
	return NULL;
}

/* The classes that were found, once each: "*-throttle-alert, cpufreq-*". */
static void note(const struct throttle_cooling *cooling, struct throttle_status *status)
{
	char text[THROTTLE_RESULT] = "";
	size_t length = 0;
	for (size_t c = 0; c < sizeof(classes) / sizeof(classes[0]); c++) {
		size_t found = 0;
		for (size_t i = 0; i < cooling->count; i++) {
			found += cooling->device[i].class == &classes[c];
		}
		if (found > 0 && length < sizeof(text)) {
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
				length > 0 ? ", " : "used: ", classes[c].glob);
		}
	}
	throttle_add_tried(
		status, "cooling devices", "%s", length > 0 ? text : "none that takes clock away");
}

static int pick(struct throttle_cooling *cooling, const struct root *root,
	const struct root_name *names, size_t count)
{
	cooling->device = mem_calloc(count, sizeof(cooling->device[0]));
	if (!cooling->device) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		char path[DEVICE_FILE_PATH], type[128];
		if (strncmp(names[i].text, "cooling_device", 14) != 0) {
			continue;
		}
		snprintf(path, sizeof(path), FOLDER "/%s/type", names[i].text);
		if (root_read(root, path, type, sizeof(type)) <= 0) {
			continue;
		}
		type[strcspn(type, "\n")] = '\0';
		struct throttle_device *device = &cooling->device[cooling->count];
		device->class = class_of(type);
		if (device->class && device_file_init(&device->file, cooling->count < DEVICES_KEPT,
					     FOLDER "/%s/cur_state", names[i].text) == 0) {
			cooling->count++;
		}
	}
	return 0;
}

int throttle_cooling_open(
	struct throttle_cooling *cooling, const struct root *root, struct throttle_status *status)
{
	struct root_name *names = mem_calloc(ENTRIES_MAX, sizeof(*names));
	if (!names) {
		return -ENOMEM;
	}
	int count = root_list(root, FOLDER, names, ENTRIES_MAX);
	int r = count > 0 ? pick(cooling, root, names, (size_t)count) : 0;
	free(names);
	if (r < 0) {
		return r;
	}
	note(cooling, status);
	return (int)cooling->count;
}

void throttle_cooling_fetch(struct throttle_cooling *cooling, const struct root *root)
{
	for (size_t i = 0; i < cooling->count; i++) {
		struct throttle_device *device = &cooling->device[i];
		device->result = device_file_read_i64(&device->file, root, &device->state);
	}
}

void throttle_cooling_sample(const struct throttle_cooling *cooling, struct throttle_status *status)
{
	const struct device_class *told = NULL; /* alerts first, then what is on */
	int told_rank = -1;
	for (size_t i = 0; i < cooling->count; i++) {
		const struct device_class *class = cooling->device[i].class;
		if (cooling->device[i].result < 0) {
			continue;
		}
		bool on = cooling->device[i].state > 0;
		throttle_join(status, class->alert ? THROTTLE_THROTTLED : THROTTLE_FREQ_CAPPED, on);
		throttle_join(status, THROTTLE_ACTIVE, on);
		int rank = (class->alert ? 2 : 0) + (on ? 1 : 0);
		if (rank > told_rank) {
			told = class;
			told_rank = rank;
		}
	}
	if (told) {
		char text[THROTTLE_SOURCE];
		snprintf(text, sizeof(text), "cooling_device %s", told->glob);
		throttle_add_source(status, text);
	}
}

void throttle_cooling_close(struct throttle_cooling *cooling)
{
	for (size_t i = 0; i < cooling->count; i++) {
		device_file_close(&cooling->device[i].file);
	}
	free(cooling->device);
	memset(cooling, 0, sizeof(*cooling));
}
