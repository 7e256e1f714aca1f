/* SPDX-License-Identifier: Apache-2.0 */
/* What replaces a file is on the medium before it has the file's name, and the name after that: a
 * power cut leaves the old one or the new one. The calls that matter are noted in their order. */
#include "daemon/util/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/recorder/session_file.h"
#include "tests/unit/unit.h"

static char calls[256];
static char dir[64];
static int folder;

static void note(const char *call)
{
	strncat(calls, call, sizeof(calls) - strlen(calls) - 1);
}

static const char *what(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? "folder " : "file ";
}

/* In the place of libc's, for everything in this program. */
ssize_t write(int fd, const void *bytes, size_t size)
{
	if (fd > 2) {
		note("write ");
	}
	return syscall(SYS_write, fd, bytes, size);
}

int fdatasync(int fd)
{
	note("sync ");
	note(what(fd));
	return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	note("sync ");
	note(what(fd));
	return (int)syscall(SYS_fsync, fd);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
	note("rename ");
	return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/edgeprof-replace-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(folder, 0);
	calls[0] = '\0';
}

static void teardown(void)
{
	unlinkat(folder, "name", 0);
	close(folder);
	rmdir(dir);
}

FIXTURE(setup, teardown);

START_TEST(bytes_come_to_the_medium_before_the_name)
{
	for (int i = 0; i < 2; i++) { /* the first one, and over it */
		calls[0] = '\0';
		ck_assert_int_eq(file_replace(folder, "new", "name", 0600, "text", 4), 0);
		ck_assert_str_eq(calls, "write sync file rename sync folder ");
	}
	ck_assert_int_eq(faccessat(folder, "new", F_OK, 0), -1);
}
END_TEST

START_TEST(nor_does_a_thinned_session_lose_what_it_had)
{
	struct session_file file = {.folder = -1, .fd = -1, .name = "one", .max_bytes = 2000};
	struct session_point point = {.block = 1};
	char text[256];
	snprintf(file.dir, sizeof(file.dir), "%s", dir);
	for (int i = 0; i < 20 && !file.thinned; i++) {
		calls[0] = '\0';
		size_t length = session_point_write(&point, true, text, sizeof(text));
		point.block++;
		ck_assert_int_eq(session_file_write(&file, text, length), 0);
	}
	ck_assert_ptr_nonnull(strstr(calls, "write sync file rename "));
	session_file_close(&file);
	unlinkat(folder, "one.jsonl", 0);
}
END_TEST
