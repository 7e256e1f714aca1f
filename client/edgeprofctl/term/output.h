/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h: collects output: verbs write to a stream in memory, which is shown when it is complete,
 * through a pager when it is longer than the terminal. SIGPIPE must be ignored
 * (output_ignore_sigpipe).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/edgeprofctl/term/style.h"

struct output {
	FILE *stream; /* write here */
	char *bytes;
	size_t size;
	const struct style *style; /* lines are wrapped to its width; NULL: as they are */
};

int output_open(struct output *output); /* -ENOMEM */
void output_finish(struct output *output);

/* Writes what was collected to stdout and starts over. 0, -EPIPE, -ENOSPC …, -ENOMEM. */
int output_flush(struct output *output);

/* The same through $PAGER or less, when stdout is a terminal and the text longer than it. */
int output_page(struct output *output, const struct style *style);

/* Waits at most so long for something to read from fd (-1: only the time), and for stdout to be
 * closed by who reads it: true. */
bool output_wait(int fd, double ms);

/* Lets a closed pipe show as -EPIPE, not as the end of the process. */
void output_ignore_sigpipe(void);

/* All bytes to the descriptor, also when it is non-blocking. */
int output_write(int fd, const char *bytes, size_t length);
