/* SPDX-License-Identifier: Apache-2.0 */
/* grammar.c: reads the values in a line of tegrastats, and what follows its fixed words: time,
 * memory, cores, and the oddities of old releases. Each release writes values a little differently,
 * so a form is recognised by its signs (%, @, [, /, mW, C), never by the release or the name in
 * front. A rule advances only when all of its words fit. */
#include "proto/tegrastats/grammar.h"

#include <math.h>
#include <string.h>

/* Sensors that are powered down print -256. */
#define OFFLINE_CELSIUS -200.0

enum { PERCENT_MAX = 100 };

static bool is_done(struct scan scan)
{
	return scan.at == scan.end;
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

static bool take_load(struct scan *scan, struct tegrastats_reading *ret)
{
	int64_t one;
	if (!take_percent(scan, &one, &ret->too_much)) {
		return false;
	}
	ret->load.load_percent = one > ret->load.load_percent ? one : ret->load.load_percent;
	return true;
}

static bool take_freq(struct scan *scan, struct tegrastats_reading *ret)
{
	int64_t value;
	if (!scan_uint(scan, &value)) {
		return false;
	}
	if (ret->load.freqs < TEGRASTATS_GPCS) {
		ret->load.freq_mhz[ret->load.freqs++] = value;
	}
	return true;
}

/* One, or [one,one]. */
static bool take_list(struct scan *scan, struct tegrastats_reading *ret,
	bool (*take)(struct scan *scan, struct tegrastats_reading *ret))
{
	if (!scan_literal(scan, "[")) {
		return take(scan, ret);
	}
	do {
		if (!take(scan, ret)) {
			return false;
		}
	} while (scan_literal(scan, ","));
	return scan_literal(scan, "]");
}

bool tegrastats_read_engine(struct scan word, struct tegrastats_reading *ret)
{
	*ret = (struct tegrastats_reading){.load.load_percent = TEGRASTATS_NONE};
	if (scan_is(word, "off")) {
		ret->off = true;
		return true;
	}
	struct scan rest = word;
	if (take_freq(&rest, ret) && is_done(rest)) {
		ret->bare = true;
		return true;
	}
	ret->load.freqs = 0;
	rest = word;
	if (!scan_starts(rest, "@")) {
		if (!take_list(&rest, ret, take_load)) {
			return false;
		}
		if (is_done(rest)) {
			return true;
		}
	}
	return scan_literal(&rest, "@") && take_list(&rest, ret, take_freq) && is_done(rest);
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

/* off | n% | n%@f up to the "," or "]" behind it. One that is none of these is odd and says
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

/* "[core,core]" and an optional "@f" off the front: blanks within are fine. False, and no core,
 * unless the list is closed. *odd counts cores that made no sense, which keep their place, and
 * those beyond TEGRASTATS_CPUS. */
static bool read_cpus(struct scan *line, struct tegrastats *ret, size_t *odd)
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

void tegrastats_add_unknown(struct tegrastats *stats, struct scan word)
{
	if (stats->unknown < TEGRASTATS_UNKNOWN) {
		scan_copy(word, stats->unknown_word[stats->unknown], TEGRASTATS_NAME);
	}
	stats->unknown++;
}

/* What a logger put in front of the line is not part of it. */
static void begin_line(struct tegrastats_parser *p)
{
	if (!p->known) {
		p->stats->engines = p->stats->rails = p->stats->unknown = 0;
	}
}

static bool has_shape(struct scan word, const char *shape)
{
	if ((size_t)(word.end - word.at) != strlen(shape)) {
		return false;
	}
	for (size_t i = 0; shape[i] != '\0'; i++) {
		char c = word.at[i];
		if (shape[i] == '0' ? c < '0' || c > '9' : c != shape[i]) {
			return false;
		}
	}
	return true;
}

bool tegrastats_take_timestamp(struct tegrastats_parser *p, struct scan word, struct scan *rest)
{
	struct scan next = *rest, time;
	if (!has_shape(word, "00-00-0000") || !scan_word(&next, &time) ||
		!has_shape(time, "00:00:00")) {
		return false;
	}
	if (p->ram || p->stats->timestamp[0] != '\0') {
		p->finished = true;
		return false;
	}
	begin_line(p);
	scan_copy(word, p->stats->timestamp, sizeof(p->stats->timestamp));
	p->stats->timestamp[10] = ' ';
	scan_copy(time, p->stats->timestamp + 11, 9);
	*rest = next;
	return true;
}

static bool take_ram(struct tegrastats_parser *p, struct scan *rest)
{
	int64_t used, total;
	if (!scan_match(rest, "#/#MB", &used, &total)) {
		return false;
	}
	if (p->ram) {
		p->finished = true;
		return false;
	}
	begin_line(p);
	p->ram = true;
	p->stats->ram_used_mb = used;
	p->stats->ram_total_mb = total;
	return true;
}

/* "(lfb 8x2MB)", or IRAM's "(lfb 252kB)". */
static bool take_lfb(struct tegrastats_parser *p, struct scan *rest)
{
	struct tegrastats *stats = p->stats;
	if (stats->iram_total_kb != TEGRASTATS_NONE &&
		scan_match(rest, "#kB)", &stats->iram_lfb_kb, NULL)) {
		return true;
	}
	if (scan_match(rest, "#x#MB)", &stats->lfb_blocks, &stats->lfb_block_kb)) {
		stats->lfb_block_kb *= 1024;
		return true;
	}
	return scan_match(rest, "#x#kB)", &stats->lfb_blocks, &stats->lfb_block_kb);
}

static bool take_swap(struct tegrastats_parser *p, struct scan *rest)
{
	return scan_match(rest, "#/#MB", &p->stats->swap_used_mb, &p->stats->swap_total_mb);
}

static bool take_cached(struct tegrastats_parser *p, struct scan *rest)
{
	return scan_match(rest, "#MB)", &p->stats->swap_cached_mb, NULL);
}

/* "IRAM 0/252kB(lfb 252kB)", whose bracket has no blank in front. */
static bool take_iram(struct tegrastats_parser *p, struct scan *rest)
{
	static const char *const bracket = "(lfb";
	struct tegrastats *stats = p->stats;
	if (scan_match(rest, "#/#kB", &stats->iram_used_kb, &stats->iram_total_kb)) {
		return true;
	}
	if (!scan_match(rest, "#/#kB(lfb", &stats->iram_used_kb, &stats->iram_total_kb)) {
		return false;
	}
	if (!take_lfb(p, rest)) {
		tegrastats_add_unknown(stats, (struct scan){bracket, bracket + strlen(bracket)});
	}
	return true;
}

static bool take_cpus(struct tegrastats_parser *p, struct scan *rest)
{
	struct scan next = *rest, list;
	size_t odd;
	scan_skip_blanks(&next);
	list = next;
	if (p->stats->cpus > 0 || !read_cpus(&next, p->stats, &odd)) {
		return false;
	}
	list.end = next.at;
	while (odd-- > 0) {
		tegrastats_add_unknown(p->stats, list);
	}
	*rest = next;
	return true;
}

static bool take_mts(struct tegrastats_parser *p, struct scan *rest)
{
	struct scan next = *rest;
	int64_t fg, bg;
	if (!scan_match(&next, "fg #% bg #%", &fg, &bg) || fg > 100 || bg > 100) {
		return false;
	}
	p->stats->has_mts = true;
	p->stats->mts_fg_percent = fg;
	p->stats->mts_bg_percent = bg;
	*rest = next;
	return true;
}

static bool take_edp(struct tegrastats_parser *p, struct scan *rest)
{
	return scan_match(rest, "limit #", &p->stats->edp_limit_mhz, NULL);
}

static const struct tegrastats_keyword keywords[] = {
	{"RAM", take_ram, false},
	{"(lfb", take_lfb, false},
	{"SWAP", take_swap, false},
	{"(cached", take_cached, false},
	{"IRAM", take_iram, false},
	{"CPU", take_cpus, true},
	{"cpu", take_cpus, true},
	{"MTS", take_mts, false},
	{"EDP", take_edp, false},
};

const struct tegrastats_keyword *tegrastats_find_keyword(struct scan word)
{
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		if (scan_is(word, keywords[i].word)) {
			return &keywords[i];
		}
	}
	return NULL;
}
