/* SPDX-License-Identifier: Apache-2.0 */
/* power.c: reads the power of the board's rails, power/<rail> in milliwatts, and exposes the total
 * as power/total: the rail that feeds all others where there is one, else a sum of rails that do
 * not contain each other; its origin says which. A rail is, in hwmon (INA3221, INA238, any other
 * monitor), powerN in uW, else inN (mV) times currN (mA), both of the same N; in iio (the ina3221x
 * driver of old Jetsons) in_powerN in mW, else in_voltageN times in_currentN. The class folders
 * name every chip; trees and containers that have only the bus (sys/bus/i2c) are searched there
 * too. What a USB-PD supply has promised is power_limit/<label>. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/collect/lib/gauge.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

enum {
	RAILS_MAX = 64,
	CHIPS_MAX = 64,
	CHANNELS_MAX = 16,
	INA3221_CHANNELS = 3,
	PATH_SIZE = 112,
	NAME_SIZE = 64
};

#define KILOWATTS_10 1e7 /* in mW: more is not a measurement */

static const struct gauge_kind microwatts = {.prefix = "power",
	.unit = UNIT_MILLIWATTS,
	.scale = 1e-3,
	.min = -KILOWATTS_10,
	.max = KILOWATTS_10,
	.origin = "power input"};
static const struct gauge_kind milliwatts = {.prefix = "power",
	.unit = UNIT_MILLIWATTS,
	.min = -KILOWATTS_10,
	.max = KILOWATTS_10,
	.origin = "power input"};
static const struct gauge_kind product = {.prefix = "power",
	.unit = UNIT_MILLIWATTS,
	.scale = 1e-3,
	.min = -KILOWATTS_10,
	.max = KILOWATTS_10,
	.origin = "voltage x current"};
/* The contract with a USB-PD supply: its voltage and the current that may be drawn. Their product
 * is a limit, not a measured power, so it is neither a rail nor part of a sum. */
static const struct gauge_kind supply = {.prefix = "power_limit",
	.unit = UNIT_MILLIWATTS,
	.scale = 1e-3,
	.min = 1e-3,
	.max = KILOWATTS_10,
	.below = "no supply",
	.origin = "negotiated with the supply, not measured"};

struct chip {
	char folder[PATH_SIZE]; /* below the root */
	char name[NAME_SIZE];	/* its name file, or "" */
	bool iio;
	char real[256]; /* where the folder is: each chip once, whichever way leads there */
};

struct search {
	struct gauges *rails;
	size_t chips;
	struct chip chip[CHIPS_MAX];
	bool ina3221; /* the machine has one */
};

static void add_chip(void *ctx, const struct root *root, const char *path, const char *name)
{
	/* voltages alone are no power: to look for each channel's files would be in vain */
	static const char *const files[] = {"power", "curr", "in_power", "in_curr", NULL};
	struct search *search = ctx;
	if (search->chips == CHIPS_MAX || !gauges_may_have(search->rails, root, path, files)) {
		return;
	}
	struct chip *chip = &search->chip[search->chips];
	char dot[PATH_SIZE + 2];
	int n = snprintf(dot, sizeof(dot), "%s/.", path);
	if ((size_t)n >= sizeof(dot) ||
		root_resolve(root, dot, chip->real, sizeof(chip->real)) < 0) {
		return;
	}
	for (size_t i = 0; i < search->chips; i++) {
		if (strcmp(search->chip[i].real, chip->real) == 0) {
			return;
		}
	}
	snprintf(chip->folder, sizeof(chip->folder), "%s", path);
	chip->iio = text_starts_with(name, "iio:device");
	(void)device_text(root, chip->name, sizeof(chip->name), "%s/name", path);
	search->ina3221 = search->ina3221 || text_starts_with(chip->name, "ina3221");
	search->chips++;
}

/* The chips of a device on the bus. */
static void add_device(void *ctx, const struct root *root, const char *path, const char *name)
{
	struct search *search = ctx;
	char folder[PATH_SIZE];
	(void)name;
	snprintf(folder, sizeof(folder), "%s/hwmon", path);
	if (device_each(root, folder, "hwmon", add_chip, search) == -ENOMEM ||
		device_each(root, path, "iio:device", add_chip, search) == -ENOMEM) {
		search->rails->no_memory = true;
	}
}

static bool has(const struct search *search, const struct chip *chip, const char *file)
{
	return device_exists(search->rails->root, "%s/%s", chip->folder, file);
}

