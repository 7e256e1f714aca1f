/* A password kept in a file (mode 0600, or a systemd credential). */
#pragma once

#include <stddef.h>

/* Reads the file into buf, NUL-terminated, one trailing newline cut. 0; -EPERM when group or others
 * may access it
 * (a group may, below $CREDENTIALS_DIRECTORY); -EINVAL when it is not a plain file or holds a NUL;
 * -EFBIG when it does not fit; other -errno of open and read. On failure buf holds nothing of it.
 * Clear buf with explicit_bzero after use. Any thread. */
int secret_read(const char *path, char *buf, size_t size);
