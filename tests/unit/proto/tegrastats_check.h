/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for the result of any bytes: the test with mutated lines and the fuzz target ask it.
 */
#pragma once

#include <errno.h>
#include <math.h>
#include <string.h>

#include "proto/tegrastats/tegrastats.h"

static inline bool tegrastats_is_percent(int64_t value)
{
	return value == TEGRASTATS_NONE || (value >= 0 && value <= 100);
}

static inline bool tegrastats_is_count(int64_t value)
{
	return value == TEGRASTATS_NONE || (value >= 0 && value < INT64_C(1024000000000000000));
}

static inline bool tegrastats_is_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);
	for (size_t i = 0; i < length; i++) {
		if (text[i] <= ' ' || text[i] >= 0x7f) {
			return false;
		}
	}
	return length > 0 && length < size;
}

static inline const char *tegrastats_check_devices(const struct tegrastats *s)
{
	for (size_t i = 0; i < s->cpus; i++) {
		const struct tegrastats_cpu *cpu = &s->cpu[i];
		if (!tegrastats_is_percent(cpu->load_percent) ||
			!tegrastats_is_count(cpu->freq_mhz) ||
			(!cpu->online && (cpu->load_percent != TEGRASTATS_NONE ||
						 cpu->freq_mhz != TEGRASTATS_NONE))) {
			return "core";
		}
	}
	for (size_t i = 0; i < s->engines; i++) {
		const struct tegrastats_engine *engine = &s->engine[i];
		if (!tegrastats_is_text(engine->name, sizeof(engine->name)) ||
			!tegrastats_is_percent(engine->load_percent) ||
			!tegrastats_is_count(engine->freq_mhz)) {
			return "engine";
		}
	}
	for (size_t i = 0; i < s->temps; i++) {
		const struct tegrastats_temp *temp = &s->temp[i];
		if (!tegrastats_is_text(temp->name, sizeof(temp->name)) ||
			!isfinite(temp->told_celsius) || temp->celsius <= -200 ||
			(!isnan(temp->celsius) && temp->celsius != temp->told_celsius)) {
			return "temperature";
		}
	}
	for (size_t i = 0; i < s->rails; i++) {
		if (!tegrastats_is_text(s->rail[i].name, sizeof(s->rail[i].name)) ||
			s->rail[i].now_mw == TEGRASTATS_NONE) {
			return "rail";
		}
	}
	for (size_t i = 0; i < s->unknown && i < TEGRASTATS_UNKNOWN; i++) {
		if (!tegrastats_is_text(s->unknown_word[i], TEGRASTATS_NAME)) {
			return "unknown word";
		}
	}
	return NULL;
}

/* What is wrong with the answer `r`, or NULL. */
static inline const char *tegrastats_check(int r, const struct tegrastats *s)
{
	const char *source;
	if (s->cpus > TEGRASTATS_CPUS || s->engines > TEGRASTATS_ENGINES ||
		s->temps > TEGRASTATS_TEMPS || s->rails > TEGRASTATS_RAILS ||
		s->gpu.freqs > TEGRASTATS_GPCS || s->gpu2.freqs > TEGRASTATS_GPCS) {
		return "limit";
	}
	if (strnlen(s->timestamp, sizeof(s->timestamp)) == sizeof(s->timestamp)) {
		return "timestamp";
	}
	if (!tegrastats_is_count(s->ram_used_mb) || !tegrastats_is_count(s->lfb_block_kb) ||
		!tegrastats_is_percent(s->emc.load_percent) ||
		!tegrastats_is_percent(s->gpu.load_percent) ||
		!tegrastats_is_percent(s->mts_bg_percent)) {
		return "number";
	}
	double load = tegrastats_cpu_average_percent(s);
	if (!isnan(load) && !(load >= 0 && load <= 100)) {
		return "mean load";
	}
	if (isnan(tegrastats_total_mw(s, &source)) != (source == NULL)) {
		return "total";
	}
	if (r == -EBADMSG) {
		bool told = s->ram_used_mb != TEGRASTATS_NONE || s->timestamp[0] ||
			    s->gpu.present || s->cpus || s->engines || s->temps || s->rails;
		return told ? "a value in what is no line" : NULL;
	}
	return r == 0 ? tegrastats_check_devices(s) : "result";
}
