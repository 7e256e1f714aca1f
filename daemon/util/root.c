/* SPDX-License-Identifier: Apache-2.0 */
/* root.c: resolves paths below a root and bounds reads; every collector uses it. */
#include "daemon/util/root.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/util/sysops.h"

enum { MAX_LINKS = 40 };

int root_init(struct root *root, const char *path)
{
	if (!path) {
		path = "/";
	}
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		return -errno;
	}
	root->fd = fd;
	root->fixture = strcmp(path, "/") != 0;
	root->kept = NULL;
	return 0;
}

void root_finish(struct root *root)
{
	if (root->fd >= 0) {
		close(root->fd);
	}
	root->fd = -1;
}

/* The text of a file that stands for a link; its length, 0 = it is none, or -errno. */
static ssize_t read_link_file(int fd, char *buf, size_t size)
{
	ssize_t n = sysops()->pread(fd, buf, size - 1, 0);
	close(fd);
	if (n <= 0) {
		return 0;
	}
	while (n > 0 && isspace((unsigned char)buf[n - 1])) {
		n--;
	}
	buf[n] = '\0';
	return strchr(buf, '\n') ? 0 : n;
}

/* What the entry at path (already resolved up to its last segment) points to, if it is a link or,
 * when a folder is needed here, a small file that holds a relative path. 0 = not a link. */
