/* SPDX-License-Identifier: Apache-2.0 */
/* address.c: finds the daemon's socket: the service's directory first, then the user's own. */
#include "client/edgeprofctl/link/address.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/varlink.h"

static int add(struct address_list *list, const char *directory, const char *rest)
{
	int length =
		snprintf(list->entries[list->count].path, ADDRESS_SIZE, "%s%s", directory, rest);
	if (length < 0 || length >= ADDRESS_SIZE) {
		return -ENAMETOOLONG;
	}
	list->count++;
	return 0;
}

int address_search(const char *explicit_path, struct address_list *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (explicit_path) {
		const char *path = explicit_path;
		path += strncmp(path, "unix:", 5) == 0 ? 5 : 0;
		return add(ret, path, "");
	}
	const char *directory = getenv("EDGEPROF_RUNTIME_DIR");
	if (directory && directory[0] != '\0') {
		return add(ret, directory, "/" PROTO_INTERFACE_NAME);
	}
	int r = add(ret, "/run/edgeprofd", "/" PROTO_INTERFACE_NAME);
	directory = getenv("XDG_RUNTIME_DIR");
	if (r == 0 && directory && directory[0] == '/') {
		r = add(ret, directory, "/edgeprofd/" PROTO_INTERFACE_NAME);
	}
	return r;
}

int address_open(const char *path, int type, uint64_t timeout_ms)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, path, strlen(path));
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return -errno;
	}
	/* A full backlog would block connect(2) for as long as the daemon is stopped. */
	struct timeval limit = {
		.tv_sec = (time_t)(timeout_ms / 1000),
		.tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000),
	};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int error = errno == EAGAIN ? ETIMEDOUT : errno;
		close(fd);
		return -error;
	}
	return fd;
}

int address_connect(struct address_list *list, uint64_t timeout_ms)
{
	int result = -ENOENT;
	for (size_t i = 0; i < list->count; i++) {
		int fd = address_open(list->entries[i].path, SOCK_STREAM, timeout_ms);
		if (fd >= 0) {
			return fd;
		}
		list->entries[i].error = -fd;
		bool refused = fd == -EACCES || fd == -EPERM;
		if (result != -EACCES) {
			result = refused ? -EACCES : fd;
		}
	}
	return result;
}

const char *address_group(const struct address_list *list)
{
	const char *name = "edgeprof";
	for (size_t i = 0; i < list->count; i++) {
		int cause = list->entries[i].error;
		struct stat status;
		if ((cause == EACCES || cause == EPERM) &&
			stat(list->entries[i].path, &status) == 0) {
			/* root's is not a group to join */
			const struct group *group = getgrgid(status.st_gid);
			name = status.st_gid == 0 ? NULL : group ? group->gr_name : "edgeprof";
		}
	}
	return name;
}

void address_explain(const struct address_list *list, int error, FILE *out)
{
	bool denied = error == -EACCES;
	const char *group = address_group(list);
	fprintf(out, "edgeprofctl: %s\n",
		denied ? "permission denied by edgeprofd" : "cannot connect to edgeprofd");
	for (size_t i = 0; i < list->count; i++) {
		fprintf(out, "  tried %s: %s\n", list->entries[i].path,
			strerror(list->entries[i].error));
	}
	if (denied && !group) {
		fputs("Only root is permitted; use sudo.\n", out);
	} else if (denied) {
		fprintf(out, "Join its group: sudo usermod -aG %s $USER, then log in again.\n",
			group);
	} else {
		fputs("Start it with `systemctl start edgeprofd`, or `edgeprofd` in another "
		      "terminal.\n",
			out);
	}
}
