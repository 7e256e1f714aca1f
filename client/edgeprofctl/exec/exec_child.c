/* SPDX-License-Identifier: Apache-2.0 */
/* exec_child.c: starts a command in two steps: a process that has the controls waits on a pipe, so
 * that it can be put into a control group, counted and attached to before its first instruction.
 * It stays in the process group of the caller: the terminal's job control works as without. */
#include "client/edgeprofctl/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static void report(int fd, struct exec_failure failure)
{
	while (write(fd, &failure, sizeof(failure)) < 0 && errno == EINTR) {
	}
}

static _Noreturn void run_child(const int go[2], int fd, char **argv,
	const struct exec_controls *controls, const sigset_t *mask)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	struct exec_failure failure = exec_controls_apply(controls);
	char byte;
	close(go[1]);
	report(fd, failure);
	ssize_t got = -1;
	while (failure.error == 0 && (got = read(go[0], &byte, 1)) < 0 && errno == EINTR) {
	}
	if (got == 1) {
		sigaction(SIGPIPE, &usual, NULL);
		sigprocmask(SIG_SETMASK, mask, NULL);
		execvp(argv[0], argv);
		report(fd, (struct exec_failure){EXEC_RUN, errno});
	}
	_exit(CTL_NOT_PERMITTED);
}

/* The next report; at its end, which exec(2) makes, the step EXEC_READY. */
static struct exec_failure next_report(const struct exec_child *child)
{
	struct exec_failure failure;
	ssize_t got;
	while ((got = read(child->report, &failure, sizeof(failure))) < 0 && errno == EINTR) {
	}
	return got == sizeof(failure) ? failure : (struct exec_failure){EXEC_READY, 0};
}

/* SIGINT and SIGQUIT of the terminal reach the command directly, and must not end this process
 * before it; others are forwarded. */
static void block_signals(sigset_t *ret_previous)
{
	static const int numbers[] = {
		SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};
	struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		sigaddset(&set, numbers[i]);
	}
	sigaction(SIGCHLD, &usual, NULL); /* ignored, it would take the exit status along */
	sigprocmask(SIG_BLOCK, &set, ret_previous);
}

struct exec_failure exec_child_start(
	struct exec_child *child, char **argv, const struct exec_controls *controls)
{
	int go[2], result[2];
	if (pipe2(go, O_CLOEXEC) < 0) {
		return (struct exec_failure){EXEC_RUN, errno};
	}
	if (pipe2(result, O_CLOEXEC) < 0) {
		int error = errno;
		close(go[0]);
		close(go[1]);
		return (struct exec_failure){EXEC_RUN, error};
	}
	block_signals(&child->previous);
	child->pid = fork();
	if (child->pid == 0) {
		run_child(go, result[1], argv, controls, &child->previous);
	}
	int error = errno;
	close(go[0]);
	close(result[1]);
	child->go = go[1];
	child->report = result[0];
	if (child->pid < 0) {
		close(go[1]);
		close(result[0]);
		return (struct exec_failure){EXEC_RUN, error};
	}
	struct exec_failure failure = next_report(child);
	if (failure.error != 0) {
		exec_child_abort(child);
	}
	return failure;
}

struct exec_failure exec_child_release(struct exec_child *child)
{
	ssize_t written = write(child->go, "", 1);
	(void)written; /* it fails only when the process has ended, as the report's end shows */
	struct exec_failure failure = next_report(child);
	if (failure.error != 0) {
		exec_child_abort(child);
		return failure;
	}
	close(child->go);
	close(child->report);
	return failure;
}

void exec_child_abort(struct exec_child *child)
{
	close(child->go);
	close(child->report);
	while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
	}
}
