/* SPDX-License-Identifier: Apache-2.0 */
/* fan.c: reads the speed of fans, fan/<name> in rpm: fanN_input of any hwmon (Pi 5, PCs), rpm of
 * Jetson's tachometer (hwmon pwm_tach), rpm_measured of JetPack 4 (sys/devices/pwm-fan). What they
 * are driven with is fan_duty/<name> in percent: pwmN of any hwmon, cur_pwm of JetPack 4 (0 to
 * 255); many fans report nothing else. A fan that is a cooling device has its state in
 * cooling/<type>. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/collect/lib/gauge.h"

enum { FANS_MAX = 48, INPUTS_MAX = 8, LABEL_SIZE = 64 };

#define JP4_FAN "sys/devices/pwm-fan"

static const struct gauge_kind rpm = {.prefix = "fan", .unit = UNIT_RPM, .max = 200000};
static const struct gauge_kind duty = {
	.prefix = "fan_duty", .unit = UNIT_PERCENT, .scale = 100, .divisor = 255, .max = 100};

static void add_hwmon(void *ctx, const struct root *root, const char *path, const char *name)
{
	static const char *const files[] = {"fan", "pwm", "rpm", NULL};
	char chip[LABEL_SIZE], label[LABEL_SIZE];
	if (!gauges_may_have(ctx, root, path, files)) {
		return;
	}
	if (!device_text(root, chip, sizeof(chip), "%s/name", path)) {
		snprintf(chip, sizeof(chip), "%s", name);
	}
	(void)gauges_add_existing(ctx, &rpm, chip, "%s/rpm", path);
	for (int n = 1; n <= INPUTS_MAX; n++) {
		/* fanN_input and pwmN of one N are the same fan on most chips: one label. */
		bool named = device_text(root, label, sizeof(label), "%s/fan%d_label", path, n);
		const char *fan = named ? label : chip;
		(void)gauges_add_existing(ctx, &rpm, fan, "%s/fan%d_input", path, n);
		(void)gauges_add_existing(ctx, &duty, fan, "%s/pwm%d", path, n);
	}
}

static int fan_probe(const struct collector_context *ctx, void *state)
{
	struct gauges *fans = state;
	gauges_init(fans, ctx->root, sizeof(struct gauge), FANS_MAX);
	int r = device_each(ctx->root, "sys/class/hwmon", "", add_hwmon, fans);
	(void)gauges_add_existing(fans, &rpm, "pwm-fan", JP4_FAN "/rpm_measured");
	(void)gauges_add_existing(fans, &duty, "pwm-fan", JP4_FAN "/cur_pwm");
	return gauges_found(ctx, fans, r == -ENOMEM ? r : 0,
		"no fan in /sys/class/hwmon or /sys/devices/pwm-fan; thermal has cooling devices");
}

const struct collector_ops collector_fan = {
	.name = "fan",
	.state_size = sizeof(struct gauges),
	.folder = "sys/class/hwmon",
	.probe = fan_probe,
	.open = gauges_open,
	.fetch = gauges_fetch,
	.sample = gauges_sample,
	.close = gauges_close,
};
