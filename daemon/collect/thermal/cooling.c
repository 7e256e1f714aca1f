/* Part of the thermal collector. cur_state goes from 0 to max_state, higher is more cooling;
 * intel_powerclamp says -1 when idle. What a state means for throttling is judged elsewhere. */
#include "daemon/collect/thermal/cooling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/util/parse.h"
#include "daemon/util/sysops.h"

enum {
	DEVICES_KEPT = 64, /* descriptors; further devices are opened for each read */
	TYPE_SIZE = 128,
};

#define FOLDER "sys/class/thermal"

struct cooling_device {
	struct device_file file;
	char type[TYPE_SIZE];
	double limit; /* max_state; NAN = not known */
	int result;   /* of the last read, and what it gave */
	long long value;
	struct metric *state;
};

static bool is_device(const struct root_name *name)
{
	return strncmp(name->text, "cooling_device", 14) == 0;
}

static double max_state(const struct root *root, const char *folder)
{
	char path[DEVICE_FILE_PATH], text[64];
	snprintf(path, sizeof(path), FOLDER "/%s/max_state", folder);
	if (root_read(root, path, text, sizeof(text)) <= 0) {
		return NAN;
	}
	text[strcspn(text, "\n")] = '\0';
	uint64_t value;
	return parse_u64(text, &value) == 0 ? (double)value : NAN;
}

static void add_device(struct cooling *cooling, const struct root *root, const char *folder)
{
	char path[DEVICE_FILE_PATH];
	struct cooling_device *device = &cooling->device[cooling->count];
	snprintf(path, sizeof(path), FOLDER "/%s/type", folder);
	ssize_t n = root_read(root, path, device->type, sizeof(device->type));
	size_t length = n > 0 ? strcspn(device->type, "\n") : 0;
	if (length == 0) {
		length = (size_t)snprintf(device->type, sizeof(device->type), "%s", folder);
	}
	device->type[length] = '\0';
	device->limit = max_state(root, folder);
	device_file_init(
		&device->file, cooling->count < DEVICES_KEPT, FOLDER "/%s/cur_state", folder);
	cooling->count++;
}

int cooling_probe(struct cooling *cooling, const struct root *root, const struct root_name *names,
	size_t count)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++) {
		found += is_device(&names[i]);
	}
	if (found == 0) {
		return 0;
	}
	cooling->device = mem_calloc(found, sizeof(cooling->device[0]));
	if (!cooling->device) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		if (is_device(&names[i])) {
			add_device(cooling, root, names[i].text);
		}
	}
	return (int)cooling->count;
}

int cooling_name(struct cooling *cooling, struct naming *naming)
{
	size_t count = cooling->count;
	cooling->count = 0;
	for (size_t i = 0; i < count; i++) {
		struct cooling_device *device = &cooling->device[i];
		int r = naming_add(naming, "cooling", device->type, strlen(device->type),
			UNIT_STATE, &device->state);
		if (r == -ENOSPC) {
			continue;
		}
		if (r < 0) {
			return r;
		}
		device->state->limit = device->limit;
		cooling->device[cooling->count++] = *device;
	}
	return 0;
}

void cooling_fetch(struct cooling *cooling, const struct root *root)
{
	for (size_t i = 0; i < cooling->count; i++) {
		struct cooling_device *device = &cooling->device[i];
		device->result = device_file_read_i64(&device->file, root, &device->value);
	}
}

void cooling_sample(struct cooling *cooling)
{
	for (size_t i = 0; i < cooling->count; i++) {
		struct cooling_device *device = &cooling->device[i];
		long long value = device->value;
		int r = device->result;
		if (r == -EBADMSG) {
			metric_set_null(device->state, "malformed");
		} else if (r < 0) {
			metric_set_null(device->state, errno_reason(r));
		} else if (value < -1 || value > INT32_MAX) {
			metric_set_null(device->state, "out of range");
		} else {
			metric_set(device->state, (double)value);
		}
	}
}

void cooling_close(struct cooling *cooling)
{
	for (size_t i = 0; i < cooling->count; i++) {
		device_file_close(&cooling->device[i].file);
	}
	free(cooling->device);
	memset(cooling, 0, sizeof(*cooling));
}
