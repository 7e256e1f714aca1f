/* SPDX-License-Identifier: Apache-2.0 */
/* format.c: formats numbers for people. Text shows MiB and GHz; JSON carries the raw numbers. */
#include "client/edgeprofctl/term/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/edgeprofctl/term/text.h"
#include "proto/text.h"

struct label format_word(const char *word)
{
	struct label label;
	struct text text = TEXT_IN(label.text);
	text_add(&text, "%s", word);
	text_clean(label.text, true);
	return label;
}

/* In the unit that leaves one to three digits before the point; `decimals` of what is not scaled.
 */
static struct label scaled(
	double value, const char *const *units, size_t count, double step, int decimals)
{
	struct label label;
	size_t i = 0;
	/* 999.95 would print as 1000.0 of the smaller unit */
	while (i + 1 < count && fabs(value) >= step * 0.99995) {
		value /= step;
		i++;
	}
	decimals = i == 0 ? decimals : fabs(value) < 9.995 ? 2 : 1;
	snprintf(label.text, sizeof(label.text), "%.*f %s", decimals, value, units[i]);
	return label;
}

struct label format_bytes(double bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	if (isnan(bytes)) {
		return (struct label){"-"};
	}
	return scaled(bytes, units, sizeof(units) / sizeof(units[0]), 1024, 0);
}

static struct label format_hertz(double hertz)
{
	static const char *const units[] = {"Hz", "kHz", "MHz", "GHz"};
	return scaled(hertz, units, sizeof(units) / sizeof(units[0]), 1000, 0);
}

static struct label format_rate(double rate)
{
	static const char *const units[] = {"/s", "k/s", "M/s", "G/s", "T/s"};
	int decimals = rate == floor(rate) ? 0 : fabs(rate) < 9.995 ? 2 : 1;
	return scaled(rate, units, sizeof(units) / sizeof(units[0]), 1000, decimals);
}

static struct label format_energy(double millijoules)
{
	static const char *const units[] = {"mJ", "J", "kJ", "MJ", "GJ"};
	bool whole = millijoules == floor(millijoules) || fabs(millijoules) >= 9.95;
	return scaled(millijoules, units, sizeof(units) / sizeof(units[0]), 1000, whole ? 0 : 1);
}

/* Of a slope: "bytes per minute" is "2.0 MiB/min". */
static struct label format_per_minute(double value, const char *unit, size_t length, bool utf8)
{
	char base[32];
	snprintf(base, sizeof(base), "%.*s", (int)length, unit);
	struct label label;
	struct text text = TEXT_IN(label.text);
	text_add(&text, "%s/min", format_value(value, base, utf8).text);
	return label;
}

struct label format_value(double value, const char *unit, bool utf8)
{
	static const char per_minute[] = "per minute";
	static const struct {
		const char *unit;
		int decimals;
		double factor;
		const char *suffix, *ascii;
	} plain[] = {
		{"celsius", 1, 1, " °C", " C"},
		{"percent", 1, 1, " %", " %"},
		{"milliwatts", 2, 1e-3, " W", " W"},
		{"volts", 3, 1, " V", " V"},
		{"rpm", 0, 1, " rpm", " rpm"},
		{"state", 0, 1, "", ""},
		{"count", 0, 1, "", ""},
		{"milliseconds", 2, 1, " ms", " ms"},
		{"microseconds", 0, 1, " µs", " us"},
		{"seconds", 1, 1, " s", " s"},
		{"fps", 1, 1, " fps", " fps"},
	};
	struct label label;
	if (isnan(value)) {
		return (struct label){"-"};
	}
	const char *minute = strstr(unit, per_minute);
	if (minute && strcmp(minute, per_minute) == 0) {
		return format_per_minute(
			value, unit, (size_t)(minute - unit) - (minute > unit), utf8);
	}
	if (strcmp(unit, "bytes") == 0) {
		return format_bytes(value);
	}
	if (strcmp(unit, "hertz") == 0) {
		return format_hertz(value);
	}
	if (strcmp(unit, "per_second") == 0) {
		return format_rate(value);
	}
	if (strcmp(unit, "millijoules") == 0) {
		return format_energy(value);
	}
	if (strcmp(unit, "bool") == 0 && value > 0 && value < 1) { /* a mean */
		return format_value(100 * value, "percent", utf8);
	}
	if (strcmp(unit, "bool") == 0) {
		return value != 0 ? (struct label){"yes"} : (struct label){"no"};
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (strcmp(plain[i].unit, unit) == 0) {
			bool mean = plain[i].suffix[0] == '\0' && value != floor(value);
			snprintf(label.text, sizeof(label.text), "%.*f%s",
				mean ? 2 : plain[i].decimals, value * plain[i].factor,
				utf8 ? plain[i].suffix : plain[i].ascii);
			return label;
		}
	}
	snprintf(label.text, sizeof(label.text), "%.2f%s%.20s", value, unit[0] == '\0' ? "" : " ",
		unit);
	text_clean(label.text, utf8); /* a character may be cut */
	return label;
}

