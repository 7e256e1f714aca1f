/* SPDX-License-Identifier: Apache-2.0 */
/* latency_stamp.c: finds the capture time in a payload. Every payload passes the strict scan before
 * cJSON sees it. */
#include "client/edgeprofctl/mqtt/latency_stamp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/json_scan.h"

enum { DEPTH = 16, TOKENS = 4096 };

/* Seconds since the epoch are 1e9 for decades, milliseconds 1e12 and so on: no two meet. */
static double scale_of_size(double value)
{
	static const struct {
		double below, to_us;
	} sizes[] = {{1e11, 1e6}, {1e14, 1e3}, {1e17, 1}, {1e20, 1e-3}};
	for (size_t i = 0; value >= 1e8 && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (value < sizes[i].below) {
			return sizes[i].to_us;
		}
	}
	return NAN;
}

static double scale_of_name(const char *name, double value)
{
	static const struct {
		const char *ending;
		double to_us;
	} units[] = {{"_ms", 1e3}, {"_us", 1}, {"_ns", 1e-3}, {"_s", 1e6}};
	size_t length = strlen(name);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t ending = strlen(units[i].ending);
		if (length > ending && strcmp(name + length - ending, units[i].ending) == 0) {
			return units[i].to_us;
		}
	}
	return scale_of_size(value);
}

static enum stamp take(const char *name, double value, double *us)
{
	*us = value * scale_of_name(name, value);
	return isfinite(*us) ? STAMP_FOUND : STAMP_NONE;
}

/* "a.b.c": the member c of the member b of the member a. */
static enum stamp from_path(const cJSON *object, const char *key, double *us)
{
	char name[128];
	const char *dot;
	while ((dot = strchr(key, '.'))) {
		size_t length = (size_t)(dot - key);
		if (length >= sizeof(name)) {
			return STAMP_NONE;
		}
		memcpy(name, key, length);
		name[length] = '\0';
		object = json_get(object, name);
		key = dot + 1;
	}
	return take(key, json_number(object, key), us);
}

static enum stamp from_object(const cJSON *object, const char *key, double *us)
{
	static const char *const names[] = {"capture_us", "capture_ts_ms", "ts_ms"};
	if (key) {
		return from_path(object, key, us);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (take(names[i], json_number(object, names[i]), us) == STAMP_FOUND) {
			return STAMP_FOUND;
		}
	}
	return STAMP_NONE;
}

/* Digits and a point only: strtod would take "nan", "inf" and "0x1p3", too. */
static enum stamp from_number(const char *bytes, size_t length, double *us)
{
	char text[40];
	while (length > 0 && strchr(" \t\r\n", bytes[length - 1])) {
		length--;
	}
	if (length == 0 || length >= sizeof(text)) {
		return STAMP_MALFORMED;
	}
	memcpy(text, bytes, length);
	text[length] = '\0';
	if (strspn(text, "0123456789.") != length) {
		return STAMP_MALFORMED;
	}
	char *end;
	double value = strtod(text, &end);
	return *end == '\0' ? take("", value, us) : STAMP_MALFORMED;
}

enum stamp latency_stamp(
	const char *bytes, size_t length, const char *key, double *us, bool *unsynchronised)
{
	const char *reason;
	*unsynchronised = false;
	if (length > STAMP_PAYLOAD_MAX) {
		return STAMP_TOO_LARGE;
	}
	if (proto_json_scan(bytes, length, DEPTH, TOKENS, &reason) < 0) {
		return !key ? from_number(bytes, length, us) : STAMP_MALFORMED;
	}
	cJSON *object = cJSON_ParseWithLength(bytes, length);
	if (!object) {
		return STAMP_MALFORMED;
	}
	*unsynchronised = strcmp(json_word(object, "clock"), "unsynchronised") == 0;
	enum stamp stamp = from_object(object, key, us);
	cJSON_Delete(object);
	return stamp;
}
