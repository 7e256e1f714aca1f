/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c: reads proc/<pid>/cgroup, and below sys/fs/cgroup the files cpu.max, cpu.stat (version
 * 2) or cpu/…/cpu.cfs_quota_us, cpu.cfs_period_us, cpu.stat (version 1). */
#include "daemon/collect/process/cgroup.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collect/lib/kernel_text.h"
#include "daemon/collect/process/procfs.h"

enum { LEVELS_MAX = 8 };

/* Is "cpu" one of the words of "cpu,cpuacct"? */
static bool lists_cpu(const char *list, size_t length)
{
	for (size_t at = 0; at < length;) {
		size_t word = strcspn(list + at, ",:");
		if (word == 3 && memcmp(list + at, "cpu", 3) == 0) {
			return true;
		}
		at += word + 1;
	}
	return false;
}

static int copy_path(const char *from, char path[PROCESS_CGROUP_SIZE])
{
	size_t length = strcspn(from, "\n");
	if (length >= PROCESS_CGROUP_SIZE) {
		return -ENAMETOOLONG;
	}
	memcpy(path, from, length);
	path[length] = '\0';
	return 0;
}

int cgroup_parse(const char *text, char path[PROCESS_CGROUP_SIZE], bool *v1)
{
	const char *unified = NULL;
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *list = strchr(line, ':');
		size_t length = list ? strcspn(++list, ":\n") : 0;
		if (!list || list[length] != ':' || list[length + 1] != '/') {
			continue;
		}
		if (lists_cpu(list, length)) {
			*v1 = true;
			return copy_path(list + length + 1, path);
		}
		if (length == 0) {
			unified = list + 1;
		}
	}
	if (!unified) {
		return -ENODATA;
	}
	*v1 = false;
	return copy_path(unified, path);
}

int cgroup_of(const struct root *root, pid_t pid, char path[PROCESS_CGROUP_SIZE], bool *v1)
{
	char text[2048];
	ssize_t n = proc_read(root, pid, 0, "cgroup", text, sizeof(text));
	return n < 0 ? (int)n : cgroup_parse(text, path, v1);
}

/* Version 2's line, or version 1's hierarchy of systemd: units are in that one also when the cpu
 * controller has another tree. */
int cgroup_systemd(const struct root *root, pid_t pid, char path[PROCESS_CGROUP_SIZE])
{
	static const char name[] = ":name=systemd:";
	char text[2048];
	ssize_t n = proc_read(root, pid, 0, "cgroup", text, sizeof(text));
	if (n < 0) {
		return (int)n;
	}
	const char *p = strstr(text, ":name=systemd:/");
	p = p ? p + sizeof(name) - 1 : kernel_line(text, "0::");
	return p ? copy_path(p, path) : -ENODATA;
}

static bool read_file(const struct root *root, bool v1, const char *group, const char *name,
	char *buf, size_t size)
{
	char path[PROCESS_CGROUP_SIZE + 64];
	snprintf(path, sizeof(path), "sys/fs/cgroup/%s%s/%s", v1 ? "cpu" : "", group, name);
	return root_read(root, path, buf, size) > 0;
}

/* Version 2 has both numbers in one file: "max 100000" or "50000 100000". */
static double quota_of(const struct root *root, bool v1, const char *group)
{
	char text[64], period_text[64];
	uint64_t quota, period;
	const char *q = text, *p = period_text;
	if (!read_file(root, v1, group, v1 ? "cpu.cfs_quota_us" : "cpu.max", text, sizeof(text)) ||
		!kernel_u64(&q, &quota)) {
		return NAN; /* "max" and "-1" mean unlimited */
	}
	if (v1 && !read_file(
			  root, v1, group, "cpu.cfs_period_us", period_text, sizeof(period_text))) {
		return NAN;
	}
	bool known = kernel_u64(v1 ? &p : &q, &period) && period != 0;
	return known ? (double)quota / (double)period * 100 : (double)NAN;
}

static double number_of(const char *text, const char *key)
{
	uint64_t value;
	const char *p = kernel_line(text, key);
	return p && kernel_u64(&p, &value) ? (double)value : (double)NAN;
}

static void read_throttling(
	const struct root *root, bool v1, const char *group, struct cgroup_cpu *ret)
{
	char text[1024];
	if (read_file(root, v1, group, "cpu.stat", text, sizeof(text))) {
		ret->nr_throttled = number_of(text, "nr_throttled ");
		ret->throttled_us = v1 ? number_of(text, "throttled_time ") / 1000
				       : number_of(text, "throttled_usec ");
	}
}

void cgroup_cpu_read(const struct root *root, const char *path, bool v1, struct cgroup_cpu *ret)
{
	*ret = (struct cgroup_cpu){NAN, NAN, NAN};
	char group[PROCESS_CGROUP_SIZE], tightest[PROCESS_CGROUP_SIZE];
	size_t length = strlen(path);
	/* "/../x" is what another cgroup namespace looks like: not ours to find. */
	if (length >= sizeof(group) || strstr(path, "/..")) {
		return;
	}
	memcpy(group, path, length + 1);
	memcpy(tightest, path, length + 1);
	for (unsigned level = 0; level < LEVELS_MAX; level++) {
		char *slash = strrchr(group, '/');
		if (slash && slash[1] == '\0') {
			*slash = '\0'; /* the root group: "/" */
		}
		double quota = quota_of(root, v1, group);
		if (quota < ret->quota_percent || (!isnan(quota) && isnan(ret->quota_percent))) {
			ret->quota_percent = quota;
			memcpy(tightest, group, strlen(group) + 1);
		}
		slash = strrchr(group, '/');
		if (!slash) {
			break;
		}
		*slash = '\0';
	}
	read_throttling(root, v1, tightest, ret);
}

bool cgroup_has_unit(const char *path, const char *unit)
{
	size_t length = strlen(unit);
	for (const char *p = path; (p = strstr(p, unit)); p++) {
		if (p > path && p[-1] == '/' && (p[length] == '/' || p[length] == '\0')) {
			return true;
		}
	}
	return false;
}
