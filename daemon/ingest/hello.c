/*
 * Receives and judges a hello before anything is mapped. Descriptors travel by our own recvmsg:
 * whatever else a peer sends along is closed here.
 */
#include "daemon/ingest/hello.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/util/closer.h"

static const uint64_t CLOCK_TOLERANCE_NS = 1000000000;

/* The number of descriptors received; the first is kept, the others closed. */
static size_t take_fds(struct msghdr *msg, struct closer *closer, int *ret)
{
	size_t count = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			continue;
		}
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (count++ == 0) {
				*ret = fd;
			} else {
				closer_take(closer, fd);
			}
		}
	}
	return count;
}

int hello_receive(
	int fd, struct closer *closer, struct proto_hello *ret, int *memfd, const char **reason)
{
	union { /* room for all: the kernel would close here what does not fit */
		struct cmsghdr align;
		char bytes[CMSG_SPACE(CLOSER_FDS * sizeof(int))];
	} control;
	struct proto_hello hello;
	struct iovec iov = {.iov_base = &hello, .iov_len = sizeof(hello)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;
	do {
		n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		return errno == EAGAIN ? -EAGAIN : -ECONNRESET;
	}
	int got = -1;
	size_t count = take_fds(&msg, closer, &got);
	*reason = NULL;
	if (n == 0 && count == 0) {
		return -ECONNRESET;
	}
	if ((size_t)n != sizeof(hello) || (msg.msg_flags & MSG_TRUNC)) {
		*reason = "the hello has another length";
	} else if (hello.magic != PROTO_HELLO_MAGIC) {
		*reason = "not a hello of this protocol";
	} else if (count == 0) {
		*reason = "the hello carries no mapping";
	} else if (count > 1 || (msg.msg_flags & MSG_CTRUNC)) {
		*reason = "the hello carries more than one descriptor";
	}
	if (*reason) {
		if (got >= 0) {
			closer_take(closer, got);
		}
		return -EBADMSG;
	}
	hello.app[sizeof(hello.app) - 1] = '\0';
	*ret = hello;
	*memfd = got;
	return 0;
}

int hello_check(const struct proto_hello *hello, uint64_t now_ns, const char **reason)
{
	struct proto_geometry geometry;
	uint64_t apart =
		hello->mono_ns > now_ns ? hello->mono_ns - now_ns : now_ns - hello->mono_ns;
	if (hello->major != PROTO_MAP_MAJOR) {
		*reason = "another version of the event protocol";
	} else if (proto_geometry(hello->mapping_size, &geometry) < 0) {
		*reason = "a mapping of this size is not allowed";
	} else if (hello->page_size != (uint32_t)sysconf(_SC_PAGESIZE)) {
		*reason = "another page size";
	} else if (apart > CLOCK_TOLERANCE_NS) {
		*reason = "its monotonic clock is more than 1 s off (another time namespace)";
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
		*reason = "the memfd has another size than the hello says";
	} else if (st->st_blocks < 0 || (uint64_t)st->st_blocks * 512 < size) {
		*reason = "the memfd has holes";
	} else {
		return 0;
	}
	return -EBADMSG;
}
