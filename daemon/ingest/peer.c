/* Peers: credentials of the socket, a pidfd that tells death, the start time that tells one life of
 * a pid from the next. The machine's own /proc, whatever --root says. */
#include "daemon/ingest/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/util/root.h"

enum { PEERPIDFD = 77 }; /* SO_PEERPIDFD, Linux 6.5; not in every libc's headers */

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

uint64_t peer_parse_start(const char *stat)
{
	const char *p = strrchr(stat, ')');
	if (!p) {
		return 0;
	}
	p++;
	for (int field = 3; field <= 22; field++) {
		p += strspn(p, " ");
		if (field == 22) {
			break;
		}
		p += strcspn(p, " ");
	}
	char *end;
	unsigned long long ticks = strtoull(p, &end, 10);
	return end > p && *p >= '0' && *p <= '9' ? ticks : 0;
}

uint64_t peer_start_ticks(pid_t pid)
{
	char path[32], text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return 0;
	}
	ssize_t n = file_read(fd, text, sizeof(text));
	close(fd);
	return n > 0 ? peer_parse_start(text) : 0;
}
