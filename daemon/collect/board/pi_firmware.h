/* SPDX-License-Identifier: Apache-2.0 */
/* pi_firmware.h: reaches the Raspberry Pi's firmware through its mailbox: property tags on
 * /dev/vcio, commands of vcgencmd on /dev/vcio_gencmd or /dev/vcio, without a helper program. Both
 * are one ioctl, which waits for the firmware (0.1-3 ms a value; the kernel gives up after 1 s).
 * Also parses the texts of the firmware, as vcgencmd prints them. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/util/root.h"
#include "proto/name.h"

enum {
	PI_TAG_GET_TEMPERATURE = 0x00030006,
	PI_TAG_GET_THROTTLED = 0x00030046,
	PI_TAG_GET_GENCMD_RESULT = 0x00030080,
	PI_TEXT_MAX = 4096,
};

struct pi_firmware {
	int mailbox_fd, gencmd_fd; /* below 0: not open, the -errno */
	uint32_t buf[7 + PI_TEXT_MAX / 4];
};

/* Opens what there is of dev/vcio and dev/vcio_gencmd. 0; -ENOENT when there is neither, or the
 * -errno of the one that cannot be opened. Finish with pi_firmware_close in any case. */
int pi_firmware_open(struct pi_firmware *firmware, const struct root *root);
void pi_firmware_close(struct pi_firmware *firmware); /* idempotent after open */

/* One property tag: count values in, the answer out. 0; -ENODEV without /dev/vcio, -EBADMSG when
 * the firmware does not know the tag, or the ioctl's -errno. */
int pi_firmware_tag(struct pi_firmware *firmware, uint32_t tag, uint32_t *values, size_t count);

/* One command of vcgencmd; text is NUL-terminated. The length; -ENODEV without a device, -EREMOTEIO
 * when the firmware refused the command, -EMSGSIZE, -EBADMSG, or the ioctl's -errno. */
ssize_t pi_firmware_command(
	struct pi_firmware *firmware, const char *command, char *text, size_t size);

/* The word of get_throttled, by mailbox, else as a command. Never clears sticky bits (mask 0): they
 * are everybody's. *source: static text. 0 or -errno as above, -EBADMSG for another answer. */
int pi_firmware_throttled(struct pi_firmware *firmware, uint32_t *word, const char **source);

/* Tests only: takes the place of ioctl(2): 0 or -1 and errno. NULL restores it. */
typedef int pi_ioctl(int fd, unsigned long request, void *argument);
void pi_firmware_replace(pi_ioctl *call);

/* Parsers; error texts are -EBADMSG. */

/* "throttled=0x50000", and the word alone in hex with or without 0x, as sysfs has it. 0 or
 * -EBADMSG. */
int pi_parse_throttled(const char *text, uint32_t *ret);

/* "frequency(48)=600000000", "volt=0.8563V", "temp=39.2'C", "arm=948M": the number behind the first
 * '=', whatever the label, with M as 1024 * 1024. 0 or -EBADMSG. */
int pi_parse_number(const char *text, double *ret);

/* One line of pmic_read_adc: "VDD_CORE_A current(7)=0.94657990A". */
struct pi_adc {
	char rail[PROTO_NAME_SIZE]; /* without _A or _V */
	char quantity;		    /* 'A' or 'V' */
	double value;
};

/* The next line at *cursor, which moves behind it; lines that are none are skipped. 0 or
 * -ENODATA at the end. */
int pi_parse_adc(const char **cursor, struct pi_adc *ret);
