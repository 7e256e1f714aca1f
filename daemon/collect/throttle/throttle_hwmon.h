/* hwmon devices by name: their numbers change from boot to boot. */
#pragma once

#include "daemon/collect/lib/device_file.h"

/* The folder of the first hwmon device whose name is `name`: "sys/class/hwmon/hwmon3". 0, -ENOENT
 * without one, or the -errno of the folder. */
int throttle_hwmon_find(const struct root *root, const char *name, char ret[DEVICE_FILE_PATH]);
