/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c: reads load and clock of the GPU, of NPUs and other engines, and of the memory controller:
 * gpu/utilization, gpu/frequency, engine/<name>/utilization, clock/<name>, emc/utilization. The
 * files are found by capability: Tegra reports the load next to the device (per mille), Rockchip in
 * devfreq (text), amdgpu below drm; clocks come from devfreq in hertz. Devfreq devices that are
 * neither GPU nor memory controller are engines. What a driver does in a read of a gated GPU is not
 * known: a worker reads. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collect/lib/gauge.h"
#include "daemon/collect/lib/kernel_text.h"
#include "proto/text.h"

enum { GPU_VALUES_MAX = 64 };

#define DEVFREQ "sys/class/devfreq"
#define DEBUG "sys/kernel/debug"
#define HERTZ_MAX 1e12
#define NOTHING "no load or clock of a GPU in /sys/class/devfreq, /sys/devices, /sys/class/drm"

/* "630", "12@300000000Hz" (Rockchip, always percent), "N% …". Percent in *ret: 0; -ENODATA for an
 * empty text, -EBADMSG, -ERANGE beyond 100 %. divisor: of a number without a sign. */
static int parse_load(const char *text, double divisor, double *ret)
{
	const char *p = text + strspn(text, " \t\r\n");
	uint64_t value;
	if (*p == '\0') {
		return -ENODATA;
	}
	if (!kernel_u64(&p, &value)) {
		return -EBADMSG;
	}
	if (*p == '@' || *p == '%') {
		divisor = 1;
	} else if (p[strspn(p, " \t\r\n")] != '\0') {
		return -EBADMSG;
	}
	double percent = (double)value / divisor;
	if (percent > 100) {
		return -ERANGE;
	}
	*ret = percent;
	return 0;
}

/* Tegra's 0 to 1000, and amdgpu's 0 to 100. */
static int parse_permille(const char *text, double *ret)
{
	return parse_load(text, 10, ret);
}

static int parse_percent(const char *text, double *ret)
{
	return parse_load(text, 1, ret);
}

/* "NPU load:  Core0: 45%, Core1:  0%," (Rockchip's debugfs) is their mean. */
static int parse_cores(const char *text, double *ret)
{
	double sum = 0, cores = 0;
	uint64_t value;
	for (const char *p = text; (p = strchr(p, ':'));) {
		p++;
		if (kernel_u64(&p, &value)) {
			sum += (double)value;
			cores++;
		}
	}
	*ret = sum / cores;
	return cores > 0 ? 0 : -EBADMSG;
}

/* The clock of the memory controller is left to another source that exposes it. */
static bool is_our_clock(const struct naming *naming)
{
	const struct metric *clock = metrics_find(naming->metrics, "clock/emc");
	return !clock || clock->source == naming->source;
}

/* A share of an unknown clock is not known either. */
static bool is_clock_known(const struct naming *naming)
{
	return metrics_find(naming->metrics, "clock/emc") != NULL;
}

static const struct gauge_kind permille = {
	.unit = UNIT_PERCENT, .max = 100, .parse = parse_permille};
static const struct gauge_kind percent = {.unit = UNIT_PERCENT, .max = 100, .parse = parse_percent};
static const struct gauge_kind engine = {.unit = UNIT_PERCENT, .max = 100, .parse = parse_percent};
static const struct gauge_kind cores = {.unit = UNIT_PERCENT, .max = 100, .parse = parse_cores};
static const struct gauge_kind hertz = {.unit = UNIT_HERTZ, .max = HERTZ_MAX};
static const struct gauge_kind megahertz = {.unit = UNIT_HERTZ, .scale = 1e6, .max = HERTZ_MAX};
static const struct gauge_kind emc_clock = {
	.unit = UNIT_HERTZ, .max = HERTZ_MAX, .is_wanted = is_our_clock};
/* mc_all is the clock, in kHz, that the present traffic would fill. */
static const struct gauge_kind emc_traffic = {.unit = UNIT_PERCENT, .is_wanted = is_clock_known};

/* Names of the GPU: Tegra's and Rockchip's address.gpu, Thor's gpu-gpc-0, Tegra's chips (gm20b,
 * gp10b, gv11b, ga10b), Mali. */
static bool is_gpu(const char *device)
{
	return device_matches("gpu *gpu-gpc* *.gpu* *g?[12][01]b* *mali* *v3d*", device);
}

static bool has_metric(const struct gauges *values, const char *metric)
{
	for (size_t i = 0; i < values->count; i++) {
		if (strcmp(((struct gauge *)gauges_at(values, i))->name, metric) == 0) {
			return true;
		}
	}
	return false;
}

/* The first file that exists is the metric's. */
static void add_first(
	struct gauges *values, const struct gauge_kind *kind, const char *metric, const char *path)
{
	if (!has_metric(values, metric)) {
		(void)gauges_add_existing(values, kind, metric, "%s", path);
	}
}

static void add_devfreq(struct gauges *values, const char *path, const char *load,
	const char *clock, bool is_gpu_load)
{
	char file[2 * DEVICE_FILE_PATH];
	/* A GPU's own file first, an engine's that of devfreq. */
	for (int i = 0; i < 2; i++) {
		bool device = (i == 0) == is_gpu_load;
		snprintf(file, sizeof(file), "%s/%sload", path, device ? "device/" : "");
		add_first(values,
			device				    ? &permille
			: text_starts_with(load, "engine/") ? &engine
							    : &percent,
			load, file);
	}
	snprintf(file, sizeof(file), "%s/cur_freq", path);
	add_first(values, &hertz, clock, file);
}

