/* SPDX-License-Identifier: Apache-2.0 */
/* listen.h: binds the listening socket with its mode and group, and replaces a stale one. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Binds path: mode 0666, or 0660 and the group. A socket that nobody listens on is replaced;
 * -EADDRINUSE when somebody does or when path is something else; -ENAMETOOLONG; -ENOENT: no such
 * group; or -errno. *inode is the socket's. */
int listen_bind(const char *path, const char *group, int *ret, ino_t *inode);

/* Makes a bound descriptor (also one from socket activation) non-blocking and listening.
 * *refuses_descriptors: the kernel keeps strangers' descriptors away (socket_refuse_fds). */
int listen_prepare(int fd, bool *refuses_descriptors);

/* Closes it, and unlinks path ("" = not ours) while it is still the socket we bound. */
void listen_end(int fd, const char *path, ino_t inode);
