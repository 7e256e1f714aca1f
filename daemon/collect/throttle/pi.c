/* SPDX-License-Identifier: Apache-2.0 */
/* pi.c: sees throttling in the Raspberry Pi's throttle word, from the best place that can be read:
 * firmware mailbox or command (the complete word since boot), then sysfs …:firmware/get_throttled,
 * then hwmon rpi_volt. The word in sysfs is what anybody asked last, and the kernel's hwmon driver
 * asks every 2 s clearing the sticky bits: there a sticky bit that is set proves something, one
 * that is not set proves nothing. Where none of them can be read, vcgencmd is run, if it is
 * configured. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collect/board/pi_firmware.h"
#include "daemon/collect/board/pi_tool.h"
#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/throttle/detector.h"
#include "daemon/core/metrics/metrics.h"
#include "proto/text.h"

#define TOOL "vcgencmd"

struct pi {
	struct pi_firmware firmware;
	bool has_firmware, has_word, has_alarm;
	bool no_memory; /* to look for the word everywhere */
	bool resting;	/* the firmware failed and is not asked until retry_ns */
	bool failed;	/* just now: sample sets retry_ns */
	uint64_t retry_ns;
	int firmware_result, word_result, alarm_result; /* of the last reads; -ENODEV = none */
	struct pi_tool tool;
	bool asked_tool; /* by the last fetch, for nothing else answered */
	int tool_result;
	uint32_t value;
	const char *firmware_source;
	long long alarm_value;
	struct device_file word, alarm;
	uint64_t alarm_ns; /* when it was last on; 0 = never */
	uint32_t seen;	   /* bits 0-3: was seen, now or as sticky */
};

static void open_firmware(struct pi *pi, const struct root *root, struct throttle_status *status)
{
	uint32_t word;
	const char *source = "used";
	int r = pi_firmware_open(&pi->firmware, root);
	if (r == 0) {
		r = pi_firmware_throttled(&pi->firmware, &word, &source);
	}
	pi->has_firmware = r == 0;
	const int opened[2] = {pi->firmware.mailbox_fd, pi->firmware.gencmd_fd};
	static const char *const names[2] = {"/dev/vcio", "/dev/vcio_gencmd"};
	for (size_t i = 0; i < 2; i++) {
		throttle_add_tried(status, names[i], "%s",
			opened[i] < 0 ? errno_reason(opened[i])
			: r < 0	      ? errno_reason(r)
				      : source);
	}
}

/* soc/soc:firmware or soc@107c000000/soc@107c000000:firmware. */
static void find_word(void *ctx, const struct root *root, const char *path, const char *name)
{
	struct pi *pi = ctx;
	char text[64];
	if (pi->has_word || !text_ends_with(name, ":firmware") ||
		device_file_init(&pi->word, true, "%s/get_throttled", path) < 0) {
		return;
	}
	pi->has_word = device_file_read(&pi->word, root, text, sizeof(text)) >= 0;
	if (!pi->has_word) {
		device_file_close(&pi->word);
	}
}

static void find_soc(void *ctx, const struct root *root, const char *path, const char *name)
{
	struct pi *pi = ctx;
	(void)name;
	int r = device_each(root, path, "", find_word, pi);
	pi->no_memory = pi->no_memory || r == -ENOMEM;
}

static int open_word(struct pi *pi, const struct root *root, struct throttle_status *status)
{
	int r = device_each(root, "sys/devices/platform", "soc", find_soc, pi);
	throttle_add_tried(status, "sysfs get_throttled", "%s",
		!pi->has_word	   ? "absent"
		: pi->has_firmware ? "found, not needed"
				   : "used");
	return r == -ENOMEM || pi->no_memory ? -ENOMEM : 0;
}

