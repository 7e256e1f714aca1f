/* SPDX-License-Identifier: Apache-2.0 */
/* pi_firmware.c: asks the firmware for the collectors throttle and pi. The buffer of the property
 * interface is an array of 32 bit words: size, request/response code, tags (id, size of the values,
 * bit 31 once answered, values), end tag (raspberrypi/linux drivers/char/broadcom/vcio.c, utils
 * vcmailbox.c and vcgencmd.c). */
#include "daemon/collect/board/pi_firmware.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "daemon/collect/board/pi_text.h"

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

static int open_device(const struct root *root, const char *path, int *error)
{
	int fd = root_open(root, path, O_RDONLY);
	*error = fd < 0 ? fd : 0;
	return fd < 0 ? -1 : fd;
}

int pi_firmware_open(struct pi_firmware *firmware, const struct root *root)
{
	firmware->mailbox_fd = open_device(root, "dev/vcio", &firmware->mailbox_error);
	firmware->gencmd_fd = open_device(root, "dev/vcio_gencmd", &firmware->gencmd_error);
	if (firmware->mailbox_fd >= 0 || firmware->gencmd_fd >= 0) {
		return 0;
	}
	return firmware->mailbox_error != -ENOENT ? firmware->mailbox_error
						  : firmware->gencmd_error;
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
	if (count == 0 || count > PI_VALUES_MAX) {
		return -EINVAL;
	}
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
	if (r == -EBADMSG) {
		return r;
	}
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
	r = pi_text_throttled(text, word);
	if (r == 0) {
		*source = "firmware command";
	}
	return r;
}
