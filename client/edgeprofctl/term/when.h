/* SPDX-License-Identifier: Apache-2.0 */
/* when.h: parses durations and moments as people type them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* "500ms", "5s", "1.5min", "24h", "7d", "250us"; a bare number is seconds. 0 or -EINVAL. */
int when_parse_span(const char *text, double *ret_seconds);

/* A moment: "now", a span ago ("5min", "-5min", "5min ago"), "@1700000000", "2026-11-21 05:40[:23]"
 * (also with T, or without the time), "today" and "yesterday" (midnight), or "05:40[:23]": the last
 * time that it was so late. Microseconds since the epoch. 0 or -EINVAL. */
int when_parse_time(const char *text, int64_t now_us, int64_t *ret_us);
/* The end of what begins at from_us: a time of day is the first one after that. */
int when_parse_end(const char *text, int64_t now_us, int64_t from_us, int64_t *ret_us);

/* The wall clock, in microseconds since the epoch. */
int64_t when_now_us(void);

/* The monotonic clock. */
double when_mono_ms(void);

/* The kernel says that the wall clock is synchronised. */
bool when_is_synchronised(void);
