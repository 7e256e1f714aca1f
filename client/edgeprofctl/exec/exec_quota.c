/* SPDX-License-Identifier: Apache-2.0 */
/* exec_quota.c: limits the CPU time of a command through a control group of its own: a transient
 * scope of systemd, else a group below or next to the one of this process, where that may be
 * written (root, delegated groups). The limit is read back before the command runs. */
#include "client/edgeprofctl/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/when.h"

enum {
	PERIOD_US = 100000,
	RT_PERIOD_US = 1000000,
	RT_MAX_US = 900000,
	SCOPE_MS = 2000,
	REMOVE_MS = 500,
	PATH_SIZE = 512
};

static bool read_file(const char *folder, const char *name, char *text, size_t size)
{
	char path[PATH_SIZE + 32];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return exec_read_file(AT_FDCWD, path, text, size);
}

static int write_file(const char *folder, const char *name, long long first, long long second)
{
	char path[PATH_SIZE + 32], text[64];
	int length = second > 0 ? snprintf(text, sizeof(text), "%lld %lld", first, second)
				: snprintf(text, sizeof(text), "%lld", first);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = fd < 0 || write(fd, text, (size_t)length) < 0 ? -errno : 0;
	if (fd >= 0) {
		close(fd);
	}
	return r;
}

/* The folder of the process's group in the hierarchy with the cpu controller. */
static bool folder_of(pid_t pid, char ret[PATH_SIZE], bool *ret_v1)
{
	char folder[32], text[4096], *rest = text;
	ret[0] = '\0';
	snprintf(folder, sizeof(folder), "/proc/%d", (int)pid);
	read_file(folder, "cgroup", text, sizeof(text));
	for (char *line; (line = strsep(&rest, "\n"));) {
		strsep(&line, ":");
		char *controllers = strsep(&line, ":"), *one;
		bool v2 = controllers && controllers[0] == '\0', v1 = false;
		while (!v2 && (one = strsep(&controllers, ","))) {
			v1 = v1 || strcmp(one, "cpu") == 0;
		}
		if (line && (v1 || (v2 && ret[0] == '\0'))) {
			snprintf(ret, PATH_SIZE, "/sys/fs/cgroup%s%s", v1 ? "/cpu" : "",
				strcmp(line, "/") == 0 ? "" : line);
			*ret_v1 = v1;
		}
	}
	return ret[0] != '\0';
}

/* The limit as the kernel has it, in percent of a CPU; 0 = none. */
static double limit_of(const struct exec_quota *quota)
{
	char text[64];
	long long limit_us = 0, period_us = 0;
	if (!quota->v1) {
		read_file(quota->folder, "cpu.max", text, sizeof(text));
		sscanf(text, "%lld %lld", &limit_us, &period_us);
	} else if (read_file(quota->folder, "cpu.cfs_quota_us", text, sizeof(text))) {
		limit_us = strtoll(text, NULL, 10);
		read_file(quota->folder, "cpu.cfs_period_us", text, sizeof(text));
		period_us = strtoll(text, NULL, 10);
	}
	return limit_us > 0 && period_us > 0 ? 100 * (double)limit_us / (double)period_us : 0;
}

static bool is_applied(const struct exec_quota *quota, double percent)
{
	double limit = limit_of(quota);
	return limit > 0.98 * percent && limit < 1.02 * percent;
}

/* Requests a scope with the process in it and waits until it is there. */
static bool make_scope(struct exec_quota *quota, const struct exec_child *child, double percent,
	char *reason, size_t size)
{
	char name[64], pid[16], limit[32];
	const char *const argv[] = {"busctl", geteuid() == 0 ? "--system" : "--user", "--quiet",
		"--timeout=5", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
		"org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))", name,
		"fail", "4", "Description", "s", "command of edgeprofctl exec", "PIDs", "au", "1",
		pid, "CPUQuotaPerSecUSec", "t", limit, "CollectMode", "s", "inactive-or-failed",
		"0", NULL};
	struct exec_helper helper;
	snprintf(name, sizeof(name), "edgeprofctl-exec-%d.scope", (int)child->pid);
	snprintf(pid, sizeof(pid), "%d", (int)child->pid);
	snprintf(limit, sizeof(limit), "%.0f", percent * 1e4);
	int r = exec_helper_start(&helper, argv, &child->previous);
	if (r < 0 || !exec_helper_finish(&helper, 5 * SCOPE_MS)) {
		snprintf(reason, size, "systemd: %s", r < 0 ? strerror(-r) : helper.reason);
		return false;
	}
	double end_ms = when_mono_ms() + SCOPE_MS;
	while (!folder_of(child->pid, quota->folder, &quota->v1) || !strstr(quota->folder, name) ||
		!is_applied(quota, percent)) {
		static const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
		if (when_mono_ms() > end_ms) {
			snprintf(reason, size,
				"systemd made a scope without a quota: the cpu controller is "
				"not available to it");
			return false;
		}
		nanosleep(&pause, NULL);
	}
	return true;
}

