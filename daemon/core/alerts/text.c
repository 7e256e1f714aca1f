/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: writes the messages of alerts. Numbers are short (97.2, not 97.200000); an unknown one is
 * "unknown". */
#include "daemon/core/alerts/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/stages/stages.h"
#include "proto/text.h"

void alert_unit(enum unit unit, bool per_minute, char ret[ALERT_UNIT])
{
	struct text text = text_in(ret, ALERT_UNIT);
	text_add(&text, "%s", unit_name(unit));
	if (per_minute) {
		text_join(&text, " ", "per minute");
	}
}

static void put_number(struct text *text, double value)
{
	if (isnan(value)) {
		text_add(text, "unknown");
	} else if (fabs(value) < 1e15 && value == floor(value)) {
		text_add(text, "%.0f", value);
	} else {
		text_add(text, "%.*f", fabs(value) < 1 ? 3 : 1, value);
	}
}

/* A number with its unit; bytes in a larger unit where that is shorter. */
static void put_quantity(struct text *text, const struct alert *alert, double value)
{
	static const char *const sizes[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	const char *unit = unit_name(alert->unit);
	if (alert->unit == UNIT_BYTES && isfinite(value)) {
		size_t size = 0;
		while (fabs(value) >= 1024 && size + 1 < sizeof(sizes) / sizeof(sizes[0])) {
			value /= 1024;
			size++;
		}
		unit = sizes[size];
	}
	put_number(text, value);
	text_add(text, "%s%s", unit[0] ? " " : "", unit);
}

static void put_template(struct text *text, const struct alert *alert)
{
	const char *at = alert->rule->message;
	char unit[ALERT_UNIT];
	alert_unit(alert->unit, alert->rule->kind == ALERT_SLOPE, unit);
	const struct {
		const char *key;
		const char *word; /* NULL: the number */
		double number;
	} table[] = {
		{"{metric}", alert->metric, 0},
		{"{instance}", strcmp(alert->instance, "_") == 0 ? alert->metric : alert->instance,
			0},
		{"{unit}", unit, 0},
		{"{value}", NULL, alert->value},
		{"{threshold}", NULL, alert->threshold},
	};
	while (*at) {
		size_t i = 0;
		while (i < sizeof(table) / sizeof(table[0]) &&
			strncmp(at, table[i].key, strlen(table[i].key)) != 0) {
			i++;
		}
		if (i == sizeof(table) / sizeof(table[0])) {
			const size_t plain = 1 + strcspn(at + 1, "{");
			text_add(text, "%.*s", (int)plain, at);
			at += plain;
			continue;
		}
		if (table[i].word) {
			text_add(text, "%s", table[i].word);
		} else {
			put_number(text, table[i].number);
		}
		at += strlen(table[i].key);
	}
}

/* People search their logs for this wording. */
static void put_thermal(struct text *text, const struct alert *alert)
{
	static const char *const level[] = {
		[ALERT_INFO] = "INFO", [ALERT_WARNING] = "WARNING", [ALERT_CRITICAL] = "CRITICAL"};
	char line[96]; /* of a threshold of 1e300 only the begin */
	snprintf(line, sizeof(line), "THERMAL %s: %.1fC (threshold: %.1f)",
		alert->phase == ALERT_FIRING ? level[alert->severity] : "OK", alert->value,
		alert->threshold);
	text_add(text, "%s", line);
}

/* The stage is the last segment but one of the metric. */
static bool put_growth(struct text *text, const struct alert *alert)
{
	const char *end = strrchr(alert->metric, '/'), *name = end;
	if (!end || alert->phase != ALERT_FIRING || strcmp(end + 1, STAGE_GROWTH_METRIC) != 0) {
		return false;
	}
	while (name > alert->metric && name[-1] != '/') {
		name--;
	}
	text_add(text, "High memory usage in %.*s: %.1fMB (limit %.1f MiB)", (int)(end - name),
		name, alert->value / (1 << 20), alert->threshold / (1 << 20));
	return true;
}

static const char *relation(const struct alert *alert)
{
	static const char *const words[][2] = {
		[ALERT_ABOVE] = {", no longer above ", ", above "},
		[ALERT_BELOW] = {", no longer below ", ", below "},
		[ALERT_EQUALS] = {", no longer equals ", ", equals "},
		[ALERT_ABSENT] = {" has a value again", " has no value"},
		[ALERT_SLOPE] = {" no longer grows by ", " grows by "},
	};
	return words[alert->rule->kind][alert->phase == ALERT_FIRING];
}

/* "process/cam/rss grows by 12.3 MiB per minute". When it ends it says the limit instead, unless
 * the metric was null or started again: then nobody knows. */
static void put_slope(struct text *text, const struct alert *alert)
{
	bool firing = alert->phase == ALERT_FIRING;
	if (!firing && isnan(alert->value)) {
		text_add(text, " is not known to grow any more");
		return;
	}
	text_add(text, "%s", relation(alert));
	put_quantity(text, alert, firing ? alert->value : alert->threshold);
	text_add(text, " per minute");
}

static void put_limit(struct text *text, const struct alert *alert, double limit)
{
	if (alert->unit == UNIT_BYTES) {
		put_quantity(text, alert, limit);
	} else {
		put_number(text, limit);
	}
}

static void put_standard(struct text *text, const struct alert *alert)
{
	const enum alert_kind kind = alert->rule->kind;
	text_add(text, "%s", alert->metric);
	if (kind == ALERT_SLOPE) {
		put_slope(text, alert);
	} else if (kind == ALERT_ABSENT) {
		text_add(text, "%s", relation(alert));
	} else if (kind == ALERT_EQUALS && alert->unit == UNIT_BOOL && alert->threshold == 1) {
		text_add(text, "%s", alert->phase == ALERT_FIRING ? " is on" : " is off again");
	} else if (isnan(alert->value)) {
		text_add(text, " has no value any more");
	} else {
		text_add(text, " ");
		put_quantity(text, alert, alert->value);
		text_add(text, "%s", relation(alert));
		put_limit(text, alert, alert->threshold);
	}
}

/* Stepped down, not past the limit of what it is now, and not cleared yet. */
static bool is_clearing(const struct alert *alert)
{
	return alert->phase == ALERT_FIRING && !isnan(alert->rule->critical) &&
	       !isnan(alert->value) && alert->severity != ALERT_CRITICAL &&
	       !alert_is_past(alert, alert->rule->threshold);
}

static void put_clearing(struct text *text, const struct alert *alert)
{
	const struct alert_rule *rule = alert->rule;
	text_add(text, "%s ", alert->metric);
	put_quantity(text, alert, alert->value);
	text_add(text, ", clears at ");
	put_limit(text, alert, isnan(rule->clear) ? rule->threshold : rule->clear);
}

void alert_text(struct alert *alert, const char *ending)
{
	struct text text = TEXT_IN(alert->text);
	const bool firing = alert->phase == ALERT_FIRING;
	const bool thermal = alert->unit == UNIT_CELSIUS && alert->rule->kind == ALERT_ABOVE &&
			     text_starts_with(alert->metric, "temperature/");
	if (ending) {
		text_add(&text, "%s%s", alert->metric, ending);
	} else if (alert->test) {
		text_add(&text, "%s", firing ? alert->rule->message : "the test is over");
	} else if (is_clearing(alert)) {
		put_clearing(&text, alert);
	} else if (alert->rule->message[0] && firing) {
		put_template(&text, alert);
	} else if (thermal && !isnan(alert->value)) {
		put_thermal(&text, alert);
	} else if (!put_growth(&text, alert)) {
		put_standard(&text, alert);
	}
}

static struct text end_of(struct alert *alert)
{
	return (struct text){
		.data = alert->text, .size = sizeof(alert->text), .length = strlen(alert->text)};
}

void alert_text_comment(struct alert *alert, const char *comment)
{
	struct text text = end_of(alert);
	text_add(&text, "; %s", comment);
}

void alert_text_suppressed(struct alert *alert, uint64_t count)
{
	struct text text = end_of(alert);
	if (count > 0) {
		text_add(&text, " (%" PRIu64 " changes suppressed)", count);
	}
}
