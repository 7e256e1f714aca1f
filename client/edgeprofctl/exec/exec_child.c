/* SPDX-License-Identifier: Apache-2.0 */
/* exec_child.c: starts a command in two steps: a process that has the controls waits for a byte, so
 * that it can be put into a control group, counted and attached to before its first instruction.
 * It stays in the process group of the caller: the terminal's job control works as without. */
#include "client/edgeprofctl/exec/exec.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RT_PRIORITY_MAX = 99, QUOTA_MAX = 100000, NICE_MIN = -20, NICE_MAX = 19 };

int exec_parse_cpus(const char *text, cpu_set_t *ret)
{
	CPU_ZERO(ret);
	for (;; text++) {
		char *end;
		if (!isdigit((unsigned char)text[0])) {
			return -EINVAL;
		}
		unsigned long first = strtoul(text, &end, 10), last = first;
		if (end[0] == '-' && isdigit((unsigned char)end[1])) {
			last = strtoul(end + 1, &end, 10);
		}
		if (last < first || last >= CPU_SETSIZE) {
			return -EINVAL;
		}
		for (; first <= last; first++) {
			CPU_SET(first, ret);
		}
		text = end;
		if (*text != ',') {
			return *text == '\0' ? 0 : -EINVAL;
		}
	}
}

static int option_cpus(const struct option_spec *spec, const char *text, void *value)
{
	cpu_set_t cpus;
	return exec_parse_cpus(text, &cpus) < 0 ? -EINVAL : option_text(spec, text, value);
}

static int option_nice(const struct option_spec *spec, const char *text, void *value)
{
	char *end;
	long nice = strtol(text, &end, 10);
	bool valid = isdigit((unsigned char)text[text[0] == '-']) && *end == '\0' &&
		     nice >= NICE_MIN && nice <= NICE_MAX;
	return valid ? option_text(spec, text, value) : -EINVAL;
}

static int option_priority(const struct option_spec *spec, const char *text, void *value)
{
	return option_count(spec, text, value) < 0 || *(long *)value > RT_PRIORITY_MAX ? -EINVAL
										       : 0;
}

static int option_quota(const struct option_spec *spec, const char *text, void *value)
{
	char *end;
	double percent = strtod(text, &end);
	(void)spec;
	end += *end == '%';
	if (strspn(text, "0123456789.%") != strlen(text) || *end != '\0' || !(percent >= 1) ||
		percent > QUOTA_MAX) {
		return -EINVAL;
	}
	*(double *)value = percent;
	return 0;
}

static int option_perf(const struct option_spec *spec, const char *text, void *value)
{
	return option_text(spec, text && text[0] != '\0' ? text : "perf.data", value);
}

const struct option_spec exec_options[] = {
	{"cpus", 0, "LIST", "run on these CPUs only, such as 0-3,6", option_cpus,
		offsetof(struct options, exec.cpus)},
	{"nice", 0, "N", "niceness, -20 to 19", option_nice, offsetof(struct options, exec.nice)},
	{"rr", 0, "PRIORITY", "real-time policy SCHED_RR, priority 1 to 99", option_priority,
		offsetof(struct options, exec.rr)},
	{"fifo", 0, "PRIORITY", "real-time policy SCHED_FIFO, priority 1 to 99", option_priority,
		offsetof(struct options, exec.fifo)},
	{"quota", 0, "PERCENT", "CPU time at most, in percent of one CPU: 50%, 200%", option_quota,
		offsetof(struct options, exec.quota_percent)},
	{"env", 0, "NAME=VALUE", "set an environment variable; may be repeated", option_pair,
		offsetof(struct options, exec.env)},
	{"limit", 0, "SPAN", "end the command after this time: SIGTERM, 2 s later SIGKILL",
		option_ms, offsetof(struct options, exec.limit_ms)},
	{"perf-record", 0, "[FILE]", "record call stacks with perf; default: perf.data",
		option_perf, offsetof(struct options, exec.perf_record)},
	{"output", 'o', "FILE", "write the result as JSON to FILE", option_nonempty,
		offsetof(struct options, output)},
	{.name = NULL},
};

