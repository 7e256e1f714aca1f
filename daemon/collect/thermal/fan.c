/* Speed of fans, fan/<name> in rpm: fanN_input of any hwmon (Pi 5, PCs), rpm of Jetson's tachometer
 * (hwmon pwm_tach), rpm_measured of JetPack 4 (sys/devices/pwm-fan). What they are driven with,
 * fan_duty/<name> in percent: pwmN of any hwmon, cur_pwm of JetPack 4 (0 to 255); many fans tell
 * nothing else. A fan that is a cooling device has its state in cooling/<type>. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/naming.h"
#include "daemon/util/sysops.h"

enum {
	FANS_MAX = 48,
	HWMONS_MAX = 256,
	FAN_INPUTS_MAX = 8,
	LABEL_SIZE = 64,
	RPM_MAX = 200000,
	PWM_MAX = 255,
};

#define FOLDER "sys/class/hwmon"
#define JP4_FAN "sys/devices/pwm-fan"

struct fan {
	struct device_file file;
	char name[LABEL_SIZE];
	int result; /* of the last read, and what it gave */
	long long value;
	bool duty; /* not rpm */
	struct metric *metric;
};

struct fan_state {
	size_t count;
	struct fan fan[FANS_MAX];
};

static bool exists(const struct root *root, const char *path)
{
	char text[64];
	ssize_t n = root_read(root, path, text, sizeof(text));
	return n != -ENOENT && n != -ENOTDIR;
}

static bool read_text(const struct root *root, const char *path, char text[LABEL_SIZE])
{
	if (root_read(root, path, text, LABEL_SIZE) <= 0) {
		return false;
	}
	text[strcspn(text, "\r\n")] = '\0';
	return text[0] != '\0';
}

static void add_fan(
	struct fan_state *fans, bool duty, const char *name, const char *folder, const char *file)
{
	if (fans->count == FANS_MAX) {
		return;
	}
	struct fan *fan = &fans->fan[fans->count++];
	snprintf(fan->name, sizeof(fan->name), "%s", name);
	fan->duty = duty;
	device_file_init(&fan->file, true, "%s/%s", folder, file);
}

/* fanN_input and pwmN of one N are the same fan on most chips: one label for both. */
static void add_channel(struct fan_state *fans, const struct root *root, const char *folder,
	const char *chip, int n)
{
	char path[DEVICE_FILE_PATH], label[LABEL_SIZE], file[32];
	snprintf(path, sizeof(path), "%s/fan%d_label", folder, n);
	const char *name = read_text(root, path, label) ? label : chip;
	for (int duty = 0; duty < 2; duty++) {
		snprintf(file, sizeof(file), "%s%d%s", duty ? "pwm" : "fan", n,
			duty ? "" : "_input");
		snprintf(path, sizeof(path), "%s/%s", folder, file);
		if (exists(root, path)) {
			add_fan(fans, duty, name, folder, file);
		}
	}
}

static void add_hwmon(struct fan_state *fans, const struct root *root, const char *hwmon)
{
	char folder[96], path[DEVICE_FILE_PATH], chip[LABEL_SIZE];
	snprintf(folder, sizeof(folder), FOLDER "/%.63s", hwmon);
	snprintf(path, sizeof(path), "%s/name", folder);
	if (!read_text(root, path, chip)) {
		snprintf(chip, sizeof(chip), "%.63s", hwmon);
	}
	snprintf(path, sizeof(path), "%s/rpm", folder);
	if (exists(root, path)) {
		add_fan(fans, false, chip, folder, "rpm");
	}
	for (int n = 1; n <= FAN_INPUTS_MAX; n++) {
		add_channel(fans, root, folder, chip, n);
	}
}

static void fan_close(void *state)
{
	struct fan_state *fans = state;
	for (size_t i = 0; fans && i < fans->count; i++) {
		device_file_close(&fans->fan[i].file);
	}
	free(fans);
}

static int fan_probe(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	struct fan_state *fans = mem_zalloc(sizeof(*fans));
	struct root_name *names = mem_calloc(HWMONS_MAX, sizeof(*names));
	int r = -ENOMEM;
	if (!fans || !names) {
		goto error;
	}
	int count = root_list(ctx->root, FOLDER, names, HWMONS_MAX);
	for (int i = 0; i < count; i++) {
		add_hwmon(fans, ctx->root, names[i].text);
	}
	if (exists(ctx->root, JP4_FAN "/rpm_measured")) {
		add_fan(fans, false, "pwm-fan", JP4_FAN, "rpm_measured");
	}
	if (exists(ctx->root, JP4_FAN "/cur_pwm")) {
		add_fan(fans, true, "pwm-fan", JP4_FAN, "cur_pwm");
	}
	if (fans->count == 0) {
		snprintf(reason, SOURCE_REASON_SIZE,
			"no fan in /sys/class/hwmon or /sys/devices/pwm-fan; one that is only a "
			"cooling device is told by thermal");
		r = -ENOENT;
		goto error;
	}
	free(names);
	*state = fans;
	return 0;
error:
	free(names);
	fan_close(fans);
	return r;
}

static int fan_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	(void)reason;
	struct fan_state *fans = *state;
	struct naming naming;
	size_t count = fans->count;
	fans->count = 0;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	for (size_t i = 0; i < count; i++) {
		struct fan *fan = &fans->fan[i];
		int r = naming_add(&naming, fan->duty ? "fan_duty" : "fan", fan->name,
			strlen(fan->name), fan->duty ? UNIT_PERCENT : UNIT_RPM, &fan->metric);
		if (r == 0) {
			fans->fan[fans->count++] = *fan;
		} else if (r != -ENOSPC) {
			return r;
		}
	}
	naming_retire_rest(&naming);
	return 0;
}

static int fan_fetch(const struct collector_context *ctx, void *state)
{
	struct fan_state *fans = state;
	for (size_t i = 0; i < fans->count; i++) {
		struct fan *fan = &fans->fan[i];
		fan->result = device_file_read_i64(&fan->file, ctx->root, &fan->value);
	}
	return 0;
}

static int fan_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	(void)ctx;
	(void)now_ns;
	(void)reason;
	struct fan_state *fans = state;
	for (size_t i = 0; i < fans->count; i++) {
		const struct fan *fan = &fans->fan[i];
		if (fan->result < 0) {
			metric_set_null(fan->metric, device_file_reason(fan->result));
		} else if (fan->value < 0 || fan->value > (fan->duty ? PWM_MAX : RPM_MAX)) {
			metric_set_null(fan->metric, "out of range");
		} else {
			double value = (double)fan->value;
			metric_set(fan->metric, fan->duty ? value * 100 / PWM_MAX : value);
		}
	}
	return 0;
}

const struct collector_ops collector_fan = {
	.name = "fan",
	.probe = fan_probe,
	.open = fan_open,
	.fetch = fan_fetch,
	.sample = fan_sample,
	.close = fan_close,
};
