/* SPDX-License-Identifier: Apache-2.0 */
/* Whose groups count: those of the connect, the main one and each supplementary one. */
#include "daemon/varlink/server/peer.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

enum { USER = 4242, MAIN = 4300, FIRST = 5000, NOBODY_S = 6000 };

static char dir[64];
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int listening;

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/edgeprof-access-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chmod(dir, 0755), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", dir);
	listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listening, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(chmod(address.sun_path, 0666), 0);
	ck_assert_int_eq(listen(listening, 4), 0);
}

static void teardown(void)
{
	close(listening);
	unlink(address.sun_path);
	rmdir(dir);
}

/* Of a process of that user with so many supplementary groups. */
static int accept_from(size_t groups)
{
	pid_t pid = fork();
	if (pid == 0) {
		static gid_t list[200];
		for (size_t i = 0; i < groups; i++) {
			list[i] = (gid_t)(FIRST + i);
		}
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		bool fine = setgroups(groups, list) == 0 && setgid(MAIN) == 0 &&
			    setuid(USER) == 0 &&
			    connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
		_exit(!fine);
	}
	int status = 1;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	int fd = accept(listening, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	return fd;
}

SKIP_UNLESS(geteuid() == 0, "not root: there is no other user");
FIXTURE(setup, teardown);

START_TEST(main_and_supplementary_groups_count)
{
	static const size_t counts[] = {0, 1, 3, 64, 65, 200};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uid_t uid = 0;
		int fd = accept_from(counts[i]);
		ck_assert_int_eq(peer_uid(fd, &uid), 0);
		ck_assert_uint_eq(uid, USER);
		ck_assert(peer_in_group(fd, MAIN));
		ck_assert(!peer_in_group(fd, NOBODY_S));
		ck_assert(!peer_in_group(fd, 0));
		for (size_t k = 0; k < counts[i]; k++) {
			ck_assert(peer_in_group(fd, (gid_t)(FIRST + k)));
		}
		ck_assert(!peer_in_group(fd, (gid_t)(FIRST + counts[i])));
		close(fd);
	}
}
END_TEST
