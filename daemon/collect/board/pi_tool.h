/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pi_tool.h: runs vcgencmd where it is configured: for boards whose firmware nothing else reaches.
 * Started without a shell and with an empty environment, at most every PI_TOOL_EVERY_NS, and not
 * waited for longer than 100 ms at once: a run that takes longer is polled again at the next call,
 * one that takes PI_TOOL_LIMIT_NS is killed. One process at a time, ended and reaped by its own
 * pid. Called on a worker; the first call after pi_tool_init.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/collect/sched/collector.h"

#define PI_TOOL_EVERY_NS UINT64_C(5000000000)
#define PI_TOOL_RETRY_NS UINT64_C(60000000000) /* after a failure */
#define PI_TOOL_LIMIT_NS UINT64_C(2000000000)
#define PI_TOOL_EARLY_NS UINT64_C(100000000) /* a tick comes a little early or late */

enum { PI_TOOL_PATH = 224, PI_TOOL_TEXT = 256 };

struct pi_tool {
	char path[PI_TOOL_PATH]; /* "" = not configured */
	const char *command;
	pid_t pid; /* of the running one; 0 = none */
	int fd;	   /* its output; -1 = at its end */
	bool killed;
	int failure; /* why it was killed */
	uint64_t started_ns, next_ns;
	size_t length;
	char text[PI_TOOL_TEXT]; /* of the running one */
	int result;		 /* of the last that ended: 0, or -errno */
	char answer[PI_TOOL_TEXT];
};

/* path NULL or "": not configured. command: static text, its one argument. */
void pi_tool_init(struct pi_tool *tool, const char *path, const char *command);

/* Why the path cannot be used, as far as can be known without running it: 0, -ENODEV when none is
 * configured, -EINVAL when it is relative, -EACCES, -ENOENT, … May hang. */
int pi_tool_check(const struct pi_tool *tool);

/* Starts it when it is due, polls the one that runs. 0: answer holds what it printed last,
 * NUL-terminated. -EAGAIN: nothing yet; -ENODEV: not configured; -ETIMEDOUT: it took too long;
 * -EMSGSIZE: it printed too much; -EREMOTEIO: it exited with a failure; or the -errno of the start.
 */
int pi_tool_ask(struct pi_tool *tool);

/* Ends what runs. Idempotent after pi_tool_init. */
void pi_tool_close(struct pi_tool *tool);

/* For the configuration of the key vcgencmd (collector_ops.refuse): NULL, or why. */
const char *pi_tool_refuse(const char *key, const char *value);

/* The reason of a result of pi_tool_ask: static text. */
const char *pi_tool_reason(int result);
