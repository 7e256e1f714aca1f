/* SPDX-License-Identifier: Apache-2.0 */
/* thermal.c: reads sys/class/thermal. Zones (temp in m°C) are temperature/<type>, headroom/<type>
 * below the lowest passive trip point, and the hottest of them temperature/max; cooling devices
 * (cur_state from 0 to max_state, higher is more cooling) are cooling/<type>. "Offline" has many
 * spellings: an error (EAGAIN of a power-gated Jetson GPU, ENODATA of a wifi card that is down), an
 * empty file, -256000, no temp at all. Constants and dummies never count in temperature/max, which
 * yields to the processor's own chip (hwmon) where ACPI's zone is all there is. What a cooling
 * state means for throttling is decided elsewhere. Own key: exclude = globs of zone types,
 * separated by blanks, that are skipped in temperature/max. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collect/lib/gauge.h"
#include "daemon/collect/thermal/zones.h"
#include "daemon/util/parse.h"

enum { TRIPS_MAX = 32 };

#define FOLDER "sys/class/thermal"

/* A zone or a cooling device. */
struct zone {
	struct gauge gauge;
	int number;		 /* of thermal_zoneN; -1 = its name has none */
	double limit;		 /* max_state of a cooling device; NAN = not known */
	double trip_celsius;	 /* the lowest passive one of a zone; NAN = none */
	struct metric *headroom; /* NULL without a passive trip */
	bool zero_is_absent;	 /* ACPI's SENn read 0 where there is no sensor */
};

struct thermal {
	struct gauges zones;
	bool exact;	    /* some zone is the processor's or the board's */
	struct metric *max; /* NULL without zones, or where a chip is it */
};

static const char *cooling_reason(int error)
{
	return error == -EBADMSG ? "malformed" : errno_reason(error);
}

static const struct gauge_kind temperature = {.prefix = "temperature",
	.unit = UNIT_CELSIUS,
	.divisor = 1000,
	.min = -199.999,
	.max = 1000,
	.below = "offline"};
/* intel_powerclamp says -1 when idle. */
static const struct gauge_kind cooling = {.prefix = "cooling",
	.unit = UNIT_STATE,
	.min = -1,
	.max = INT32_MAX,
	.reason = cooling_reason};

static const char *const keys[] = {"exclude", NULL};

/* The lowest passive trip; NAN without one. -274000 and 0 mean: not set. */
static double passive_trip(const struct root *root, const char *folder)
{
	double lowest = NAN;
	char type[64];
	for (int i = 0; i < TRIPS_MAX; i++) {
		long long value;
		if (!device_text(root, type, sizeof(type), "%s/trip_point_%d_type", folder, i)) {
			break;
		}
		if (strcmp(type, "passive") == 0 &&
			device_number(root, &value, "%s/trip_point_%d_temp", folder, i) == 0 &&
			value > 0 && value < 1000000) {
			lowest = fmin(lowest, (double)value / 1000);
		}
	}
	return lowest;
}

/* A zone that does not report its type still has a number. */
static struct zone *add(struct gauges *gauges, const struct gauge_kind *kind, const char *path,
	const char *name, const char *file)
{
	char type[GAUGE_NAME_SIZE];
	bool typed = device_text(gauges->root, type, sizeof(type), "%s/type", path);
	return gauges_add(gauges, kind, typed ? type : name, "%s/%s", path, file);
}

static void add_zone(void *ctx, const struct root *root, const char *path, const char *name)
{
	struct zone *zone = add(ctx, &temperature, path, name, "temp");
	int64_t number;
	if (!zone) {
		return;
	}
	const char *type = zone->gauge.name;
	bool numbered = parse_i64(name + strlen("thermal_zone"), &number) == 0 && number >= 0 &&
			number < INT32_MAX;
	zone->number = numbered ? (int)number : -1;
	zone->zero_is_absent = fnmatch("SEN[0-9]*", type, 0) == 0;
	zone->trip_celsius = device_matches(ZONES_CONSTANT, type) ? NAN : passive_trip(root, path);
}

static void add_cooling(void *ctx, const struct root *root, const char *path, const char *name)
{
	struct zone *device = add(ctx, &cooling, path, name, "cur_state");
	long long limit;
	if (device) {
		int r = device_number(root, &limit, "%s/max_state", path);
		device->limit = r == 0 && limit >= 0 ? (double)limit : NAN;
	}
}

