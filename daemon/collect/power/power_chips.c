/* Part of the power collector: the search. The class folders name every chip; trees and containers
 * that have only the bus (sys/bus/i2c) are searched there too. */
#include "daemon/collect/power/power_chips.h"

#include <stdio.h>
#include <string.h>

static bool known(struct power_chips *chips, const struct root *root, const char *folder)
{
	char dot[128];
	char *real = chips->real[chips->count];
	snprintf(dot, sizeof(dot), "%s/.", folder);
	if (root_resolve(root, dot, real, sizeof(chips->real[0])) < 0) {
		return true;
	}
	for (size_t i = 0; i < chips->count; i++) {
		if (strcmp(chips->real[i], real) == 0) {
			return true;
		}
	}
	return false;
}

static void read_name(const struct root *root, struct power_chip *chip)
{
	char path[144], text[128];
	snprintf(path, sizeof(path), "%s/name", chip->folder);
	chip->name[0] = '\0';
	if (root_read(root, path, text, sizeof(text)) > 0) {
		text[strcspn(text, "\r\n")] = '\0';
		snprintf(chip->name, sizeof(chip->name), "%.63s", text);
	}
}

static void add_chip(
	struct power_chips *chips, const struct root *root, const char *folder, const char *entry)
{
	if (chips->count == POWER_CHIPS_MAX) {
		return;
	}
	struct power_chip *chip = &chips->chip[chips->count];
	int n = snprintf(chip->folder, sizeof(chip->folder), "%s/%s", folder, entry);
	if (n < 0 || (size_t)n >= sizeof(chip->folder) || known(chips, root, chip->folder)) {
		return;
	}
	chip->iio = strncmp(entry, "iio:device", 10) == 0;
	read_name(root, chip);
	chips->count++;
}

static void add_folder(
	struct power_chips *chips, const struct root *root, const char *folder, const char *prefix)
{
	int n = root_list(root, folder, chips->entry, POWER_ENTRIES_MAX);
	for (int i = 0; i < n; i++) {
		if (strncmp(chips->entry[i].text, prefix, strlen(prefix)) == 0) {
			add_chip(chips, root, folder, chips->entry[i].text);
		}
	}
}

/* The chips of each device in a folder of the bus. */
static void add_devices(struct power_chips *chips, const struct root *root, const char *bus)
{
	int n = root_list(root, bus, chips->device, POWER_ENTRIES_MAX);
	for (int i = 0; i < n; i++) {
		char folder[128];
		snprintf(folder, sizeof(folder), "%s/%.60s/hwmon", bus, chips->device[i].text);
		add_folder(chips, root, folder, "hwmon");
		snprintf(folder, sizeof(folder), "%s/%.60s", bus, chips->device[i].text);
		add_folder(chips, root, folder, "iio:device");
	}
}

void power_chips_find(struct power_chips *chips, const struct root *root)
{
	add_folder(chips, root, "sys/class/hwmon", "hwmon");
	add_folder(chips, root, "sys/bus/iio/devices", "iio:device");
	add_devices(chips, root, "sys/bus/i2c/devices");
	add_devices(chips, root, "sys/bus/i2c/drivers/ina3221");
	add_devices(chips, root, "sys/bus/i2c/drivers/ina3221x");
}
