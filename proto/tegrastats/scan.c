/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c: reads the letters and digits below the grammar of tegrastats: no locale, no NUL needed,
 * no allocation, and never a byte past the end. */
#include "proto/tegrastats/scan.h"

#include <string.h>

enum { DIGITS_MAX = 15 };

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

void scan_skip_blanks(struct scan *scan)
{
	while (scan->at < scan->end && is_blank(*scan->at)) {
		scan->at++;
	}
}

bool scan_word(struct scan *scan, struct scan *word)
{
	struct scan rest = *scan;
	scan_skip_blanks(&rest);
	const char *start = rest.at;
	while (rest.at < rest.end && !is_blank(*rest.at)) {
		rest.at++;
	}
	if (rest.at == start) {
		return false;
	}
	*word = (struct scan){start, rest.at};
	*scan = rest;
	return true;
}

bool scan_starts(struct scan scan, const char *text)
{
	size_t length = strlen(text);
	return (size_t)(scan.end - scan.at) >= length && memcmp(scan.at, text, length) == 0;
}

bool scan_is(struct scan scan, const char *text)
{
	return (size_t)(scan.end - scan.at) == strlen(text) && scan_starts(scan, text);
}

bool scan_has(struct scan scan, char c)
{
	return memchr(scan.at, c, (size_t)(scan.end - scan.at)) != NULL;
}

bool scan_literal(struct scan *scan, const char *text)
{
	if (!scan_starts(*scan, text)) {
		return false;
	}
	scan->at += strlen(text);
	return true;
}

bool scan_uint(struct scan *scan, int64_t *ret)
{
	const char *at = scan->at;
	int64_t value = 0;
	while (at < scan->end && is_digit(*at)) {
		if (at - scan->at == DIGITS_MAX) {
			return false;
		}
		value = value * 10 + (*at - '0');
		at++;
	}
	if (at == scan->at) {
		return false;
	}
	scan->at = at;
	*ret = value;
	return true;
}

bool scan_match(struct scan *scan, const char *format, int64_t *first, int64_t *second)
{
	struct scan rest = *scan;
	int64_t value[2] = {0, 0};
	size_t values = 0;
	scan_skip_blanks(&rest);
	for (; *format; format++) {
		const char *at = rest.at;
		if (*format == ' ') {
			scan_skip_blanks(&rest);
			if (rest.at == at) {
				return false;
			}
		} else if (*format == '#') {
			if (!scan_uint(&rest, &value[values++])) {
				return false;
			}
		} else if (at == rest.end || *rest.at++ != *format) {
			return false;
		}
	}
	if (rest.at < rest.end && !is_blank(*rest.at)) {
		return false;
	}
	*scan = rest;
	*first = value[0];
	if (second) {
		*second = value[1];
	}
	return true;
}

static bool take_minus(struct scan *scan)
{
	bool minus = scan_literal(scan, "-");
	if (!minus) {
		scan_literal(scan, "+");
	}
	return minus;
}

bool scan_int(struct scan *scan, int64_t *ret)
{
	struct scan rest = *scan;
	bool minus = take_minus(&rest);
	int64_t value;
	if (!scan_uint(&rest, &value)) {
		return false;
	}
	*scan = rest;
	*ret = minus ? -value : value;
	return true;
}

bool scan_decimal(struct scan *scan, double *ret)
{
	struct scan rest = *scan;
	bool minus = take_minus(&rest);
	int64_t whole, part = 0;
	double scale = 1;
	const char *digits = rest.at;
	if (!scan_uint(&rest, &whole)) {
		return false;
	}
	if (scan_literal(&rest, ".")) {
		const char *dot = rest.at;
		if (!scan_uint(&rest, &part) || rest.at - digits > DIGITS_MAX + 1) {
			return false;
		}
		while (dot++ < rest.at) {
			scale *= 10;
		}
	}
	/* Both are whole and below 2^53: the one division rounds as strtod would. */
	double value = ((double)whole * scale + (double)part) / scale;
	*scan = rest;
	*ret = minus ? -value : value;
	return true;
}

bool scan_name(struct scan *scan, struct scan *name)
{
	const char *at = scan->at;
	if (at == scan->end || !is_letter(*at)) {
		return false;
	}
	while (at < scan->end && (is_letter(*at) || is_digit(*at) || *at == '_' || *at == '-' ||
					 *at == '.' || *at == ':' || *at == '+')) {
		at++;
	}
	*name = (struct scan){scan->at, at};
	scan->at = at;
	return true;
}

void scan_copy(struct scan scan, char *ret, size_t size)
{
	size_t length = (size_t)(scan.end - scan.at);
	if (length >= size) {
		length = size - 1;
	}
	for (size_t i = 0; i < length; i++) {
		char c = scan.at[i];
		ret[i] = c > ' ' && c < 0x7f ? c : '?';
	}
	ret[length] = '\0';
}
