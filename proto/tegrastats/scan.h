/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h: takes words and numbers off the front of a piece of text. Each function moves the front
 * only when it succeeds. Blanks are space, tab, CR, LF, VT and FF; any other byte may be in a word.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scan {
	const char *at, *end;
};

void scan_skip_blanks(struct scan *scan);

/* The next word, without the blanks around it. */
bool scan_word(struct scan *scan, struct scan *word);

bool scan_is(struct scan scan, const char *text); /* all of it */
bool scan_starts(struct scan scan, const char *text);
bool scan_has(struct scan scan, char c);
bool scan_literal(struct scan *scan, const char *text);

/* Whole numbers of up to 15 digits, which a double holds exactly; more digits are no number. */
bool scan_uint(struct scan *scan, int64_t *ret);
bool scan_int(struct scan *scan, int64_t *ret); /* with an optional sign */

/* Words that the format describes: # is a whole number (at most two, into first and second, which
 * may be NULL), a blank is any number of them, all else stands for itself. */
bool scan_match(struct scan *scan, const char *format, int64_t *first, int64_t *second);

/* [-+]digits[.digits]: no exponent, no hex, no locale. */
bool scan_decimal(struct scan *scan, double *ret);

/* A letter, then letters, digits and "_-.:+". */
bool scan_name(struct scan *scan, struct scan *name);

/* Copies what fits with a NUL; bytes that are not printable ASCII become '?'. */
void scan_copy(struct scan scan, char *ret, size_t size);
