/* SPDX-License-Identifier: Apache-2.0 */
/* test_folder.c: checks which folders are opened, and how far they are listed. */
#include "daemon/util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char dir[64], path[80];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/test-folder-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/it", dir);
}

static void teardown(void)
{
	rmdir(path);
	unlink(path);
	ck_assert_int_eq(rmdir(dir), 0);
}

FIXTURE(setup, teardown);

START_TEST(an_absent_folder_is_made_only_with_a_mode)
{
	struct stat st;
	ck_assert_int_eq(folder_open(path, 0), -ENOENT);
	int fd = folder_open(path, 0750);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0750);
	close(fd);
	fd = folder_open(path, 0);
	ck_assert_int_ge(fd, 0);
	close(fd);
}
END_TEST

START_TEST(a_link_and_a_folder_that_others_may_write_are_refused)
{
	ck_assert_int_eq(symlink("/tmp", path), 0);
	ck_assert_int_lt(folder_open(path, 0750), 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(chmod(path, 0720), 0);
	ck_assert_int_eq(folder_open(path, 0), -EPERM);
	ck_assert_int_eq(chmod(path, 0702), 0);
	ck_assert_int_eq(folder_open(path, 0750), -EPERM);
}
END_TEST

static bool count_name(void *ctx, int folder, const char *name)
{
	unsigned *left = ctx;
	ck_assert_int_eq(faccessat(folder, name, F_OK, 0), 0);
	return --*left > 0;
}

START_TEST(a_list_ends_at_the_maximum_and_when_told_to)
{
	char name[16];
	int fd = folder_open(dir, 0);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "file-%d", i);
		close(openat(fd, name, O_WRONLY | O_CREAT, 0600));
	}
	unsigned left = 100;
	folder_list(fd, SIZE_MAX, count_name, &left);
	ck_assert_uint_eq(left, 100 - 10); /* with . and .. */
	folder_list(fd, 4, count_name, &left);
	ck_assert_uint_eq(left, 90 - 4);
	left = 3;
	folder_list(fd, SIZE_MAX, count_name, &left);
	ck_assert_uint_eq(left, 0);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "file-%d", i);
		unlinkat(fd, name, 0);
	}
	close(fd);
}
END_TEST