struct label format_count(int64_t count)
{
	char digits[24];
	struct label label;
	int length = snprintf(digits, sizeof(digits), "%" PRId64, count);
	size_t to = 0;
	for (int i = 0; i < length; i++) {
		int left = length - i;
		if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') {
			label.text[to++] = ',';
		}
		label.text[to++] = digits[i];
	}
	label.text[to] = '\0';
	return label;
}

struct label format_span(double seconds)
{
	struct label label;
	if (isnan(seconds)) {
		return (struct label){"-"};
	}
	if (fabs(seconds) > 1e12) {
		return (struct label){"very long"};
	}
	if (seconds < 59.5) {
		snprintf(label.text, sizeof(label.text), "%.*f s", seconds < 9.95 ? 1 : 0, seconds);
	} else {
		snprintf(label.text, sizeof(label.text), "%s",
			text_span((uint64_t)round(seconds)).text);
	}
	return label;
}

struct label format_ago(double age_ms)
{
	struct label label;
	double seconds = age_ms / 1000;
	if (seconds < 59.5) {
		snprintf(label.text, sizeof(label.text), "%.*f s ago", seconds < 0.95 ? 1 : 0,
			seconds);
	} else {
		snprintf(label.text, sizeof(label.text), "%.50s ago", format_span(seconds).text);
	}
	return label;
}

struct label format_last_fps(double last_fps, double idle_ms)
{
	struct label label = {""};
	if (!isnan(last_fps) && !isnan(idle_ms)) {
		snprintf(label.text, sizeof(label.text), "last %.1f fps %.40s", last_fps,
			format_ago(idle_ms).text);
	}
	return label;
}

/* Where the year would not fit a calendar, there is no time to show. */
static bool local_time(int64_t time_us, struct tm *ret)
{
	time_t seconds = (time_t)(time_us / 1000000);
	return time_us > 0 && time_us < INT64_C(253402300800000000) && localtime_r(&seconds, ret);
}

struct label format_time(int64_t time_us)
{
	struct label label = {"-"};
	struct tm tm;
	if (local_time(time_us, &tm)) {
		strftime(label.text, sizeof(label.text), "%Y-%m-%d %H:%M:%S", &tm);
	}
	return label;
}

struct label format_clock(int64_t time_us)
{
	struct label label = {"-"};
	struct tm tm;
	if (local_time(time_us, &tm)) {
		snprintf(label.text, sizeof(label.text), "%02d:%02d:%02d.%03d", tm.tm_hour,
			tm.tm_min, tm.tm_sec, (int)(time_us / 1000 % 1000));
	}
	return label;
}

void spark_init(struct spark *spark, int64_t from_us, int64_t to_us, size_t points)
{
	memset(spark, 0, sizeof(*spark));
	spark->from_us = from_us;
	spark->columns = points < 1 ? 1 : points < SPARK_COLUMNS ? points : SPARK_COLUMNS;
	spark->to_us = to_us > from_us ? to_us : from_us + 1;
}

void spark_add(struct spark *spark, int64_t time_us, double value)
{
	if (time_us < spark->from_us || time_us > spark->to_us || !isfinite(value)) {
		return;
	}
	double share = (double)(time_us - spark->from_us) / (double)(spark->to_us - spark->from_us);
	size_t column = (size_t)(share * (double)spark->columns);
	column = column < spark->columns ? column : spark->columns - 1;
	spark->sums[column] += value;
	spark->counts[column]++;
}

void spark_write(const struct spark *spark, bool utf8, char ret[SPARK_SIZE])
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {"_", ".", "-", "=", "+", "*", "#", "@"};
	double min = INFINITY, max = -INFINITY;
	for (size_t i = 0; i < spark->columns; i++) {
		if (spark->counts[i] > 0) {
			double mean = spark->sums[i] / spark->counts[i];
			min = fmin(min, mean);
			max = fmax(max, mean);
		}
	}
	size_t at = 0;
	for (size_t i = 0; i < spark->columns; i++) {
		const char *bar = " ";
		if (spark->counts[i] > 0) {
			double mean = spark->sums[i] / spark->counts[i];
			double share = max > min ? (mean - min) / (max - min) : 0;
			size_t step = (size_t)(share * 7.999);
			bar = utf8 ? bars[step] : ascii[step];
		}
		size_t length = strlen(bar);
		memcpy(ret + at, bar, length);
		at += length;
	}
	ret[at] = '\0';
}
