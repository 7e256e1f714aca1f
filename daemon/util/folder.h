/* folder.h: opens and lists folders of the daemon's own. Blocking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A descriptor of the folder, which is made with mode when it is not there (0: it must be). A link
 * is not followed. -EPERM: another user owns it or may write to it; other -errno. */
int folder_open(const char *path, mode_t mode);

/* Calls each with the names in the folder, "." and ".." too, of at most max entries, until it
 * returns false. */
void folder_list(
	int folder, size_t max, bool (*each)(void *ctx, int folder, const char *name), void *ctx);
