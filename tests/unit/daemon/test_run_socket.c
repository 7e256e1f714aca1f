/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of the run directory: who may use them, what is replaced and what is left alone. */
#include "daemon/host/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
static char dir[64], path[96];
static struct run_socket bound;

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/edgeprof-socket.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
}

static void teardown(void)
{
	run_socket_close(&bound);
	run_socket_close(&bound);
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}

static void serve(int type)
{
	ck_assert_int_eq(run_socket_open(&bound, path, type, NULL), 0);
	ck_assert(type == SOCK_DGRAM || listen(bound.fd, 4) == 0);
}

static unsigned mode(void)
{
	struct stat st;
	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_mode & 07777;
}

FIXTURE(setup, teardown);

START_LOOP_TEST(everybody_may_connect_unless_a_group_is_named, 0, 3)
{
	mode_t mask = umask(0077);
	serve(types[_i]);
	umask(mask);
	ck_assert_uint_eq(mode(), 0666);
	ck_assert_uint_eq(bound.owner, geteuid());
	run_socket_close(&bound);
	ck_assert_int_eq(run_socket_open(&bound, path, types[_i], "no-such-group-here"), -ENOENT);
	struct group *group = getgrgid(getegid());
	ck_assert_int_eq(
		run_socket_open(&bound, path, types[_i], group ? group->gr_name : NULL), 0);
	ck_assert_uint_eq(mode(), group ? 0660 : 0666);
}
END_TEST

START_LOOP_TEST(a_live_socket_is_not_taken_and_a_stale_one_is, 0, 3)
{
	struct run_socket second;
	serve(types[_i]);
	ck_assert_int_eq(run_socket_open(&second, path, types[_i], NULL), -EADDRINUSE);
	ck_assert_int_eq(second.fd, -1);
	ck_assert_int_eq(access(path, F_OK), 0);
	close(bound.fd); /* what a killed daemon leaves: a path that nobody serves */
	serve(types[_i]);
	ck_assert_uint_eq(mode(), 0666);
}
END_TEST

START_TEST(a_path_that_is_no_socket_or_too_long_is_refused)
{
	char longer[200];
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	ck_assert_int_eq(run_socket_open(&bound, longer, SOCK_STREAM, NULL), -ENAMETOOLONG);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(run_socket_open(&bound, path, SOCK_STREAM, NULL), -EEXIST);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(run_socket_open(&bound, "/nonexistent/socket", SOCK_DGRAM, NULL), -ENOENT);
}
END_TEST

START_TEST(only_our_own_path_is_removed)
{
	struct run_socket first;
	serve(SOCK_STREAM);
	first = bound;
	ck_assert_int_eq(unlink(path), 0);
	serve(SOCK_STREAM);
	run_socket_close(&first);
	ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST
