/* SPDX-License-Identifier: Apache-2.0 */
/* pi_text.h: parses the texts of the Raspberry Pi's firmware, as vcgencmd prints them. Error texts
 * are -EBADMSG. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/name.h"

/* "throttled=0x50000", and the word alone in hex with or without 0x, as sysfs has it. 0 or
 * -EBADMSG. */
int pi_text_throttled(const char *text, uint32_t *ret);

/* "frequency(48)=600000000", "volt=0.8563V", "temp=39.2'C", "arm=948M": the number behind the first
 * '=', whatever the label, with M as 1024 * 1024. 0 or -EBADMSG. */
int pi_text_number(const char *text, double *ret);

/* One line of pmic_read_adc: "VDD_CORE_A current(7)=0.94657990A". */
struct pi_adc {
	char rail[PROTO_NAME_SIZE]; /* without _A or _V */
	char quantity;		    /* 'A' or 'V' */
	double value;
};

/* The next line at *cursor, which moves behind it; lines that are none are skipped. 0 or
 * -ENODATA at the end. */
int pi_text_adc(const char **cursor, struct pi_adc *ret);
