/* SPDX-License-Identifier: Apache-2.0 */
/* child.c: keeps one program running. It is a state machine around one uv_process_t: idle ->
 * running -> (stopping ->) reaping -> idle. The process and its pipe are new handles in the same
 * storage at each start, which is why the next start waits until both are closed. */
#include "daemon/collect/lib/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { LAST_READS = 16 }; /* of what a dead child left in the pipe */

static void start(struct child *child);
static void on_timer(uv_timer_t *timer);

static void on_timer_closed(uv_handle_t *handle)
{
	struct child *child = handle->data;
	child->options.closed(child->options.ctx);
}

static void idle(struct child *child)
{
	child->phase = CHILD_IDLE;
	if (child->closing) {
		uv_close((uv_handle_t *)&child->timer, on_timer_closed);
		return;
	}
	uint64_t now_ms = uv_now(child->timer.loop);
	if (now_ms - child->started_ms >= child->options.backoff_max_ms) {
		child->backoff_ms = child->options.backoff_min_ms;
	}
	uint64_t wait_ms = child->restart_now ? 0 : child->backoff_ms;
	if (!child->restart_now) {
		child->backoff_ms *= 2;
		if (child->backoff_ms > child->options.backoff_max_ms) {
			child->backoff_ms = child->options.backoff_max_ms;
		}
	}
	child->restart_now = false;
	uv_timer_start(&child->timer, on_timer, wait_ms, 0);
}

static void on_closed(uv_handle_t *handle)
{
	struct child *child = handle->data;
	if (--child->handles == 0) {
		idle(child);
	}
}

static void reap(struct child *child)
{
	child->phase = CHILD_REAPING;
	child->deaths++;
	child->has_pid = false;
	uv_timer_stop(&child->timer);
	uv_close((uv_handle_t *)&child->output, on_closed);
	uv_close((uv_handle_t *)&child->process, on_closed);
}

static void signal_group(const struct child *child, int signum)
{
	if (child->has_pid) {
		(void)kill(-child->process.pid, signum);
	}
}

/* What was written before the end and not read yet. Bounded: a grandchild may still write. */
static void read_rest(struct child *child)
{
	int fd;
	if (child->phase != CHILD_RUNNING || uv_fileno((uv_handle_t *)&child->output, &fd) < 0) {
		return;
	}
	for (int i = 0; i < LAST_READS && child->phase == CHILD_RUNNING; i++) {
		ssize_t n = read(fd, child->buffer, sizeof(child->buffer));
		if (n <= 0) {
			return;
		}
		child->options.output(child->options.ctx, child->buffer, (size_t)n);
	}
}

static void on_process_exit(uv_process_t *process, int64_t status, int signum)
{
	struct child *child = process->data;
	read_rest(child);
	/* Its output mostly ends a moment before it does: then that is not the cause. */
	bool unasked = child->phase == CHILD_RUNNING ||
		       (child->output_ended && signum != SIGTERM && signum != SIGKILL);
	if (unasked && signum != 0) {
		const char *name = sigabbrev_np(signum);
		snprintf(child->why, sizeof(child->why), "ended by signal %d (SIG%s)", signum,
			name ? name : "?");
	} else if (unasked) {
		snprintf(child->why, sizeof(child->why), "exited with status %d", (int)status);
	}
	/* What it started is killed with it. Its pid was reaped in this iteration of the loop and
	 * cannot be another group's leader yet: the kernel hands pids out in a circle. */
	signal_group(child, SIGKILL);
	reap(child);
}

static void stop(struct child *child, const char *why)
{
	snprintf(child->why, sizeof(child->why), "%s", why);
	child->phase = CHILD_STOPPING;
	child->killed = false;
	uv_read_stop((uv_stream_t *)&child->output);
	signal_group(child, SIGTERM);
	uv_timer_start(&child->timer, on_timer, child->options.kill_ms, 0);
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct child *child = handle->data;
	(void)suggested;
	*buf = uv_buf_init(child->buffer, sizeof(child->buffer));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct child *child = stream->data;
	if (child->phase != CHILD_RUNNING || n == 0) {
		return;
	}
	if (n > 0) {
		child->options.output(child->options.ctx, buf->base, (size_t)n);
		return;
	}
	child->output_ended = true;
	stop(child, "closed its output");
}

