/* SPDX-License-Identifier: Apache-2.0 */
/* number.h: parses decimal numbers as statsd clients write them: no locale, no allocation. */
#pragma once

#include <stdbool.h>

/* Reads [+-]digits[.digits][e[+-]digits] at *at, with a digit before or after the point, and moves
 * *at past it. False, *at untouched: no such number, or one beyond a double. "nan", "inf" and hex
 * are none. Up to 15 digits and 10^±22 are rounded as strtod does, the others within one unit of
 * the last place; what is too small becomes 0. */
bool statsd_number(const char **at, const char *end, double *ret);
