/* folder.c: opens folders without trusting what may lie there, and lists them. */
#include "daemon/util/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int folder_open(const char *path, mode_t mode)
{
	struct stat st;
	if (mode != 0 && mkdir(path, mode) < 0 && errno != EEXIST) {
		return -errno;
	}
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		return -errno;
	}
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && (st.st_uid != geteuid() || (st.st_mode & 022) != 0)) {
		r = -EPERM;
	}
	if (r < 0) {
		close(fd);
	}
	return r < 0 ? r : fd;
}

void folder_list(
	int folder, size_t max, bool (*each)(void *ctx, int folder, const char *name), void *ctx)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	if (!list) {
		if (fd >= 0) {
			close(fd);
		}
		return;
	}
	for (size_t i = 0; i < max && (entry = readdir(list)); i++) {
		if (!each(ctx, folder, entry->d_name)) {
			break;
		}
	}
	closedir(list);
}