/* The kernel ignores CPUs that are not available as long as one is: false here. */
static bool set_cpus(const char *text, pid_t pid)
{
	cpu_set_t cpus, now;
	exec_parse_cpus(text, &cpus);
	return sched_setaffinity(pid, sizeof(cpus), &cpus) == 0 &&
	       sched_getaffinity(pid, sizeof(now), &now) == 0 && CPU_EQUAL(&now, &cpus);
}

static int apply_controls(struct ctl *ctl, pid_t pid)
{
	const struct exec_options *options = &ctl->options.exec;
	bool rr = options->rr > 0;
	struct sched_param parameters = {.sched_priority = (int)(rr ? options->rr : options->fifo)};
	if (options->cpus && !set_cpus(options->cpus, pid)) {
		return ctl_fail(ctl, CTL_USAGE, "--cpus %s: not all of these CPUs are available",
			options->cpus);
	}
	if (parameters.sched_priority > 0 &&
		sched_setscheduler(pid, rr ? SCHED_RR : SCHED_FIFO, &parameters) < 0) {
		return ctl_fail(ctl, CTL_NOT_PERMITTED,
			"cannot set %s: %s; it needs CAP_SYS_NICE or an rtprio limit",
			rr ? "SCHED_RR" : "SCHED_FIFO", strerror(errno));
	}
	if (options->nice &&
		setpriority(PRIO_PROCESS, (id_t)pid, (int)strtol(options->nice, NULL, 10)) < 0) {
		return ctl_fail(ctl, CTL_NOT_PERMITTED,
			"cannot set --nice %s: %s; it needs CAP_SYS_NICE or a nice limit",
			options->nice, strerror(errno));
	}
	return CTL_FINE;
}

static _Noreturn void run_child(int fd, const struct ctl *ctl, const sigset_t *mask)
{
	const struct option_list *env = &ctl->options.exec.env;
	struct sigaction usual = {.sa_handler = SIG_DFL};
	char byte;
	if (recv(fd, &byte, 1, 0) == 1) {
		for (size_t i = 0; i < env->count; i++) {
			putenv((char *)env->items[i]); /* which belongs to argv */
		}
		sigaction(SIGPIPE, &usual, NULL);
		sigprocmask(SIG_SETMASK, mask, NULL);
		execvp(ctl->words[0], ctl->words);
		int error = errno;
		send(fd, &error, sizeof(error), MSG_NOSIGNAL);
	}
	_exit(CTL_NOT_PERMITTED);
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

int exec_child_start(struct ctl *ctl, struct exec_child *child)
{
	int ends[2];
	block_signals(&child->previous);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
		(child->pid = fork()) < 0) {
		return ctl_fail(ctl, CTL_OUTPUT, "cannot start a process: %s", strerror(errno));
	}
	if (child->pid == 0) {
		close(ends[0]);
		run_child(ends[1], ctl, &child->previous);
	}
	close(ends[1]);
	child->fd = ends[0];
	int status = ctl->options.exec.rr > 0 && ctl->options.exec.fifo > 0
			     ? ctl_fail(ctl, CTL_USAGE, "--rr and --fifo exclude each other")
			     : apply_controls(ctl, child->pid);
	if (status != CTL_FINE) {
		exec_child_abort(child);
	}
	return status;
}

/* As shells do: 127 when a command is not found, 126 when it can't be run. */
int exec_child_release(struct ctl *ctl, struct exec_child *child)
{
	int error;
	send(child->fd, "", 1, MSG_NOSIGNAL);
	if (recv(child->fd, &error, sizeof(error), 0) == sizeof(error)) {
		exec_child_abort(child);
		return ctl_fail(ctl, error == ENOENT ? 127 : 126, "cannot run %s: %s",
			ctl->words[0], strerror(error));
	}
	close(child->fd); /* by exec(2) at the other end */
	return CTL_FINE;
}

void exec_child_abort(struct exec_child *child)
{
	close(child->fd);
	waitpid(child->pid, NULL, 0);
}
