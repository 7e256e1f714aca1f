/* SPDX-License-Identifier: Apache-2.0 */
/* exec_quota.c: limits the CPU time of a command through a control group of its own: a transient
 * scope of systemd, else a group below or next to the one of this process, where that may be
 * written (root, delegated groups). */
#include "client/edgeprofctl/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/when.h"

enum {
	PERIOD_US = 100000, /* of version 1, unless it is changed */
	RT_MAX_US = 900000, /* of a second */
	SCOPE_MS = 2000,
	REMOVE_MS = 500
};

static const char root[] = "/sys/fs/cgroup";
/* By the version of control groups. */
static const char *const limit_file[] = {"cpu.max", "cpu.cfs_quota_us"};

static int write_number(const struct exec_quota *quota, const char *name, long long number)
{
	char path[sizeof(quota->folder) + 32];
	snprintf(path, sizeof(path), "%s/%s", quota->folder, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = fd < 0 || dprintf(fd, "%lld", number) < 0 ? -errno : 0;
	if (fd >= 0) {
		close(fd);
	}
	return r;
}

/* Finds the process's group in the hierarchy with the cpu controller. */
static void find_folder(struct exec_quota *quota, pid_t pid)
{
	char text[4096], *rest = text;
	quota->folder[0] = '\0';
	exec_read(text, sizeof(text), "/proc/%d/cgroup", (int)pid);
	for (char *line; (line = strsep(&rest, "\n"));) {
		strsep(&line, ":");
		char *controllers = strsep(&line, ":"), *one;
		bool v2 = controllers && controllers[0] == '\0', v1 = false;
		while (!v2 && (one = strsep(&controllers, ","))) {
			v1 = v1 || strcmp(one, "cpu") == 0;
		}
		if (line && (v1 || (v2 && quota->folder[0] == '\0'))) {
			snprintf(quota->folder, sizeof(quota->folder), "%s%s%s", root,
				v1 ? "/cpu" : "", strcmp(line, "/") == 0 ? "" : line);
			quota->v1 = v1;
		}
	}
}

/* Requests a scope with the process in it and waits until it is there. Returns why not, or NULL. */
static const char *make_scope(struct exec_quota *quota, struct exec_helper *helper,
	const struct exec_child *child, double percent)
{
	char name[64], pid[16], limit[32], text[64];
	const char *const argv[] = {"busctl", geteuid() == 0 ? "--system" : "--user", "--quiet",
		"--timeout=5", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
		"org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))", name,
		"fail", "4", "Description", "s", "command of edgeprofctl exec", "PIDs", "au", "1",
		pid, "CPUQuotaPerSecUSec", "t", limit, "CollectMode", "s", "inactive-or-failed",
		"0", NULL};
	if (access("/run/systemd/system", F_OK) < 0) {
		return "not running";
	}
	snprintf(name, sizeof(name), "edgeprofctl-exec-%d.scope", (int)child->pid);
	snprintf(pid, sizeof(pid), "%d", (int)child->pid);
	snprintf(limit, sizeof(limit), "%.0f", percent * 1e4);
	int r = exec_helper_start(helper, argv, &child->previous);
	if (r < 0 || !exec_helper_finish(helper, 5 * SCOPE_MS)) {
		return r < 0 ? strerror(-r) : helper->reason;
	}
	for (double end_ms = when_mono_ms() + SCOPE_MS; when_mono_ms() < end_ms; exec_pause()) {
		find_folder(quota, child->pid);
		exec_read(text, sizeof(text), "%s/%s", quota->folder, limit_file[quota->v1]);
		if (strstr(quota->folder, name) && strtol(text, NULL, 10) > 0) {
			return NULL;
		}
	}
	return "made a scope without a quota: the cpu controller is not available to it";
}

/* Makes a group in `folder`, which it then is itself. */
static int make_group(struct exec_quota *quota, pid_t pid, double percent)
{
	long long limit_us = (long long)(percent * PERIOD_US / 100);
	long long rt_us = limit_us * (1000000 / PERIOD_US);
	size_t length = strlen(quota->folder);
	snprintf(quota->folder + length, sizeof(quota->folder) - length, "/edgeprofctl-exec-%d",
		(int)pid);
	int r = mkdir(quota->folder, 0755) < 0 ? -errno : 0;
	if (r == 0) {
		if (quota->v1) {
			/* else it refuses real-time processes, which its quota does not limit */
			write_number(
				quota, "cpu.rt_runtime_us", rt_us < RT_MAX_US ? rt_us : RT_MAX_US);
		}
		r = write_number(quota, limit_file[quota->v1], limit_us);
		r = r < 0 ? r : write_number(quota, "cgroup.procs", pid);
		if (r < 0) {
			rmdir(quota->folder);
		}
	}
	if (r < 0) {
		quota->folder[length] = '\0';
	}
	return r;
}

int exec_quota_apply(struct ctl *ctl, struct exec_quota *quota, const struct exec_child *child)
{
	struct exec_helper helper;
	double percent = ctl->options.exec.quota_percent;
	const char *reason = make_scope(quota, &helper, child, percent);
	if (!reason) {
		return CTL_FINE;
	}
	/* Below the own group, else next to it: version 2 has processes in leaves only. */
	int r = -ENOENT;
	find_folder(quota, child->pid);
	for (char *end = quota->folder + strlen(quota->folder);
		r < 0 && end && end > quota->folder + strlen(root);
		end = strrchr(quota->folder, '/')) {
		*end = '\0';
		r = make_group(quota, child->pid, percent);
	}
	quota->own = r == 0;
	return r == 0 ? CTL_FINE
		      : ctl_fail(ctl,
				r == -EACCES || r == -EPERM ? CTL_NOT_PERMITTED : CTL_UNREACHABLE,
				"cannot set a CPU quota: systemd: %s; control group: %s", reason,
				strerror(-r));
}

void exec_quota_add(const struct exec_quota *quota, cJSON *object)
{
	static const char count_name[] = "nr_throttled ";
	const char *time_name = quota->v1 ? "throttled_time " /* ns */ : "throttled_usec ";
	char text[1024];
	exec_read(text, sizeof(text), "%s/cpu.stat", quota->folder);
	const char *count = strstr(text, count_name), *time = strstr(text, time_name);
	json_add_number(
		object, "nr_throttled", count ? strtod(count + strlen(count_name), NULL) : NAN);
	json_add_number(object, "throttled_us",
		time ? strtod(time + strlen(time_name), NULL) / (quota->v1 ? 1000 : 1) : NAN);
}

void exec_quota_finish(struct exec_quota *quota)
{
	/* The kernel empties a group shortly after wait(2) has returned; a child that goes on
	 * without the command keeps its group. */
	double end_ms = when_mono_ms() + REMOVE_MS;
	while (quota->own && rmdir(quota->folder) < 0 && errno == EBUSY &&
		when_mono_ms() < end_ms) {
		exec_pause();
	}
}
