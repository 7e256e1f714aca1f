/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h: reaches the daemon of another machine: ssh(1) runs `edgeprofctl bridge` there. */
#pragma once

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { REMOTE_MAX = 8, REMOTE_SIZE = 288 };

struct remote_list {
	size_t count;
	char names[REMOTE_MAX][REMOTE_SIZE]; /* "[USER@]HOST" */
};

/* Adds "[USER@]HOST", or several delimited by commas. -EINVAL for what ssh could take for an
 * option, blanks and control characters; -ENOSPC. */
int remote_add(struct remote_list *list, const char *text);

/* Starts ssh, or the command and options in EDGEPROF_SSH: a socket to the other end, or a negative
 * errno. It does not wait for the connection; ssh gives up after timeout_ms, and with `batch` where
 * it would ask for a password. */
int remote_open(const char *name, uint64_t timeout_ms, bool batch, pid_t *ret);

/* Waits grace_ms for the end of ssh, then ends it: its exit status, or -1. Leaves no zombie. */
int remote_close(pid_t pid, uint64_t grace_ms);
