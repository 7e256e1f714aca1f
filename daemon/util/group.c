/* group.c: looks in /etc/group first, because glibc's name service crashes where it finds no memory
 * (2.36: NULL pointer and assertions in nss_database.c, an exit in libnss_systemd's thread-local
 * data). */
#include "daemon/util/group.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

/* A group with thousands of members fits; the name service takes less than that. */
enum { BUFFER_BYTES = 256 * 1024 };

/* 0, 1: found, or -errno. */
static int find_in_file(const char *name, char *buffer, gid_t *ret)
{
	struct group group, *line = NULL;
	FILE *file = fopen("/etc/group", "re");
	if (!file) {
		return errno == ENOENT ? 0 : -errno;
	}
	int r = 0;
	while (r == 0 && fgetgrent_r(file, &group, buffer, BUFFER_BYTES, &line) == 0 && line) {
		if (strcmp(line->gr_name, name) == 0) {
			*ret = line->gr_gid;
			r = 1;
		}
	}
	fclose(file);
	return r;
}

int group_find(const char *name, gid_t *ret)
{
	struct group group, *found = NULL;
	char *buffer = mem_zalloc(BUFFER_BYTES);
	if (!buffer) {
		return -ENOMEM;
	}
	int r = find_in_file(name, buffer, ret);
	if (r == 0) {
		r = -getgrnam_r(name, &group, buffer, BUFFER_BYTES, &found);
		if (found) {
			*ret = found->gr_gid;
			r = 1;
		}
	}
	free(buffer);
	return r == 0 ? -ENOENT : r > 0 ? 0 : r;
}
