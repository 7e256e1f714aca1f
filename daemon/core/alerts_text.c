/* The words of alerts. Numbers are written short (97.2, not 97.200000); what is not known is
 * "unknown". */
#include "daemon/core/alerts_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

static void put_template(struct text *text, const struct alert *alert)
{
	const char *at = alert->rule->message;
	const struct {
		const char *key;
		const char *word; /* NULL: the number */
		double number;
	} table[] = {
		{"{metric}", alert->metric, 0},
		{"{instance}", alert->instance, 0},
		{"{unit}", unit_name(alert->unit), 0},
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
	char line[96];
	int length = snprintf(line, sizeof(line), "THERMAL %s: %.1fC (threshold: %.1f)",
		alert->phase == ALERT_FIRING ? level[alert->severity] : "OK", alert->value,
		alert->threshold);
	put(text, line, (size_t)length);
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
	case ALERT_ABSENT:
		break;
	}
	return firing ? " has no value" : " has a value again";
}

static void put_standard(struct text *text, const struct alert *alert)
{
	put(text, alert->metric, strlen(alert->metric));
	if (alert->rule->kind != ALERT_ABSENT) {
		const char *unit = unit_name(alert->unit);
		put(text, " ", 1);
		put_number(text, alert->value);
		put(text, " ", unit[0] ? 1 : 0);
		put(text, unit, strlen(unit));
	}
	const char *words = relation(alert);
	put(text, words, strlen(words));
	if (alert->rule->kind != ALERT_ABSENT) {
		put_number(text, alert->threshold);
	}
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
	} else if (alert->rule->message[0] && alert->phase == ALERT_FIRING) {
		put_template(&text, alert);
	} else if (thermal && alert->rule->kind == ALERT_ABOVE && !isnan(alert->value)) {
		put_thermal(&text, alert);
	} else {
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
