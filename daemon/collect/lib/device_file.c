/* SPDX-License-Identifier: Apache-2.0 */
/* device_file.c: decides which descriptors stay open, and what happens when the file behind one has
 * gone. Stands between the collectors and util/root. */
#include "daemon/collect/lib/device_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

enum { ENTRIES_MAX = 2048, ENTRY_PATH = 256 };

int device_file_init(struct device_file *file, bool keep, const char *format, ...)
{
	file->fd = -1;
	file->keep = keep;
	file->missed = 0;
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(file->path, sizeof(file->path), format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(file->path)) {
		file->path[0] = '\0';
		return -ENAMETOOLONG;
	}
	return 0;
}

static int open_it(struct device_file *file, const struct root *root)
{
	if (file->fd >= 0) {
		return 0;
	}
	if (file->path[0] == '\0') {
		return -ENAMETOOLONG;
	}
	enum { PATIENCE = DEVICE_FILE_PATIENCE };
	bool look = file->missed <= PATIENCE;
	int fd = look ? root_open(root, file->path, O_RDONLY) : -ENOENT;
	if (fd == -ENOENT) {
		file->missed = file->missed + 1 < 2 * PATIENCE ? file->missed + 1 : PATIENCE;
	}
	if (fd < 0) {
		return fd;
	}
	file->missed = 0;
	file->fd = fd;
	return 0;
}

/* A kernfs file whose device was removed answers -ENODEV for ever, also when the device is back:
 * only a new open finds the new one. */
static void after_read(struct device_file *file, ssize_t result)
{
	if (!file->keep || result == -ENODEV || result == -ENOENT || result == -EBADF) {
		device_file_close(file);
	}
}

ssize_t device_file_read(struct device_file *file, const struct root *root, char *buf, size_t size)
{
	int r = open_it(file, root);
	if (r < 0) {
		return r;
	}
	ssize_t n = file_read(file->fd, buf, size);
	after_read(file, n);
	return n;
}

int device_file_read_or_fail(
	const struct collector_context *ctx, struct device_file *file, char *buf, size_t size)
{
	int r = (int)device_file_read(file, ctx->root, buf, size);
	return r < 0 ? collector_fail(ctx, r, "/%s: %s", file->path, errno_reason(r)) : 0;
}

int device_file_read_i64(struct device_file *file, const struct root *root, long long *ret)
{
	int r = open_it(file, root);
	if (r < 0) {
		return r;
	}
	r = file_read_i64(file->fd, ret);
	after_read(file, r);
	return r;
}

const char *device_file_reason(int error)
{
	switch (-error) {
	case EAGAIN:
	case ENODATA:
	case EIO:
	case EINVAL:
	case ENXIO:
	case ENOENT:
	case ENODEV:
		return "offline";
	case EBADMSG:
		return "malformed";
	case ERANGE:
		return "out of range";
	default:
		return errno_reason(error);
	}
}

void device_file_close(struct device_file *file)
{
	if (file->fd >= 0) {
		close(file->fd);
	}
	file->fd = -1;
}

void device_file_close_state(void *state)
{
	device_file_close(state);
}

bool device_text(const struct root *root, char *ret, size_t size, const char *format, ...)
{
	char path[ENTRY_PATH];
	va_list ap;
	va_start(ap, format);
	vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	if (root_read(root, path, ret, size) <= 0) {
		ret[0] = '\0';
	}
	ret[strcspn(ret, "\r\n")] = '\0';
	return ret[0] != '\0';
}

int device_number(const struct root *root, long long *ret, const char *format, ...)
{
	char path[ENTRY_PATH];
	va_list ap;
	va_start(ap, format);
	vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	int fd = root_open(root, path, O_RDONLY);
	if (fd < 0) {
		return fd;
	}
	int r = file_read_i64(fd, ret);
	close(fd);
	return r;
}

bool device_exists(const struct root *root, const char *format, ...)
{
	char path[ENTRY_PATH];
	struct stat st;
	va_list ap;
	va_start(ap, format);
	vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	int fd = root_open(root, path, O_RDONLY);
	if (fd < 0) {
		return fd != -ENOENT && fd != -ENOTDIR;
	}
	bool is_file = fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode);
	close(fd);
	return is_file;
}

int device_each(const struct root *root, const char *folder, const char *prefix,
	device_visit *visit, void *ctx)
{
	int visited = 0;
	struct root_name *names = mem_calloc(ENTRIES_MAX, sizeof(*names));
	if (!names) {
		return -ENOMEM;
	}
	int count = root_list(root, folder, names, ENTRIES_MAX);
	for (int i = 0; i < count; i++) {
		char path[ENTRY_PATH];
		int n = snprintf(path, sizeof(path), "%s/%s", folder, names[i].text);
		if (text_starts_with(names[i].text, prefix) && (size_t)n < sizeof(path)) {
			visit(ctx, root, path, names[i].text);
			visited++;
		}
	}
	free(names);
	return count < 0 ? count : visited;
}

struct prefix_search {
	const char *const *prefixes;
	bool found;
};

static void match_prefix(void *ctx, const struct root *root, const char *path, const char *entry)
{
	struct prefix_search *search = ctx;
	(void)root;
	(void)path;
	for (const char *const *prefix = search->prefixes; *prefix && !search->found; prefix++) {
		search->found = text_starts_with(entry, *prefix);
	}
}

int device_has(const struct root *root, const char *folder, const char *const *prefixes)
{
	struct prefix_search search = {.prefixes = prefixes};
	int r = device_each(root, folder, "", match_prefix, &search);
	return r == -ENOMEM ? r : search.found;
}

struct hwmon_search {
	const char *name;
	char *ret;
};

static void match_hwmon(void *ctx, const struct root *root, const char *path, const char *entry)
{
	struct hwmon_search *search = ctx;
	char name[64];
	(void)entry;
	if (search->ret[0] == '\0' && device_text(root, name, sizeof(name), "%s/name", path) &&
		strcmp(name, search->name) == 0) {
		snprintf(search->ret, DEVICE_FILE_PATH, "%s", path);
	}
}

int device_find_hwmon(const struct root *root, const char *name, char ret[DEVICE_FILE_PATH])
{
	struct hwmon_search search = {name, ret};
	ret[0] = '\0';
	int r = device_each(root, "sys/class/hwmon", "", match_hwmon, &search);
	if (r >= 0) {
		r = ret[0] != '\0' ? 0 : -ENOENT;
	}
	return r;
}

bool device_matches(const char *globs, const char *text)
{
	for (size_t length; *globs; globs += length) {
		char glob[128];
		globs += strspn(globs, " \t");
		length = strcspn(globs, " \t");
		if (length > 0 && length < sizeof(glob)) {
			memcpy(glob, globs, length);
			glob[length] = '\0';
			if (fnmatch(glob, text, 0) == 0) {
				return true;
			}
		}
	}
	return false;
}
