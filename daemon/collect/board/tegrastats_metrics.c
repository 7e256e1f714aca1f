/* SPDX-License-Identifier: Apache-2.0 */
/* tegrastats_metrics.c: gives the fields of one line names, units and reasons. tegrastats cuts the
 * suffixes of thermal zone types (CPU-therm is CPU@): a zone under either name is the better
 * source. */
#include "daemon/collect/board/tegrastats_metrics.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What one line can hold: 128 cores, 48 engines, 48 temperatures and 32 rails, most of them twice.
 * The widest board (Thor) has some 120. */
enum { METRICS_OF_LINES = 640 };

#define MEGA 1e6
#define KIB 1024.0
#define MIB (1024.0 * 1024.0)

struct fill {
	struct metrics *metrics;
	struct source *source;
};

/* The source's own metric of that name; NULL when another source exposes it or there is no
 * capacity. */
__attribute__((format(printf, 3, 4))) static struct metric *own(
	const struct fill *fill, enum unit unit, const char *format, ...)
{
	char name[PROTO_PATH_SIZE];
	struct metric *metric = NULL;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	if (metrics_of(fill->metrics, fill->source, METRICS_OF_LINES - 1) &&
		!metrics_find(fill->metrics, name)) {
		fill->source->tokens_unknown++;
		return NULL;
	}
	int r = metrics_add(fill->metrics, fill->source, name, unit, &metric);
	return r < 0 ? NULL : metric;
}

static void set(struct metric *metric, double value)
{
	enum unit unit = metric ? metric->unit : UNIT_NONE;
	bool wrong = (unit == UNIT_PERCENT && (value < 0 || value > 100)) ||
		     (unit == UNIT_CELSIUS && value > 1000) || (unit == UNIT_HERTZ && value < 0);
	metric_set_or_null(metric, value, wrong ? "out of range" : NULL);
}

static void set_null(struct metric *metric, const char *reason)
{
	metric_set_or_null(metric, 0, reason);
}

/* A number that the line may not hold: no metric is made of what was never reported. */
static void set_present(
	const struct fill *fill, const char *name, enum unit unit, int64_t value, double factor)
{
	if (value != TEGRASTATS_NONE) {
		set(own(fill, unit, "%s", name), (double)value * factor);
	}
}

/* What tegrastats itself makes of all its lines: slow, so history keeps it coarsely. */
static void set_summary(
	const struct fill *fill, const char *prefix, const char *name, enum unit unit, double value)
{
	struct metric *metric = own(fill, unit, "%s/%s", prefix, name);
	if (metric) {
		metric->full_rate = false;
		metric->origin = "since tegrastats' start";
		set(metric, value);
	}
}

static void clean(const char *name, char ret[PROTO_NAME_SIZE])
{
	char text[TEGRASTATS_NAME];
	snprintf(text, sizeof(text), "%s", name);
	char *number = strrchr(text, '#'); /* the second NC is NC#2; ours are numbered with dots */
	if (number) {
		*number = '.';
	}
	proto_name_clean(text, strlen(text), ret);
}

static void set_memory(const struct fill *fill, const struct tegrastats *stats)
{
	set_present(fill, "memory/total", UNIT_BYTES, stats->ram_total_mb, MIB);
	set_present(fill, "memory/used", UNIT_BYTES, stats->ram_used_mb, MIB);
	set_present(fill, "swap/total", UNIT_BYTES, stats->swap_total_mb, MIB);
	set_present(fill, "swap/used", UNIT_BYTES, stats->swap_used_mb, MIB);
	set_present(fill, "swap/cached", UNIT_BYTES, stats->swap_cached_mb, MIB);
	set_present(fill, "tegra/iram", UNIT_BYTES, stats->iram_used_kb, KIB);
	if (stats->lfb_blocks != TEGRASTATS_NONE && stats->lfb_block_kb != TEGRASTATS_NONE) {
		set(own(fill, UNIT_BYTES, "tegra/lfb"),
			(double)stats->lfb_blocks * (double)stats->lfb_block_kb * KIB);
		set(own(fill, UNIT_BYTES, "tegra/lfb_block"), (double)stats->lfb_block_kb * KIB);
	}
}

