/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below a root with links of both kinds, and bounded reads of anything. */
#include "daemon/util/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

static struct tree tree;
static struct root root;

static void setup(void)
{
	tree_make(&tree);
	tree_write(&tree, "sys/devices/virtual/thermal/thermal_zone0/temp", "41000\n");
	tree_write(&tree, "sys/class/thermal/README", "x");
	ck_assert_int_eq(root_init(&root, tree.path), 0);
}

static void teardown(void)
{
	root_finish(&root);
	root_finish(&root);
	tree_remove(&tree);
}

static void make_link(const char *path, const char *target)
{
	char full[1024];
	snprintf(full, sizeof(full), "%s/%s", tree.path, path);
	ck_assert_int_eq(symlink(target, full), 0);
}

static void reads(const char *path, const char *text)
{
	char buf[64];
	ck_assert_int_eq(root_read(&root, path, buf, sizeof(buf)), (ssize_t)strlen(text));
	ck_assert_str_eq(buf, text);
}

FIXTURE(setup, teardown);

START_TEST(links_and_files_that_stand_for_links_are_followed)
{
	make_link("sys/class/thermal/thermal_zone0", "../../devices/virtual/thermal/thermal_zone0");
	tree_write(&tree, "sys/class/thermal/thermal_zone1",
		"../../devices/virtual/thermal/thermal_zone0\n");
	tree_write(&tree, "sys/class/absolute", "/sys/devices/virtual");
	reads("sys/class/thermal/thermal_zone0/temp", "41000\n");
	reads("sys/class/thermal/thermal_zone1/temp", "41000\n");
	reads("/sys//class/./absolute/thermal/thermal_zone0/temp", "41000\n");
	reads("sys/class/thermal/thermal_zone1/../thermal_zone0/temp", "41000\n");
	struct root_name names[4];
	ck_assert_int_eq(root_list(&root, "sys/class/thermal/thermal_zone1", names, 4), 1);
	ck_assert_str_eq(names[0].text, "temp");
	char where[PATH_MAX];
	ck_assert_int_eq(
		root_resolve(&root, "sys/class/thermal/thermal_zone0", where, sizeof(where)), 0);
	ck_assert_str_eq(where, "sys/devices/virtual/thermal/thermal_zone0");
	ck_assert_int_eq(
		root_resolve(&root, "sys/class/thermal/thermal_zone0", where, 10), -ENAMETOOLONG);
}
END_TEST

START_TEST(nothing_leads_out_of_a_fixture_root)
{
	char up[512] = "";
	for (int i = 0; i < 20; i++) {
		strcat(up, "../");
	}
	strcat(up, "etc/passwd");
	make_link("out", "/etc/passwd");
	make_link("up", up);
	char buf[64];
	ck_assert_int_eq(root_read(&root, "out", buf, sizeof(buf)), -ENOENT);
	ck_assert_int_eq(root_read(&root, "up", buf, sizeof(buf)), -ENOENT);
	ck_assert_int_eq(root_read(&root, up, buf, sizeof(buf)), -ENOENT);
	tree_write(&tree, "etc/passwd", "mine");
	reads("out", "mine");
	reads("up", "mine");
}
END_TEST

START_TEST(loops_end)
{
	make_link("a", "b");
	make_link("b", "a");
	tree_write(&tree, "c", "c/c/c");
	char buf[64];
	ck_assert_int_eq(root_read(&root, "a", buf, sizeof(buf)), -ELOOP);
	ck_assert_int_eq(root_read(&root, "c/x", buf, sizeof(buf)), -ELOOP);
}
END_TEST

