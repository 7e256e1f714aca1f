/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.h: reads numbers and values of the configuration strictly. All return 0, or -EINVAL when
 * the text is not wholly such a value, or -ERANGE when it does not fit; *ret is untouched on
 * failure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

int parse_u64(const char *text, uint64_t *ret);
int parse_i64(const char *text, int64_t *ret);
/* Finite decimal number; no hex, no inf, no nan. Independent of the locale. */
int parse_double(const char *text, double *ret);
/* yes/no, true/false, on/off, 1/0. */
int parse_bool(const char *text, bool *ret);
/* "500ms", "5s", "1.5s", "10min", "24h", "7d", "250us"; a bare 0 is allowed. Nanoseconds. */
int parse_duration_ns(const char *text, uint64_t *ret);
/* "4096", "64K", "16M", "1G" (powers of 1024). Bytes. */
int parse_size(const char *text, uint64_t *ret);

/* The group of this name. -ENOENT, -ENOMEM, other -errno of reading. May block on the system's name
 * service when /etc/group has no such group. */
int parse_group(const char *name, gid_t *ret);
