/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h: runs one long-lived child whose standard output is read: started with an absolute path
 * and a cleared environment, ended by its pid, started again with back-off when it ends. It leads a
 * session of its own, so that a signal reaches what it started itself (a shell's children) and a
 * terminal's Ctrl-C does not. Its standard input and errors are /dev/null.
 *
 * When the daemon is killed itself, the kernel kills the child (pdeath_exec). Without that its next
 * line meets a closed pipe: SIGPIPE ends it (uv_spawn restores its default).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

/* argv of a start with pdeath_exec: this name, the daemon's pid, the program's absolute path, its
 * arguments. */
#define PDEATH_EXEC_NAME "edgeprofd-keeper"

enum { PDEATH_EXEC_ARGUMENTS = 8 }; /* of the program, with its path */
enum { CHILD_WHY_SIZE = 96, CHILD_READ_SIZE = 4096 };

enum child_phase {
	CHILD_IDLE,	/* none; the next start is timed */
	CHILD_RUNNING,	/* its output is read */
	CHILD_STOPPING, /* was sent SIGTERM; output is not read any more */
	CHILD_REAPING,	/* has ended; its handles close */
};

struct child_options {
	/* argv[0] is the absolute path; the array and its texts stay the owner's and are read at
	 * each start. */
	const char *const *argv;
	const char *pdeath_exec; /* executable whose main calls pdeath_exec_run(); NULL = none */
	uint64_t backoff_min_ms, backoff_max_ms; /* doubled with each end; reset by a life
						    of backoff_max_ms */
	uint64_t kill_ms;			 /* from SIGTERM to SIGKILL */
	/* Output of the running child. May call child_restart, not child_close. length 0: a new
	 * child begins. */
	void (*output)(void *ctx, const char *bytes, size_t length);
	void (*closed)(void *ctx); /* after child_close: nothing is used any more */
	void *ctx;
};

/* Open for reading. Stays where it is until closed. */
struct child {
	struct child_options options;
	enum child_phase phase;
	bool closing;
	uint32_t starts, deaths;  /* deaths: failed starts, too */
	int spawn_error;	  /* -errno of the last start; 0 = it ran */
	char why[CHILD_WHY_SIZE]; /* the last one ended; "" = none did */

	uv_timer_t timer; /* idle: the next start; stopping: SIGKILL */
	uv_process_t process;
	uv_pipe_t output;
	unsigned handles; /* that are not closed: process and output, at the end the timer */
	uint64_t backoff_ms, started_ms;
	bool restart_now, killed, has_pid, output_ended;
	char buffer[CHILD_READ_SIZE];
};

/* Starts it in the loop's next iteration. Cannot fail: a start that does is in spawn_error. */
void child_open(struct child *child, uv_loop_t *loop, const struct child_options *options);

/* Ends the present child (if any), then starts the next: now, or after the back-off. why is
 * then in child->why. */
void child_restart(struct child *child, const char *why, bool now);

/* SIGTERM, SIGKILL after kill_ms, then options.closed from the loop. Idempotent. A child that even
 * SIGKILL does not end within another kill_ms (D state) is abandoned. */
void child_close(struct child *child);

/* For main, before anything else. uv_spawn cannot make a program end with its parent, so
 * the daemon's own executable is started, which asks the kernel for it and becomes the program: the
 * process, its pid and its pipes stay the same. Returns when argv[0] is not PDEATH_EXEC_NAME;
 * otherwise becomes the program, or writes why it cannot to standard output and exits with 127. */
void pdeath_exec_run(char **argv);
