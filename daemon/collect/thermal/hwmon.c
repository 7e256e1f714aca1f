/* Temperatures that only a chip's driver tells: sys/class/hwmon/hwmonN/tempM_input in m°C as
 * temperature/<chip>, <chip>_<M> or <chip>_<label> (Thor's tmp451, k10temp, NVMe). What a thermal
 * zone tells already is left out. On a machine without zones the hottest of them is
 * temperature/max, without disks, memory modules, radios and batteries. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/naming.h"
#include "daemon/util/sysops.h"

enum { TEMPS_MAX = 48, INPUTS_MAX = 16, FOLDERS_MAX = 256, FILES_MAX = 512, TEXT_SIZE = 64 };

#define FOLDER "sys/class/hwmon"
#define ZONES "sys/class/thermal"

struct temp {
	struct device_file file;
	char name[2 * TEXT_SIZE];
	bool counts; /* in temperature/max */
	int result;  /* of the last read, and what it gave */
	long long millidegrees;
	struct metric *metric;
};

struct hwmon_state {
	size_t count;
	struct temp temp[TEMPS_MAX];
};

/* What one probe passes around. */
struct search {
	struct hwmon_state *hwmon;
	const struct root *root;
	size_t zones;
	char zone[FOLDERS_MAX][TEXT_SIZE]; /* the types */
	struct root_name folder[FOLDERS_MAX];
	struct root_name file[FILES_MAX]; /* of the present chip */
	int files;
};

static const char *const no_heat_of_the_board[] = {
	"nvme*", "drivetemp*", "jc42*", "spd5118*", "*wifi*", "*phy*", "BAT*"};

static bool read_text(const struct root *root, const char *path, char text[TEXT_SIZE])
{
	if (root_read(root, path, text, TEXT_SIZE) <= 0) {
		return false;
	}
	text[strcspn(text, "\r\n")] = '\0';
	return text[0] != '\0';
}

/* Zones and hwmon write the same name with - and with _. */
static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_'))) {
			return false;
		}
	}
	return *a == *b;
}

static void find_zones(struct search *search)
{
	char path[DEVICE_FILE_PATH];
	int count = root_list(search->root, ZONES, search->folder, FOLDERS_MAX);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), ZONES "/%s/type", search->folder[i].text);
		if (strncmp(search->folder[i].text, "thermal_zone", 12) == 0 &&
			read_text(search->root, path, search->zone[search->zones])) {
			search->zones++;
		}
	}
}

/* The kernel gives every zone an hwmon of its own, below the zone. */
static bool is_zone(const struct search *search, const char *folder, const char *chip)
{
	char path[128], real[512];
	snprintf(path, sizeof(path), "%s/.", folder);
	if (root_resolve(search->root, path, real, sizeof(real)) == 0 &&
		strstr(real, "devices/virtual/thermal/")) {
		return true;
	}
	for (size_t i = 0; i < search->zones; i++) {
		if (same_name(search->zone[i], chip)) {
			return true;
		}
	}
	return false;
}

static bool has(const struct search *search, const char *name)
{
	for (int i = 0; i < search->files; i++) {
		if (strcmp(search->file[i].text, name) == 0) {
			return true;
		}
	}
	return false;
}

static bool counts(const char *chip)
{
	for (size_t i = 0; i < sizeof(no_heat_of_the_board) / sizeof(no_heat_of_the_board[0]);
		i++) {
		if (fnmatch(no_heat_of_the_board[i], chip, 0) == 0) {
			return false;
		}
	}
	return true;
}

static void add_temp(struct search *search, const char *folder, const char *chip, int n)
{
	struct hwmon_state *hwmon = search->hwmon;
	char file[32], path[DEVICE_FILE_PATH], label[TEXT_SIZE];
	snprintf(file, sizeof(file), "temp%d_input", n);
	if (!has(search, file) || hwmon->count == TEMPS_MAX) {
		return;
	}
	struct temp *temp = &hwmon->temp[hwmon->count++];
	device_file_init(&temp->file, true, "%s/%s", folder, file);
	snprintf(path, sizeof(path), "%s/temp%d_label", folder, n);
	if (read_text(search->root, path, label)) {
		snprintf(temp->name, sizeof(temp->name), "%s_%s", chip, label);
	} else if (n == 1) {
		snprintf(temp->name, sizeof(temp->name), "%s", chip);
	} else {
		snprintf(temp->name, sizeof(temp->name), "%s_%d", chip, n);
	}
	temp->counts = counts(chip);
}

