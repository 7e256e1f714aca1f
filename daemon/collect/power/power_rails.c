/* Part of the power collector: which files of a chip make a rail, and what they say. hwmon: powerN
 * in uW, else inN (mV) times currN (mA), both of the same N. iio of ina3221x: in_powerN in mW, else
 * in_voltageN times in_currentN. */
#include "daemon/collect/power/power_rails.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/collect/power/power_chips.h"
#include "daemon/util/sysops.h"

enum { CHANNELS_MAX = 16, NAME_SIZE = 32, INA3221_CHANNELS = 3 };

/* What one search passes around. */
struct search {
	struct power_rails *rails;
	const struct root *root;
	struct power_chips chips;
	struct root_name file[POWER_ENTRIES_MAX]; /* of the present chip */
	int files;
	bool ina3221; /* the machine has one */
};

static bool has(const struct search *search, const char *name)
{
	for (int i = 0; i < search->files; i++) {
		if (strcmp(search->file[i].text, name) == 0) {
			return true;
		}
	}
	return false;
}

static bool read_label(const struct search *search, const struct power_chip *chip, const char *file,
	char label[POWER_LABEL_SIZE])
{
	char path[DEVICE_FILE_PATH];
	snprintf(path, sizeof(path), "%s/%s", chip->folder, file);
	if (!has(search, file) || root_read(search->root, path, label, POWER_LABEL_SIZE) <= 0) {
		return false;
	}
	label[strcspn(label, "\r\n")] = '\0';
	return label[0] != '\0';
}

static bool is_rail(const char *label)
{
	return strcasecmp(label, "NC") != 0 && !strcasestr(label, "shunt voltage");
}

static void add_rail(struct search *search, const struct power_chip *chip, const char *label,
	const char *power, const char *current, double scale)
{
	struct power_rails *rails = search->rails;
	if (rails->count == POWER_RAILS_MAX || !is_rail(label)) {
		return;
	}
	struct power_rail *rail = &rails->rail[rails->count++];
	snprintf(rail->label, sizeof(rail->label), "%s", label);
	device_file_init(&rail->power, true, "%s/%s", chip->folder, power);
	device_file_init(&rail->current, true, "%s%s%s", current ? chip->folder : "",
		current ? "/" : "", current ? current : "");
	rail->scale = scale;
	rail->shunt = strncmp(chip->name, "ina", 3) == 0 || chip->iio;
	rail->origin = current ? "voltage x current" : "power input";
}

/* A shunt monitor without a label says nothing of its place; beside Jetson's own INA3221 an INA238
 * sits in the carrier's supply (Thor). */
static void hwmon_name(const struct search *search, const struct power_chip *chip, int n,
	char label[POWER_LABEL_SIZE])
{
	if (strcmp(chip->name, "ina238") == 0 && search->ina3221 && n == 1) {
		snprintf(label, POWER_LABEL_SIZE, "VIN");
	} else if (n == 1 && strcmp(chip->name, "ina3221") != 0 && chip->name[0]) {
		snprintf(label, POWER_LABEL_SIZE, "%s", chip->name);
	} else {
		snprintf(label, POWER_LABEL_SIZE, "%s_%d", chip->name[0] ? chip->name : "rail", n);
	}
}

/* The contract with a USB-PD supply: its voltage and the current that may be drawn. Their product
 * is no power that flows, so it is no rail and in no sum. */
static bool add_supply(struct search *search, const struct power_chip *chip)
{
	struct power_rails *rails = search->rails;
	size_t before = rails->count;
	if (strncmp(chip->name, "tcpm_source_psy", 15) != 0) {
		return false;
	}
	if (has(search, "in0_input") && has(search, "curr1_input")) {
		add_rail(search, chip, chip->name, "in0_input", "curr1_input", 1e-3);
	}
	if (rails->count > before) {
		rails->rail[before].limit = true;
		rails->rail[before].origin = "negotiated with the supply, not measured";
	}
	return true;
}

static void add_hwmon_channel(struct search *search, const struct power_chip *chip, int n)
{
	char label[POWER_LABEL_SIZE], power[NAME_SIZE], volt[NAME_SIZE], amp[NAME_SIZE],
		name[NAME_SIZE];
	snprintf(power, sizeof(power), "power%d_input", n);
	if (!has(search, power)) {
		snprintf(power, sizeof(power), "power%d_average", n);
	}
	snprintf(volt, sizeof(volt), "in%d_input", n);
	snprintf(amp, sizeof(amp), "curr%d_input", n);
	bool direct = has(search, power);
	/* Behind its three channels the INA3221 tells shunt voltages and sums. */
	bool product = has(search, volt) && has(search, amp) &&
		       !(strcmp(chip->name, "ina3221") == 0 && n > INA3221_CHANNELS);
	if (!direct && !product) {
		return;
	}
	snprintf(name, sizeof(name), "power%d_label", n);
	if (!direct || !read_label(search, chip, name, label)) {
		snprintf(name, sizeof(name), "in%d_label", n);
		if (!read_label(search, chip, name, label) &&
			!(n == 1 && read_label(search, chip, "label", label))) {
			hwmon_name(search, chip, n, label);
		}
	}
	add_rail(search, chip, label, direct ? power : volt, direct ? NULL : amp, 1e-3);
}

