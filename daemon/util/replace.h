/* A file that is written whole or not at all. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Writes bytes to the file temporary of the open folder, flushes them, and gives it name, in the
 * place of what had it. Both are plain names. A file in the way of temporary is removed, a link is
 * not followed. Waits for the medium. -errno: name is as it was, or it is the new file and the
 * folder could not be flushed. */
int file_replace(int folder, const char *temporary, const char *name, mode_t mode,
	const void *bytes, size_t size);