static ssize_t link_target(
	const struct root *root, const char *path, bool folder_needed, char *buf, size_t size)
{
	ssize_t n = readlinkat(root->fd, path, buf, size - 1);
	if (n > 0) {
		buf[n] = '\0';
		return n;
	}
	if (errno != EINVAL) {
		return -errno;
	}
	struct stat st;
	if (!folder_needed || fstatat(root->fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size >= (off_t)size) {
		return 0;
	}
	int fd = openat(root->fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		return -errno;
	}
	return read_link_file(fd, buf, size);
}

static void drop_last_segment(char *path)
{
	char *slash = strrchr(path, '/');
	*(slash ? slash : path) = '\0';
}

int root_resolve(const struct root *root, const char *path, char *ret, size_t size)
{
	char todo[PATH_MAX];
	char done[PATH_MAX] = "";
	char target[PATH_MAX];
	if (strlen(path) >= sizeof(todo)) {
		return -ENAMETOOLONG;
	}
	memcpy(todo, path, strlen(path) + 1);
	for (int links = 0; links <= MAX_LINKS;) {
		char *start = todo + strspn(todo, "/");
		if (*start == '\0') {
			if (strlen(done) >= size) {
				return -ENAMETOOLONG;
			}
			memcpy(ret, done, strlen(done) + 1);
			return 0;
		}
		size_t length = strcspn(start, "/");
		bool last = start[length] == '\0';
		size_t base = strlen(done);
		if (length == 2 && memcmp(start, "..", 2) == 0) {
			drop_last_segment(done);
		} else if (!(length == 1 && start[0] == '.')) {
			if (base + 1 + length >= sizeof(done)) {
				return -ENAMETOOLONG;
			}
			if (base > 0) {
				done[base++] = '/';
			}
			memcpy(done + base, start, length);
			done[base + length] = '\0';
			ssize_t n = link_target(root, done, !last, target, sizeof(target));
			if (n < 0) {
				return (int)n;
			}
			if (n > 0) {
				size_t rest = strlen(start + length);
				if ((size_t)n + rest + 1 >= sizeof(todo)) {
					return -ENAMETOOLONG;
				}
				if (target[0] == '/') {
					done[0] = '\0';
				} else {
					drop_last_segment(done);
				}
				memmove(todo + n, start + length, rest + 1);
				memcpy(todo, target, (size_t)n);
				links++;
				continue;
			}
		}
		memmove(todo, start + length, strlen(start + length) + 1);
	}
	return -ELOOP;
}

/* The kernel's own way, since 5.6: one call instead of one for each segment. It does not know files
 * that stand for links. */
static int open_in_root(const struct root *root, const char *path, int flags)
{
	const struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_IN_ROOT};
	int fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* Follows the file that stands for a link and makes path fail with -ENOTDIR; false: there is none.
 */
static bool follow_link_file(const struct root *root, char path[PATH_MAX])
{
	char prefix[PATH_MAX], target[PATH_MAX];
	struct stat st;
	memcpy(prefix, path, strlen(path) + 1);
	int fd = -ENOTDIR;
	while (fd == -ENOTDIR && strchr(prefix, '/')) {
		drop_last_segment(prefix);
		fd = open_in_root(root, prefix, O_PATH | O_CLOEXEC);
	}
	if (fd < 0) {
		return false;
	}
	bool file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
	close(fd);
	fd = file ? open_in_root(root, prefix, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -ENOTDIR;
	ssize_t n = fd < 0 ? fd : read_link_file(fd, target, sizeof(target));
	const char *rest = path + strlen(prefix);
	drop_last_segment(prefix);
	size_t base = n > 0 && target[0] != '/' ? strlen(prefix) + 1 : 0;
	if (n <= 0 || base + (size_t)n + strlen(rest) >= PATH_MAX) {
		return false;
	}
	memmove(path + base + n, rest, strlen(rest) + 1);
	if (base > 0) { /* path begins with the prefix */
		path[base - 1] = '/';
	}
	memcpy(path + base, target, (size_t)n);
	return true;
}

static int open_in_fixture(const struct root *root, const char *path, int flags)
{
	char todo[PATH_MAX];
	int fd = open_in_root(root, path, flags);
	if (fd != -ENOTDIR || strlen(path) >= sizeof(todo)) {
		return fd;
	}
	memcpy(todo, path, strlen(path) + 1);
	for (int links = 0; fd == -ENOTDIR; links++) {
		if (links == MAX_LINKS) {
			return -ELOOP;
		}
		if (!follow_link_file(root, todo)) {
			return -ENOTDIR;
		}
		fd = open_in_root(root, todo, flags);
	}
	return fd;
}

int root_open(const struct root *root, const char *path, int flags)
{
	char resolved[PATH_MAX];
	flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	if (root->fixture) {
		int r = open_in_fixture(root, path, flags);
		if (r != -ENOSYS && r != -EPERM && r != -EAGAIN) {
			return r; /* else a kernel before 5.6, a sandbox, or a rename meanwhile */
		}
		r = root_resolve(root, path, resolved, sizeof(resolved));
		if (r < 0) {
			return r;
		}
		path = resolved[0] ? resolved : ".";
	}
	int fd = openat(root->fd, path, flags);
	return fd < 0 ? -errno : fd;
}

static void keep(struct root_kept *kept, const char *path, int fd)
{
	const size_t max = sizeof(kept->file) / sizeof(kept->file[0]);
	size_t at = kept->count;
	if (strlen(path) >= sizeof(kept->file[0].path)) {
		return;
	}
	if (at == max) {
		at = 0;
		for (size_t i = 1; i < max; i++) {
			at = kept->uses - kept->file[i].used > kept->uses - kept->file[at].used
				     ? i
				     : at;
		}
		close(kept->file[at].fd);
	} else {
		kept->count++;
	}
	kept->file[at].fd = fd;
	kept->file[at].used = ++kept->uses;
	memcpy(kept->file[at].path, path, strlen(path) + 1);
}

int root_borrow(const struct root *root, const char *path, int flags)
{
	struct root_kept *kept = root->kept;
	for (size_t i = 0; kept && i < kept->count; i++) {
		size_t at = (kept->next + i) % kept->count; /* mostly in the same order */
		if (strcmp(kept->file[at].path, path) == 0) {
			kept->next = at + 1;
			kept->file[at].used = ++kept->uses;
			return kept->file[at].fd;
		}
	}
	int fd = root_open(root, path, flags);
	if (fd >= 0 && kept) {
		keep(kept, path, fd);
	}
	return fd;
}

void root_return(const struct root *root, int fd, ssize_t result)
{
	struct root_kept *kept = root->kept;
	size_t at = 0;
	while (kept && at < kept->count && kept->file[at].fd != fd) {
		at++;
	}
	bool is_kept = kept && at < kept->count;
	if (is_kept && result < 0) {
		kept->file[at] = kept->file[--kept->count];
	}
	if (!is_kept || result < 0) {
		close(fd);
	}
}

void root_kept_finish(struct root_kept *kept)
{
	while (kept->count > 0) {
		close(kept->file[--kept->count].fd);
	}
}

/* In a fixture the last segment may itself be a file that stands for a link: "/." follows it. */
static int open_folder(const struct root *root, const char *path, DIR **ret)
{
	char slashed[PATH_MAX];
	if ((size_t)snprintf(slashed, sizeof(slashed), "%s/.", path) >= sizeof(slashed)) {
		return -ENAMETOOLONG;
	}
	int fd = root_open(root, slashed, O_RDONLY | O_DIRECTORY);
	if (fd < 0) {
		return fd;
	}
	*ret = fdopendir(fd);
	int r = *ret ? 0 : -errno;
	if (r < 0) {
		close(fd);
	}
	return r;
}

ssize_t file_read(int fd, char *buf, size_t size)
{
	ssize_t n = sysops()->pread(fd, buf, size - 1, 0);
	if (n >= 0) {
		buf[n] = '\0';
	}
	return n;
}

ssize_t root_read(const struct root *root, const char *path, char *buf, size_t size)
{
	int fd = root_open(root, path, O_RDONLY);
	if (fd < 0) {
		return fd;
	}
	size_t used = 0;
	ssize_t n;
	do {
		n = sysops()->pread(fd, buf + used, size - used, (off_t)used);
		used += n > 0 ? (size_t)n : 0;
	} while (n > 0 && used < size);
	close(fd);
	if (n < 0) {
		return n;
	}
	if (used >= size) {
		return -EFBIG;
	}
	buf[used] = '\0';
	return (ssize_t)used;
}

int file_read_i64(int fd, long long *ret)
{
	char buf[64];
	ssize_t n = file_read(fd, buf, sizeof(buf));
	if (n <= 0) {
		return n < 0 ? (int)n : -ENODATA;
	}
	if ((size_t)n == sizeof(buf) - 1 || memchr(buf, '\0', (size_t)n)) {
		return -EBADMSG;
	}
	char *end;
	errno = 0;
	long long value = strtoll(buf, &end, 10);
	if (end == buf || errno == ERANGE || end[strspn(end, " \t\r\n")] != '\0') {
		return -EBADMSG;
	}
	*ret = value;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strverscmp(((const struct root_name *)a)->text, ((const struct root_name *)b)->text);
}

int root_list(const struct root *root, const char *path, struct root_name *names, size_t max)
{
	DIR *dir;
	int r = open_folder(root, path, &dir);
	if (r < 0) {
		return r;
	}
	size_t count = 0;
	struct dirent *entry;
	while (count < max && (entry = readdir(dir))) {
		size_t length = strlen(entry->d_name);
		if (entry->d_name[0] == '.' || length >= sizeof(names[0].text)) {
			continue;
		}
		memcpy(names[count++].text, entry->d_name, length + 1);
	}
	closedir(dir);
	qsort(names, count, sizeof(names[0]), compare_names);
	return (int)count;
}
