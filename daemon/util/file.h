/* SPDX-License-Identifier: Apache-2.0 */
/* file.h: writes files completely or not at all, opens and lists folders. Every call may block on
 * the medium. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

/* Writes all bytes, however many calls it takes. -errno of write(2). */
int file_write_all(int fd, const void *bytes, size_t size);

/* Puts fd into the epoll set, without events. libuv, which would abort if it could not add it,
 * finds it there and sets its events. -errno of epoll_ctl(2): no memory, or its user has too many
 * watches. */
int file_watch(int epoll_fd, int fd);

enum { FILE_LINE_MAX = 68 * 1024 /* of a file of lines: a frame of Varlink, and more */ };

/* Reads the next line, with its newline. False: there is none that is complete, fits, and has no
 * zero byte; line begins with what was read, and is "" at the end of the file. */
bool file_line(FILE *stream, char *line, size_t size);

/* Writes bytes to the file temporary of the open folder, flushes it, and renames it to name, which
 * it replaces. Both are plain names. An existing temporary is removed; a link is not followed.
 * -errno: name is as it was, or it is the new file and the folder could not be flushed. */
int file_replace(int folder, const char *temporary, const char *name, mode_t mode,
	const void *bytes, size_t size);

struct stat;
/* Reads a file of ours, of at most size bytes, and what fstat(2) says of it. Nothing is followed or
 * waited for. The length; -EPERM: a link, no regular file, or another user's; -EFBIG; other -errno.
 */
ssize_t file_read_own(int folder, const char *name, void *bytes, size_t size, struct stat *st);

/* True when the file of time a is the older one. */
bool file_precedes(struct timespec a, struct timespec b);

/* A descriptor of the folder, which is made with mode when it is not there (0: it must be). A link
 * is not followed. -EPERM: another user owns it or may write to it; other -errno. */
int folder_open(const char *path, mode_t mode);

/* Calls each with the names in the folder, "." and ".." too, of at most max entries, until it
 * returns false. */
void folder_list(
	int folder, size_t max, bool (*each)(void *ctx, int folder, const char *name), void *ctx);