static void add_iio_channel(struct search *search, const struct power_chip *chip, int n)
{
	char label[POWER_LABEL_SIZE], power[NAME_SIZE], volt[NAME_SIZE], amp[NAME_SIZE],
		name[NAME_SIZE];
	snprintf(name, sizeof(name), "rail_name_%d", n);
	snprintf(power, sizeof(power), "in_power%d_input", n);
	snprintf(volt, sizeof(volt), "in_voltage%d_input", n);
	snprintf(amp, sizeof(amp), "in_current%d_input", n);
	bool direct = has(search, power);
	if (!direct && !(has(search, volt) && has(search, amp))) {
		return;
	}
	if (!read_label(search, chip, name, label)) {
		snprintf(label, sizeof(label), "%s_%d", chip->name[0] ? chip->name : "rail", n);
	}
	add_rail(
		search, chip, label, direct ? power : volt, direct ? NULL : amp, direct ? 1 : 1e-3);
}

int power_rails_probe(struct power_rails *rails, const struct root *root)
{
	struct search *search = mem_zalloc(sizeof(*search));
	if (!search) {
		return -ENOMEM;
	}
	search->rails = rails;
	search->root = root;
	power_chips_find(&search->chips, root);
	for (size_t i = 0; i < search->chips.count; i++) {
		search->ina3221 |= strncmp(search->chips.chip[i].name, "ina3221", 7) == 0;
	}
	for (size_t i = 0; i < search->chips.count; i++) {
		const struct power_chip *chip = &search->chips.chip[i];
		search->files = root_list(root, chip->folder, search->file, POWER_ENTRIES_MAX);
		for (int n = 0; n < CHANNELS_MAX && !add_supply(search, chip); n++) {
			if (chip->iio) {
				add_iio_channel(search, chip, n);
			} else {
				add_hwmon_channel(search, chip, n);
			}
		}
	}
	free(search);
	return (int)rails->count;
}

int power_rails_name(struct power_rails *rails, struct naming *naming)
{
	size_t count = rails->count;
	rails->count = 0;
	for (size_t i = 0; i < count; i++) {
		struct power_rail *rail = &rails->rail[i];
		int r = naming_add(naming, rail->limit ? "power_limit" : "power", rail->label,
			strlen(rail->label), UNIT_MILLIWATTS, &rail->metric);
		if (r == -ENOSPC) {
			continue;
		}
		if (r < 0) {
			return r;
		}
		rail->metric->origin = rail->origin;
		rails->rail[rails->count++] = *rail;
	}
	return 0;
}

void power_rails_fetch(struct power_rails *rails, const struct root *root)
{
	for (size_t i = 0; i < rails->count; i++) {
		struct power_rail *rail = &rails->rail[i];
		rail->current_read = 1;
		rail->result = device_file_read_i64(&rail->power, root, &rail->power_read);
		if (rail->result == 0 && rail->current.path[0]) {
			rail->result =
				device_file_read_i64(&rail->current, root, &rail->current_read);
		}
	}
}

static void sample_rail(const struct power_rail *rail)
{
	int r = rail->result;
	double milliwatts =
		r < 0 ? 0 : (double)rail->power_read * (double)rail->current_read * rail->scale;
	if (r < 0) {
		metric_set_null(rail->metric, device_file_reason(r));
	} else if (rail->limit && milliwatts == 0) {
		metric_set_null(rail->metric, "no supply");
	} else if (milliwatts < -1e7 || milliwatts > 1e7) {
		metric_set_null(rail->metric, "out of range"); /* 10 kW */
	} else {
		metric_set(rail->metric, milliwatts);
	}
}

void power_rails_sample(struct power_rails *rails)
{
	for (size_t i = 0; i < rails->count; i++) {
		sample_rail(&rails->rail[i]);
	}
}

void power_rails_close(struct power_rails *rails)
{
	for (size_t i = 0; i < rails->count; i++) {
		device_file_close(&rails->rail[i].power);
		device_file_close(&rails->rail[i].current);
	}
	rails->count = 0;
}
