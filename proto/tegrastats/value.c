/* The values in a line of tegrastats: each release writes them a little differently, so a form is
 * told by its signs (%, @, [, /, mW, C), never by the release or the name in front. */
#include "proto/tegrastats/value.h"

#include <math.h>

/* Sensors that are powered down print -256. */
#define OFFLINE_CELSIUS -200.0

enum { PERCENT_MAX = 100 };

static bool is_done(struct scan scan)
{
	return scan.at == scan.end;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* n%: more than 100 is not a measurement. */
static bool take_percent(struct scan *scan, int64_t *ret, bool *too_much)
{
	struct scan rest = *scan;
	int64_t value;
	if (!scan_uint(&rest, &value) || !scan_literal(&rest, "%")) {
		return false;
	}
	*scan = rest;
	if (value > PERCENT_MAX) {
		*too_much = true;
		value = TEGRASTATS_NONE;
	}
	*ret = value;
	return true;
}

/* n% or [n%,n%]. */
static bool take_load(struct scan *scan, struct tegrastats_reading *ret)
{
	if (!scan_literal(scan, "[")) {
		return take_percent(scan, &ret->load_percent, &ret->too_much);
	}
	do {
		int64_t one;
		if (!take_percent(scan, &one, &ret->too_much)) {
			return false;
		}
		ret->load_percent = larger(ret->load_percent, one);
	} while (scan_literal(scan, ","));
	return scan_literal(scan, "]");
}

static bool take_freq(struct scan *scan, struct tegrastats_reading *ret)
{
	int64_t value;
	if (!scan_uint(scan, &value)) {
		return false;
	}
	if (ret->freqs < TEGRASTATS_GPCS) {
		ret->freq_mhz[ret->freqs++] = value;
	}
	return true;
}

/* f or [f,f], behind the @. */
static bool take_freqs(struct scan *scan, struct tegrastats_reading *ret)
{
	if (!scan_literal(scan, "[")) {
		return take_freq(scan, ret);
	}
	do {
		if (!take_freq(scan, ret)) {
			return false;
		}
	} while (scan_literal(scan, ","));
	return scan_literal(scan, "]");
}

bool tegrastats_read_engine(struct scan word, struct tegrastats_reading *ret)
{
	*ret = (struct tegrastats_reading){.load_percent = TEGRASTATS_NONE};
	if (scan_is(word, "off")) {
		ret->off = true;
		return true;
	}
	struct scan rest = word;
	if (take_freq(&rest, ret) && is_done(rest)) {
		ret->bare = true;
		return true;
	}
	ret->freqs = 0;
	rest = word;
	if (!scan_starts(rest, "@")) {
		if (!take_load(&rest, ret)) {
			return false;
		}
		if (is_done(rest)) {
			return true;
		}
	}
	return scan_literal(&rest, "@") && take_freqs(&rest, ret) && is_done(rest);
}

bool tegrastats_read_power(struct scan word, struct tegrastats_rail *ret, bool *has_unit)
{
	int64_t *const values[] = {&ret->now_mw, &ret->average_mw, &ret->peak_mw};
	size_t count = 0;
	bool unit = false;
	ret->now_mw = ret->average_mw = ret->peak_mw = TEGRASTATS_NONE;
	*has_unit = false;
	do {
		if (count == 3 || !scan_int(&word, values[count])) {
			return false;
		}
		count++;
		unit = scan_literal(&word, "mW");
		*has_unit = *has_unit || unit;
	} while (scan_literal(&word, "/"));
	/* Without its unit at the end, the last number of a torn line would be a wrong one. */
	return is_done(word) && unit == *has_unit && (unit || count > 1);
}

bool tegrastats_read_temp(struct scan word, struct tegrastats_temp *ret)
{
	double now, peak = NAN;
	if (!scan_decimal(&word, &now) || !scan_literal(&word, "C")) {
		return false;
	}
	if (scan_literal(&word, "/") && !(scan_decimal(&word, &peak) && scan_literal(&word, "C"))) {
		return false;
	}
	ret->told_celsius = now;
	ret->celsius = now <= OFFLINE_CELSIUS ? NAN : now;
	ret->peak_celsius = peak <= OFFLINE_CELSIUS ? NAN : peak;
	return is_done(word);
}

bool tegrastats_read_pair(struct scan *word, const char *unit, int64_t *used, int64_t *total)
{
	struct scan rest = *word;
	int64_t a, b;
	if (!scan_uint(&rest, &a) || !scan_literal(&rest, "/") || !scan_uint(&rest, &b) ||
		!scan_literal(&rest, unit)) {
		return false;
	}
	*used = a;
	*total = b;
	*word = rest;
	return true;
}

/* off | n% | n%@f up to the "," or "]" behind it. One that is none of these is odd and tells
 * nothing. */
static bool take_core(struct scan *scan, struct tegrastats_cpu *ret, bool *odd)
{
	struct scan rest = *scan;
	bool fits;
	*ret = (struct tegrastats_cpu){true, TEGRASTATS_NONE, TEGRASTATS_NONE};
	*odd = false;
	if (scan_literal(&rest, "off")) {
		ret->online = false;
		fits = true;
	} else {
		fits = take_percent(&rest, &ret->load_percent, odd) &&
		       (!scan_literal(&rest, "@") || scan_uint(&rest, &ret->freq_mhz));
	}
	scan_skip_blanks(&rest);
	if (!fits || !(scan_starts(rest, ",") || scan_starts(rest, "]"))) {
		*ret = (struct tegrastats_cpu){true, TEGRASTATS_NONE, TEGRASTATS_NONE};
		*odd = true;
		rest = *scan;
		while (rest.at < rest.end && *rest.at != ',' && *rest.at != ']') {
			struct scan next = rest;
			scan_skip_blanks(&next);
			if (next.at != rest.at || *rest.at == '[') {
				return false;
			}
			rest.at++;
		}
	}
	*scan = rest;
	return !is_done(rest);
}

/* "@f" behind the list: one clock for all cores that have none of their own. */
static void take_common_freq(struct scan *scan, struct tegrastats *ret)
{
	struct scan rest = *scan;
	struct scan word;
	int64_t freq;
	if (!scan_literal(&rest, "@") || !scan_uint(&rest, &freq)) {
		return;
	}
	word = rest;
	scan_skip_blanks(&word);
	if (!is_done(rest) && word.at == rest.at) {
		return;
	}
	for (size_t i = 0; i < ret->cpus; i++) {
		struct tegrastats_cpu *cpu = &ret->cpu[i];
		if (cpu->online && cpu->freq_mhz == TEGRASTATS_NONE) {
			cpu->freq_mhz = freq;
		}
	}
	*scan = rest;
}

bool tegrastats_read_cpus(struct scan *line, struct tegrastats *ret, size_t *odd)
{
	struct scan rest = *line;
	size_t count = 0, skipped = 0;
	if (!scan_literal(&rest, "[")) {
		return false;
	}
	scan_skip_blanks(&rest);
	while (!scan_literal(&rest, "]")) {
		struct tegrastats_cpu cpu;
		bool strange;
		if ((count > 0 || skipped > 0) && !scan_literal(&rest, ",")) {
			return false;
		}
		scan_skip_blanks(&rest);
		if (!take_core(&rest, &cpu, &strange)) {
			return false;
		}
		if (count < TEGRASTATS_CPUS) {
			ret->cpu[count++] = cpu;
			skipped += strange;
		} else {
			skipped++;
		}
	}
	ret->cpus = count;
	*odd = skipped;
	take_common_freq(&rest, ret);
	*line = rest;
	return true;
}
