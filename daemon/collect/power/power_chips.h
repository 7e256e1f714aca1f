/* The folders of the chips that may measure power: each once, whichever way leads there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/util/root.h"

enum { POWER_CHIPS_MAX = 64, POWER_ENTRIES_MAX = 512 };

struct power_chip {
	char folder[112]; /* below the root */
	char name[64];	  /* its name file, or "" */
	bool iio;
};

struct power_chips {
	size_t count;
	struct power_chip chip[POWER_CHIPS_MAX];
	struct root_name entry[POWER_ENTRIES_MAX]; /* scratch: what a folder holds */
	struct root_name device[POWER_ENTRIES_MAX];
	char real[POWER_CHIPS_MAX][256]; /* where the folders are */
};

/* Fills chips, which the caller zeroed: class/hwmon, bus/iio, and below the I2C devices. */
void power_chips_find(struct power_chips *chips, const struct root *root);