START_TEST(errors_are_told_as_they_are)
{
	char buf[8], long_path[PATH_MAX + 10];
	struct root_name names[4];
	struct root other;
	memset(long_path, 'a', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	ck_assert_int_eq(root_read(&root, "sys/none", buf, sizeof(buf)), -ENOENT);
	ck_assert_int_eq(root_read(&root, "sys", buf, sizeof(buf)), -EISDIR);
	ck_assert_int_eq(root_open(&root, long_path, O_RDONLY), -ENAMETOOLONG);
	ck_assert_int_eq(root_list(&root, "sys/none", names, 4), -ENOENT);
	ck_assert_int_eq(root_init(&other, "/nonexistent/folder"), -ENOENT);
}
END_TEST

START_TEST(a_file_larger_than_the_buffer_is_efbig)
{
	char buf[8];
	tree_write(&tree, "seven", "1234567");
	tree_write(&tree, "eight", "12345678");
	reads("seven", "1234567");
	ck_assert_int_eq(root_read(&root, "seven", buf, sizeof(buf)), 7);
	ck_assert_int_eq(root_read(&root, "eight", buf, sizeof(buf)), -EFBIG);
}
END_TEST

START_TEST(lists_are_in_version_order_and_bounded)
{
	tree_write(&tree, "d/zone10", "");
	tree_write(&tree, "d/zone2", "");
	tree_write(&tree, "d/.hidden", "");
	tree_write(
		&tree, "d/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "");
	struct root_name names[8];
	ck_assert_int_eq(root_list(&root, "d", names, 8), 2);
	ck_assert_str_eq(names[0].text, "zone2");
	ck_assert_str_eq(names[1].text, "zone10");
	ck_assert_int_eq(root_list(&root, "d", names, 1), 1);
}
END_TEST

static const struct {
	const char *text;
	size_t length;
	int result;
	long long value;
} integers[] = {
	{"41000\n", 6, 0, 41000},
	{" -5 \r\n", 6, 0, -5},
	{"9223372036854775807", 19, 0, LLONG_MAX},
	{"9223372036854775808", 19, -EBADMSG, 0},
	{"", 0, -ENODATA, 0},
	{"\n", 1, -EBADMSG, 0},
	{"12 3", 4, -EBADMSG, 0},
	{"1\0002", 3, -EBADMSG, 0},
	{"0x10", 4, -EBADMSG, 0},
	{"1.5", 3, -EBADMSG, 0},
	{"0000000000000000000000000000000000000000000000000000000000000000000001", 70, -EBADMSG, 0},
};

START_LOOP_TEST(integers_are_whole_or_refused, 0, COUNT(integers))
{
	long long value = 77;
	tree_write_bytes(&tree, "n", integers[_i].text, integers[_i].length);
	int fd = root_open(&root, "n", O_RDONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(file_read_i64(fd, &value), integers[_i].result);
	ck_assert_int_eq(value, integers[_i].result == 0 ? integers[_i].value : 77);
	close(fd);
}
END_TEST

START_TEST(a_fifo_does_not_block)
{
	char full[512];
	snprintf(full, sizeof(full), "%s/fifo", tree.path);
	ck_assert_int_eq(mkfifo(full, 0600), 0);
	char buf[8];
	ck_assert_int_lt(root_read(&root, "fifo", buf, sizeof(buf)), 0);
}
END_TEST

START_TEST(the_machines_own_root_reads_proc)
{
	struct root real;
	char buf[4096];
	ck_assert_int_eq(root_init(&real, "/"), 0);
	ck_assert(!real.fixture);
	ck_assert_int_gt(root_read(&real, "proc/self/stat", buf, sizeof(buf)), 0);
	root_finish(&real);
}
END_TEST

static int borrow(const char *path)
{
	int fd = root_borrow(&root, path, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	return fd;
}

START_TEST(a_root_keeps_what_was_borrowed_until_its_use_fails)
{
	struct root_kept kept = {0};
	tree_write(&tree, "a", "1");
	root.kept = &kept;
	int fd = borrow("a");
	root_return(&root, fd, 1);
	ck_assert_int_eq(borrow("a"), fd);
	root_return(&root, fd, -ESRCH);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	ck_assert_uint_eq(kept.count, 0);
	root_return(&root, borrow("a"), 0);
	ck_assert_uint_eq(kept.count, 1);
	root_kept_finish(&kept);
	root.kept = NULL;
	fd = borrow("a");
	root_return(&root, fd, 1);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
}
END_TEST

START_TEST(the_least_recently_borrowed_is_closed_for_another)
{
	struct root_kept kept = {0};
	const int max = COUNT(kept.file);
	root.kept = &kept;
	for (int i = 0; i <= max; i++) {
		char path[16];
		snprintf(path, sizeof(path), "f%d", i);
		tree_write(&tree, path, "1");
		root_return(&root, borrow(path), 1);
		root_return(&root, borrow("f0"), 1);
	}
	ck_assert_uint_eq(kept.count, (size_t)max);
	ck_assert_str_eq(kept.file[0].path, "f0");
	char last[16];
	snprintf(last, sizeof(last), "f%d", max);
	ck_assert_str_eq(kept.file[1].path, last); /* f1 has gone */
	root_kept_finish(&kept);
	ck_assert_uint_eq(kept.count, 0);
}
END_TEST
