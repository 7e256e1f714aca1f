/* SPDX-License-Identifier: Apache-2.0 */
/* pi_tool.c: runs vcgencmd for the collectors throttle and pi, on their worker. The program leads a
 * session of its own, so that one signal reaches what it started as well; it is only reaped after
 * that, so that its number cannot be somebody else's by then. */
#include "daemon/collect/board/pi_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"

/* 100 ms for a run at one call (it takes 14 ms on a Pi 5), 500 ms for its end at close. */
enum { POLLS = 10, CLOSE_POLLS = 50, POLL_MS = 10 };

void pi_tool_init(struct pi_tool *tool, const char *path, const char *command)
{
	memset(tool, 0, sizeof(*tool));
	tool->fd = -1;
	tool->command = command;
	tool->result = -EAGAIN;
	snprintf(tool->path, sizeof(tool->path), "%s", path ? path : "");
}

int pi_tool_check(const struct pi_tool *tool)
{
	if (tool->path[0] == '\0') {
		return -ENODEV;
	}
	if (tool->path[0] != '/') {
		return -EINVAL;
	}
	return access(tool->path, X_OK) < 0 ? -errno : 0;
}

/* 0 or a positive errno, as posix_spawn has it. */
static int spawn(struct pi_tool *tool, int output)
{
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
	sigset_t none, all;
	char command[32];
	snprintf(command, sizeof(command), "%s", tool->command);
	char *argv[] = {tool->path, command, NULL};
	char *envp[] = {NULL};
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_init(&actions);
	/* Workers block every signal; a program expects none blocked. */
	int r = posix_spawnattr_setsigmask(&attributes, &none);
	r = r ? r : posix_spawnattr_setsigdefault(&attributes, &all);
	r = r ? r
	      : posix_spawnattr_setflags(&attributes,
			POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	r = r ? r : posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, output, 1);
	r = r ? r : posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	r = r ? r : posix_spawn(&tool->pid, tool->path, &actions, &attributes, argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return r;
}

static void conclude(struct pi_tool *tool, int result)
{
	tool->result = result;
	if (result < 0) {
		tool->answer[0] = '\0';
		tool->next_ns = tool->started_ns + PI_TOOL_RETRY_NS;
	} else {
		memcpy(tool->answer, tool->text, tool->length);
		tool->answer[tool->length] = '\0';
	}
}

static void end_output(struct pi_tool *tool)
{
	if (tool->fd >= 0) {
		close(tool->fd);
	}
	tool->fd = -1;
}

static void start(struct pi_tool *tool, uint64_t now_ns)
{
	int ends[2];
	tool->started_ns = now_ns;
	tool->next_ns = now_ns + PI_TOOL_EVERY_NS - PI_TOOL_EARLY_NS;
	tool->killed = false;
	tool->failure = 0;
	tool->length = 0;
	int r = pi_tool_check(tool);
	if (r == 0 && pipe2(ends, O_CLOEXEC) < 0) {
		r = -errno;
	}
	if (r < 0) {
		conclude(tool, r);
		return;
	}
	r = fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? errno : spawn(tool, ends[1]);
	close(ends[1]);
	tool->fd = ends[0];
	if (r != 0) {
		tool->pid = 0;
		end_output(tool);
		conclude(tool, -r);
	}
}

static void kill_it(struct pi_tool *tool, int failure)
{
	if (!tool->killed) {
		(void)kill(-tool->pid, SIGKILL);
		tool->killed = true;
		tool->failure = failure;
	}
	end_output(tool);
}

static void read_output(struct pi_tool *tool)
{
	while (tool->fd >= 0) {
		size_t capacity = sizeof(tool->text) - 1 - tool->length;
		char more;
		ssize_t n = capacity > 0 ? read(tool->fd, tool->text + tool->length, capacity)
					 : read(tool->fd, &more, 1);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			return;
		}
		if (n <= 0) {
			end_output(tool);
		} else if (capacity == 0) {
			kill_it(tool, -EMSGSIZE);
		} else {
			tool->length += (size_t)n;
		}
	}
}

/* True when it has ended: what it left behind is killed, then it is reaped. */
static bool reap(struct pi_tool *tool)
{
	siginfo_t info = {.si_pid = 0};
	int status = 0;
	if (waitid(P_PID, (id_t)tool->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		info.si_pid == 0) {
		return false;
	}
	(void)kill(-tool->pid, SIGKILL);
	read_output(tool); /* what is left in the pipe */
	end_output(tool);
	pid_t pid = waitpid(tool->pid, &status, WNOHANG);
	tool->pid = 0;
	bool well = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	conclude(tool, tool->failure < 0 ? tool->failure : well ? 0 : -EREMOTEIO);
	return true;
}

static void poll_run(struct pi_tool *tool)
{
	for (int i = 0; tool->pid != 0 && i < POLLS; i++) {
		struct pollfd output = {.fd = tool->fd, .events = POLLIN};
		(void)poll(&output, 1, POLL_MS);
		read_output(tool);
		if (!reap(tool) && sysops()->now_ns() - tool->started_ns >= PI_TOOL_LIMIT_NS) {
			kill_it(tool, -ETIMEDOUT);
		}
	}
}

int pi_tool_ask(struct pi_tool *tool)
{
	uint64_t now_ns = sysops()->now_ns();
	if (tool->path[0] == '\0') {
		return -ENODEV;
	}
	if (tool->pid == 0 && now_ns >= tool->next_ns) {
		start(tool, now_ns);
	}
	poll_run(tool);
	return tool->pid != 0 && tool->killed ? tool->failure : tool->result;
}

void pi_tool_close(struct pi_tool *tool)
{
	/* In D state even SIGKILL waits: then it is left to the init process. */
	for (int i = 0; tool->pid != 0 && i < CLOSE_POLLS; i++) {
		kill_it(tool, -ECANCELED);
		if (!reap(tool)) {
			(void)poll(NULL, 0, POLL_MS);
		}
	}
	end_output(tool);
	tool->pid = 0;
}

const char *pi_tool_refuse(const char *key, const char *value)
{
	bool fine = strcmp(key, "vcgencmd") != 0 || value[0] == '\0' || value[0] == '/';
	return fine ? NULL : "not an absolute path";
}

const char *pi_tool_reason(int result)
{
	switch (-result) {
	case EAGAIN:
		return "has not answered yet";
	case ENODEV:
		return "not configured";
	case EINVAL:
		return "not an absolute path";
	case ETIMEDOUT:
		return "killed: did not end within 2 s";
	case EMSGSIZE:
		return "killed: printed too much";
	case EREMOTEIO:
		return "ended with a failure";
	case EBADMSG:
		return "printed something else";
	default:
		return errno_reason(result);
	}
}
