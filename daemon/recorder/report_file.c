/*
 * One report on disk. Everything is done below a descriptor of the folder, and nothing that may lie
 * there is followed or written into: links and leftovers are replaced or removed by name. Runs on a
 * worker (report_files.c) and touches nothing shared.
 */
#include "daemon/recorder/report_file.h"

#include <dirent.h>
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

enum { SCAN_MAX = 256 /* files that are looked at; the folder is ours alone */ };

struct found {
	char name[PROTO_NAME_SIZE + 8];
	struct timespec time;
	off_t size;
};

/* A descriptor of DIR/reports, made when it is not there, or -errno. */
static int open_folder(const char *dir)
{
	int run_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run_fd < 0) {
		return -errno;
	}
	int r = 0, fd = -1;
	if (mkdirat(run_fd, "reports", 0755) < 0 && errno != EEXIST) {
		r = -errno;
	} else {
		fd = openat(run_fd, "reports", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	close(run_fd);
	struct stat st;
	if (r == 0 && fstat(fd, &st) < 0) {
		r = -errno;
	}
	if (r == 0 && (st.st_uid != geteuid() || (st.st_mode & 022) != 0)) {
		r = -EPERM;
	}
	if (r < 0 && fd >= 0) {
		close(fd);
	}
	return r < 0 ? r : fd;
}

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);
	return length > tail && strcmp(name + length - tail, end) == 0;
}

/* The reports in the folder but this one; temporary files that a crash left are removed. */
static size_t scan(int folder, const char *but, struct found found[SCAN_MAX])
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	size_t count = 0;
	struct dirent *entry;
	if (!list) {
		if (fd >= 0) {
			close(fd);
		}
		return 0;
	}
	while (count < SCAN_MAX && (entry = readdir(list))) {
		struct stat st;
		if (ends_with(entry->d_name, ".new")) {
			unlinkat(folder, entry->d_name, 0);
		} else if (ends_with(entry->d_name, ".txt") && strcmp(entry->d_name, but) != 0 &&
			   strlen(entry->d_name) < sizeof(found->name) &&
			   fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			found[count] = (struct found){.time = st.st_mtim, .size = st.st_size};
			memcpy(found[count++].name, entry->d_name, strlen(entry->d_name) + 1);
		}
	}
	closedir(list);
	return count;
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

/* Makes room for one more file of this length. */
static void make_room(int folder, const char *but, size_t length)
{
	struct found *found = mem_calloc(SCAN_MAX, sizeof(*found));
	if (!found) {
		return;
	}
	size_t count = scan(folder, but, found), files = 1, bytes = length;
	qsort(found, count, sizeof(*found), newest_first);
	for (size_t i = 0; i < count; i++) {
		files++;
		bytes += (size_t)found[i].size;
		if (files > REPORT_FILES_MAX || bytes > REPORT_BYTES_MAX) {
			unlinkat(folder, found[i].name, 0);
		}
	}
	free(found);
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
	struct found *found = mem_calloc(SCAN_MAX, sizeof(*found));
	if (!found) {
		return -ENOMEM;
	}
	size_t count = scan(folder, "", found), length = 0;
	qsort(found, count, sizeof(*found), newest_first);
	if (count > 0) {
		length = strlen(found[0].name) - strlen(".txt");
		memcpy(name, found[0].name, length < PROTO_NAME_SIZE ? length : 0);
		name[length < PROTO_NAME_SIZE ? length : 0] = '\0';
	}
	free(found);
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
