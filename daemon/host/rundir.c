/* SPDX-License-Identifier: Apache-2.0 */
/* rundir.c: chooses and creates the run directory; one that others may write to would give away the
 * sockets. */
#include "daemon/host/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST_NAME = sizeof("/io.edgeprof") - 1, ADDRESS_SIZE = 108 };

static int choose(char *path, size_t size)
{
	const char *own = getenv("EDGEPROF_RUNTIME_DIR");
	const char *user = getenv("XDG_RUNTIME_DIR");
	int length;
	if (own && own[0]) {
		length = snprintf(path, size, "%s", own);
	} else if (getenv("RUNTIME_DIRECTORY") || geteuid() == 0) {
		length = snprintf(path, size, "/run/edgeprofd");
	} else if (user && user[0]) {
		length = snprintf(path, size, "%s/edgeprofd", user);
	} else {
		path[0] = '\0';
		return -ENOENT;
	}
	if ((size_t)length >= size || (size_t)length + LONGEST_NAME >= ADDRESS_SIZE) {
		return -ENAMETOOLONG;
	}
	return 0;
}

int rundir_make(char *path, size_t size)
{
	int r = choose(path, size);
	if (r < 0) {
		return r;
	}
	if (mkdir(path, 0755) < 0 && errno != EEXIST) {
		return -errno;
	}
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		return -errno;
	}
	struct stat st;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	close(fd);
	if (r < 0) {
		return r;
	}
	bool ours = st.st_uid == geteuid();
	return ours && !(st.st_mode & (S_IWGRP | S_IWOTH)) ? 0 : -EPERM;
}