static void set_cpus(const struct fill *fill, const struct tegrastats *stats, bool loads)
{
	static const char *const too_soon = "needs two samples";
	double average = tegrastats_cpu_average_percent(stats);
	if (stats->cpus > 0) {
		metric_set_or_null(own(fill, UNIT_PERCENT, "cpu/utilization"), average,
			!loads		 ? too_soon
			: isnan(average) ? "not reported"
					 : NULL);
	}
	for (size_t i = 0; i < stats->cpus && i < TEGRASTATS_CPUS; i++) {
		const struct tegrastats_cpu *cpu = &stats->cpu[i];
		struct metric *load = own(fill, UNIT_PERCENT, "cpu/%zu/utilization", i);
		if (!cpu->online) {
			set_null(load, "offline");
			set_null(own(fill, UNIT_HERTZ, "cpu/%zu/frequency", i), "offline");
			continue;
		}
		if (!loads || cpu->load_percent == TEGRASTATS_NONE) {
			set_null(load, loads ? "not reported" : too_soon);
		} else {
			set(load, (double)cpu->load_percent);
		}
		if (cpu->freq_mhz != TEGRASTATS_NONE) {
			set(own(fill, UNIT_HERTZ, "cpu/%zu/frequency", i),
				(double)cpu->freq_mhz * MEGA);
		}
	}
}

static void set_load(const struct fill *fill, const struct tegrastats_load *load, const char *name,
	const char *clock)
{
	if (load->present) {
		set_present(fill, name, UNIT_PERCENT, load->load_percent, 1);
		set_present(fill, clock, UNIT_HERTZ, tegrastats_fastest_mhz(load), MEGA);
	}
}

static void set_gpu_and_memory_bus(const struct fill *fill, const struct tegrastats *stats)
{
	set_load(fill, &stats->gpu, "gpu/utilization", "gpu/frequency");
	set_load(fill, &stats->gpu2, "engine/GR3D2/utilization", "clock/GR3D2");
	/* Ordinary users get a constant "EMC_FREQ 0%" without a clock. */
	if (stats->emc.present && stats->emc.load_percent == 0 && stats->emc.freqs == 0) {
		set_null(own(fill, UNIT_PERCENT, "emc/utilization"), "reported only to root");
	} else {
		set_load(fill, &stats->emc, "emc/utilization", "clock/emc");
	}
	if (stats->has_mts) {
		set_present(fill, "tegra/mts_fg", UNIT_PERCENT, stats->mts_fg_percent, 1);
		set_present(fill, "tegra/mts_bg", UNIT_PERCENT, stats->mts_bg_percent, 1);
	}
	set_present(fill, "tegra/edp_limit", UNIT_HERTZ, stats->edp_limit_mhz, MEGA);
}

static void set_engines(const struct fill *fill, const struct tegrastats *stats)
{
	for (size_t i = 0; i < stats->engines && i < TEGRASTATS_ENGINES; i++) {
		const struct tegrastats_engine *engine = &stats->engine[i];
		char name[PROTO_NAME_SIZE], path[PROTO_PATH_SIZE];
		clean(engine->name, name);
		snprintf(path, sizeof(path), "clock/%s", name);
		struct metric *clock = metrics_find(fill->metrics, path);
		if (!engine->on) {
			set_null(own(fill, UNIT_PERCENT, "engine/%s/utilization", name), "off");
			set_null(clock && clock->source == fill->source ? clock : NULL, "off");
			continue;
		}
		set_present(fill, path, UNIT_HERTZ, engine->freq_mhz, MEGA);
		snprintf(path, sizeof(path), "engine/%s/utilization", name);
		set_present(fill, path, UNIT_PERCENT, engine->load_percent, 1);
	}
}

/* Whether a thermal zone reports this temperature; our metric from before it did is retired. */
static bool zone_has(const struct fill *fill, const char *name)
{
	static const char *const suffixes[] = {"-therm", "-thermal", "_tegra", "-fan-est"};
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char path[PROTO_PATH_SIZE];
		snprintf(path, sizeof(path), "temperature/%s%s", name, suffixes[i]);
		const struct metric *zone = metrics_find(fill->metrics, path);
		if (!zone || zone->source == fill->source) {
			continue;
		}
		snprintf(path, sizeof(path), "temperature/%s", name);
		struct metric *ours = metrics_find(fill->metrics, path);
		if (ours && ours->source == fill->source) {
			metrics_retire(fill->metrics, ours);
		}
		return true;
	}
	return false;
}

