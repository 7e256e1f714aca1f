/* SPDX-License-Identifier: Apache-2.0 */
/* decimal.h: writes numbers as decimals, without printf: a reply has thousands of them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { DECIMAL_SIZE = 40 /* of any number below, sign included */ };

/* Both return the length. No NUL is written; what is behind the number has no meaning. */
size_t decimal_unsigned(uint64_t value, char ret[DECIMAL_SIZE]);
/* A finite number, as %.15g when that reads back as the same double, else as %.17g; below 2^53 and
 * above 1e-8 always without an exponent. */
size_t decimal_double(double value, char ret[DECIMAL_SIZE]);
