/* SPDX-License-Identifier: Apache-2.0 */
/* latency_stamp.c: finds the capture time in a payload. Every payload passes the strict scan before
 * cJSON sees it. */
#include "client/edgeprofctl/mqtt/mqtt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/json_scan.h"
#include "proto/text.h"

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
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (text_ends_with(name, units[i].ending)) {
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

static enum stamp from_object(const cJSON *object, const char *key, double *us)
{
	static const char *const names[] = {"capture_us", "capture_ts_ms", "ts_ms"};
	for (const char *dot; key && (dot = strchr(key, '.')); key = dot + 1) {
		char name[128]; /* "a.b.c": the member c of the member b of the member a */
		snprintf(name, sizeof(name), "%.*s", (int)(dot - key), key);
		object = json_get(object, name);
	}
	if (key) {
		return take(key, json_number(object, key), us);
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
	snprintf(text, sizeof(text), "%.*s", (int)length, bytes);
	char *end;
	double value = strtod(text, &end);
	bool number = length > 0 && strspn(text, "0123456789.") == length && *end == '\0';
	return number ? take("", value, us) : STAMP_MALFORMED;
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
