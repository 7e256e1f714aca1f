/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/publish/mqtt/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char path[64];

static void write_secret(const char *bytes, size_t length, mode_t mode)
{
	snprintf(path, sizeof(path), "/tmp/edgeprof-secret-XXXXXX");
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

START_TEST(one_trailing_newline_is_cut)
{
	char buf[16];
	write_secret("geheim\n", 7, 0600);
	ck_assert_int_eq(secret_read(path, buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, "geheim");
	unlink(path);
	write_secret("a\n\n", 3, 0400);
	ck_assert_int_eq(secret_read(path, buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, "a\n");
	unlink(path);
}
END_TEST

START_TEST(a_file_that_others_may_touch_is_refused)
{
	static const mode_t modes[] = {0640, 0604, 0660, 0620, 0602, 0644, 0610};
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		char buf[16] = "leer";
		write_secret("x", 1, modes[i]);
		ck_assert_int_eq(secret_read(path, buf, sizeof(buf)), -EPERM);
		ck_assert_str_eq(buf, "");
		unlink(path);
	}
}
END_TEST

START_TEST(a_credential_may_show_group_bits)
{
	char buf[16];
	write_secret("x", 1, 0440);
	setenv("CREDENTIALS_DIRECTORY", "/tmp", 1);
	ck_assert_int_eq(secret_read(path, buf, sizeof(buf)), 0);
	setenv("CREDENTIALS_DIRECTORY", "/tm", 1);
	ck_assert_int_eq(secret_read(path, buf, sizeof(buf)), -EPERM);
	unlink(path);
}
END_TEST

START_TEST(what_is_not_a_password_is_refused_and_leaves_nothing)
{
	char buf[8];
	write_secret("12345678", 8, 0600);
	ck_assert_int_eq(secret_read(path, buf, sizeof(buf)), -EFBIG);
	ck_assert_int_eq(buf[0], '\0');
	unlink(path);
	write_secret("a\0b", 3, 0600);
	ck_assert_int_eq(secret_read(path, buf, sizeof(buf)), -EINVAL);
	unlink(path);
	ck_assert_int_eq(secret_read(path, buf, sizeof(buf)), -ENOENT);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(secret_read(path, buf, sizeof(buf)), -EINVAL);
	unlink(path);
}
END_TEST
