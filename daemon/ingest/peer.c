/* Peers: credentials of the socket, a pidfd that tells death, the start time that tells one life of
 * a pid from the next. The machine's own /proc, whatever --root says. */
#include "daemon/ingest/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/util/root.h"

enum { STAT_SIZE = 1024 };

enum { PEERPIDFD = 77 }; /* SO_PEERPIDFD, Linux 6.5; not in every libc's headers */

/* PIDFD_GET_INFO (Linux 6.13) in its first size; the exit status is there from 6.15 on. */
struct pidfd_status {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_status;
};

#define PIDFD_STATUS _IOWR(0xff, 11, struct pidfd_status)
#define PIDFD_STATUS_EXIT UINT64_C(8) /* PIDFD_INFO_EXIT */

_Static_assert(sizeof(struct pidfd_status) == 64, "PIDFD_INFO_SIZE_VER0");

int peer_of(int fd, struct peer *ret)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0) {
		return -errno;
	}
	*ret = (struct peer){.pid = cred.pid, .uid = cred.uid, .gid = cred.gid};
	return 0;
}

int peer_open(int fd, pid_t pid)
{
	int pidfd = -1;
	socklen_t size = sizeof(pidfd);
	if (pid <= 0) {
		return -ESRCH;
	}
	if (getsockopt(fd, SOL_SOCKET, PEERPIDFD, &pidfd, &size) == 0) {
		return pidfd;
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return pidfd < 0 ? -errno : pidfd;
}

/* The number in a field from 3 on; 0 when there is none. */
static uint64_t parse_field(const char *stat, int wanted)
{
	const char *p = strrchr(stat, ')');
	if (!p) {
		return 0;
	}
	p++;
	for (int field = 3; field < wanted; field++) {
		p += strspn(p, " ");
		p += strcspn(p, " ");
	}
	p += strspn(p, " ");
	char *end;
	unsigned long long number = strtoull(p, &end, 10);
	return end > p && *p >= '0' && *p <= '9' ? number : 0;
}

uint64_t peer_parse_start(const char *stat)
{
	return parse_field(stat, 22);
}

/* False: there is no such process. */
static bool read_stat(pid_t pid, char text[STAT_SIZE])
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	ssize_t n = file_read(fd, text, STAT_SIZE);
	close(fd);
	return n > 0;
}

uint64_t peer_start_ticks(pid_t pid)
{
	char text[STAT_SIZE];
	return read_stat(pid, text) ? peer_parse_start(text) : 0;
}

/* Of a process that its parent has not waited for. Who may not know it reads 0. */
static int zombie_exit(const struct peer *peer, int *ret_status)
{
	char text[STAT_SIZE];
	if (!read_stat(peer->pid, text)) {
		return -ENODATA;
	}
	const char *command_end = strrchr(text, ')');
	if (!command_end || strncmp(command_end, ") Z", 3) != 0) {
		return -ENODATA;
	}
	uint64_t status = parse_field(text, 52);
	if (status == 0 && geteuid() != peer->uid) {
		return -ENODATA;
	}
	*ret_status = (int)status;
	return 0;
}

int peer_exit(int pidfd, const struct peer *peer, int *ret_status)
{
	struct pidfd_status status = {.mask = PIDFD_STATUS_EXIT};
	if (ioctl(pidfd, PIDFD_STATUS, &status) < 0) {
		return errno == ESRCH ? -ENODATA : zombie_exit(peer, ret_status);
	}
	if (status.mask & PIDFD_STATUS_EXIT) {
		*ret_status = status.exit_status;
		return 0;
	}
	return zombie_exit(peer, ret_status) == 0 ? 0 : -EAGAIN;
}
