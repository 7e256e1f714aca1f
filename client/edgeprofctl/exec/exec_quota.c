/* SPDX-License-Identifier: Apache-2.0 */
/* exec_quota.c: limits the CPU time of a command through a control group of its own, at or above
 * the one of this process, where that may be written (root, delegated groups). */
#include "client/edgeprofctl/exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
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
	REMOVE_MS = 500,
	PAUSE_US = 5000,
	GROUP_SIZE = 480,
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

/* Finds the process's group in the hierarchy with the cpu controller. True: of version 1. */
static bool find_group(pid_t pid, char ret[GROUP_SIZE])
{
	char text[4096], *rest = text;
	bool v1 = false;
	ret[0] = '\0';
	exec_read(text, sizeof(text), "/proc/%d/cgroup", (int)pid);
	for (char *line; !v1 && (line = strsep(&rest, "\n"));) {
		bool v2 = strncmp(line, "0::", 3) == 0;
		v1 = !v2 && fnmatch("*[:,]cpu[,:]*", line, 0) == 0;
		const char *path = strchr(line, '/');
		if (path && (v1 || v2)) {
			snprintf(ret, GROUP_SIZE, "%s%s%s", root, v1 ? "/cpu" : "",
				strcmp(path, "/") == 0 ? "" : path);
		}
	}
	return v1;
}

static int make_group(struct exec_quota *quota, const char *parent, pid_t pid, double percent)
{
	long long limit_us = (long long)(percent * PERIOD_US / 100);
	long long rt_us = limit_us * (1000000 / PERIOD_US);
	snprintf(quota->folder, sizeof(quota->folder), "%s/edgeprofctl-exec-%d", parent, (int)pid);
	if (mkdir(quota->folder, 0755) < 0) {
		return -errno;
	}
	if (quota->v1) {
		/* else it refuses real-time processes, which its quota does not limit */
		write_number(quota, "cpu.rt_runtime_us", rt_us < RT_MAX_US ? rt_us : RT_MAX_US);
	}
	int r = write_number(quota, limit_file[quota->v1], limit_us);
	r = r < 0 ? r : write_number(quota, "cgroup.procs", pid);
	if (r < 0) {
		rmdir(quota->folder);
	}
	return r;
}

int exec_quota_apply(struct ctl *ctl, struct exec_quota *quota, pid_t pid)
{
	double percent = ctl->options.exec.quota_percent;
	int r = -ENOENT;
	char parent[GROUP_SIZE];
	quota->v1 = find_group(pid, parent);
	const char *top = parent + strlen(root) + (quota->v1 ? strlen("/cpu") : 0);
	/* Version 2 has processes in leaves only: then the group is next to the own one, or where
	 * the cpu controller is. */
	for (char *end = parent + strlen(parent); r < 0 && end && end >= top;
		end = strrchr(parent, '/')) {
		*end = '\0';
		r = make_group(quota, parent, pid, percent);
	}
	quota->own = r == 0;
	return r == 0 ? CTL_FINE
		      : ctl_fail(ctl,
				r == -EACCES || r == -EPERM ? CTL_NOT_PERMITTED : CTL_UNREACHABLE,
				"cannot set a CPU quota: no control group of its own: %s; try "
				"systemd-run --user --scope -p CPUQuota=%g%% edgeprofctl exec",
				strerror(-r), percent);
}

/* The number behind the name; NAN: none. */
static double number_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	return at ? strtod(at + strlen(name), NULL) : NAN;
}

void exec_quota_add(const struct exec_quota *quota, cJSON *object)
{
	char text[1024];
	exec_read(text, sizeof(text), "%s/cpu.stat", quota->folder);
	json_add_number(object, "nr_throttled", number_of(text, "nr_throttled "));
	json_add_number(object, "throttled_us",
		quota->v1 ? number_of(text, "throttled_time ") / 1000
			  : number_of(text, "throttled_usec "));
}

void exec_quota_finish(struct exec_quota *quota)
{
	/* The kernel empties a group shortly after wait(2) has returned; a child that goes on
	 * without the command keeps its group. */
	double end_ms = when_mono_ms() + REMOVE_MS;
	while (quota->own && rmdir(quota->folder) < 0 && errno == EBUSY &&
		when_mono_ms() < end_ms) {
		usleep(PAUSE_US);
	}
}