/* power: the file of the power itself, or of the voltage that current is multiplied by. */
static void add_rail(struct search *search, const struct chip *chip, const char *label,
	const struct gauge_kind *kind, const char *power, const char *current)
{
	if (strcasecmp(label, "NC") == 0 || strcasestr(label, "shunt voltage")) {
		return;
	}
	struct gauge *rail = gauges_add(search->rails, kind, label, "%s/%s", chip->folder, power);
	if (!rail) {
		return;
	}
	rail->counts = text_starts_with(chip->name, "ina") || chip->iio;
	if (current) {
		(void)device_file_init(
			&rail->factor, rail->file.keep, "%s/%s", chip->folder, current);
	}
}

/* A shunt monitor without a label says nothing of its place; next to Jetson's own INA3221 an INA238
 * sits in the carrier's supply (Thor). */
static void default_label(
	const struct search *search, const struct chip *chip, int n, char label[GAUGE_NAME_SIZE])
{
	if (!chip->iio && strcmp(chip->name, "ina238") == 0 && search->ina3221 && n == 1) {
		snprintf(label, GAUGE_NAME_SIZE, "VIN");
	} else if (!chip->iio && n == 1 && strcmp(chip->name, "ina3221") != 0 && chip->name[0]) {
		snprintf(label, GAUGE_NAME_SIZE, "%s", chip->name);
	} else {
		snprintf(label, GAUGE_NAME_SIZE, "%s_%d", chip->name[0] ? chip->name : "rail", n);
	}
}

/* False, and the label undefined, where the chip names none. */
static bool read_label(const struct root *root, const struct chip *chip, int n, bool direct,
	char label[GAUGE_NAME_SIZE])
{
	const size_t size = GAUGE_NAME_SIZE;
	const char *folder = chip->folder;
	if (chip->iio) {
		return device_text(root, label, size, "%s/rail_name_%d", folder, n);
	}
	return (direct && device_text(root, label, size, "%s/power%d_label", folder, n)) ||
	       device_text(root, label, size, "%s/in%d_label", folder, n) ||
	       (n == 1 && device_text(root, label, size, "%s/label", folder));
}

static void add_channel(struct search *search, const struct chip *chip, int n)
{
	static const char *const hwmon[] = {"power", "in", "curr"};
	static const char *const iio[] = {"in_power", "in_voltage", "in_current"};
	const char *const *what = chip->iio ? iio : hwmon;
	char label[GAUGE_NAME_SIZE], power[NAME_SIZE], volt[NAME_SIZE], amp[NAME_SIZE];
	snprintf(power, sizeof(power), "%s%d_input", what[0], n);
	snprintf(volt, sizeof(volt), "%s%d_input", what[1], n);
	snprintf(amp, sizeof(amp), "%s%d_input", what[2], n);
	if (!chip->iio && !has(search, chip, power)) {
		snprintf(power, sizeof(power), "power%d_average", n);
	}
	bool direct = has(search, chip, power);
	/* Behind its three channels the INA3221 reports shunt voltages and sums. */
	bool shunt = !chip->iio && strcmp(chip->name, "ina3221") == 0 && n > INA3221_CHANNELS;
	if (!direct && (shunt || !has(search, chip, volt) || !has(search, chip, amp))) {
		return;
	}
	if (!read_label(search->rails->root, chip, n, direct, label)) {
		default_label(search, chip, n, label);
	}
	const struct gauge_kind *input = chip->iio ? &milliwatts : &microwatts;
	add_rail(search, chip, label, direct ? input : &product, direct ? power : volt,
		direct ? NULL : amp);
}

static void add_channels(struct search *search, const struct chip *chip)
{
	if (text_starts_with(chip->name, "tcpm_source_psy")) {
		if (has(search, chip, "in0_input") && has(search, chip, "curr1_input")) {
			add_rail(search, chip, chip->name, &supply, "in0_input", "curr1_input");
		}
		return;
	}
	for (int n = 0; n < CHANNELS_MAX; n++) {
		add_channel(search, chip, n);
	}
}

/* Adds a gauge for each rail; `counts` is set for those of a shunt monitor on the board.
 * Unconnected channels (NC) and sums of shunt voltages are no rails. 0 or -ENOMEM. */
