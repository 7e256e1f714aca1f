/* SPDX-License-Identifier: Apache-2.0 */
/*
 * degraded.h: lists the files of the run directory that could not be opened, were damaged, or went
 * away, and why; for status, self and doctor as long as the process runs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { DEGRADED_MAX = 16, DEGRADED_REASON = 192 };

struct degraded {
	struct {
		char file[24];
		char reason[DEGRADED_REASON];
	} row[DEGRADED_MAX];
	size_t count;
};

/* True when it is news, for the log: the first reason of a file stays. NULL is fine. */
bool degraded_add(struct degraded *degraded, const char *file, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void degraded_drop(struct degraded *degraded, const char *file);
