/* SPDX-License-Identifier: Apache-2.0 */
/* exec_helper.c: runs the programs that exec needs: busctl, and perf, which records call stacks. */
#include "client/edgeprofctl/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/edgeprofctl/term/when.h"

enum { PAUSE_MS = 5, PERF_START_MS = 10000 };

void exec_pause(void)
{
	static const struct timespec time = {.tv_nsec = PAUSE_MS * 1000 * 1000};
	nanosleep(&time, NULL);
}

int exec_helper_start(struct exec_helper *helper, const char *const argv[], const sigset_t *mask)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	*helper = (struct exec_helper){.messages = memfd_create("messages", MFD_CLOEXEC)};
	if (helper->messages < 0) {
		return -errno;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, helper->messages, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	/* not in the group that gets Ctrl-C: a recording ends after the command */
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, mask);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	int error = posix_spawnp(&helper->pid, argv[0], &actions, &attributes, (char *const *)argv,
		environ); /* which it leaves alone */
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (error != 0) {
		close(helper->messages);
		helper->pid = 0;
	}
	return -error;
}

static bool has_ended(struct exec_helper *helper)
{
	helper->ended =
		helper->ended || waitpid(helper->pid, &helper->status, WNOHANG) == helper->pid;
	return helper->ended;
}

bool exec_helper_finish(struct exec_helper *helper, double milliseconds)
{
	char text[2048], *rest = text;
	for (double end_ms = when_mono_ms() + milliseconds; !has_ended(helper); exec_pause()) {
		if (when_mono_ms() > end_ms) {
			kill(helper->pid, SIGKILL);
		}
	}
	ssize_t got = pread(helper->messages, text, sizeof(text) - 1, 0);
	text[got > 0 ? got : 0] = '\0';
	snprintf(helper->reason, sizeof(helper->reason), "exit status %d",
		WIFEXITED(helper->status) ? WEXITSTATUS(helper->status)
					  : 128 + WTERMSIG(helper->status));
	for (char *line; (line = strsep(&rest, "\n"));) {
		size_t length = strlen(line);
		if (length > 0 && line[length - 1] != ':') { /* not just "Error:" */
			snprintf(helper->reason, sizeof(helper->reason), "%s", line);
			break;
		}
	}
	close(helper->messages);
	helper->pid = 0;
	return helper->status == 0;
}

int exec_perf_start(struct ctl *ctl, struct exec_helper *perf, const struct exec_child *child)
{
	const char *file = ctl->options.exec.perf_record;
	char pid[16];
	const char *const argv[] = {
		"perf", "record", "-g", "-F", "99", "-o", file, "-p", pid, NULL};
	struct stat before = {0}, now;
	snprintf(pid, sizeof(pid), "%d", (int)child->pid);
	stat(file, &before);
	int r = exec_helper_start(perf, argv, &child->previous);
	if (r < 0) {
		return ctl_fail(ctl, CTL_UNREACHABLE, "cannot run perf: %s", strerror(-r));
	}
	double end_ms = when_mono_ms() + PERF_START_MS;
	while (!has_ended(perf) && when_mono_ms() < end_ms) {
		/* perf writes the head of its file after it has attached, and renames an existing
		 * file unless it is empty. */
		if (stat(file, &now) == 0 && now.st_size > 0 &&
			(now.st_ino != before.st_ino || before.st_size == 0)) {
			return CTL_FINE;
		}
		exec_pause();
	}
	exec_helper_finish(perf, 0);
	return ctl_fail(ctl, CTL_NOT_PERMITTED, "perf record failed: %s", perf->reason);
}
