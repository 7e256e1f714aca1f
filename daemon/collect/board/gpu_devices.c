/* Part of the gpu collector: the search, by capability. Tegra tells the load beside the device
 * (per mille), Rockchip in devfreq (text), amdgpu below drm; clocks come from devfreq in hertz.
 * Devfreq devices that are no GPU become engine/<name>/utilization and clock/<name>. */
#include "daemon/collect/board/gpu_devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

enum { DEVICES_MAX = 128 };

#define DEVFREQ "sys/class/devfreq"
#define DEBUG "sys/kernel/debug"

struct search {
	struct gpu_values *values;
	const struct root *root;
	bool load, clock; /* gpu/utilization, gpu/frequency are there */
};

/* What can be opened: a load that is EAGAIN now is there all the same. */
static bool exists(const struct root *root, const char *path)
{
	char text[64];
	ssize_t n = root_read(root, path, text, sizeof(text));
	return n != -ENOENT && n != -ENOTDIR && n != -EISDIR;
}

/* Whether there is such a file, and room. */
static bool add(struct search *search, const char *path, const char *metric, enum unit unit,
	const struct gpu_value *kind)
{
	struct gpu_values *values = search->values;
	if (values->count == GPU_VALUES_MAX || !exists(search->root, path)) {
		return false;
	}
	struct gpu_value *value = &values->value[values->count++];
	*value = *kind;
	snprintf(value->name, sizeof(value->name), "%s", metric);
	value->unit = unit;
	device_file_init(&value->file, true, "%s", path);
	return true;
}

static bool add_load(
	struct search *search, const char *path, const char *metric, enum gpu_scale scale)
{
	const struct gpu_value kind = {.scale = scale};
	return add(search, path, metric, UNIT_PERCENT, &kind);
}

static bool add_clock(struct search *search, const char *path, const char *metric, double factor)
{
	const struct gpu_value kind = {.factor = factor};
	return add(search, path, metric, UNIT_HERTZ, &kind);
}

/* Names of the GPU: Tegra's and Rockchip's address.gpu, Thor's gpu-gpc-0, Tegra's chips, Mali. */
static bool is_gpu(const char *device)
{
	static const char *const words[] = {
		"gpu-gpc", ".gpu", "gm20b", "gp10b", "gv11b", "ga10b", "gb10b", "mali", "v3d"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strstr(device, words[i])) {
			return true;
		}
	}
	return strcmp(device, "gpu") == 0;
}

/* "fdab0000.npu" is npu; Thor's bwmgr is the clock of the EMC. */
static const char *short_name(const char *device)
{
	const char *dot = strrchr(device, '.');
	if (strcmp(device, "bwmgr") == 0) {
		return "emc";
	}
	return dot && dot[1] ? dot + 1 : device;
}

static void add_gpu(struct search *search, const char *device)
{
	char path[DEVICE_FILE_PATH];
	snprintf(path, sizeof(path), DEVFREQ "/%s/device/load", device);
	if (!search->load) {
		search->load = add_load(search, path, "gpu/utilization", GPU_PERMILLE);
	}
	snprintf(path, sizeof(path), DEVFREQ "/%s/load", device);
	if (!search->load) {
		search->load = add_load(search, path, "gpu/utilization", GPU_PERCENT);
	}
	snprintf(path, sizeof(path), DEVFREQ "/%s/cur_freq", device);
	if (!search->clock) {
		search->clock = add_clock(search, path, "gpu/frequency", 1);
	}
}

static bool is_told(const struct search *search, const char *metric)
{
	for (size_t i = 0; i < search->values->count; i++) {
		if (strcmp(search->values->value[i].name, metric) == 0) {
			return true;
		}
	}
	return false;
}

static void add_engine(struct search *search, const char *device)
{
	char path[DEVICE_FILE_PATH], metric[PROTO_PATH_SIZE], name[PROTO_NAME_SIZE];
	const char *text = short_name(device);
	proto_name_clean(text, strlen(text), name);
	snprintf(metric, sizeof(metric), "clock/%s", name);
	if (is_told(search, metric)) {
		proto_name_clean(device, strlen(device), name);
	}
	snprintf(metric, sizeof(metric), "engine/%s/utilization", name);
	snprintf(path, sizeof(path), DEVFREQ "/%s/load", device);
	bool load = add_load(search, path, metric, GPU_PERCENT);
	snprintf(path, sizeof(path), DEVFREQ "/%s/device/load", device);
	if (!load) {
		(void)add_load(search, path, metric, GPU_PERMILLE);
	}
	snprintf(metric, sizeof(metric), "clock/%s", name);
	snprintf(path, sizeof(path), DEVFREQ "/%s/cur_freq", device);
	(void)add_clock(search, path, metric, 1);
}

