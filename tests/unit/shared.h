/* SPDX-License-Identifier: Apache-2.0 */
/* shared.h: finds the fixtures of ../shared. Tests that read them are a run of their own
 * (--shared), which is skipped where they are absent. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A path below the shared fixtures, in a buffer of its own. */
static inline const char *shared_path(const char *path)
{
	static char full[1024];
	const char *shared = getenv("EDGEPROF_SHARED");
	snprintf(full, sizeof(full), "%s/fixtures/%s", shared ? shared : "/nonexistent", path);
	return full;
}

/* False, and says so, where they are absent. */
static inline bool shared_is_there(void)
{
	bool there = access(shared_path(""), R_OK) == 0;
	if (!there) {
		printf("no ../shared/fixtures here\n");
	}
	return there;
}
