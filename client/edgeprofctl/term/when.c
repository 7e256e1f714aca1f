/* SPDX-License-Identifier: Apache-2.0 */
/* when.c: parses durations and moments as people type them after --since, --step, --interval and
 * --timeout. */
#include "client/edgeprofctl/term/when.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

#include "proto/text.h"

int when_parse_span(const char *text, double *ret_seconds)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"", 1}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"m", 60},
		{"h", 3600}, {"d", 86400}};
	size_t digits = strspn(text, "0123456789.");
	if (!isdigit((unsigned char)text[0]) || digits > 18) {
		return -EINVAL;
	}
	char *end;
	double value = strtod(text, &end);
	if (end != text + digits) {
		return -EINVAL;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name) == 0) {
			*ret_seconds = value * units[i].seconds;
			return *ret_seconds <= 1e9 ? 0 : -EINVAL;
		}
	}
	return -EINVAL;
}

enum { DAY = 86400 };

static int parse_calendar(const char *text, int64_t now_us, int64_t *ret_us)
{
	static const struct {
		const char *format;
		enum { DATE, CLOCK, TODAY, YESTERDAY } kind;
	} forms[] = {
		{"%Y-%m-%d %H:%M:%S", DATE},
		{"%Y-%m-%dT%H:%M:%S", DATE},
		{"%Y-%m-%d %H:%M", DATE},
		{"%Y-%m-%dT%H:%M", DATE},
		{"%Y-%m-%d", DATE},
		{"%H:%M:%S", CLOCK},
		{"%H:%M", CLOCK},
		{"today", TODAY},
		{"yesterday", YESTERDAY},
	};
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = {0};
		time_t now = (time_t)(now_us / 1000000);
		if (forms[i].kind != DATE && localtime_r(&now, &tm)) {
			tm.tm_sec = tm.tm_min = tm.tm_hour = 0;
			tm.tm_mday -= forms[i].kind == YESTERDAY;
		}
		const char *end = strptime(text, forms[i].format, &tm);
		if (!end || *end != '\0') {
			continue;
		}
		struct tm before = tm;
		before.tm_mday--;
		before.tm_isdst = tm.tm_isdst = -1;
		time_t seconds = mktime(&tm);
		if (forms[i].kind == CLOCK && seconds > now) {
			seconds = mktime(&before);
		}
		if (seconds < 0) {
			return -EINVAL;
		}
		*ret_us = (int64_t)seconds * 1000000;
		return 0;
	}
	return -EINVAL;
}

/* "5min", "5min ago", "-5min". */
static int parse_ago(const char *text, double *ret_seconds)
{
	char span[32];
	int length = (int)strlen(text);
	length -= text_ends_with(text, " ago") ? (int)strlen(" ago") : 0;
	snprintf(span, sizeof(span), "%.*s", length, text);
	return when_parse_span(span + (span[0] == '-'), ret_seconds);
}

int when_parse_time(const char *text, int64_t now_us, int64_t *ret_us)
{
	double seconds;
	if (strcmp(text, "now") == 0) {
		*ret_us = now_us;
		return 0;
	}
	if (text[0] == '@') {
		char *end;
		size_t digits = strspn(text + 1, "0123456789.");
		seconds = strtod(text + 1, &end);
		if (digits == 0 || *end != '\0' || end != text + 1 + digits || seconds > 9e9) {
			return -EINVAL;
		}
		*ret_us = llround(seconds * 1e6);
		return 0;
	}
	if (parse_ago(text, &seconds) == 0) {
		*ret_us = now_us - llround(seconds * 1e6);
		return *ret_us < 0 ? -EINVAL : 0;
	}
	return parse_calendar(text, now_us, ret_us);
}

int when_parse_end(const char *text, int64_t now_us, int64_t from_us, int64_t *ret_us)
{
	int r = when_parse_time(text, now_us, ret_us);
	bool clock = strchr(text, ':') && text[strspn(text, "0123456789:")] == '\0';
	return r == 0 && clock && *ret_us < from_us
		       ? when_parse_time(text, from_us + INT64_C(1000000) * DAY, ret_us)
		       : r;
}

int64_t when_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

double when_mono_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

bool when_is_synchronised(void)
{
	struct timex timex = {.modes = 0};
	int state = adjtimex(&timex);
	return state >= 0 && state != TIME_ERROR && (timex.status & STA_UNSYNC) == 0;
}
