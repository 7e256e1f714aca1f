/* Under the throttle collector: finds rpi_volt and soctherm_oc. */
#include "daemon/collect/throttle/throttle_hwmon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

enum { DEVICES_MAX = 256 };

#define FOLDER "sys/class/hwmon"

int throttle_hwmon_find(const struct root *root, const char *name, char ret[DEVICE_FILE_PATH])
{
	struct root_name *names = mem_calloc(DEVICES_MAX, sizeof(*names));
	if (!names) {
		return -ENOMEM;
	}
	int count = root_list(root, FOLDER, names, DEVICES_MAX);
	int r = count < 0 ? count : -ENOENT;
	for (int i = 0; i < count && r < 0; i++) {
		char path[DEVICE_FILE_PATH], text[64];
		snprintf(path, sizeof(path), FOLDER "/%s/name", names[i].text);
		if (root_read(root, path, text, sizeof(text)) <= 0) {
			continue;
		}
		text[strcspn(text, "\n")] = '\0';
		if (strcmp(text, name) == 0) {
			snprintf(ret, DEVICE_FILE_PATH, FOLDER "/%s", names[i].text);
			r = 0;
		}
	}
	free(names);
	return r;
}