static int open_alarm(struct pi *pi, const struct root *root, struct throttle_status *status)
{
	char folder[DEVICE_FILE_PATH];
	int r = device_find_hwmon(root, "rpi_volt", folder);
	pi->has_alarm =
		r == 0 && device_file_init(&pi->alarm, true, "%s/in0_lcrit_alarm", folder) == 0;
	throttle_add_tried(status, "hwmon rpi_volt", "%s",
		!pi->has_alarm			   ? "absent"
		: pi->has_firmware || pi->has_word ? "found, not needed"
						   : "used");
	return r == -ENOMEM ? r : 0;
}

/* Whether it can be run. What is missing now may come: it is tried again. */
static bool open_tool(struct pi *pi, struct throttle_status *status)
{
	int r = pi_tool_check(&pi->tool);
	bool needed = !pi->has_firmware && !pi->has_word && !pi->has_alarm;
	throttle_add_tried(status, TOOL, "%s",
		r < 0	 ? pi_tool_reason(r)
		: needed ? "found"
			 : "found, not needed");
	return r == 0;
}

static int probe(void *state, struct throttle_search *search)
{
	struct pi *pi = state;
	pi->word.fd = pi->alarm.fd = -1;
	pi_tool_init(&pi->tool, search->vcgencmd, "get_throttled");
	open_firmware(pi, search->root, search->status);
	int r = open_word(pi, search->root, search->status);
	r = r < 0 ? r : open_alarm(pi, search->root, search->status);
	if (r < 0) {
		return r;
	}
	int found = pi->has_firmware + pi->has_word + pi->has_alarm + open_tool(pi, search->status);
	/* The alarm says nothing about the clock, nor does a program that is only run where there
	 * is no alarm. */
	search->clockless = pi->has_alarm && !pi->has_firmware && !pi->has_word ? found : 0;
	return found;
}

static void fetch(void *state, const struct root *root)
{
	struct pi *pi = state;
	char text[64];
	pi->firmware_result = pi->word_result = pi->alarm_result = -ENODEV;
	if (pi->has_firmware && !pi->resting) {
		pi->firmware_result =
			pi_firmware_throttled(&pi->firmware, &pi->value, &pi->firmware_source);
		/* Noted here: an answer that comes too late never reaches sample. */
		pi->resting = pi->failed = pi->firmware_result < 0;
	}
	if (pi->firmware_result < 0 && pi->has_word) {
		ssize_t n = device_file_read(&pi->word, root, text, sizeof(text));
		pi->word_result = n < 0 ? (int)n : pi_parse_throttled(text, &pi->value);
	}
	if (pi->firmware_result < 0 && pi->word_result < 0 && pi->has_alarm) {
		pi->alarm_result = device_file_read_i64(&pi->alarm, root, &pi->alarm_value);
	}
	pi->asked_tool = pi->tool.path[0] != '\0' && pi->firmware_result < 0 &&
			 pi->word_result < 0 && pi->alarm_result < 0;
	if (pi->asked_tool || pi->tool.pid != 0) {
		pi->tool_result = pi_tool_ask(&pi->tool);
	}
	if (pi->asked_tool && pi->tool_result == 0) {
		pi->tool_result = pi_parse_throttled(pi->tool.answer, &pi->value);
	}
}

static void use_word(struct pi *pi, struct throttle_status *status, enum throttle_sticky sticky,
	const char *source)
{
	throttle_on_word(status, pi->value, sticky);
	throttle_add_source(status, source);
	pi->seen |= pi->value | pi->value >> 16;
}

static int sample_firmware(struct pi *pi, struct throttle_status *status, uint64_t now_ns)
{
	int r = pi->firmware_result;
	if (pi->failed) {
		pi->failed = false;
		pi->retry_ns = now_ns + THROTTLE_PI_RETRY_NS;
	} else if (pi->resting && now_ns >= pi->retry_ns) {
		pi->resting = false;
	}
	if (r < 0) {
		status->raw_reason = r == -ENODEV ? status->raw_reason : errno_reason(r);
		return r;
	}
	use_word(pi, status, THROTTLE_SINCE_BOOT, pi->firmware_source);
	return 0;
}

