/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello.c: receives and checks a hello before anything is mapped. Each packet is peeked at first:
 * only a single memfd is received, all else that a peer attaches stays in the socket, which is
 * closed on a thread because that may block.
 */
#include "daemon/ingest/hello.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/util/deferred_close.h"

static const uint64_t CLOCK_TOLERANCE_NS = 1000000000;

/* Copies the descriptors of a peeked packet, at most two; their number. */
static size_t peeked_fds(struct msghdr *msg, int ret[2])
{
	size_t count = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			continue;
		}
		for (size_t i = 0; i < n && count < 2; i++) {
			memcpy(&ret[count++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		}
	}
	return count;
}

/* Peeks at the next packet. Its descriptors stay in the socket as well: a copy that is closed here
 * is never the last one. */
static ssize_t peek(int fd, struct msghdr *msg)
{
	ssize_t n;
	do {
		n = recvmsg(fd, msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		return errno == EAGAIN ? -EAGAIN : -ECONNRESET;
	}
	return n;
}

static const char *packet_error(
	const struct proto_hello *hello, size_t size, const struct msghdr *msg, size_t fds, int fd)
{
	if (size != sizeof(*hello) || (msg->msg_flags & MSG_TRUNC)) {
		return "the hello has the wrong length";
	}
	if (hello->magic != PROTO_HELLO_MAGIC) {
		return "not a hello of this protocol";
	}
	if (fds > 1 || (msg->msg_flags & MSG_CTRUNC)) {
		return "the hello carries more than one descriptor";
	}
	if (fds == 0) {
		return "the hello carries no mapping";
	}
	return fcntl(fd, F_GET_SEALS) < 0 ? "the descriptor is not a memfd" : NULL;
}

int hello_receive(int fd, struct deferred_close *deferred, struct account *account,
	struct proto_hello *ret, int *memfd, const char **reason)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
	struct proto_hello hello;
	struct iovec iov = {.iov_base = &hello, .iov_len = sizeof(hello)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	int got[2] = {-1, -1};
	*reason = NULL;
	ssize_t n = peek(fd, &msg);
	if (n < 0) {
		return (int)n;
	}
	size_t fds = peeked_fds(&msg, got);
	if (n == 0 && fds == 0 && !(msg.msg_flags & MSG_CTRUNC)) {
		return -ECONNRESET;
	}
	*reason = packet_error(&hello, (size_t)n, &msg, fds, got[0]);
	if (*reason) {
		bool quick = !(msg.msg_flags & MSG_CTRUNC); /* nothing in it blocks on close */
		for (size_t i = 0; i < fds; i++) {
			quick = quick && fcntl(got[i], F_GET_SEALS) >= 0;
			deferred_close_fd(deferred, account, got[i]);
		}
		if (quick) {
			recv(fd, &hello, sizeof(hello), MSG_DONTWAIT);
		}
		return -EBADMSG;
	}
	recv(fd, &hello, sizeof(hello), MSG_DONTWAIT); /* closes that copy of the memfd */
	hello.app[sizeof(hello.app) - 1] = '\0';
	*ret = hello;
	*memfd = got[0];
	return 0;
}

int hello_receive_wake(int fd)
{
	char byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = sizeof(byte)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = peek(fd, &msg);
	if (n < 0) {
		return (int)n;
	}
	if (msg.msg_flags & MSG_CTRUNC) {
		return -EBADMSG;
	}
	if (n == 0) {
		return -ECONNRESET;
	}
	recv(fd, &byte, sizeof(byte), MSG_DONTWAIT);
	return 0;
}

int hello_check(const struct proto_hello *hello, uint64_t now_ns, const char **reason)
{
	struct proto_geometry geometry;
	const bool past = hello->mono_ns < now_ns;
	const uint64_t offset_ns = past ? now_ns - hello->mono_ns : hello->mono_ns - now_ns;
	if (hello->major != PROTO_MAP_MAJOR) {
		*reason = "unsupported version of the event protocol";
	} else if (proto_geometry(hello->mapping_size, &geometry) < 0) {
		*reason = "unsupported size of the mapping";
	} else if (hello->page_size != (uint32_t)sysconf(_SC_PAGESIZE)) {
		*reason = "different page size";
	} else if (offset_ns > CLOCK_TOLERANCE_NS) {
		*reason = "its monotonic clock is more than 1 s off (another time namespace)";
		return past ? -ESTALE : -EBADMSG;
	} else {
		return 0;
	}
	return -EBADMSG;
}

int hello_check_memfd(int memfd, uint32_t size, struct stat *st, const char **reason)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	const unsigned long hugetlbfs = 0x958458f6; /* HUGETLBFS_MAGIC */
	int seals = fcntl(memfd, F_GET_SEALS);
	struct statfs fs;
	if (seals < 0) {
		*reason = "the descriptor is not a memfd";
	} else if ((seals & wanted) != wanted) {
		*reason = "the memfd is not sealed against resizing";
	} else if (fstatfs(memfd, &fs) < 0 || (unsigned long)(uint32_t)fs.f_type == hugetlbfs) {
		*reason = "the memfd is of huge pages"; /* a hole in it faults: none may be left */
	} else if (fstat(memfd, st) < 0 || !S_ISREG(st->st_mode)) {
		*reason = "the descriptor is not a memfd";
	} else if (st->st_size < 0 || (uint64_t)st->st_size != size) {
		*reason = "the size of the memfd differs from that in the hello";
	} else if (st->st_blocks < 0 || (uint64_t)st->st_blocks * 512 < size) {
		*reason = "the memfd has holes";
	} else {
		return 0;
	}
	return -EBADMSG;
}
