/* Part of the throttle collector: firmware mailbox or command (the whole word since boot), then
 * sysfs …:firmware/get_throttled, then hwmon rpi_volt. The word in sysfs is what anybody asked
 * last, and the kernel's hwmon driver asks every 2 s clearing the sticky bits: there a sticky bit
 * that is set proves something, one that is not set proves nothing. Where none of them can be read,
 * vcgencmd is run, if it is configured. */
#include "daemon/collect/throttle/throttle_pi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/board/pi_text.h"
#include "daemon/collect/throttle/throttle_hwmon.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"

enum { PLATFORM_MAX = 512 };

#define PLATFORM "sys/devices/platform"

static void open_firmware(
	struct throttle_pi *pi, const struct root *root, struct throttle_status *status)
{
	uint32_t word;
	const char *source = "used";
	int r = pi_firmware_open(&pi->firmware, root);
	if (r == 0) {
		r = pi_firmware_throttled(&pi->firmware, &word, &source);
	}
	pi->has_firmware = r == 0;
	const int errors[2] = {pi->firmware.mailbox_error, pi->firmware.gencmd_error};
	static const char *const names[2] = {"/dev/vcio", "/dev/vcio_gencmd"};
	for (size_t i = 0; i < 2; i++) {
		throttle_add_tried(status, names[i], "%s",
			errors[i] < 0 ? errno_reason(errors[i])
			: r < 0	      ? errno_reason(r)
				      : source);
	}
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);
	return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* soc/soc:firmware or soc@107c000000/soc@107c000000:firmware. */
static bool find_word(const struct root *root, const char *soc, struct root_name *inside,
	struct device_file *file)
{
	char path[DEVICE_FILE_PATH], text[64];
	snprintf(path, sizeof(path), PLATFORM "/%s", soc);
	int count = root_list(root, path, inside, PLATFORM_MAX);
	for (int i = 0; i < count; i++) {
		if (!ends_with(inside[i].text, ":firmware") ||
			device_file_init(file, true, PLATFORM "/%s/%s/get_throttled", soc,
				inside[i].text) < 0) {
			continue;
		}
		if (device_file_read(file, root, text, sizeof(text)) >= 0) {
			return true;
		}
		device_file_close(file);
	}
	return false;
}

static int open_word(
	struct throttle_pi *pi, const struct root *root, struct throttle_status *status)
{
	struct root_name *names = mem_calloc((size_t)2 * PLATFORM_MAX, sizeof(*names));
	if (!names) {
		return -ENOMEM;
	}
	int count = root_list(root, PLATFORM, names, PLATFORM_MAX);
	for (int i = 0; i < count && !pi->has_word; i++) {
		pi->has_word = strncmp(names[i].text, "soc", 3) == 0 &&
			       find_word(root, names[i].text, names + PLATFORM_MAX, &pi->word);
	}
	free(names);
	throttle_add_tried(status, "sysfs get_throttled", "%s",
		!pi->has_word	   ? "absent"
		: pi->has_firmware ? "found, not needed"
				   : "used");
	return 0;
}

static int open_alarm(
	struct throttle_pi *pi, const struct root *root, struct throttle_status *status)
{
	char folder[DEVICE_FILE_PATH];
	int r = throttle_hwmon_find(root, "rpi_volt", folder);
	pi->has_alarm =
		r == 0 && device_file_init(&pi->alarm, true, "%.100s/in0_lcrit_alarm", folder) == 0;
	throttle_add_tried(status, "hwmon rpi_volt", "%s",
		!pi->has_alarm			   ? "absent"
		: pi->has_firmware || pi->has_word ? "found, not needed"
						   : "used");
	return r == -ENOMEM ? r : 0;
}

#define TOOL "vcgencmd"

/* Whether it can be run. What is missing now may come: it is tried again. */
static bool open_tool(struct throttle_pi *pi, struct throttle_status *status)
{
	int r = pi_tool_check(&pi->tool);
	bool needed = !pi->has_firmware && !pi->has_word && !pi->has_alarm;
	throttle_add_tried(status, TOOL, "%s",
		r < 0	 ? pi_tool_reason(r)
		: needed ? "found"
			 : "found, not needed");
	return r == 0;
}

