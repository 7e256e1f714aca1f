/* SPDX-License-Identifier: Apache-2.0 */
/* line.c: reads one line of tegrastats, word by word: a keyword's rule, a temperature, or a name
 * followed by a value; what matches nothing is counted and affects only itself. Order and releases
 * don't matter. A value recognised by its form alone ("word 12", "word 3/4") only counts when the
 * line also has something that only tegrastats prints, else any log message would yield engines and
 * rails. */
#include "proto/tegrastats/tegrastats.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/tegrastats/grammar.h"

/* The first of a name keeps it, the second becomes NAME#2. `names` are `count` structs of `stride`
 * bytes that begin with their name. */
static void name_uniquely(
	const char *names, size_t count, size_t stride, struct scan word, char *ret)
{
	scan_copy(word, ret, TEGRASTATS_NAME);
	size_t length = strlen(ret), same = 1;
	for (size_t i = 0; i < count; i++) {
		const char *other = names + i * stride;
		if (strncmp(other, ret, length) == 0 &&
			(other[length] == '\0' || other[length] == '#')) {
			same++;
		}
	}
	if (same > 1) {
		char suffix[24];
		int size = snprintf(suffix, sizeof(suffix), "#%zu", same);
		if (length > TEGRASTATS_NAME - 1 - (size_t)size) {
			length = TEGRASTATS_NAME - 1 - (size_t)size;
		}
		memcpy(ret + length, suffix, (size_t)size + 1);
	}
}

static bool take_temp(struct tegrastats_parser *p, struct scan word)
{
	struct tegrastats *stats = p->stats;
	struct tegrastats_temp temp;
	struct scan name;
	if (word.end[-1] != 'C' || !scan_name(&word, &name) || !scan_literal(&word, "@") ||
		!tegrastats_read_temp(word, &temp) || stats->temps == TEGRASTATS_TEMPS) {
		return false;
	}
	name_uniquely(stats->temp[0].name, stats->temps, sizeof(temp), name, temp.name);
	stats->temp[stats->temps++] = temp;
	return true;
}

static bool starts_with_any(struct scan name, const char *const *starts)
{
	for (; *starts; starts++) {
		if (scan_starts(name, *starts)) {
			return true;
		}
	}
	return false;
}

/* A number alone behind the name of a rail is what is left of a torn "281/300", not a clock. */
static bool is_rail_name(struct scan name)
{
	static const char *const rails[] = {"VDD", "VIN", "POM_", "NC", "CPU", "GPU", "SOC", "CV",
		"SYS5V", "cpu", "gpu", "soc", NULL};
	return starts_with_any(name, rails);
}

static bool is_engine_name(struct scan name)
{
	static const char *const engines[] = {"EMC", "GR3D", "VIC", "APE", "AVP", "VDE", "MSENC",
		"NVENC", "NVDEC", "NVJPG", "NVDLA", "OFA", "PVA", NULL};
	return starts_with_any(name, engines);
}

static bool take_rail(struct tegrastats_parser *p, struct scan name, struct scan value)
{
	struct tegrastats *stats = p->stats;
	struct tegrastats_rail rail;
	bool unit;
	if (!tegrastats_read_power(value, &rail, &unit) || stats->rails == TEGRASTATS_RAILS) {
		return false;
	}
	name_uniquely(stats->rail[0].name, stats->rails, sizeof(rail), name, rail.name);
	stats->rail[stats->rails++] = rail;
	p->known = p->known || unit;
	return true;
}

static bool add_engine(
	struct tegrastats *stats, struct scan name, const struct tegrastats_reading *reading)
{
	const struct {
		const char *name;
		struct tegrastats_load *load;
	} single[] = {{"GR3D", &stats->gpu}, {"GR3D2", &stats->gpu2}, {"EMC", &stats->emc}};
	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
		if (scan_is(name, single[i].name)) {
			bool first = !single[i].load->present;
			if (first) {
				*single[i].load = reading->load;
				single[i].load->present = true;
			}
			return first;
		}
	}
	if (stats->engines == TEGRASTATS_ENGINES) {
		return false;
	}
	struct tegrastats_engine *engine = &stats->engine[stats->engines];
	name_uniquely(stats->engine[0].name, stats->engines, sizeof(*engine), name, engine->name);
	engine->on = !reading->off;
	engine->load_percent = reading->load.load_percent;
	engine->freq_mhz = tegrastats_fastest_mhz(&reading->load);
	stats->engines++;
	return true;
}