static int sample_word(struct pi *pi, struct throttle_status *status)
{
	int r = pi->word_result;
	if (r < 0) {
		status->raw_reason = pi->has_word ? errno_reason(r) : status->raw_reason;
		return r;
	}
	use_word(pi, status, THROTTLE_SINCE_POLL, "sysfs get_throttled");
	return 0;
}

static int sample_alarm(struct pi *pi, struct throttle_status *status, uint64_t now_ns)
{
	long long value = pi->alarm_value;
	int r = pi->alarm_result;
	if (!pi->has_alarm) {
		return -ENODEV;
	}
	if (r < 0 || value < 0 || value > 1) {
		status->flag[THROTTLE_UNDER_VOLTAGE].reason = r < 0 ? errno_reason(r) : "malformed";
		return r < 0 ? r : -EBADMSG;
	}
	if (value == 1) {
		pi->alarm_ns = now_ns;
		pi->seen |= 1u << THROTTLE_UNDER_VOLTAGE;
	}
	bool recent = pi->alarm_ns != 0 && now_ns - pi->alarm_ns < THROTTLE_PI_HOLD_NS;
	for (size_t i = 0; i < THROTTLE_FLAGS; i++) {
		status->flag[i].reason = "hwmon rpi_volt reports under-voltage only";
	}
	status->raw_reason = "hwmon rpi_volt has no throttle word";
	status->flag[THROTTLE_UNDER_VOLTAGE_OCCURRED].reason = "not seen since the daemon started";
	throttle_set(status, THROTTLE_UNDER_VOLTAGE, recent);
	throttle_add_source(status, "hwmon rpi_volt");
	return 0;
}

static void sample_tool(struct pi *pi, struct throttle_status *status)
{
	int r = pi->tool_result;
	const char *result = r < 0 ? pi_tool_reason(r) : "used";
	for (size_t i = 0; i < status->tried_count; i++) {
		if (strcmp(status->tried[i].source, TOOL) == 0) {
			snprintf(status->tried[i].result, sizeof(status->tried[i].result), "%s",
				result);
		}
	}
	if (r < 0) {
		status->raw_reason = result;
		return;
	}
	use_word(pi, status, THROTTLE_SINCE_BOOT, TOOL);
}

/* Gives the flags of the word the reason why the word could not be read. */
static void explain(struct throttle_status *status, const char *default_reason)
{
	for (size_t i = 0; i < THROTTLE_FLAGS; i++) {
		struct throttle_state *flag = &status->flag[i];
		if (i != THROTTLE_OVER_CURRENT && flag->reason == default_reason) {
			flag->reason = status->raw_reason;
		}
	}
}

static void sample(void *state, struct throttle_status *status, uint64_t now_ns)
{
	struct pi *pi = state;
	const char *default_reason = status->raw_reason;
	if (sample_firmware(pi, status, now_ns) < 0 && sample_word(pi, status) < 0 &&
		sample_alarm(pi, status, now_ns) < 0 && pi->asked_tool) {
		sample_tool(pi, status);
	}
	if (!status->has_raw) {
		explain(status, default_reason);
	}
	/* What was seen once has happened since boot, whoever clears the bits. */
	for (unsigned i = 0; i < THROTTLE_WORD_FLAGS; i++) {
		if (pi->seen >> i & 1) {
			throttle_set(status, (enum throttle_flag)(i + THROTTLE_WORD_FLAGS), true);
		}
	}
}

static void finish(void *state)
{
	struct pi *pi = state;
	pi_firmware_close(&pi->firmware);
	device_file_close(&pi->word);
	device_file_close(&pi->alarm);
	pi_tool_close(&pi->tool);
}

const struct throttle_detector throttle_pi = {
	.size = sizeof(struct pi),
	.probe = probe,
	.fetch = fetch,
	.sample = sample,
	.close = finish,
};
