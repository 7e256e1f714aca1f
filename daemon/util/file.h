/* file.h: writes files completely or not at all. Every call may block on the medium. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Writes all bytes, however many calls it takes. -errno of write(2). */
int file_write_all(int fd, const void *bytes, size_t size);

/* Writes bytes to the file temporary of the open folder, flushes it, and renames it to name, which
 * it replaces. Both are plain names. An existing temporary is removed; a link is not followed.
 * -errno: name is as it was, or it is the new file and the folder could not be flushed. */
int file_replace(int folder, const char *temporary, const char *name, mode_t mode,
	const void *bytes, size_t size);