/* "fdab0000.npu" is npu; Thor's bwmgr, Rockchip's dmc: the memory controller. */
static const char *short_name(const char *device)
{
	const char *dot = strrchr(device, '.');
	if (device_matches("bwmgr dmc *.dmc *.memory-controller", device)) {
		return "emc";
	}
	return dot && dot[1] ? dot + 1 : device;
}

static void add_device(void *ctx, const struct root *root, const char *path, const char *device)
{
	char load[PROTO_PATH_SIZE], clock[PROTO_PATH_SIZE], name[PROTO_NAME_SIZE];
	const char *text = short_name(device);
	(void)root;
	if (is_gpu(device)) {
		add_devfreq(ctx, path, "gpu/utilization", "gpu/frequency", true);
		return;
	}
	proto_name_clean(text, strlen(text), name);
	snprintf(clock, sizeof(clock), "clock/%s", name);
	if (has_metric(ctx, clock)) {
		proto_name_clean(device, strlen(device), name);
		snprintf(clock, sizeof(clock), "clock/%s", name);
	}
	snprintf(load, sizeof(load), "%s%s/utilization", strcmp(name, "emc") == 0 ? "" : "engine/",
		name);
	add_devfreq(ctx, path, load, clock, false);
}

/* PCs: load and clock are of one card, the first that has a load, else a clock. */
static void add_drm(struct gauges *values)
{
	size_t before = values->count;
	for (int i = 0; i < 8 && values->count == before; i++) {
		char path[DEVICE_FILE_PATH];
		snprintf(path, sizeof(path), "sys/class/drm/card%d/device/gpu_busy_percent", i % 4);
		add_first(values, &percent, "gpu/utilization", path);
		snprintf(path, sizeof(path), "sys/class/drm/card%d/gt_act_freq_mhz", i % 4);
		if (i >= 4 || values->count > before) {
			add_first(values, &megahertz, "gpu/frequency", path);
		}
	}
}

/* Memory controller of Jetsons: debugfs, so only for root. */
static void add_emc(struct gauges *values)
{
	static const struct {
		const struct gauge_kind *kind;
		const char *metric, *path;
	} files[] = {
		{&emc_clock, "clock/emc", DEBUG "/bpmp/debug/clk/emc/rate"},
		{&emc_clock, "clock/emc", DEBUG "/clk/override.emc/clk_rate"},
		{&emc_clock, "clock/emc", DEBUG "/clk/emc/clk_rate"},
		{&emc_traffic, "emc/utilization", DEBUG "/cactmon/mc_all"},
		{&emc_traffic, "emc/utilization", DEBUG "/bpmp/debug/actmon/mc_all_avg_activity"},
		{&emc_traffic, "emc/utilization", "sys/kernel/actmon_avg_activity/mc_all"},
	};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char text[64];
		if (root_read(values->root, files[i].path, text, sizeof(text)) > 0) {
			add_first(values, files[i].kind, files[i].metric, files[i].path);
		}
	}
}

static int gpu_probe(const struct collector_context *ctx, void *state)
{
	struct gauges *values = state;
	char text[64];
	gauges_init(values, ctx->root, sizeof(struct gauge), GPU_VALUES_MAX);
	add_first(values, &permille, "gpu/utilization", "sys/devices/gpu.0/load");
	add_first(values, &permille, "gpu/utilization", "sys/devices/platform/gpu.0/load");
	if (root_read(values->root, DEBUG "/rknpu/load", text, sizeof(text)) > 0) {
		add_first(values, &cores, "engine/npu/utilization", DEBUG "/rknpu/load");
	}
	int r = device_each(values->root, DEVFREQ, "", add_device, values);
	add_drm(values);
	add_emc(values);
	return gauges_found(ctx, values, r == -ENOMEM ? r : 0, NOTHING);
}

static int gpu_open(const struct collector_context *ctx, void *state)
{
	return gauges_found(ctx, state, gauges_open(ctx, state), NOTHING);
}

static void set_emc_share(const struct gauge *gauge, struct metrics *metrics)
{
	const struct metric *clock = metrics_find(metrics, "clock/emc");
	const char *why = gauge->result < 0		  ? device_file_reason(gauge->result)
			  : !clock || !(clock->value > 0) ? "no clock to relate to"
			  : gauge->number < 0		  ? "out of range"
							  : NULL;
	metric_set_or_null(
		gauge->metric, why ? 0 : fmin(100, gauge->number * 1e5 / clock->value), why);
}

/* "100@…Hz" is what Rockchip's drivers of NPU and codecs say whatever these do: it counts from the
 * first other load on. */
static void set_engine(struct gauge *gauge)
{
	gauge->counts = gauge->counts || (gauge->result == 0 && gauge->number < 100);
	if (gauge->result == 0 && !gauge->counts) {
		metric_set_null(
			gauge->metric, "not measured by its driver, or at 100 % since the start");
	} else {
		(void)gauge_set(gauge);
	}
}

static int gpu_sample(const struct collector_context *ctx, void *state)
{
	const struct gauges *values = state;
	for (size_t i = 0; i < values->count; i++) {
		struct gauge *gauge = gauges_at(values, i);
		if (gauge->kind == &emc_traffic) {
			set_emc_share(gauge, ctx->core->metrics);
		} else if (gauge->kind == &engine) {
			set_engine(gauge);
		} else {
			(void)gauge_set(gauge);
		}
	}
	return 0;
}

const struct collector_ops collector_gpu = {
	.name = "gpu",
	.state_size = sizeof(struct gauges),
	.folder = DEVFREQ,
	.probe = gpu_probe,
	.open = gpu_open,
	.fetch = gauges_fetch,
	.sample = gpu_sample,
	.close = gauges_close,
};
