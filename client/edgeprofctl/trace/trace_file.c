/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file.c: writes a file that appears only when it is complete: a temporary file, fsync,
 * rename, fsync of the directory. */
#include "client/edgeprofctl/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_stream(int fd, FILE **ret)
{
	if (fd < 0) {
		return -errno;
	}
	*ret = fdopen(fd, "w");
	if (!*ret) {
		/* a standard output that was closed is one that cannot be written: std_fds_hold */
		int r = errno == EINVAL ? -EBADF : -errno;
		close(fd);
		return r;
	}
	return 0;
}

/* As open(2) would have made it. */
static void usual_mode(int fd)
{
	mode_t mask = umask(0);
	umask(mask);
	fchmod(fd, 0666 & ~mask);
}

static int open_temporary(const char *path, struct trace_file *file)
{
	file->path = strdup(path);
	if (!file->path || asprintf(&file->temporary, "%s.XXXXXX", path) < 0) {
		file->temporary = NULL;
		return -ENOMEM;
	}
	int fd = mkostemp(file->temporary, O_CLOEXEC);
	int r = open_stream(fd, &file->stream);
	if (r == 0) {
		usual_mode(fd);
	} else if (fd >= 0) {
		unlink(file->temporary);
	}
	return r;
}

int trace_file_open(const char *path, struct trace_file *ret)
{
	struct trace_file file = {0};
	struct stat info;
	int r;
	if (!path || strcmp(path, "-") == 0) {
		r = open_stream(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), &file.stream);
	} else if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
		r = open_stream(open(path, O_WRONLY | O_CLOEXEC), &file.stream);
	} else {
		r = open_temporary(path, &file);
	}
	if (r < 0) {
		free(file.path);
		free(file.temporary);
		return r;
	}
	*ret = file;
	return 0;
}

/* Best effort: some file systems can't. */
static void sync_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = !slash ? 0 : (size_t)(slash - path);
	char *directory = !slash ? strdup(".") : strndup(path, length > 0 ? length : 1);
	int fd = !directory ? -1 : open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(directory);
}

int trace_file_finish(struct trace_file *file)
{
	int r = 0;
	errno = 0;
	if (fflush(file->stream) != 0 || ferror(file->stream)) {
		r = errno != 0 ? -errno : -EIO;
	}
	if (r == 0 && file->path && fsync(fileno(file->stream)) < 0) {
		r = -errno;
	}
	if (fclose(file->stream) != 0 && r == 0) {
		r = -errno;
	}
	if (file->path && r < 0) {
		unlink(file->temporary);
	} else if (file->path && rename(file->temporary, file->path) < 0) {
		r = -errno;
		unlink(file->temporary);
	} else if (file->path) {
		sync_directory(file->path);
	}
	free(file->path);
	free(file->temporary);
	*file = (struct trace_file){0};
	return r;
}
