/* SPDX-License-Identifier: Apache-2.0 */
/* tegrastats.h: parses one line of NVIDIA's tegrastats (line.c), any release from TK1 to Thor. The
 * parser keeps the rest of the line when a word is unknown, never invents a value, and needs no
 * table of releases. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TEGRASTATS_CPUS = 128,
	TEGRASTATS_ENGINES = 48,
	TEGRASTATS_TEMPS = 48,
	TEGRASTATS_RAILS = 32,
	TEGRASTATS_GPCS = 8,
	TEGRASTATS_UNKNOWN = 16, /* words kept; more are only counted */
	TEGRASTATS_NAME = 32,	 /* with NUL; longer names are cut */
	TEGRASTATS_LINE = 65536, /* longer lines are cut there */
};

/* Numbers that the line does not hold are TEGRASTATS_NONE / NAN. */
#define TEGRASTATS_NONE INT64_MIN

struct tegrastats_cpu {
	bool online;
	int64_t load_percent, freq_mhz;
};

/* The memory controller, or a GPU with the clocks of its clusters. */
struct tegrastats_load {
	bool present;
	int64_t load_percent;
	int64_t freq_mhz[TEGRASTATS_GPCS]; /* the first of them */
	size_t freqs;
};

struct tegrastats_engine {
	char name[TEGRASTATS_NAME]; /* without _FREQ */
	bool on;
	int64_t load_percent, freq_mhz; /* of several (PVA) the highest */
};

struct tegrastats_temp {
	char name[TEGRASTATS_NAME];
	double celsius;	     /* NAN: offline (<= -200) */
	double peak_celsius; /* NAN: absent */
	double told_celsius; /* as printed, also -256: for showing, never a measurement */
};

struct tegrastats_rail {
	char name[TEGRASTATS_NAME]; /* the second of a name is NAME#2 */
	int64_t now_mw, average_mw, peak_mw;
};

struct tegrastats {
	char timestamp[20]; /* "MM-DD-YYYY HH:MM:SS" or "" */
	int64_t ram_used_mb, ram_total_mb;
	int64_t lfb_blocks, lfb_block_kb;
	int64_t swap_used_mb, swap_total_mb, swap_cached_mb;
	int64_t iram_used_kb, iram_total_kb, iram_lfb_kb;
	size_t cpus;
	struct tegrastats_cpu cpu[TEGRASTATS_CPUS];
	struct tegrastats_load emc, gpu, gpu2;
	bool has_mts;
	int64_t mts_fg_percent, mts_bg_percent;
	int64_t edp_limit_mhz;
	size_t engines;
	struct tegrastats_engine engine[TEGRASTATS_ENGINES];
	size_t temps;
	struct tegrastats_temp temp[TEGRASTATS_TEMPS];
	size_t rails;
	struct tegrastats_rail rail[TEGRASTATS_RAILS];
	size_t unknown; /* may exceed TEGRASTATS_UNKNOWN */
	char unknown_word[TEGRASTATS_UNKNOWN][TEGRASTATS_NAME];
};

/* Parses one line (no newline needed, any bytes survived). 0; -EBADMSG when nothing of tegrastats
 * is in it (a shell's error message, an empty line): *ret is then all absent with the words in
 * `unknown`. What a logger prepends is not counted; a percentage over 100 is absent; a second
 * line glued to the first is skipped. */
int tegrastats_parse(const char *line, size_t length, struct tegrastats *ret);

/* The fastest clock: one that is gated says 0. TEGRASTATS_NONE without any. */
int64_t tegrastats_fastest_mhz(const struct tegrastats_load *load);

/* Mean load of the cores that are on; NAN when none has one. */
double tegrastats_cpu_average_percent(const struct tegrastats *stats);

/* Total power and where it is from: VIN, else VDD_IN or POM_5V_IN, else "sum" over the rails
 * (without NC, not connected, and VDDQ_VDD2_1V8AO, which is inside others). NAN and NULL without
 * rails. *source is static. */
double tegrastats_total_mw(const struct tegrastats *stats, const char **source);
