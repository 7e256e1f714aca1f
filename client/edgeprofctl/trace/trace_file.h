/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file.h: writes a trace to a file that appears only when it is complete, or to stdout. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct trace_file {
	FILE *stream;
	char *path;	 /* NULL: written where it goes (stdout, a device, a pipe) */
	char *temporary; /* in the same directory */
};

/* path NULL or "-" is stdout. -ENOMEM or the errno of the file system. */
int trace_file_open(const char *path, struct trace_file *ret);

/* keep: the file gets its name, after all of it is on the medium; else it is removed. 0 or
 * -errno, -EPIPE when the reader of stdout has gone. */
int trace_file_finish(struct trace_file *file, bool keep);