/* A name and the word behind it: a rail or an engine. */
static bool take_named(struct tegrastats_parser *p, struct scan name, struct scan *rest)
{
	struct tegrastats_reading reading;
	struct scan next = *rest, value;
	if (!scan_word(&next, &value)) {
		return false;
	}
	if (take_rail(p, name, value)) {
		*rest = next;
		return true;
	}
	if (name.end - name.at > 5 && memcmp(name.end - 5, "_FREQ", 5) == 0) {
		name.end -= 5;
	}
	if (!tegrastats_read_engine(value, &reading) || (reading.bare && is_rail_name(name)) ||
		!add_engine(p->stats, name, &reading)) {
		return false;
	}
	if (reading.too_much) {
		tegrastats_add_unknown(p->stats, value);
	}
	p->known = p->known || is_engine_name(name) || scan_has(value, '@');
	*rest = next;
	return true;
}

static void take_token(struct tegrastats_parser *p)
{
	struct scan rest = p->rest, word, name;
	if (!scan_word(&rest, &word)) {
		p->rest.at = p->rest.end;
		return;
	}
	const struct tegrastats_keyword *keyword = tegrastats_find_keyword(word);
	struct scan tail = word;
	if ((keyword && keyword->take(p, &rest)) || tegrastats_take_timestamp(p, word, &rest) ||
		take_temp(p, word)) {
		p->known = true;
	} else if (p->finished || !((!keyword || keyword->also_rail) && scan_name(&tail, &name) &&
					  tail.at == tail.end && take_named(p, name, &rest))) {
		tegrastats_add_unknown(p->stats, word);
	}
	p->rest.at = p->finished ? p->rest.end : rest.at;
}

static void set_absent(struct tegrastats *ret)
{
	memset(ret, 0, sizeof(*ret));
	int64_t *const numbers[] = {&ret->ram_used_mb, &ret->ram_total_mb, &ret->lfb_blocks,
		&ret->lfb_block_kb, &ret->swap_used_mb, &ret->swap_total_mb, &ret->swap_cached_mb,
		&ret->iram_used_kb, &ret->iram_total_kb, &ret->iram_lfb_kb, &ret->emc.load_percent,
		&ret->gpu.load_percent, &ret->gpu2.load_percent, &ret->mts_fg_percent,
		&ret->mts_bg_percent, &ret->edp_limit_mhz};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		*numbers[i] = TEGRASTATS_NONE;
	}
}

int tegrastats_parse(const char *line, size_t length, struct tegrastats *ret)
{
	struct scan whole = {line, line + length}, word;
	set_absent(ret);
	if (length > TEGRASTATS_LINE) {
		/* The word at the cut may be half a number. */
		whole.end = line + TEGRASTATS_LINE;
		bool torn = (unsigned char)*whole.end > ' ';
		while (torn && whole.end > whole.at && (unsigned char)whole.end[-1] > ' ') {
			whole.end--;
		}
	}
	struct tegrastats_parser p = {.stats = ret, .rest = whole};
	while (p.rest.at < p.rest.end) {
		take_token(&p);
	}
	if (p.known) {
		return 0;
	}
	set_absent(ret);
	while (scan_word(&whole, &word)) {
		tegrastats_add_unknown(ret, word);
	}
	return -EBADMSG;
}

int64_t tegrastats_fastest_mhz(const struct tegrastats_load *load)
{
	int64_t fastest = TEGRASTATS_NONE;
	for (size_t i = 0; i < load->freqs; i++) {
		fastest = load->freq_mhz[i] > fastest ? load->freq_mhz[i] : fastest;
	}
	return fastest;
}

double tegrastats_cpu_average_percent(const struct tegrastats *stats)
{
	double sum = 0;
	size_t count = 0;
	for (size_t i = 0; i < stats->cpus; i++) {
		if (stats->cpu[i].online && stats->cpu[i].load_percent != TEGRASTATS_NONE) {
			sum += (double)stats->cpu[i].load_percent;
			count++;
		}
	}
	return count == 0 ? NAN : sum / (double)count;
}

/* Not connected, or measured behind another rail. */
static bool is_skipped(const char *name)
{
	static const char *const names[] = {"NC", "VDDQ_VDD2_1V8AO"};
	size_t length = strcspn(name, "#");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) == length && memcmp(name, names[i], length) == 0) {
			return true;
		}
	}
	return false;
}

double tegrastats_total_mw(const struct tegrastats *stats, const char **source)
{
	static const char *const inputs[] = {"VIN", "VDD_IN", "POM_5V_IN"};
	double sum = 0;
	*source = NULL;
	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		for (size_t k = 0; k < stats->rails; k++) {
			if (strcmp(stats->rail[k].name, inputs[i]) == 0) {
				*source = inputs[i];
				return (double)stats->rail[k].now_mw;
			}
		}
	}
	for (size_t k = 0; k < stats->rails; k++) {
		if (!is_skipped(stats->rail[k].name)) {
			sum += (double)stats->rail[k].now_mw;
			*source = "sum";
		}
	}
	return !*source ? NAN : sum;
}
