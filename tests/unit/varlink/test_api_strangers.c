/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that clients send, on a kernel that lets them through (before 6.16; here it is told
 * to). */
#include "tests/unit/varlink/api_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>

#include "daemon/util/deferred_close.h"
#include "daemon/varlink/server/api.h"
#include "daemon/varlink/server/peer.h"
#include "tests/unit/unit.h"

enum { SO_PASS_RIGHTS = 83 };

static void start(void)
{
	const int on = 1;
	fixture_open();
	fixture_serve();
	/* what it accepts inherits this; an error is an older kernel, which does it anyway */
	setsockopt(f.options.listen_fd, SOL_SOCKET, SO_PASS_RIGHTS, &on, sizeof(on));
	f.api->descriptors_refused = false;
}

static void end(void)
{
	fixture_close();
}

static size_t open_fds(void)
{
	size_t count = 0;
	DIR *dir = opendir("/proc/self/fd");
	ck_assert_ptr_nonnull(dir);
	while (readdir(dir)) {
		count++;
	}
	closedir(dir);
	return count;
}

/* The text with count write ends of pipes; the read ends tell when the last copy is closed. */
static void send_with_pipes(int to, const char *text, size_t length, int count, int *ends)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(DEFERRED_CLOSE_FDS * sizeof(int))] = {0};
	int sent[DEFERRED_CLOSE_FDS];
	for (int i = 0; i < count; i++) {
		int pair[2];
		ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
		ends[i] = pair[0];
		sent[i] = pair[1];
	}
	struct iovec iov = {(void *)(uintptr_t)text, length};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int))};
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
	memcpy(CMSG_DATA(header), sent, (size_t)count * sizeof(int));
	ck_assert_int_eq(sendmsg(to, &msg, MSG_NOSIGNAL), (ssize_t)length);
	for (int i = 0; i < count; i++) {
		close(sent[i]);
	}
}

static void wait_closed(const int *ends, int count)
{
	for (int i = 0; i < count; i++) {
		char byte;
		ck_assert_int_eq(read(ends[i], &byte, 1), 0);
		close(ends[i]);
	}
}

/* Reads what comes until the end of the stream, which a thread makes: the loop has no event then.
 */
static void hear_to_the_end(int fd)
{
	char bytes[4096];
	ssize_t n;
	while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) != 0) {
		if (n < 0 && errno != EAGAIN) {
			return; /* reset: what was sent was not read */
		}
		uv_run(&f.loop, UV_RUN_NOWAIT);
		sched_yield();
	}
}

static const char call[] = "{\"method\":\"io.edgeprof.GetSelf\"}";

FIXTURE(start, end);

START_LOOP_TEST(who_sends_descriptors_is_shown_the_door_and_nobody_else, 0, 3)
{
	static const int counts[] = {1, 3, DEFERRED_CLOSE_FDS};
	int count = counts[_i];
	int good = client_open();
	cJSON_Delete(client_call(good, "GetSelf", NULL, ""));
	size_t before = open_fds();
	for (int round = 0; round < 5; round++) {
		int ends[DEFERRED_CLOSE_FDS];
		int bad = client_open();
		if (round % 2) { /* behind a call that is answered */
			client_send(bad, call, sizeof(call));
		}
		send_with_pipes(bad, call, sizeof(call), count, ends);
		hear_to_the_end(bad);
		wait_closed(ends, count);
		close(bad);
	}
	cJSON *reply = client_call(good, "GetSelf", NULL, "");
	ck_assert(!cJSON_HasObjectItem(reply, "error"));
	cJSON_Delete(reply);
	while (open_fds() > before) { /* closed by a thread */
		sched_yield();
	}
	close(good);
}
END_TEST

FIXTURE(NULL, NULL);

START_TEST(what_nobody_read_is_closed_with_the_connection)
{
	int pair[2], ends[2];
	struct deferred_close *deferred;
	ck_assert_int_eq(deferred_close_create(&deferred), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	send_with_pipes(pair[1], call, sizeof(call), 2, ends);
	int kept = fcntl(pair[0], F_DUPFD_CLOEXEC, 0);
	ck_assert_int_ge(kept, 0);
	close(pair[0]);
	deferred_close_socket(deferred, NULL, kept);
	wait_closed(ends, 2);
	close(pair[1]);
	deferred_close_destroy(deferred);
}
END_TEST

START_TEST(a_look_tells_what_may_be_read)
{
	char buffer[64];
	int pair[2], ends[1];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(peer_peek(pair[0], buffer, sizeof(buffer)), -EAGAIN);
	client_send(pair[1], "abc", 3);
	ck_assert_int_eq(peer_peek(pair[0], buffer, sizeof(buffer)), 3);
	ck_assert_int_eq(peer_peek(pair[0], buffer, sizeof(buffer)), 3);
	ck_assert_int_eq(read(pair[0], buffer, 3), 3);
	send_with_pipes(pair[1], "x", 1, 1, ends);
	ck_assert_int_eq(peer_peek(pair[0], buffer, sizeof(buffer)), -EPROTO);
	ck_assert_int_eq(read(pair[0], buffer, 1), 1);
	wait_closed(ends, 1);
	close(pair[1]);
	ck_assert_int_eq(peer_peek(pair[0], buffer, sizeof(buffer)), 0);
	ck_assert_int_eq(peer_peek(-1, buffer, sizeof(buffer)), -EBADF);
	close(pair[0]);
}
END_TEST
