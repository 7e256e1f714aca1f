/* SPDX-License-Identifier: Apache-2.0 */
/* Closing what may hang: which sockets need a thread for that, and what they carried is gone. */
#include "daemon/util/deferred_close.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct deferred_close *deferred;

static void setup(void)
{
	ck_assert_int_eq(deferred_close_create(&deferred), 0);
}

static void teardown(void)
{
	deferred_close_destroy(deferred);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void send_fd(int socket, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {"x", 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	ck_assert_int_eq(sendmsg(socket, &msg, 0), 1);
}

static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};

TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_LOOP_TEST(a_socket_without_unread_messages_is_closed_at_once, 0, COUNT(types))
{
	int pair[2];
	for (int ended = 0; ended < 2; ended++) {
		ck_assert_int_eq(socketpair(AF_UNIX, types[_i], 0, pair), 0);
		if (ended) {
			close(pair[0]);
		}
		deferred_close_socket(deferred, NULL, pair[1]);
		ck_assert(!is_open(pair[1]));
		if (!ended) {
			close(pair[0]);
		}
	}
}
END_TEST

/* The other end of a pipe that was sent finds it closed. */
START_LOOP_TEST(what_unread_messages_carry_is_closed, 0, COUNT(types))
{
	int pair[2], ends[2];
	ck_assert_int_eq(socketpair(AF_UNIX, types[_i], 0, pair), 0);
	ck_assert_int_eq(pipe(ends), 0);
	send_fd(pair[0], ends[1]);
	close(ends[1]);
	if (types[_i] == SOCK_SEQPACKET) {
		ck_assert_int_eq(send(pair[0], "", 0, 0), 0);
		ck_assert_int_eq(pipe(ends), 0);
		send_fd(pair[0], ends[1]); /* behind an empty one */
		close(ends[1]);
	}
	close(pair[0]);
	deferred_close_socket(deferred, NULL, pair[1]);
	struct pollfd end = {.fd = ends[0]};
	ck_assert_int_eq(poll(&end, 1, -1), 1);
	ck_assert(end.revents & POLLHUP);
	close(ends[0]);
}
END_TEST