static int thermal_probe(const struct collector_context *ctx, void *state)
{
	struct gauges *gauges = state;
	gauges_init(gauges, ctx->root, sizeof(struct zone), 0);
	int r = device_each(gauges->root, FOLDER, "thermal_zone", add_zone, gauges);
	if (r >= 0) {
		r = device_each(gauges->root, FOLDER, "cooling_device", add_cooling, gauges);
	}
	if (r < 0 && r != -ENOENT) {
		return collector_fail(ctx, r, "/" FOLDER ": %s", errno_reason(r));
	}
	return gauges_found(
		ctx, gauges, r, "no thermal zone and no cooling device in /sys/class/thermal");
}

static int name_zone(struct zone *zone, struct naming *naming, const char *exclude)
{
	struct gauge *gauge = &zone->gauge;
	char path[PROTO_PATH_SIZE];
	if (gauge->kind == &cooling) {
		gauge->metric->limit = zone->limit;
		return 0;
	}
	const char *name = gauge->metric->name + strlen("temperature/");
	gauge->metric->zone = zone->number;
	gauge->counts = !device_matches(ZONES_CONSTANT, gauge->name) &&
			!device_matches(exclude, gauge->name) && !device_matches(exclude, name);
	if (isnan(zone->trip_celsius)) {
		return 0;
	}
	snprintf(path, sizeof(path), "headroom/%s", name);
	return naming_add_shared(naming, path, UNIT_CELSIUS, false, &zone->headroom);
}

static int find_max(struct thermal *thermal, struct naming *naming)
{
	const struct gauge *first = gauges_at(&thermal->zones, 0); /* zones come before devices */
	return first->kind == &temperature ? naming_add_shared(naming, "temperature/max",
						     UNIT_CELSIUS, !thermal->exact, &thermal->max)
					   : 0;
}

static int thermal_open(const struct collector_context *ctx, void *state)
{
	struct thermal *thermal = state;
	struct gauges *zones = &thermal->zones;
	struct naming naming;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	for (size_t i = 0; i < zones->count; i++) {
		const struct gauge *zone = gauges_at(zones, i);
		thermal->exact |= zone->kind == &temperature && zone_is_exact(zone->name);
	}
	/* First, so that a zone whose type is "max" becomes max.2. */
	int r = find_max(thermal, &naming);
	r = r < 0 ? r : gauges_name(zones, &naming);
	for (size_t i = 0; i < zones->count && r == 0; i++) {
		r = name_zone(gauges_at(zones, i), &naming, source_option(ctx->options, keys[0]));
	}
	return naming_finish(&naming, r);
}

static int thermal_sample(const struct collector_context *ctx, void *state)
{
	struct thermal *thermal = state;
	struct naming naming;
	double max = NAN;
	int hottest = -1;
	if (!thermal->exact) {
		naming_init(&naming, ctx->core->metrics, ctx->source);
		(void)find_max(thermal, &naming);
	}
	for (size_t i = 0; i < thermal->zones.count; i++) {
		const struct zone *zone = gauges_at(&thermal->zones, i);
		const struct metric *metric = zone->gauge.metric;
		bool known = gauge_set(&zone->gauge);
		bool dummy = zone->zero_is_absent && known && metric->value == 0;
		metric_set_or_null(zone->headroom, zone->trip_celsius - metric->value,
			dummy ? "offline" : metric->reason);
		if (known && zone->gauge.counts && !dummy && !(metric->value <= max)) {
			max = metric->value;
			hottest = zone->number;
		}
	}
	if (thermal->max) {
		thermal->max->zone = hottest;
	}
	metric_set_or_null(thermal->max, max, isnan(max) ? "no real zone can be read" : NULL);
	return 0;
}

const struct collector_ops collector_thermal = {
	.name = "thermal",
	.state_size = sizeof(struct thermal),
	.folder = FOLDER,
	.config_keys = keys,
	.probe = thermal_probe,
	.open = thermal_open,
	.fetch = gauges_fetch,
	.sample = thermal_sample,
	.close = gauges_close,
};
