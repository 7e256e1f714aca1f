/* Speed of fans, fan/<name> in rpm: fanN_input of any hwmon (Pi 5, PCs), rpm of Jetson's tachometer
 * (hwmon pwm_tach), rpm_measured of JetPack 4 (sys/devices/pwm-fan). No own keys. */
#include "daemon/collect/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/device_file.h"
#include "daemon/collect/naming.h"
#include "daemon/util/seam.h"

enum { FANS_MAX = 32, HWMONS_MAX = 256, FAN_INPUTS_MAX = 8, LABEL_SIZE = 64, RPM_MAX = 200000 };

#define FOLDER "sys/class/hwmon"
#define JP4_FAN "sys/devices/pwm-fan"

struct fan {
	struct device_file file;
	int result; /* of the last read, and what it gave */
	long long rpm;
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

static int add_fan(struct fan_state *fans, struct naming *naming, const char *name,
	const char *folder, const char *file)
{
	if (fans->count == FANS_MAX) {
		return 0;
	}
	struct fan *fan = &fans->fan[fans->count];
	int r = naming_add(naming, "fan", name, strlen(name), UNIT_RPM, &fan->metric);
	if (r < 0) {
		return r == -ENOSPC ? 0 : r;
	}
	device_file_init(&fan->file, true, "%s/%s", folder, file);
	fans->count++;
	return 0;
}

static int add_hwmon(
	struct fan_state *fans, const struct root *root, struct naming *naming, const char *hwmon)
{
	char folder[96], path[DEVICE_FILE_PATH], chip[LABEL_SIZE], label[LABEL_SIZE], file[32];
	snprintf(folder, sizeof(folder), FOLDER "/%.63s", hwmon);
	snprintf(path, sizeof(path), "%s/name", folder);
	if (!read_text(root, path, chip)) {
		snprintf(chip, sizeof(chip), "%.63s", hwmon);
	}
	snprintf(path, sizeof(path), "%s/rpm", folder);
	int r = exists(root, path) ? add_fan(fans, naming, chip, folder, "rpm") : 0;
	for (int n = 1; n <= FAN_INPUTS_MAX && r == 0; n++) {
		snprintf(file, sizeof(file), "fan%d_input", n);
		snprintf(path, sizeof(path), "%s/%s", folder, file);
		if (!exists(root, path)) {
			continue;
		}
		snprintf(path, sizeof(path), "%s/fan%d_label", folder, n);
		bool labelled = read_text(root, path, label);
		r = add_fan(fans, naming, labelled ? label : chip, folder, file);
	}
	return r;
}

static void fan_close(void *state)
{
	struct fan_state *fans = state;
	for (size_t i = 0; fans && i < fans->count; i++) {
		device_file_close(&fans->fan[i].file);
	}
	free(fans);
}

static int fan_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	struct fan_state *fans = mem_zalloc(sizeof(*fans));
	struct root_name *names = mem_calloc(HWMONS_MAX, sizeof(*names));
	struct naming naming;
	int r = -ENOMEM;
	if (!fans || !names) {
		goto error;
	}
	naming_init(&naming, ctx->core->metrics, ctx->source);
	int count = root_list(ctx->root, FOLDER, names, HWMONS_MAX);
	r = 0;
	for (int i = 0; i < count && r == 0; i++) {
		r = add_hwmon(fans, ctx->root, &naming, names[i].text);
	}
	if (r == 0 && exists(ctx->root, JP4_FAN "/rpm_measured")) {
		r = add_fan(fans, &naming, "pwm-fan", JP4_FAN, "rpm_measured");
	}
	if (r == 0 && fans->count == 0) {
		snprintf(reason, SOURCE_REASON_SIZE,
			"no fan with a tachometer in /sys/class/hwmon or /sys/devices/pwm-fan");
		r = -ENOENT;
	}
	if (r < 0) {
		goto error;
	}
	naming_retire_rest(&naming);
	free(names);
	*state = fans;
	return 0;
error:
	free(names);
	fan_close(fans);
	return r;
}

static int fan_fetch(const struct collector_context *ctx, void *state)
{
	struct fan_state *fans = state;
	for (size_t i = 0; i < fans->count; i++) {
		struct fan *fan = &fans->fan[i];
		fan->result = device_file_read_i64(&fan->file, ctx->root, &fan->rpm);
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
		} else if (fan->rpm < 0 || fan->rpm > RPM_MAX) {
			metric_set_null(fan->metric, "out of range");
		} else {
			metric_set(fan->metric, (double)fan->rpm);
		}
	}
	return 0;
}

const struct collector_ops collector_fan = {
	.name = "fan",
	.open = fan_open,
	.fetch = fan_fetch,
	.sample = fan_sample,
	.close = fan_close,
};