static void set_temperatures(const struct fill *fill, const struct tegrastats *stats)
{
	double max = NAN;
	for (size_t i = 0; i < stats->temps && i < TEGRASTATS_TEMPS; i++) {
		const struct tegrastats_temp *temp = &stats->temp[i];
		char name[PROTO_NAME_SIZE];
		clean(temp->name, name);
		/* PMIC is a constant (50 or 100), never a measurement. */
		bool real = temp->celsius <= 1000 && fnmatch("PMIC*", name, FNM_CASEFOLD) != 0;
		if (real && !(temp->celsius <= max)) {
			max = temp->celsius;
		}
		if (!isnan(temp->peak_celsius)) {
			set_summary(
				fill, "temperature_peak", name, UNIT_CELSIUS, temp->peak_celsius);
		}
		if (zone_has(fill, name)) {
			continue;
		}
		struct metric *metric = own(fill, UNIT_CELSIUS, "temperature/%s", name);
		set(metric, temp->celsius);
		if (metric && isnan(temp->celsius)) {
			metric_set_null(metric, "offline");
		}
	}
	if (!isnan(max)) {
		set(own(fill, UNIT_CELSIUS, "temperature/max"), max);
	}
}

/* As the source power names them. */
static const char *origin_of(const char *rail)
{
	static const char *const origins[][2] = {{"VIN", "rail VIN"}, {"VDD_IN", "rail VDD_IN"},
		{"POM_5V_IN", "rail POM_5V_IN"}, {"sum", "sum of the rails"}};
	for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++) {
		if (strcmp(origins[i][0], rail) == 0) {
			return origins[i][1];
		}
	}
	return NULL;
}

static void set_rails(const struct fill *fill, const struct tegrastats *stats)
{
	const char *from;
	double total = tegrastats_total_mw(stats, &from);
	struct metric *sum = isnan(total) ? NULL : own(fill, UNIT_MILLIWATTS, "power/total");
	if (sum) {
		sum->origin = origin_of(from);
		set(sum, total);
	}
	for (size_t i = 0; i < stats->rails && i < TEGRASTATS_RAILS; i++) {
		char name[PROTO_NAME_SIZE], path[PROTO_PATH_SIZE];
		const struct tegrastats_rail *rail = &stats->rail[i];
		clean(rail->name, name);
		snprintf(path, sizeof(path), "power/%s", name);
		set_present(fill, path, UNIT_MILLIWATTS, rail->now_mw, 1);
		if (rail->average_mw != TEGRASTATS_NONE) {
			set_summary(fill, "power_average", name, UNIT_MILLIWATTS,
				(double)rail->average_mw);
		}
		if (rail->peak_mw != TEGRASTATS_NONE) {
			set_summary(
				fill, "power_peak", name, UNIT_MILLIWATTS, (double)rail->peak_mw);
		}
	}
}

/* A program that makes up names must not use up the slots of other sources' metrics: when its own
 * are full, names that the previous line did not hold are retired. */
static void retire_absent(const struct fill *fill)
{
	if (!metrics_of(fill->metrics, fill->source, METRICS_OF_LINES - 1)) {
		return;
	}
	for (size_t i = METRICS_OF_LINES; i > 0; i--) {
		struct metric *metric = metrics_of(fill->metrics, fill->source, i - 1);
		if (metric && metric->reason && strcmp(metric->reason, "not reported") == 0) {
			metrics_retire(fill->metrics, metric);
		}
	}
}

void tegrastats_metrics_set(
	struct metrics *metrics, struct source *source, const struct tegrastats *stats, bool loads)
{
	const struct fill fill = {metrics, source};
	retire_absent(&fill);
	set_memory(&fill, stats);
	set_cpus(&fill, stats, loads);
	set_gpu_and_memory_bus(&fill, stats);
	set_engines(&fill, stats);
	set_temperatures(&fill, stats);
	set_rails(&fill, stats);
}
