/* SPDX-License-Identifier: Apache-2.0 */
/* pi_text.c: parses what the Raspberry Pi's firmware prints. The label of a clock varies by model
 * (45, 48, 0), so numbers are looked for behind '='; what the firmware says instead ("bad
 * arguments", "error=2 error_msg=…", "VCHI initialization failed") must not become one. */
#include "daemon/collect/board/pi_text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/util/parse.h"

static bool is_error(const char *text)
{
	return strncmp(text, "error", 5) == 0 || strstr(text, "error_msg") != NULL;
}

int pi_text_throttled(const char *text, uint32_t *ret)
{
	const char *p = text + strspn(text, " \t");
	if (strncmp(p, "throttled=", 10) == 0) {
		p += 10;
	}
	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		p += 2;
	}
	uint32_t value = 0;
	size_t digits = 0;
	for (; isxdigit((unsigned char)*p); p++) {
		char c = (char)tolower((unsigned char)*p);
		value = value << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
		if (++digits > 8) {
			return -EBADMSG;
		}
	}
	if (digits == 0 || p[strspn(p, " \t\r\n")] != '\0') {
		return -EBADMSG;
	}
	*ret = value;
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

int pi_text_number(const char *text, double *ret)
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

int pi_text_adc(const char **cursor, struct pi_adc *ret)
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
