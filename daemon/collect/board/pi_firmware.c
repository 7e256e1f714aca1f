/* SPDX-License-Identifier: Apache-2.0 */
/* pi_firmware.c: asks the firmware for the collectors throttle and pi, and parses what it prints.
 * The buffer of the property interface is an array of 32 bit words: size, request/response code,
 * tags (id, size of the values, bit 31 once answered, values), end tag (raspberrypi/linux
 * drivers/char/broadcom/vcio.c, utils vcmailbox.c and vcgencmd.c). The label of a clock varies by
 * model (45, 48, 0), so numbers are looked for behind '='; what the firmware says instead ("bad
 * arguments", "error=2 error_msg=…", "VCHI initialization failed") must not become one. */
#include "daemon/collect/board/pi_firmware.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "daemon/util/parse.h"

/* The number depends on the width of a pointer; the kernel has both. */
#define PI_IOCTL_PROPERTY _IOWR(100, 0, char *)

#define PI_ANSWERED UINT32_C(0x80000000)

enum { TAG_ID = 2, TAG_SIZE = 3, TAG_CODE = 4, TAG_VALUES = 5 };

static int real_ioctl(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument);
}

static pi_ioctl *call_ioctl = real_ioctl;

void pi_firmware_replace(pi_ioctl *call)
{
	call_ioctl = call ? call : real_ioctl;
}

int pi_firmware_open(struct pi_firmware *firmware, const struct root *root)
{
	firmware->mailbox_fd = root_open(root, "dev/vcio", O_RDONLY);
	firmware->gencmd_fd = root_open(root, "dev/vcio_gencmd", O_RDONLY);
	if (firmware->mailbox_fd >= 0 || firmware->gencmd_fd >= 0) {
		return 0;
	}
	return firmware->mailbox_fd != -ENOENT ? firmware->mailbox_fd : firmware->gencmd_fd;
}

static void close_device(int *fd)
{
	if (*fd >= 0) {
		close(*fd);
	}
	*fd = -1;
}

void pi_firmware_close(struct pi_firmware *firmware)
{
	close_device(&firmware->mailbox_fd);
	close_device(&firmware->gencmd_fd);
}

static int property(int fd, uint32_t *buf)
{
	if (call_ioctl(fd, PI_IOCTL_PROPERTY, buf) < 0) {
		return -errno;
	}
	/* Unknown tags are skipped: only bit 31 of the tag says that it was answered. */
	return buf[1] == PI_ANSWERED && (buf[TAG_CODE] & PI_ANSWERED) ? 0 : -EBADMSG;
}

int pi_firmware_tag(struct pi_firmware *firmware, uint32_t tag, uint32_t *values, size_t count)
{
	uint32_t *buf = firmware->buf;
	if (firmware->mailbox_fd < 0) {
		return -ENODEV;
	}
	size_t words = TAG_VALUES + count + 1;
	memset(buf, 0, words * sizeof(buf[0]));
	buf[0] = (uint32_t)(words * sizeof(buf[0]));
	buf[TAG_ID] = tag;
	buf[TAG_SIZE] = (uint32_t)(count * sizeof(buf[0]));
	memcpy(&buf[TAG_VALUES], values, count * sizeof(buf[0]));
	int r = property(firmware->mailbox_fd, buf);
	if (r < 0) {
		return r;
	}
	if ((buf[TAG_CODE] & ~PI_ANSWERED) < count * sizeof(buf[0])) {
		return -EBADMSG;
	}
	memcpy(values, &buf[TAG_VALUES], count * sizeof(buf[0]));
	return 0;
}

static int command_on(struct pi_firmware *firmware, int fd, const char *command)
{
	uint32_t *buf = firmware->buf;
	if (fd < 0) {
		return -ENODEV;
	}
	memset(buf, 0, sizeof(firmware->buf));
	buf[0] = sizeof(firmware->buf);
	buf[TAG_ID] = PI_TAG_GET_GENCMD_RESULT;
	buf[TAG_SIZE] = PI_TEXT_MAX;
	/* The first value is the return code, the text follows it. */
	memcpy(&buf[TAG_VALUES + 1], command, strlen(command) + 1);
	int r = property(fd, buf);
	return r < 0 ? r : (buf[TAG_VALUES] == 0 ? 0 : -EREMOTEIO);
}