static int add_devfreq(struct search *search)
{
	struct root_name *names = mem_calloc(DEVICES_MAX, sizeof(*names));
	if (!names) {
		return -ENOMEM;
	}
	int count = root_list(search->root, DEVFREQ, names, DEVICES_MAX);
	for (int i = 0; i < count; i++) {
		if (is_gpu(names[i].text)) {
			add_gpu(search, names[i].text);
		} else {
			add_engine(search, names[i].text);
		}
	}
	free(names);
	return 0;
}

/* PCs: the first card that tells. */
static void add_drm(struct search *search)
{
	for (int i = 0; i < 4; i++) {
		char path[DEVICE_FILE_PATH];
		snprintf(path, sizeof(path), "sys/class/drm/card%d/device/gpu_busy_percent", i);
		if (!search->load) {
			search->load = add_load(search, path, "gpu/utilization", GPU_PERCENT);
		}
		snprintf(path, sizeof(path), "sys/class/drm/card%d/gt_act_freq_mhz", i);
		if (!search->clock) {
			search->clock = add_clock(search, path, "gpu/frequency", 1e6);
		}
	}
}

/* Memory controller of Jetsons: debugfs, so only for root. */
static void add_emc(struct search *search)
{
	static const char *const clocks[] = {DEBUG "/bpmp/debug/clk/emc/rate",
		DEBUG "/clk/override.emc/clk_rate", DEBUG "/clk/emc/clk_rate"};
	static const char *const activity[] = {DEBUG "/cactmon/mc_all",
		DEBUG "/bpmp/debug/actmon/mc_all_avg_activity",
		"sys/kernel/actmon_avg_activity/mc_all"};
	const struct gpu_value clock = {.factor = 1, .meek = true};
	const struct gpu_value share = {.activity = true};
	bool told = is_told(search, "clock/emc");
	char text[64];
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]) && !told; i++) {
		told = root_read(search->root, clocks[i], text, sizeof(text)) > 0 &&
		       add(search, clocks[i], "clock/emc", UNIT_HERTZ, &clock);
	}
	told = false;
	for (size_t i = 0; i < sizeof(activity) / sizeof(activity[0]) && !told; i++) {
		told = root_read(search->root, activity[i], text, sizeof(text)) > 0 &&
		       add(search, activity[i], "emc/utilization", UNIT_PERCENT, &share);
	}
}

int gpu_devices_probe(struct gpu_values *values, const struct root *root)
{
	static const char *const tegra[] = {
		"sys/devices/gpu.0/load", "sys/devices/platform/gpu.0/load"};
	struct search search = {.values = values, .root = root};
	for (size_t i = 0; i < sizeof(tegra) / sizeof(tegra[0]) && !search.load; i++) {
		search.load = add_load(&search, tegra[i], "gpu/utilization", GPU_PERMILLE);
	}
	int r = add_devfreq(&search);
	if (r < 0) {
		return r;
	}
	add_drm(&search);
	add_emc(&search);
	return (int)values->count;
}

/* A share of an unknown clock is not known either. */
static bool is_wanted(const struct gpu_value *value, const struct naming *naming)
{
	const struct metric *clock = metrics_find(naming->metrics, "clock/emc");
	if (value->activity) {
		return clock != NULL;
	}
	return !value->meek || !clock || clock->source == naming->source;
}

int gpu_devices_name(struct gpu_values *values, struct naming *naming)
{
	size_t count = values->count;
	values->count = 0;
	for (size_t i = 0; i < count; i++) {
		struct gpu_value *value = &values->value[i];
		if (!is_wanted(value, naming)) {
			continue;
		}
		int r = naming_add_exact(naming, value->name, value->unit, &value->metric);
		if (r == -ENOMEM) {
			return r;
		}
		if (r == 0) {
			values->value[values->count++] = *value;
		}
	}
	return 0;
}
