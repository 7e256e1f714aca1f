/* SPDX-License-Identifier: Apache-2.0 */
/* exec_perf.c: records call stacks with perf, which attaches to the process that waits. */
#include "client/edgeprofctl/exec/exec.h"

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/edgeprofctl/term/when.h"

enum { PAUSE_US = 5000, START_MS = 10000, END_MS = 30000 };

/* Starts a program, with its messages in memory. 0, or -ENOENT … */
static int start(struct exec_perf *perf, const char *const argv[], const sigset_t *mask)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	perf->messages = memfd_create("messages", MFD_CLOEXEC);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, perf->messages, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	/* not in the group that gets Ctrl-C: a recording ends after the command */
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, mask);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	int error = posix_spawnp(&perf->pid, argv[0], &actions, &attributes, (char *const *)argv,
		environ); /* which it leaves alone */
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (error != 0) {
		close(perf->messages);
		perf->pid = 0;
	}
	return -error;
}

static bool has_ended(struct exec_perf *perf)
{
	perf->ended = perf->ended || waitpid(perf->pid, &perf->status, WNOHANG) == perf->pid;
	return perf->ended;
}

/* Closes its messages; the first line that says something becomes the reason. */
static void read_reason(struct exec_perf *perf)
{
	char text[2048], *rest = text;
	ssize_t got = pread(perf->messages, text, sizeof(text) - 1, 0);
	text[got > 0 ? got : 0] = '\0';
	snprintf(perf->reason, sizeof(perf->reason), "wait status %d", perf->status);
	for (char *line; (line = strsep(&rest, "\n"));) {
		size_t length = strlen(line);
		if (length > 0 && line[length - 1] != ':') { /* not just "Error:" */
			snprintf(perf->reason, sizeof(perf->reason), "%.*s",
				(int)sizeof(perf->reason) - 1, line);
			break;
		}
	}
	close(perf->messages);
	perf->pid = 0;
}

bool exec_perf_finish(struct exec_perf *perf)
{
	double end_ms = when_mono_ms() + END_MS;
	for (int number = SIGINT; !has_ended(perf); usleep(PAUSE_US)) {
		if (number == SIGINT || when_mono_ms() > end_ms) {
			kill(perf->pid, number);
			number = SIGKILL;
		}
	}
	read_reason(perf);
	return perf->status == 0 || (WIFSIGNALED(perf->status) && WTERMSIG(perf->status) == SIGINT);
}

int exec_perf_start(struct ctl *ctl, struct exec_perf *perf, const struct exec_child *child)
{
	const char *file = ctl->options.exec.perf_record;
	char pid[16];
	const char *const argv[] = {
		"perf", "record", "-g", "-F", "99", "-o", file, "-p", pid, NULL};
	struct stat before = {0}, now;
	snprintf(pid, sizeof(pid), "%d", (int)child->pid);
	stat(file, &before);
	int r = start(perf, argv, &child->previous);
	if (r < 0) {
		return ctl_fail(ctl, CTL_UNREACHABLE, "cannot run perf: %s", strerror(-r));
	}
	double end_ms = when_mono_ms() + START_MS;
	while (!has_ended(perf) && when_mono_ms() < end_ms) {
		/* perf writes the head of its file after it has attached, and renames an existing
		 * file unless it is empty. */
		if (stat(file, &now) == 0 && now.st_size > 0 &&
			(now.st_ino != before.st_ino || before.st_size == 0)) {
			return CTL_FINE;
		}
		usleep(PAUSE_US);
	}
	exec_perf_finish(perf);
	return ctl_fail(ctl, CTL_NOT_PERMITTED, "perf record failed: %s", perf->reason);
}
