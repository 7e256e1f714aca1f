/* What stands behind the fixed words of a line: its time, memory, cores, and the oddities of old
 * releases. A rule moves on only when all of its words fit. */
#include "proto/tegrastats/keyword.h"

#include <string.h>

#include "proto/tegrastats/value.h"

void tegrastats_add_unknown(struct tegrastats *stats, struct scan word)
{
	if (stats->unknown < TEGRASTATS_UNKNOWN) {
		scan_copy(word, stats->unknown_word[stats->unknown], TEGRASTATS_NAME);
	}
	stats->unknown++;
}

/* The next word when it is this one. */
static bool take_word(struct scan *rest, const char *text)
{
	struct scan next = *rest, word;
	if (!scan_word(&next, &word) || !scan_is(word, text)) {
		return false;
	}
	*rest = next;
	return true;
}

/* What a logger put in front of the line is nothing of ours. */
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

static bool take_pair(struct scan *rest, const char *unit, int64_t *used, int64_t *total)
{
	struct scan next = *rest, word;
	int64_t a, b;
	if (!scan_word(&next, &word) || !tegrastats_read_pair(&word, unit, &a, &b) ||
		word.at != word.end) {
		return false;
	}
	*used = a;
	*total = b;
	*rest = next;
	return true;
}

static bool take_ram(struct tegrastats_parser *p, struct scan *rest)
{
	int64_t used, total;
	if (!take_pair(rest, "MB", &used, &total)) {
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
	struct scan next = *rest, word;
	int64_t first, size, unit_kb;
	if (!scan_word(&next, &word) || !scan_uint(&word, &first)) {
		return false;
	}
	if (scan_is(word, "kB)") && p->stats->iram_total_kb != TEGRASTATS_NONE) {
		p->stats->iram_lfb_kb = first;
		*rest = next;
		return true;
	}
	if (!scan_literal(&word, "x") || !scan_uint(&word, &size)) {
		return false;
	}
	unit_kb = scan_is(word, "MB)") ? 1024 : scan_is(word, "kB)") ? 1 : 0;
	if (unit_kb == 0) {
		return false;
	}
	p->stats->lfb_blocks = first;
	p->stats->lfb_block_kb = size * unit_kb;
	*rest = next;
	return true;
}

static bool take_swap(struct tegrastats_parser *p, struct scan *rest)
{
	return take_pair(rest, "MB", &p->stats->swap_used_mb, &p->stats->swap_total_mb);
}

static bool take_cached(struct tegrastats_parser *p, struct scan *rest)
{
	struct scan next = *rest, word;
	int64_t cached;
	if (!scan_word(&next, &word) || !scan_uint(&word, &cached) || !scan_is(word, "MB)")) {
		return false;
	}
	p->stats->swap_cached_mb = cached;
	*rest = next;
	return true;
}

/* "IRAM 0/252kB(lfb 252kB)", whose bracket has no blank in front. */
static bool take_iram(struct tegrastats_parser *p, struct scan *rest)
{
	struct scan next = *rest, word;
	int64_t used, total;
	if (!scan_word(&next, &word) || !tegrastats_read_pair(&word, "kB", &used, &total) ||
		!(word.at == word.end || scan_is(word, "(lfb"))) {
		return false;
	}
	p->stats->iram_used_kb = used;
	p->stats->iram_total_kb = total;
	if (scan_is(word, "(lfb") && !take_lfb(p, &next)) {
		tegrastats_add_unknown(p->stats, word);
	}
	*rest = next;
	return true;
}

static bool take_cpus(struct tegrastats_parser *p, struct scan *rest)
{
	struct scan next = *rest, list;
	size_t odd;
	scan_skip_blanks(&next);
	list = next;
	if (p->stats->cpus > 0 || !tegrastats_read_cpus(&next, p->stats, &odd)) {
		return false;
	}
	list.end = next.at;
	while (odd-- > 0) {
		tegrastats_add_unknown(p->stats, list);
	}
	*rest = next;
	return true;
}

static bool take_percent_word(struct scan *rest, int64_t *ret)
{
	struct scan next = *rest, word;
	struct tegrastats_reading reading;
	if (!scan_word(&next, &word) || !tegrastats_read_engine(word, &reading) ||
		reading.load_percent == TEGRASTATS_NONE || reading.freqs > 0) {
		return false;
	}
	*ret = reading.load_percent;
	*rest = next;
	return true;
}

static bool take_mts(struct tegrastats_parser *p, struct scan *rest)
{
	struct scan next = *rest;
	int64_t fg, bg;
	if (!take_word(&next, "fg") || !take_percent_word(&next, &fg) || !take_word(&next, "bg") ||
		!take_percent_word(&next, &bg)) {
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
	struct scan next = *rest, word;
	int64_t limit;
	if (!take_word(&next, "limit") || !scan_word(&next, &word) || !scan_uint(&word, &limit) ||
		word.at != word.end) {
		return false;
	}
	p->stats->edp_limit_mhz = limit;
	*rest = next;
	return true;
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
