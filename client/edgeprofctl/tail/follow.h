/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h: reads a file as it grows, as `tail -F` does, or the standard input. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct screen;

struct follow {
	const char *path;	/* NULL: the standard input */
	struct screen *signals; /* an ending signal ends the reading */
	int fd;			/* -1: the file is not there */
	int changes;		/* of inotify, -1: none */
	bool replaced; /* another file has the name: what is left in this one comes first */
};

/* Begins at the end of the file, or at its start. The file may be absent. Not a regular file:
 * -EINVAL; else the errno of open(2). */
int follow_open(struct follow *follow, const char *path, bool from_start, struct screen *signals);
void follow_close(struct follow *follow);

/* Waits for bytes: their number, 0 at the end, which a file does not have but for a signal, or
 * -errno. *restarted: they are the first of another file, or of this one after it was truncated. */
ssize_t follow_read(struct follow *follow, char *bytes, size_t size, bool *restarted);
