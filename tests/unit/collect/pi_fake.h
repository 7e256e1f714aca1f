/* SPDX-License-Identifier: Apache-2.0 */
/* A Raspberry Pi's firmware behind the ioctl: answers of vcgencmd by command, tags by id. The tree
 * needs a file dev/vcio or dev/vcio_gencmd to open. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "daemon/collect/board/pi_firmware.h"
#include "tests/unit/unit.h"

static struct {
	uint32_t word;
	uint32_t milli_celsius;
	int tag_error, command_error; /* errno; 0 = answers */
	bool tags_unknown;
	struct {
		const char *command;
		const char *answer; /* NULL: refused */
	} command[24];
	size_t commands;
	unsigned calls;
	uint32_t mask; /* of the last GET_THROTTLED: sticky bits to clear */
} pi_fake;

static inline void pi_fake_answer(const char *command, const char *answer)
{
	pi_fake.command[pi_fake.commands].command = command;
	pi_fake.command[pi_fake.commands++].answer = answer;
}

static inline int pi_fake_command(uint32_t *buf)
{
	char *text = (char *)&buf[6];
	if (pi_fake.command_error != 0) {
		errno = pi_fake.command_error;
		return -1;
	}
	ck_assert_uint_eq(buf[3], PI_TEXT_MAX);
	buf[1] = buf[4] = UINT32_C(0x80000000);
	for (size_t i = pi_fake.commands; i-- > 0;) {
		if (strcmp(text, pi_fake.command[i].command) == 0 && pi_fake.command[i].answer) {
			ck_assert_uint_lt(strlen(pi_fake.command[i].answer), PI_TEXT_MAX);
			strncpy(text, pi_fake.command[i].answer, PI_TEXT_MAX - 1);
			buf[5] = 0;
			return 0;
		}
	}
	strncpy(text, "error=1 error_msg=\"Command not registered\"", 64);
	buf[5] = 0;
	return 0;
}

static inline int pi_fake_ioctl(int fd, unsigned long request, void *argument)
{
	uint32_t *buf = argument;
	(void)fd;
	pi_fake.calls++;
	ck_assert_uint_eq(request & 0xffff, 0x6400);
	ck_assert_uint_eq(buf[0] % 4, 0);
	ck_assert_uint_eq(buf[1], 0);
	ck_assert_uint_eq(buf[4], 0);
	ck_assert_uint_eq(buf[buf[0] / 4 - 1], 0);
	if (buf[2] == PI_TAG_GET_GENCMD_RESULT) {
		return pi_fake_command(buf);
	}
	if (pi_fake.tag_error != 0) {
		errno = pi_fake.tag_error;
		return -1;
	}
	buf[1] = UINT32_C(0x80000000);
	if (pi_fake.tags_unknown) {
		return 0;
	}
	buf[4] = UINT32_C(0x80000000) | buf[3];
	if (buf[2] == PI_TAG_GET_THROTTLED) {
		pi_fake.mask = buf[5];
		buf[5] = pi_fake.word;
	} else if (buf[2] == PI_TAG_GET_TEMPERATURE) {
		buf[6] = pi_fake.milli_celsius;
	}
	return 0;
}

static inline void pi_fake_start(void)
{
	memset(&pi_fake, 0, sizeof(pi_fake));
	pi_firmware_replace(pi_fake_ioctl);
}

static inline void pi_fake_stop(void)
{
	pi_firmware_replace(NULL);
}
