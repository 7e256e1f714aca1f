/* SPDX-License-Identifier: Apache-2.0 */
/* hwmon.c: reads temperatures that only a chip's driver reports: tempM_input of
 * sys/class/hwmon/hwmonN in m°C as temperature/<chip>, <chip>_<M> or <chip>_<label> (Thor's tmp451,
 * k10temp, NVMe). What a thermal zone reports already is skipped. On a machine without zones, or
 * where none is the processor's and a chip is, the hottest of them is temperature/max, without
 * disks, memory modules, radios, batteries and Super-I/O chips, whose inputs that nothing is
 * connected to read 127 °C. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/gauge.h"
#include "daemon/collect/thermal/zones.h"
#include "daemon/util/sysops.h"

enum { TEMPS_MAX = 48, INPUTS_MAX = 16, ZONES_MAX = 256, TEXT_SIZE = 64 };

/* The lowest is that of a sensor that is switched off: -256 °C, and whatever is near. */
static const struct gauge_kind celsius = {.prefix = "temperature",
	.unit = UNIT_CELSIUS,
	.divisor = 1000,
	.min = -199.999,
	.max = 1000,
	.below = "offline"};

static const char not_the_board[] =
	"nvme* drivetemp* jc42* spd5118* *wifi* *phy* BAT* nct* it8* f71* w83*";

static const char processors[] = "coretemp* k10temp* k8temp* zenpower* via_cputemp*";

struct hwmon {
	struct gauges gauges;
	bool vague;	/* there are zones, but none is the processor's or the board's */
	bool processor; /* a chip does */
};

/* What one probe passes around. */
struct search {
	struct hwmon *hwmon;
	struct gauges *gauges;
	size_t zones;
	bool exact;			 /* one of them */
	char zone[ZONES_MAX][TEXT_SIZE]; /* their types */
};

static void add_zone(void *ctx, const struct root *root, const char *path, const char *name)
{
	struct search *search = ctx;
	(void)name;
	if (search->zones == ZONES_MAX) {
		return;
	}
	char *type = search->zone[search->zones];
	bool typed = device_text(root, type, TEXT_SIZE, "%s/type", path);
	search->zones += typed;
	search->exact |= !typed || zone_is_exact(type);
}

/* Zones and hwmon write the same name with - and with _. */
static bool is_same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_'))) {
			return false;
		}
	}
	return *a == *b;
}

/* The kernel gives every zone an hwmon of its own, below the zone. */
static bool is_zone(
	const struct search *search, const struct root *root, const char *folder, const char *chip)
{
	char path[128], real[512];
	snprintf(path, sizeof(path), "%s/.", folder);
	if (root_resolve(root, path, real, sizeof(real)) == 0 &&
		strstr(real, "devices/virtual/thermal/")) {
		return true;
	}
	for (size_t i = 0; i < search->zones; i++) {
		if (is_same_name(search->zone[i], chip)) {
			return true;
		}
	}
	return false;
}

static void add_chip(void *ctx, const struct root *root, const char *path, const char *name)
{
	static const char *const files[] = {"temp", NULL};
	struct search *search = ctx;
	char chip[TEXT_SIZE], label[TEXT_SIZE], text[GAUGE_NAME_SIZE];
	if (!gauges_may_have(search->gauges, root, path, files)) {
		return;
	}
	if (!device_text(root, chip, sizeof(chip), "%s/name", path)) {
		snprintf(chip, sizeof(chip), "%s", name);
	}
	if (is_zone(search, root, path, chip)) {
		return;
	}
	for (int n = 1; n <= INPUTS_MAX; n++) {
		if (device_text(root, label, sizeof(label), "%s/temp%d_label", path, n)) {
			snprintf(text, sizeof(text), "%s_%s", chip, label);
		} else if (n == 1) {
			snprintf(text, sizeof(text), "%s", chip);
		} else {
			snprintf(text, sizeof(text), "%s_%d", chip, n);
		}
		struct gauge *gauge = gauges_add_existing(
			search->gauges, &celsius, text, "%s/temp%d_input", path, n);
		if (gauge) {
			gauge->counts = !device_matches(not_the_board, chip);
			search->hwmon->processor |= device_matches(processors, chip);
		}
	}
}

static int hwmon_probe(const struct collector_context *ctx, void *state)
{
	struct hwmon *hwmon = state;
	struct gauges *gauges = &hwmon->gauges;
	gauges_init(gauges, ctx->root, sizeof(struct gauge), TEMPS_MAX);
	struct search *search = mem_zalloc(sizeof(*search));
	if (!search) {
		return -ENOMEM;
	}
	search->hwmon = hwmon;
	search->gauges = gauges;
	int r = device_each(gauges->root, "sys/class/thermal", "thermal_zone", add_zone, search);
	if (r != -ENOMEM) {
		r = device_each(gauges->root, "sys/class/hwmon", "", add_chip, search);
	}
	hwmon->vague = search->zones > 0 && !search->exact;
	free(search);
	return gauges_found(ctx, gauges, r == -ENOMEM ? r : 0,
		"no temperature in /sys/class/hwmon that no thermal zone reports");
}

/* NULL when another source exposes it; thermal takes it as soon as it finds a zone, except where
 * that is only ACPI's and the processor has a chip. */
static struct metric *find_max(const struct hwmon *hwmon, struct naming *naming)
{
	const struct gauges *gauges = &hwmon->gauges;
	struct metric *max = NULL;
	bool any = false;
	for (size_t i = 0; i < gauges->count; i++) {
		any = any || ((struct gauge *)gauges_at(gauges, i))->counts;
	}
	if (any) {
		bool yields = !hwmon->vague || !hwmon->processor;
		(void)naming_add_shared(naming, "temperature/max", UNIT_CELSIUS, yields, &max);
	}
	return max;
}

static int hwmon_open(const struct collector_context *ctx, void *state)
{
	struct naming naming;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	int r = gauges_name(state, &naming);
	if (r == 0) {
		(void)find_max(state, &naming);
	}
	return naming_finish(&naming, r);
}

static int hwmon_sample(const struct collector_context *ctx, void *state)
{
	const struct hwmon *hwmon = state;
	const struct gauges *gauges = &hwmon->gauges;
	struct naming naming;
	double hottest = NAN;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	struct metric *max = find_max(hwmon, &naming);
	for (size_t i = 0; i < gauges->count; i++) {
		const struct gauge *gauge = gauges_at(gauges, i);
		if (gauge_set(gauge) && gauge->counts) {
			hottest = fmax(hottest, gauge->metric->value);
		}
	}
	metric_set_or_null(max, hottest, isnan(hottest) ? "no chip can be read" : NULL);
	return 0;
}

const struct collector_ops collector_hwmon = {
	.name = "hwmon",
	.state_size = sizeof(struct hwmon),
	.interval_ns = UINT64_C(5000000000), /* an NVMe is asked over its queue */
	.folder = "sys/class/hwmon",
	.probe = hwmon_probe,
	.open = hwmon_open,
	.fetch = gauges_fetch,
	.sample = hwmon_sample,
	.close = gauges_close,
};