static int make_group_in(
	struct exec_quota *quota, const char *parent, pid_t pid, long long limit_us)
{
	int length = snprintf(
		quota->folder, sizeof(quota->folder), "%s/edgeprofctl-exec-%d", parent, (int)pid);
	if (length < 0 || (size_t)length >= sizeof(quota->folder)) {
		return -ENAMETOOLONG;
	}
	if (mkdir(quota->folder, 0755) < 0) {
		return -errno;
	}
	int r = quota->v1 ? write_file(quota->folder, "cpu.cfs_period_us", PERIOD_US, 0) : 0;
	if (r == 0) {
		r = quota->v1 ? write_file(quota->folder, "cpu.cfs_quota_us", limit_us, 0)
			      : write_file(quota->folder, "cpu.max", limit_us, PERIOD_US);
	}
	if (r == 0 && quota->v1) {
		/* else the group refuses real-time processes, which its quota does not limit */
		long long rt_us = RT_PERIOD_US * limit_us / PERIOD_US;
		write_file(quota->folder, "cpu.rt_runtime_us",
			rt_us < RT_MAX_US ? rt_us : RT_MAX_US, 0);
	}
	if (r == 0) {
		r = write_file(quota->folder, "cgroup.procs", pid, 0);
	}
	if (r < 0) {
		rmdir(quota->folder);
	}
	return r;
}

/* Below the own group, else next to it: version 2 has processes in leaves only. */
static int make_group(struct exec_quota *quota, pid_t pid, double percent)
{
	char parent[PATH_SIZE];
	if (!folder_of(pid, parent, &quota->v1)) {
		return -ENOENT;
	}
	long long limit_us = (long long)(percent * PERIOD_US / 100);
	int r = make_group_in(quota, parent, pid, limit_us);
	char *slash = strrchr(parent, '/');
	if (r < 0 && slash && slash > parent + strlen("/sys/fs/cgroup")) {
		*slash = '\0';
		r = make_group_in(quota, parent, pid, limit_us);
	}
	quota->own = r == 0;
	return r;
}

int exec_quota_apply(struct ctl *ctl, struct exec_quota *quota, const struct exec_child *child)
{
	char reason[256] = "systemd is not running";
	double percent = ctl->options.exec.quota_percent;
	if (access("/run/systemd/system", F_OK) == 0 &&
		make_scope(quota, child, percent, reason, sizeof(reason))) {
		return CTL_FINE;
	}
	int r = make_group(quota, child->pid, percent);
	if (r == 0 && is_applied(quota, percent)) {
		return CTL_FINE;
	}
	return ctl_fail(ctl, r == -EACCES || r == -EPERM ? CTL_NOT_PERMITTED : CTL_UNREACHABLE,
		"cannot set a CPU quota: %s; control group: %s", reason,
		r < 0 ? strerror(-r) : "the kernel did not apply it");
}

void exec_quota_add(const struct exec_quota *quota, cJSON *object)
{
	static const char nanoseconds[] = "throttled_time ", microseconds[] = "throttled_usec ";
	char text[1024];
	bool there = read_file(quota->folder, "cpu.stat", text, sizeof(text));
	const char *name = quota->v1 ? nanoseconds : microseconds;
	char *count = there ? strstr(text, "nr_throttled ") : NULL;
	char *time = there ? strstr(text, name) : NULL;
	json_add_number(object, "nr_throttled",
		count ? strtod(count + strlen("nr_throttled "), NULL) : NAN);
	json_add_number(object, "throttled_us",
		time ? strtod(time + strlen(name), NULL) / (quota->v1 ? 1000 : 1) : NAN);
}

void exec_quota_finish(struct exec_quota *quota)
{
	/* The kernel empties a group shortly after wait(2) has returned; a child that goes on
	 * without the command keeps its group. */
	double end_ms = when_mono_ms() + REMOVE_MS;
	while (quota->own && rmdir(quota->folder) < 0 && errno == EBUSY &&
		when_mono_ms() < end_ms) {
		static const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
		nanosleep(&pause, NULL);
	}
	quota->own = false;
}