/* With pdeath_exec that is what is started: its name, our pid, the program and its arguments. */
static void fill_argv(
	const struct child *child, char *pid, const char *argv[PDEATH_EXEC_ARGUMENTS + 3])
{
	size_t used = 0;
	if (child->options.pdeath_exec) {
		argv[used++] = PDEATH_EXEC_NAME;
		argv[used++] = pid;
	}
	for (size_t i = 0; i < PDEATH_EXEC_ARGUMENTS && child->options.argv[i]; i++) {
		argv[used++] = child->options.argv[i];
	}
	argv[used] = NULL;
}

static void start(struct child *child)
{
	const char *argv[PDEATH_EXEC_ARGUMENTS + 3];
	char pid[16];
	snprintf(pid, sizeof(pid), "%d", getpid());
	fill_argv(child, pid, argv);
	uv_stdio_container_t stdio[] = {
		{.flags = UV_IGNORE},
		{.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
			.data.stream = (uv_stream_t *)&child->output},
		{.flags = UV_IGNORE},
	};
	char *env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL};
	const uv_process_options_t options = {
		.file = child->options.pdeath_exec ? child->options.pdeath_exec
						   : child->options.argv[0],
		.args = (char **)(uintptr_t)argv, /* execve's type: not written to */
		.env = env,
		.cwd = "/",
		.flags = UV_PROCESS_DETACHED,
		.stdio_count = 3,
		.stdio = stdio,
		.exit_cb = on_process_exit,
	};
	uv_pipe_init(child->timer.loop, &child->output, 0);
	child->output.data = child;
	child->output_ended = false;
	child->handles = 2;
	child->starts++;
	child->started_ms = uv_now(child->timer.loop);
	child->options.output(child->options.ctx, "", 0);
	child->spawn_error = uv_spawn(child->timer.loop, &child->process, &options);
	child->process.data = child;
	if (child->spawn_error < 0) {
		snprintf(child->why, sizeof(child->why), "%s", uv_strerror(child->spawn_error));
		reap(child);
		return;
	}
	child->has_pid = true;
	child->phase = CHILD_RUNNING;
	uv_read_start((uv_stream_t *)&child->output, on_allocate, on_read);
}

static void on_timer(uv_timer_t *timer)
{
	struct child *child = timer->data;
	if (child->phase == CHILD_IDLE) {
		start(child);
	} else if (child->phase == CHILD_STOPPING && !child->killed) {
		child->killed = true;
		signal_group(child, SIGKILL);
		uv_timer_start(&child->timer, on_timer, child->options.kill_ms, 0);
	} else if (child->phase == CHILD_STOPPING && child->closing) {
		reap(child);
	}
}

void child_open(struct child *child, uv_loop_t *loop, const struct child_options *options)
{
	memset(child, 0, sizeof(*child));
	child->options = *options;
	child->backoff_ms = options->backoff_min_ms;
	uv_timer_init(loop, &child->timer);
	child->timer.data = child;
	uv_timer_start(&child->timer, on_timer, 0, 0);
}

void child_restart(struct child *child, const char *why, bool now)
{
	if (child->closing) {
		return;
	}
	child->restart_now = child->restart_now || now;
	if (child->phase == CHILD_RUNNING) {
		stop(child, why);
	} else if (child->phase == CHILD_IDLE && now) {
		idle(child);
	}
}

void child_close(struct child *child)
{
	if (child->closing) {
		return;
	}
	child->closing = true;
	switch (child->phase) {
	case CHILD_IDLE:
		idle(child);
		break;
	case CHILD_RUNNING:
		stop(child, "stopped");
		break;
	case CHILD_STOPPING:
		if (child->killed) {
			uv_timer_start(&child->timer, on_timer, child->options.kill_ms, 0);
		}
		break;
	case CHILD_REAPING:
		break;
	}
}

/* Runs in the child, between uv_spawn and the program. PR_SET_PDEATHSIG outlives execve. */
void pdeath_exec_run(char **argv)
{
	if (!argv[0] || strcmp(argv[0], PDEATH_EXEC_NAME) != 0 || !argv[1] || !argv[2]) {
		return;
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The daemon may have died before that was asked for. */
	if (getppid() != strtol(argv[1], NULL, 10)) {
		_exit(127);
	}
	execv(argv[2], argv + 2);
	printf("cannot run %s: %s\n", argv[2], strerror(errno));
	fflush(stdout);
	_exit(127);
}