static int find_rails(struct gauges *rails)
{
	static const struct {
		const char *folder, *prefix;
		device_visit *visit;
	} places[] = {
		{"sys/class/hwmon", "hwmon", add_chip},
		{"sys/bus/iio/devices", "iio:device", add_chip},
		{"sys/bus/i2c/devices", "", add_device},
		{"sys/bus/i2c/drivers/ina3221", "", add_device},
		{"sys/bus/i2c/drivers/ina3221x", "", add_device},
	};
	struct search *search = mem_zalloc(sizeof(*search));
	int r = search ? 0 : -ENOMEM;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && r != -ENOMEM; i++) {
		search->rails = rails;
		r = device_each(
			rails->root, places[i].folder, places[i].prefix, places[i].visit, search);
	}
	for (size_t i = 0; search && i < search->chips && r != -ENOMEM; i++) {
		add_channels(search, &search->chip[i]);
	}
	free(search);
	return r == -ENOMEM ? r : 0;
}

struct power {
	struct gauges rails;
	struct metric *total;	    /* NULL: another source exposes it, or there is none */
	const struct gauge *supply; /* the rail that is the total; NULL = sum */
};

/* In this order: the supply of the carrier, of the module. A rail like VIN_SYS_5V0 only sounds like
 * it. */
static const struct {
	const char *rail, *origin;
} supplies[] = {
	{"power/VIN", "rail VIN"},
	{"power/VDD_IN", "rail VDD_IN"},
	{"power/POM_5V_IN", "rail POM_5V_IN"},
};

/* Fed by another rail that is measured too: would count twice in a sum. */
#define INSIDE "VDDQ_VDD2_1V8AO"

static bool is_in_sum(const struct gauge *rail)
{
	return rail->counts && !text_starts_with(rail->metric->name, "power/" INSIDE);
}

/* The origin of the total; NULL = there is none. */
static const char *choose_total(struct power *power)
{
	const struct gauges *rails = &power->rails;
	size_t parts = 0, inside = 0;
	for (size_t s = 0; s < sizeof(supplies) / sizeof(supplies[0]); s++) {
		for (size_t i = 0; i < rails->count; i++) {
			const struct gauge *rail = gauges_at(rails, i);
			if (strcmp(rail->metric->name, supplies[s].rail) == 0) {
				power->supply = rail;
				return supplies[s].origin;
			}
		}
	}
	for (size_t i = 0; i < rails->count; i++) {
		const struct gauge *rail = gauges_at(rails, i);
		parts += is_in_sum(rail);
		inside += rail->counts && !is_in_sum(rail);
	}
	if (parts == 0) {
		return NULL;
	}
	return inside > 0 ? "sum of the rails without " INSIDE : "sum of the rails";
}

static int power_probe(const struct collector_context *ctx, void *state)
{
	struct gauges *rails = state;
	gauges_init(rails, ctx->root, sizeof(struct gauge), RAILS_MAX);
	return gauges_found(ctx, rails, find_rails(rails),
		"no power monitor in /sys/class/hwmon, /sys/bus/iio, /sys/bus/i2c");
}

static int power_open(const struct collector_context *ctx, void *state)
{
	struct power *power = state;
	struct naming naming;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	int r = gauges_name(&power->rails, &naming);
	const char *origin = r == 0 ? choose_total(power) : NULL;
	if (origin) {
		r = naming_add_shared(
			&naming, "power/total", UNIT_MILLIWATTS, false, &power->total);
	}
	if (power->total) {
		power->total->origin = origin;
	}
	return naming_finish(&naming, r);
}

static void sample_total(const struct power *power)
{
	double sum = 0;
	for (size_t i = 0; i < power->rails.count; i++) {
		const struct gauge *rail = gauges_at(&power->rails, i);
		if (power->supply ? rail != power->supply : !is_in_sum(rail)) {
			continue;
		}
		if (rail->metric->reason) {
			metric_set_null(power->total,
				power->supply ? rail->metric->reason : "a rail of the sum is null");
			return;
		}
		sum += rail->metric->value;
	}
	metric_set(power->total, sum);
}

static int power_sample(const struct collector_context *ctx, void *state)
{
	struct power *power = state;
	int r = gauges_sample(ctx, state);
	if (power->total) {
		sample_total(power);
	}
	return r;
}

const struct collector_ops collector_power = {
	.name = "power",
	.state_size = sizeof(struct power),
	.folder = "sys/class/hwmon",
	.probe = power_probe,
	.open = power_open,
	.fetch = gauges_fetch,
	.sample = power_sample,
	.close = gauges_close,
};
