/* Part of the process collector: one pass over proc. The costly part of watching by name, so it
 * runs less often than the samples, reads one file a process, and the command line only where the
 * name did not match already. */
#include "daemon/collect/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "daemon/collect/procfs.h"
#include "daemon/util/parse.h"

enum { PF_KTHREAD = 0x00200000 }; /* include/linux/sched.h: no command line to read */

void scan_init(struct scan *scan)
{
	scan->fd = -1;
	scan->matches = 0;
}

void scan_finish(struct scan *scan)
{
	if (scan->fd >= 0) {
		close(scan->fd);
	}
	scan->fd = -1;
}

static bool matches(const char *pattern, const char *text)
{
	const char *slash = strrchr(text, '/');
	return fnmatch(pattern, text, 0) == 0 || (slash && fnmatch(pattern, slash + 1, 0) == 0);
}

static void look_at(
	struct scan *scan, const struct root *root, const struct processes *processes, pid_t pid)
{
	struct proc_stat stat;
	if (proc_stat_read(root, pid, &stat) < 0) {
		return;
	}
	char argv0[256] = "";
	bool have_argv0 = false;
	for (size_t i = 0; i < processes->watches; i++) {
		const struct watch *watch = &processes->watch[i];
		if (watch->kind != WATCH_PATTERN) {
			continue;
		}
		bool hit = fnmatch(watch->pattern, stat.comm, 0) == 0;
		if (!hit && !have_argv0 && !(stat.flags & PF_KTHREAD)) {
			have_argv0 = true;
			if (proc_argv0_read(root, pid, argv0, sizeof(argv0)) < 0) {
				argv0[0] = '\0';
			}
		}
		hit = hit || (argv0[0] && matches(watch->pattern, argv0));
		if (hit && scan->matches == SCAN_MATCHES_MAX) {
			scan->refused++;
		} else if (hit) {
			scan->match[scan->matches++] =
				(struct scan_match){pid, stat.start_ticks, (uint16_t)i};
		}
	}
}

/* d_type is not asked: a fixture's file system may not tell it, and what is no process has no stat.
 */
static pid_t pid_of(const char *name)
{
	uint64_t value;
	return parse_u64(name, &value) == 0 && value > 0 && value <= INT32_MAX ? (pid_t)value : 0;
}

int scan_run(struct scan *scan, const struct root *root, const struct processes *processes)
{
	scan->matches = 0;
	scan->refused = 0;
	if (scan->fd < 0) {
		scan->fd = root_open(root, "proc", O_RDONLY | O_DIRECTORY);
		if (scan->fd < 0) {
			return scan->fd;
		}
	}
	if (lseek(scan->fd, 0, SEEK_SET) < 0) {
		return -errno;
	}
	for (;;) {
		ssize_t n = getdents64(scan->fd, scan->buf, sizeof(scan->buf));
		if (n <= 0) {
			return n < 0 ? -errno : 0;
		}
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const struct dirent64 *)(scan->buf + at);
			pid_t pid = pid_of(entry->d_name);
			if (pid > 0) {
				look_at(scan, root, processes, pid);
			}
			at += entry->d_reclen;
		}
	}
}
