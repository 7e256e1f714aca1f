/* Part of the thermal collector. temp is in m°C. "Offline" has many spellings: an error (EAGAIN of
 * a power-gated Jetson GPU, ENODATA of a wifi card that is down), an empty file, -256000, no temp
 * at all. Constants and dummies never count in temperature/max. */
#include "daemon/collect/thermal/zones.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/util/parse.h"
#include "daemon/util/sysops.h"

enum {
	ZONES_KEPT = 64, /* descriptors; further zones are opened for each read */
	TRIPS_MAX = 32,
	TYPE_SIZE = 128,
};

#define FOLDER "sys/class/thermal"

struct zone {
	struct device_file file;
	char type[TYPE_SIZE];
	int number; /* of thermal_zoneN; -1 = its name has none */
	int result; /* of the last read, and what it gave */
	long long millidegrees;
	struct metric *temperature;
	struct metric *headroom; /* NULL without a passive trip */
	double trip_celsius;	 /* the lowest passive one */
	bool counts;		 /* in temperature/max */
	bool zero_is_absent;	 /* ACPI's SENn read 0 where there is no sensor */
};

/* Types that are constants: the PMIC of Jetsons (50 or 100 °C), Intel's 20 °C pseudo zone. */
static const char *const constants[] = {"PMIC-Die*", "PMIC", "INT3400*"};

static bool matches_list(const char *list, const char *type, const char *name)
{
	while (*list) {
		list += strspn(list, " \t");
		size_t length = strcspn(list, " \t");
		char glob[TYPE_SIZE];
		if (length > 0 && length < sizeof(glob)) {
			memcpy(glob, list, length);
			glob[length] = '\0';
			if (fnmatch(glob, type, 0) == 0 || fnmatch(glob, name, 0) == 0) {
				return true;
			}
		}
		list += length;
	}
	return false;
}

static bool is_constant(const char *type)
{
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		if (fnmatch(constants[i], type, 0) == 0) {
			return true;
		}
	}
	return false;
}

/* The lowest passive trip; NAN without one. -274000 and 0 mean: not set. */
static double passive_trip(const struct root *root, const char *folder)
{
	double lowest = NAN;
	for (int i = 0; i < TRIPS_MAX; i++) {
		char path[DEVICE_FILE_PATH], text[64];
		snprintf(path, sizeof(path), FOLDER "/%s/trip_point_%d_type", folder, i);
		ssize_t n = root_read(root, path, text, sizeof(text));
		if (n < 0) {
			break;
		}
		text[strcspn(text, "\n")] = '\0';
		if (strcmp(text, "passive") != 0) {
			continue;
		}
		snprintf(path, sizeof(path), FOLDER "/%s/trip_point_%d_temp", folder, i);
		n = root_read(root, path, text, sizeof(text));
		if (n < 0) {
			continue;
		}
		text[strcspn(text, "\n")] = '\0';
		int64_t value;
		if (parse_i64(text, &value) == 0 && value > 0 && value < 1000000) {
			double celsius = (double)value / 1000;
			lowest = isnan(lowest) || celsius < lowest ? celsius : lowest;
		}
	}
	return lowest;
}

static void add_zone(struct zones *zones, const struct root *root, const char *folder)
{
	char path[DEVICE_FILE_PATH];
	struct zone *zone = &zones->zone[zones->count];
	int64_t number;
	zone->number = parse_i64(folder + strlen("thermal_zone"), &number) == 0 && number >= 0 &&
				       number < INT32_MAX
			       ? (int)number
			       : -1;
	snprintf(path, sizeof(path), FOLDER "/%s/type", folder);
	ssize_t n = root_read(root, path, zone->type, sizeof(zone->type));
	size_t length = n > 0 ? strcspn(zone->type, "\n") : 0;
	/* A zone that does not tell its type still has a number. */
	if (length == 0) {
		length = (size_t)snprintf(zone->type, sizeof(zone->type), "%s", folder);
	}
	zone->type[length] = '\0';
	zone->zero_is_absent = fnmatch("SEN[0-9]*", zone->type, 0) == 0;
	zone->trip_celsius = is_constant(zone->type) ? NAN : passive_trip(root, folder);
	device_file_init(&zone->file, zones->count < ZONES_KEPT, FOLDER "/%s/temp", folder);
	zones->count++;
}