int throttle_pi_probe(struct throttle_pi *pi, const struct root *root, const char *vcgencmd,
	struct throttle_status *status)
{
	pi->word.fd = pi->alarm.fd = -1;
	pi_tool_init(&pi->tool, vcgencmd, "get_throttled");
	open_firmware(pi, root, status);
	int r = open_word(pi, root, status);
	r = r < 0 ? r : open_alarm(pi, root, status);
	if (r < 0) {
		return r;
	}
	return pi->has_firmware + pi->has_word + pi->has_alarm + open_tool(pi, status);
}

void throttle_pi_fetch(struct throttle_pi *pi, const struct root *root)
{
	char text[64];
	pi->firmware_result = pi->word_result = pi->alarm_result = -ENODEV;
	if (pi->has_firmware && !pi->resting) {
		pi->firmware_result =
			pi_firmware_throttled(&pi->firmware, &pi->value, &pi->firmware_source);
		/* Told here: of an answer that comes too late, sample never hears. */
		pi->resting = pi->failed = pi->firmware_result < 0;
	}
	if (pi->firmware_result < 0 && pi->has_word) {
		ssize_t n = device_file_read(&pi->word, root, text, sizeof(text));
		pi->word_result = n < 0 ? (int)n : pi_text_throttled(text, &pi->value);
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
		pi->tool_result = pi_text_throttled(pi->tool.answer, &pi->value);
	}
}

static int sample_firmware(struct throttle_pi *pi, struct throttle_status *status, uint64_t now_ns)
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
	throttle_take_word(status, pi->value, THROTTLE_SINCE_BOOT);
	throttle_add_source(status, pi->firmware_source);
	pi->seen |= pi->value | pi->value >> 16;
	return 0;
}

static int sample_word(struct throttle_pi *pi, struct throttle_status *status)
{
	int r = pi->word_result;
	if (r < 0) {
		status->raw_reason = pi->has_word ? errno_reason(r) : status->raw_reason;
		return r;
	}
	throttle_take_word(status, pi->value, THROTTLE_SINCE_POLL);
	throttle_add_source(status, "sysfs get_throttled");
	pi->seen |= pi->value | pi->value >> 16;
	return 0;
}

static int sample_alarm(struct throttle_pi *pi, struct throttle_status *status, uint64_t now_ns)
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
		status->flag[i].reason = "hwmon rpi_volt tells of under-voltage only";
	}
	status->raw_reason = "hwmon rpi_volt has no throttle word";
	status->flag[THROTTLE_UNDER_VOLTAGE_OCCURRED].reason = "not seen since the daemon started";
	throttle_set(status, THROTTLE_UNDER_VOLTAGE, recent);
	throttle_add_source(status, "hwmon rpi_volt");
	return 0;
}

static void sample_tool(struct throttle_pi *pi, struct throttle_status *status)
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
	throttle_take_word(status, pi->value, THROTTLE_SINCE_BOOT);
	throttle_add_source(status, TOOL);
	pi->seen |= pi->value | pi->value >> 16;
}

void throttle_pi_sample(struct throttle_pi *pi, struct throttle_status *status, uint64_t now_ns)
{
	if (sample_firmware(pi, status, now_ns) < 0 && sample_word(pi, status) < 0 &&
		sample_alarm(pi, status, now_ns) < 0 && pi->asked_tool) {
		sample_tool(pi, status);
	}
	/* What was seen once has happened since boot, whoever clears the bits. */
	for (unsigned i = 0; i < THROTTLE_WORD_FLAGS; i++) {
		if (pi->seen >> i & 1) {
			throttle_set(status, (enum throttle_flag)(i + THROTTLE_WORD_FLAGS), true);
		}
	}
}

void throttle_pi_close(struct throttle_pi *pi)
{
	pi_firmware_close(&pi->firmware);
	device_file_close(&pi->word);
	device_file_close(&pi->alarm);
	pi_tool_close(&pi->tool);
}