static void add_chip(struct search *search, const char *entry)
{
	char folder[96], path[DEVICE_FILE_PATH], chip[TEXT_SIZE];
	snprintf(folder, sizeof(folder), FOLDER "/%.63s", entry);
	snprintf(path, sizeof(path), "%s/name", folder);
	if (!read_text(search->root, path, chip)) {
		snprintf(chip, sizeof(chip), "%.63s", entry);
	}
	if (is_zone(search, folder, chip)) {
		return;
	}
	search->files = root_list(search->root, folder, search->file, FILES_MAX);
	for (int n = 1; n <= INPUTS_MAX; n++) {
		add_temp(search, folder, chip, n);
	}
}

static void hwmon_close(void *state)
{
	struct hwmon_state *hwmon = state;
	for (size_t i = 0; hwmon && i < hwmon->count; i++) {
		device_file_close(&hwmon->temp[i].file);
	}
	free(hwmon);
}

static int hwmon_probe(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	struct hwmon_state *hwmon = mem_zalloc(sizeof(*hwmon));
	struct search *search = mem_zalloc(sizeof(*search));
	if (!hwmon || !search) {
		free(search);
		free(hwmon);
		return -ENOMEM;
	}
	search->hwmon = hwmon;
	search->root = ctx->root;
	find_zones(search);
	int count = root_list(ctx->root, FOLDER, search->folder, FOLDERS_MAX);
	for (int i = 0; i < count; i++) {
		add_chip(search, search->folder[i].text);
	}
	free(search);
	if (hwmon->count == 0) {
		snprintf(reason, SOURCE_REASON_SIZE,
			"no temperature in /sys/class/hwmon that a thermal zone does not tell");
		hwmon_close(hwmon);
		return -ENOENT;
	}
	*state = hwmon;
	return 0;
}

/* NULL when thermal or nobody tells it; thermal takes it whenever it finds a zone. */
static struct metric *find_max(const struct hwmon_state *hwmon, struct naming *naming)
{
	struct metric *max = NULL;
	bool any = false;
	for (size_t i = 0; i < hwmon->count; i++) {
		any = any || hwmon->temp[i].counts;
	}
	if (any && naming_add_exact(naming, "temperature/max", UNIT_CELSIUS, &max) == 0) {
		max->yields = true;
	}
	return max;
}

static int hwmon_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	(void)reason;
	struct hwmon_state *hwmon = *state;
	struct naming naming;
	size_t count = hwmon->count;
	hwmon->count = 0;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	for (size_t i = 0; i < count; i++) {
		struct temp *temp = &hwmon->temp[i];
		int r = naming_add(&naming, "temperature", temp->name, strlen(temp->name),
			UNIT_CELSIUS, &temp->metric);
		if (r == 0) {
			hwmon->temp[hwmon->count++] = *temp;
		} else if (r != -ENOSPC) {
			return r;
		}
	}
	(void)find_max(hwmon, &naming);
	naming_retire_rest(&naming);
	return 0;
}

static int hwmon_fetch(const struct collector_context *ctx, void *state)
{
	struct hwmon_state *hwmon = state;
	for (size_t i = 0; i < hwmon->count; i++) {
		struct temp *temp = &hwmon->temp[i];
		temp->result = device_file_read_i64(&temp->file, ctx->root, &temp->millidegrees);
	}
	return 0;
}

static int hwmon_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	(void)now_ns;
	(void)reason;
	struct hwmon_state *hwmon = state;
	struct naming naming;
	double hottest = NAN;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	struct metric *max = find_max(hwmon, &naming);
	for (size_t i = 0; i < hwmon->count; i++) {
		const struct temp *temp = &hwmon->temp[i];
		double celsius = (double)temp->millidegrees / 1000;
		if (temp->result < 0) {
			metric_set_null(temp->metric, device_file_reason(temp->result));
		} else if (celsius <= -200) {
			metric_set_null(temp->metric, "offline");
		} else if (celsius > 1000) {
			metric_set_null(temp->metric, "out of range");
		} else {
			metric_set(temp->metric, celsius);
			hottest = temp->counts ? fmax(hottest, celsius) : hottest;
		}
	}
	if (max && isnan(hottest)) {
		metric_set_null(max, "no chip can be read");
	} else if (max) {
		metric_set(max, hottest);
	}
	return 0;
}

const struct collector_ops collector_hwmon = {
	.name = "hwmon",
	.interval_ns = UINT64_C(5000000000), /* an NVMe is asked over its queue */
	.probe = hwmon_probe,
	.open = hwmon_open,
	.fetch = hwmon_fetch,
	.sample = hwmon_sample,
	.close = hwmon_close,
};