int zones_probe(
	struct zones *zones, const struct root *root, const struct root_name *names, size_t count)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++) {
		found += strncmp(names[i].text, "thermal_zone", 12) == 0;
	}
	if (found == 0) {
		return 0;
	}
	zones->zone = mem_calloc(found, sizeof(zones->zone[0]));
	if (!zones->zone) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		if (strncmp(names[i].text, "thermal_zone", 12) == 0) {
			add_zone(zones, root, names[i].text);
		}
	}
	return (int)zones->count;
}

static int name_zone(struct zone *zone, struct naming *naming, const char *exclude)
{
	int r = naming_add(naming, "temperature", zone->type, strlen(zone->type), UNIT_CELSIUS,
		&zone->temperature);
	if (r < 0) {
		return r;
	}
	zone->temperature->zone = zone->number;
	const char *name = zone->temperature->name + strlen("temperature/");
	zone->counts = !is_constant(zone->type) && !matches_list(exclude, zone->type, name);
	if (isnan(zone->trip_celsius)) {
		return 0;
	}
	char path[PROTO_PATH_SIZE];
	snprintf(path, sizeof(path), "headroom/%s", name);
	r = naming_add_exact(naming, path, UNIT_CELSIUS, &zone->headroom);
	return r == -EEXIST || r == -ENOSPC ? 0 : r;
}

int zones_name(struct zones *zones, struct naming *naming, const char *exclude)
{
	size_t count = zones->count;
	if (count == 0) {
		return 0;
	}
	/* First, so that a zone whose type is "max" becomes max.2. */
	int r = naming_add_exact(naming, "temperature/max", UNIT_CELSIUS, &zones->max);
	if (r < 0) {
		return r;
	}
	zones->count = 0;
	for (size_t i = 0; i < count; i++) {
		r = name_zone(&zones->zone[i], naming, exclude);
		if (r == 0) {
			zones->zone[zones->count++] = zones->zone[i];
		} else if (r != -ENOSPC) {
			return r;
		}
	}
	return 0;
}

void zones_fetch(struct zones *zones, const struct root *root)
{
	for (size_t i = 0; i < zones->count; i++) {
		struct zone *zone = &zones->zone[i];
		zone->result = device_file_read_i64(&zone->file, root, &zone->millidegrees);
	}
}

/* 0 and the temperature, or -errno with why there is none. */
static int judge_zone(const struct zone *zone, double *celsius, const char **reason)
{
	long long value = zone->millidegrees;
	int r = zone->result;
	*reason = "offline";
	switch (-r) {
	case 0:
		break;
	case EAGAIN:
	case ENODATA:
	case EIO:
	case EINVAL:
	case ENXIO:
	case ENOENT:
	case ENODEV:
		return r;
	case EBADMSG:
		*reason = "malformed";
		return r;
	default:
		*reason = errno_reason(r);
		return r;
	}
	if (value <= -200000) {
		return -ENODATA;
	}
	if (value > 1000000) {
		*reason = "out of range";
		return -ERANGE;
	}
	*celsius = (double)value / 1000;
	return 0;
}

void zones_sample(struct zones *zones)
{
	double max = NAN;
	int hottest = -1;
	for (size_t i = 0; i < zones->count; i++) {
		struct zone *zone = &zones->zone[i];
		const char *reason;
		double celsius = 0;
		if (judge_zone(zone, &celsius, &reason) < 0) {
			metric_set_null(zone->temperature, reason);
			if (zone->headroom) {
				metric_set_null(zone->headroom, reason);
			}
			continue;
		}
		metric_set(zone->temperature, celsius);
		bool dummy = zone->zero_is_absent && celsius == 0;
		if (zone->counts && !dummy && !(celsius <= max)) {
			max = celsius;
			hottest = zone->number;
		}
		if (zone->headroom && dummy) {
			metric_set_null(zone->headroom, "offline");
		} else if (zone->headroom) {
			metric_set(zone->headroom, zone->trip_celsius - celsius);
		}
	}
	if (zones->max) {
		zones->max->zone = hottest;
	}
	if (zones->max && isnan(max)) {
		metric_set_null(zones->max, "no real zone can be read");
	} else if (zones->max) {
		metric_set(zones->max, max);
	}
}

void zones_close(struct zones *zones)
{
	for (size_t i = 0; i < zones->count; i++) {
		device_file_close(&zones->zone[i].file);
	}
	free(zones->zone);
	memset(zones, 0, sizeof(*zones));
}
