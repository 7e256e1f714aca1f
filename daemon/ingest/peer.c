/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c: reads credentials of the socket, a pidfd that reports death, the start time that
 * distinguishes one life of a pid from the next, and PID namespaces, from the socket and from
 * /proc/PID. */
#include "daemon/ingest/peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/util/root.h"

enum {
	STAT_SIZE = 1024,
	STATUS_SIZE = 4096,
	OFFSETS_SIZE = 256,
	PEERPIDFD = 77, /* SO_PEERPIDFD, Linux 6.5; not in every libc's headers */
};

/* PIDFD_GET_INFO (Linux 6.13) in its first size; the exit status is there from 6.15 on. */
struct pidfd_status {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_status;
};

#define PIDFD_STATUS _IOWR(0xff, 11, struct pidfd_status)
#define PIDFD_STATUS_EXIT UINT64_C(8) /* PIDFD_INFO_EXIT */

_Static_assert(sizeof(struct pidfd_status) == 64, "PIDFD_INFO_SIZE_VER0");

/* Reads a file below /proc. False: the process is gone, or hidden. */
__attribute__((format(printf, 3, 4))) static bool read_proc(
	char *text, size_t size, const char *format, ...)
{
	char path[80];
	va_list args;
	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	ssize_t n = file_read(fd, text, size);
	close(fd);
	return n > 0;
}

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

/* The number in a field of /proc/PID/stat, from 3 on; 0 when there is none. */
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

uint64_t peer_start_ticks(pid_t pid)
{
	char text[STAT_SIZE];
	return read_proc(text, sizeof(text), "/proc/%d/stat", (int)pid) ? peer_parse_start(text)
									: 0;
}

bool peer_has_our_clock(pid_t pid)
{
	char ours[OFFSETS_SIZE], theirs[OFFSETS_SIZE];
	if (!read_proc(ours, sizeof(ours), "/proc/self/timens_offsets")) {
		return true; /* this kernel has no time namespaces */
	}
	return read_proc(theirs, sizeof(theirs), "/proc/%d/timens_offsets", (int)pid) &&
	       strcmp(ours, theirs) == 0;
}

/* The status of a process that its parent has not waited for. The kernel shows 0 to those who
 * may not know it. */
static int zombie_exit(const struct peer *peer, int *ret_status)
{
	char text[STAT_SIZE];
	if (!read_proc(text, sizeof(text), "/proc/%d/stat", (int)peer->pid)) {
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
	int r = ioctl(pidfd, PIDFD_STATUS, &status);
	if (r < 0 && errno == ESRCH) {
		/* reaped after the kernel looked for its status, which is there now */
		status.mask = PIDFD_STATUS_EXIT;
		r = ioctl(pidfd, PIDFD_STATUS, &status);
	}
	if (r < 0) {
		return errno == ESRCH ? -ENODATA : zombie_exit(peer, ret_status);
	}
	if (status.mask & PIDFD_STATUS_EXIT) {
		*ret_status = status.exit_status;
		return 0;
	}
	return zombie_exit(peer, ret_status) == 0 ? 0 : -EAGAIN;
}

pid_t nspid_parse(const char *status, unsigned *levels)
{
	const char *line = strncmp(status, "NSpid:", 6) == 0 ? status : strstr(status, "\nNSpid:");
	unsigned long number = 0;
	*levels = 0;
	if (!line) {
		return 0;
	}
	const char *p = strchr(line, ':') + 1;
	const char *end = p + strcspn(p, "\n");
	while (p < end) {
		p += strspn(p, " \t");
		char *end_of_number;
		if (p >= end || *p < '0' || *p > '9') {
			break;
		}
		number = strtoul(p, &end_of_number, 10);
		if (number > INT32_MAX) {
			*levels = 0;
			return 0;
		}
		p = end_of_number;
		++*levels;
	}
	return (pid_t)number;
}

void nspid_init(struct nspid *nspid, pid_t pid)
{
	char text[STATUS_SIZE];
	unsigned levels;
	*nspid = (struct nspid){.inside = 0};
	if (pid > 0 && read_proc(text, sizeof(text), "/proc/%d/status", (int)pid)) {
		nspid->inside = nspid_parse(text, &levels);
		nspid->nested = levels > 1;
	}
}

uint32_t nspid_thread(struct nspid *nspid, pid_t pid, uint32_t inside)
{
	if (inside == 0 || pid <= 0) {
		return 0;
	}
	if (!nspid->nested) {
		return inside;
	}
	for (size_t i = 0; i < nspid->threads; i++) {
		if (nspid->thread[i].inside == inside) {
			return nspid->thread[i].outside;
		}
	}
	nspid->wanted = true;
	return 0;
}

void nspid_scan(struct nspid *nspid, pid_t pid)
{
	char path[32];
	nspid->wanted = false;
	nspid->threads = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(path);
	if (!tasks) {
		return;
	}
	const struct dirent *entry;
	for (int scanned = 0; scanned < NSPID_SCAN_MAX && nspid->threads < NSPID_THREADS;
		scanned++) {
		entry = readdir(tasks);
		if (!entry) {
			break;
		}
		unsigned long tid = strtoul(entry->d_name, NULL, 10);
		char text[STATUS_SIZE];
		unsigned levels;
		if (tid == 0 || tid > INT32_MAX ||
			!read_proc(text, sizeof(text), "/proc/%d/task/%lu/status", (int)pid, tid)) {
			continue;
		}
		pid_t inside = nspid_parse(text, &levels);
		if (inside > 0) {
			nspid->thread[nspid->threads++] = (struct nspid_thread){
				.inside = (uint32_t)inside, .outside = (uint32_t)tid};
		}
	}
	closedir(tasks);
}
