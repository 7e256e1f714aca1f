/* The words of alerts. Numbers are written short (97.2, not 97.200000); what is not known is
 * "unknown". */
#include "daemon/core/alerts/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/alerts/state.h"
#include "daemon/core/stages/stages.h"

struct text {
	char *at;
	size_t left; /* including the NUL */
};

static void put(struct text *text, const char *bytes, size_t length)
{
	if (length >= text->left) {
		length = text->left - 1;
	}
	memcpy(text->at, bytes, length);
	text->at += length;
	text->left -= length;
	*text->at = '\0';
}

static void put_words(struct text *text, const char *words)
{
	put(text, words, strlen(words));
}

static void put_number(struct text *text, double value)
{
	char number[64];
	if (isnan(value)) {
		snprintf(number, sizeof(number), "unknown");
	} else if (fabs(value) < 1e15 && value == floor(value)) {
		snprintf(number, sizeof(number), "%.0f", value);
	} else {
		snprintf(number, sizeof(number), "%.*f", fabs(value) < 1 ? 3 : 1, value);
	}
	put(text, number, strlen(number));
}

/* A number with its unit; bytes in the unit that people read. */
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
	put(text, " ", unit[0] ? 1 : 0);
	put(text, unit, strlen(unit));
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
		{"{instance}", alert->instance, 0},
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
			put(text, at++, 1);
			continue;
		}
		if (table[i].word) {
			put(text, table[i].word, strlen(table[i].word));
		} else {
			put_number(text, table[i].number);
		}
		at += strlen(table[i].key);
	}
}

/* The wording of G0.16, which people search their logs for. */
static void put_thermal(struct text *text, const struct alert *alert)
{
	static const char *const level[] = {
		[ALERT_INFO] = "INFO", [ALERT_WARNING] = "WARNING", [ALERT_CRITICAL] = "CRITICAL"};
	char line[96]; /* of a threshold of 1e300 only the begin */
	snprintf(line, sizeof(line), "THERMAL %s: %.1fC (threshold: %.1f)",
		alert->phase == ALERT_FIRING ? level[alert->severity] : "OK", alert->value,
		alert->threshold);
	put_words(text, line);
}

/* The wording of G2.3; the stage is the metric's last segment but one. */
static bool put_growth(struct text *text, const struct alert *alert)
{
	const char *end = strrchr(alert->metric, '/'), *name = end;
	if (!end || alert->phase != ALERT_FIRING || strcmp(end + 1, STAGE_GROWTH_METRIC) != 0) {
		return false;
	}
	while (name > alert->metric && name[-1] != '/') {
		name--;
	}
	char size[80];
	snprintf(size, sizeof(size), ": %.1fMB (limit %.1f MiB)", alert->value / (1 << 20),
		alert->threshold / (1 << 20));
	put_words(text, "High memory usage in ");
	put(text, name, (size_t)(end - name));
	put_words(text, size);
	return true;
}

static const char *relation(const struct alert *alert)
{
	bool firing = alert->phase == ALERT_FIRING;
	switch (alert->rule->kind) {
	case ALERT_ABOVE:
		return firing ? " above " : " no longer above ";
	case ALERT_BELOW:
		return firing ? " below " : " no longer below ";
	case ALERT_EQUALS:
		return firing ? " equals " : " no longer equals ";
	case ALERT_SLOPE:
		return firing ? " grows by " : " no longer grows by ";
	case ALERT_ABSENT:
		break;
	}
	return firing ? " has no value" : " has a value again";
}

/* "process/cam/rss grows by 12.3 MiB per minute". When it ends, by what it was not to grow. */
static void put_slope(struct text *text, const struct alert *alert)
{
	bool firing = alert->phase == ALERT_FIRING;
	put_words(text, relation(alert));
	put_quantity(text, alert, firing ? alert->value : alert->threshold);
	put_words(text, " per minute");
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
	put_words(text, alert->metric);
	if (kind == ALERT_SLOPE) {
		put_slope(text, alert);
	} else if (kind == ALERT_ABSENT) {
		put_words(text, relation(alert));
	} else if (kind == ALERT_EQUALS && alert->unit == UNIT_BOOL && alert->threshold == 1) {
		put_words(text, alert->phase == ALERT_FIRING ? " is on" : " is off again");
	} else if (isnan(alert->value)) {
		put_words(text, " has no value any more");
	} else {
		put_words(text, " ");
		put_quantity(text, alert, alert->value);
		put_words(text, relation(alert));
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
	put_words(text, alert->metric);
	put_words(text, " ");
	put_quantity(text, alert, alert->value);
	put_words(text, ", clears at ");
	put_limit(text, alert, isnan(rule->clear) ? rule->threshold : rule->clear);
}

void alerts_text(const struct alert *alert, const char *ending, char *ret, size_t size)
{
	struct text text = {.at = ret, .left = size};
	bool thermal = alert->unit == UNIT_CELSIUS &&
		       strncmp(alert->metric, "temperature/", strlen("temperature/")) == 0;
	ret[0] = '\0';
	if (ending) {
		put(&text, alert->metric, strlen(alert->metric));
		put(&text, ending, strlen(ending));
	} else if (is_clearing(alert)) {
		put_clearing(&text, alert);
	} else if (alert->rule->message[0] && alert->phase == ALERT_FIRING) {
		put_template(&text, alert);
	} else if (thermal && alert->rule->kind == ALERT_ABOVE && !isnan(alert->value)) {
		put_thermal(&text, alert);
	} else if (!put_growth(&text, alert)) {
		put_standard(&text, alert);
	}
	/* A cut may have gone through a character of a template: the last one goes. */
	while (text.left == 1 && text.at > ret && (*(text.at - 1) & 0x80)) {
		bool leading = (*(text.at - 1) & 0x40) != 0;
		*--text.at = '\0';
		if (leading) {
			break;
		}
	}
}

void alerts_text_suppressed(char *text, size_t size, uint64_t count)
{
	char words[64];
	if (count > 0) {
		const size_t length = strlen(text);
		struct text at = {.at = text + length, .left = size - length};
		snprintf(words, sizeof(words), " (%" PRIu64 " changes suppressed)", count);
		put_words(&at, words);
	}
}