ssize_t pi_firmware_command(
	struct pi_firmware *firmware, const char *command, char *text, size_t size)
{
	if (strlen(command) >= PI_TEXT_MAX - 8) {
		return -EMSGSIZE;
	}
	/* /dev/vcio_gencmd is newer and made for this; the older node knows all tags. */
	int r = command_on(firmware, firmware->gencmd_fd, command);
	if (r == -ENODEV || r == -EPERM || r == -ENOTTY) {
		int older = command_on(firmware, firmware->mailbox_fd, command);
		r = older == -ENODEV ? r : older;
	}
	if (r < 0) {
		return r;
	}
	const char *answer = (const char *)&firmware->buf[TAG_VALUES + 1];
	size_t length = strnlen(answer, PI_TEXT_MAX - 4);
	if (length >= size) {
		return -EMSGSIZE;
	}
	memcpy(text, answer, length);
	text[length] = '\0';
	return (ssize_t)length;
}

int pi_firmware_throttled(struct pi_firmware *firmware, uint32_t *word, const char **source)
{
	uint32_t value = 0;
	char text[128];
	int r = pi_firmware_tag(firmware, PI_TAG_GET_THROTTLED, &value, 1);
	if (r == 0) {
		*word = value;
		*source = "firmware mailbox";
		return 0;
	}
	ssize_t n = pi_firmware_command(firmware, "get_throttled", text, sizeof(text));
	if (n < 0) {
		return n == -ENODEV ? r : (int)n;
	}
	r = pi_parse_throttled(text, word);
	if (r == 0) {
		*source = "firmware command";
	}
	return r;
}

static bool is_error(const char *text)
{
	return strncmp(text, "error", 5) == 0 || strstr(text, "error_msg") != NULL;
}

int pi_parse_throttled(const char *text, uint32_t *ret)
{
	const char *p = text + strspn(text, " \t");
	p += strncmp(p, "throttled=", 10) == 0 ? 10 : 0;
	p += p[0] == '0' && (p[1] == 'x' || p[1] == 'X') ? 2 : 0;
	size_t digits = strspn(p, "0123456789abcdefABCDEF");
	if (digits == 0 || digits > 8 || p[digits + strspn(p + digits, " \t\r\n")] != '\0') {
		return -EBADMSG;
	}
	*ret = (uint32_t)strtoul(p, NULL, 16);
	return 0;
}

/* A decimal number; *end behind it. NAN when there is none. */
static double number(const char *text, const char **end)
{
	char copy[32];
	size_t length = strspn(text, "+-.0123456789");
	double value;
	if (length == 0 || length >= sizeof(copy)) {
		return NAN;
	}
	memcpy(copy, text, length);
	copy[length] = '\0';
	*end = text + length;
	return parse_double(copy, &value) == 0 ? value : (double)NAN;
}

int pi_parse_number(const char *text, double *ret)
{
	const char *end;
	const char *equals = strchr(text, '=');
	if (!equals || is_error(text)) {
		return -EBADMSG;
	}
	double value = number(equals + 1, &end);
	if (isnan(value)) {
		return -EBADMSG;
	}
	size_t unit = strcspn(end, " \t\r\n");
	if (end[unit + strspn(end + unit, " \t\r\n")] != '\0') {
		return -EBADMSG;
	}
	if (unit == 1 && *end == 'M') {
		value *= 1024 * 1024;
	} else if (unit > 0 && !(unit == 1 && *end == 'V') &&
		   !(unit == 2 && strncmp(end, "'C", 2) == 0)) {
		return -EBADMSG;
	}
	*ret = value;
	return 0;
}

/* "  VDD_CORE_A current(7)=0.94657990A" up to its end. */
static bool adc_line(const char *line, size_t length, struct pi_adc *ret)
{
	const char *end, *stop = line + length;
	line += strspn(line, " \t");
	size_t name = strcspn(line, " \t\n=");
	const char *equals = memchr(line, '=', line < stop ? (size_t)(stop - line) : 0);
	if (!equals || name < 3 || line[name - 2] != '_') {
		return false;
	}
	char quantity = line[name - 1];
	double value = number(equals + 1, &end);
	if (isnan(value) || (quantity != 'A' && quantity != 'V') || *end != quantity) {
		return false;
	}
	proto_name_clean(line, name - 2, ret->rail);
	ret->quantity = quantity;
	ret->value = value;
	return true;
}

int pi_parse_adc(const char **cursor, struct pi_adc *ret)
{
	while (**cursor) {
		const char *line = *cursor;
		size_t length = strcspn(line, "\n");
		*cursor = line + length + (line[length] == '\n');
		if (adc_line(line, length, ret)) {
			return 0;
		}
	}
	return -ENODATA;
}
