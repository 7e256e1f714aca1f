/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_file.c: writes and reads one report on disk. Everything is done below a descriptor of the
 * folder, and nothing that may lie there is followed or written into: links and leftovers are
 * replaced or removed by name. Runs on a thread (reports.c) and touches nothing shared.
 */
#include "daemon/recorder/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/util/file.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

enum { SCAN_MAX = 256 /* reports; the folder is ours alone */ };

struct found {
	char name[PROTO_NAME_SIZE + 8];
	struct timespec time;
	off_t size;
};

static int open_folder(const char *dir)
{
	char path[REPORT_PATH_SIZE];
	int n = snprintf(path, sizeof(path), "%s/reports", dir);
	return n < (int)sizeof(path) ? folder_open(path, 0755) : -ENAMETOOLONG;
}

struct scan {
	const char *but; /* the name to skip */
	size_t count;
	struct found found[SCAN_MAX];
};

/* Temporary files that a crash left are removed. */
static bool scan_name(void *ctx, int folder, const char *name)
{
	struct scan *scan = ctx;
	struct found *found = &scan->found[scan->count];
	struct stat st;
	if (text_ends_with(name, ".new")) {
		unlinkat(folder, name, 0);
	} else if (text_ends_with(name, ".txt") && strcmp(name, scan->but) != 0 &&
		   strlen(name) < sizeof(found->name) &&
		   fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		*found = (struct found){.time = st.st_mtim, .size = st.st_size};
		memcpy(found->name, name, strlen(name) + 1);
		scan->count++;
	}
	return scan->count < SCAN_MAX;
}

static int newest_first(const void *a, const void *b)
{
	const struct timespec *x = &((const struct found *)a)->time;
	const struct timespec *y = &((const struct found *)b)->time;
	if (x->tv_sec != y->tv_sec) {
		return x->tv_sec < y->tv_sec ? 1 : -1;
	}
	return (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

/* The reports in the folder but this one, the newest first. NULL: no memory. */
static struct scan *list_reports(int folder, const char *but)
{
	struct scan *scan = mem_zalloc(sizeof(*scan));
	if (scan) {
		scan->but = but;
		folder_list(folder, SIZE_MAX, scan_name, scan);
		qsort(scan->found, scan->count, sizeof(scan->found[0]), newest_first);
	}
	return scan;
}

/* Evicts the oldest until there is room for one more file of this length. */
static void make_room(int folder, const char *but, size_t length)
{
	struct scan *scan = list_reports(folder, but);
	size_t files = 1, bytes = length;
	for (size_t i = 0; scan && i < scan->count; i++) {
		files++;
		bytes += (size_t)scan->found[i].size;
		if (files > REPORT_FILES_MAX || bytes > REPORT_BYTES_MAX) {
			unlinkat(folder, scan->found[i].name, 0);
		}
	}
	free(scan);
}

int report_file_write(const char *dir, const char *app, const char *text, size_t length)
{
	char name[PROTO_NAME_SIZE + 8], temporary[PROTO_NAME_SIZE + 8];
	int folder = open_folder(dir);
	if (folder < 0) {
		return folder;
	}
	snprintf(name, sizeof(name), "%s.txt", app);
	snprintf(temporary, sizeof(temporary), "%s.new", app);
	make_room(folder, name, length);
	int r = file_replace(folder, temporary, name, 0644, text, length);
	close(folder);
	return r;
}

/* The app of the newest report. */
static int newest(int folder, char name[PROTO_NAME_SIZE])
{
	struct scan *scan = list_reports(folder, "");
	if (!scan) {
		return -ENOMEM;
	}
	size_t length = scan->count > 0 ? strlen(scan->found[0].name) - strlen(".txt") : 0;
	if (length > 0 && length < PROTO_NAME_SIZE) {
		memcpy(name, scan->found[0].name, length);
		name[length] = '\0';
	}
	free(scan);
	return length > 0 && length < PROTO_NAME_SIZE ? 0 : -ENOENT;
}

static int read_file(int folder, const char *file, char *text, size_t size, int64_t *time_us)
{
	int fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	if (fd < 0) {
		return errno == ELOOP ? -EPERM : -errno;
	}
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && (!S_ISREG(st.st_mode) || st.st_uid != geteuid())) {
		r = -EPERM;
	}
	if (r == 0 && (st.st_size <= 0 || (uintmax_t)st.st_size >= size)) {
		r = st.st_size <= 0 ? -ENOENT : -EFBIG;
	}
	if (r == 0) {
		ssize_t length = pread(fd, text, size - 1, 0);
		r = length < 0 ? -errno : (int)length;
		text[length < 0 ? 0 : length] = '\0';
		*time_us = (int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
	}
	close(fd);
	return r;
}

int report_file_read(const char *dir, const char *app, char *text, size_t size,
	char name[PROTO_NAME_SIZE], int64_t *time_us)
{
	char file[PROTO_NAME_SIZE + 8];
	int folder = open_folder(dir);
	int r = folder < 0 ? folder : 0;
	if (r == 0 && app) {
		snprintf(name, PROTO_NAME_SIZE, "%s", app);
	} else if (r == 0) {
		r = newest(folder, name);
	}
	if (r == 0) {
		snprintf(file, sizeof(file), "%s.txt", name);
		r = read_file(folder, file, text, size, time_us);
	}
	if (folder >= 0) {
		close(folder);
	}
	return r;
}
