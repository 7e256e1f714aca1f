/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h: reads a file as it grows, as `tail -F` does, or the standard input. */
#pragma once

#include <sys/types.h>

#include "client/edgeprofctl/ctl.h"

struct follow {
	const char *path;	/* NULL: the standard input */
	struct screen *signals; /* an ending signal ends the reading */
	int fd;			/* -1: the file is not there */
	int changes;		/* of inotify, -1: none */
	int output;		/* whose reader's end ends the reading, too; -1: none */
};

/* Begins at the end of the file, or with --from-start at its start. It may be absent, which is
 * reported. To be closed also when it failed: an exit status, after a message. */
int follow_open(struct follow *follow, struct ctl *ctl);
void follow_close(struct follow *follow);

/* Waits for bytes: their number, 0 at the end, which a file does not have but for a signal, or
 * -errno. -ESTALE: what follows is of another file, or of this one after it was truncated. */
ssize_t follow_read(struct follow *follow, char *bytes, size_t size);
