/* SPDX-License-Identifier: Apache-2.0 */
/* The archive's file: what lies in its place is never followed, overwritten or removed, and
 * failures of the medium are told. */
#include "daemon/persist/archive_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/core/metrics/wallclock.h"
#include "tests/unit/unit.h"

enum { SIZE = 1024 * 1024 };

static char dir[64];
static struct archive_disk disk;

static const char *path_of(const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/edgeprof-archive.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	archive_disk_init(&disk, dir, false, SIZE);
}

static void teardown(void)
{
	archive_disk_close(&disk);
	DIR *list = opendir(dir);
	struct dirent *entry;
	while (list && (entry = readdir(list))) {
		if (unlinkat(dirfd(list), entry->d_name, 0) < 0) {
			unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
		}
	}
	closedir(list);
	rmdir(dir);
}

static int open_disk(void)
{
	struct archive_index *index = NULL;
	int r = archive_disk_open(&disk, &index);
	ck_assert(r < 0 ? index == NULL : index != NULL);
	archive_index_destroy(index);
	return r;
}

static void put_file(const char *name, const char *text, off_t size)
{
	int fd = open(path_of(name), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	ck_assert_int_eq(ftruncate(fd, size), 0);
	close(fd);
}

static bool has_text(const char *name, const char *text)
{
	char bytes[64] = "";
	int fd = open(path_of(name), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		return false;
	}
	ck_assert_int_ge(pread(fd, bytes, sizeof(bytes) - 1, 0), 0);
	close(fd);
	return strncmp(bytes, text, strlen(text)) == 0;
}

TEST_TIMEOUT(100);
FIXTURE(setup, teardown);

START_TEST(a_new_file_is_whole_written_and_ours_alone)
{
	struct stat st;
	static char sub[128];
	snprintf(sub, sizeof(sub), "%s/state", dir);
	archive_disk_init(&disk, sub, false, SIZE);
	ck_assert_int_eq(open_disk(), 0);
	ck_assert(disk.fresh);
	ck_assert_int_eq(stat(sub, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_eq(fstat(disk.fd, &st), 0);
	ck_assert_int_eq(st.st_size, SIZE);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_ge(st.st_blocks * 512, SIZE);
	ck_assert_int_ne(fcntl(disk.fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_uint_ge(disk.unit, 512);
	ck_assert_int_eq(open_disk(), 0);
	ck_assert(!disk.fresh);
	archive_disk_close(&disk);
	snprintf(sub, sizeof(sub), "%s/state/history", dir);
	unlink(sub);
	archive_disk_init(&disk, path_of("no/state"), false, SIZE);
	ck_assert_int_eq(open_disk(), -ENOENT); /* what is above must be there … */
	archive_disk_init(&disk, path_of("xdg/state"), true, SIZE);
	ck_assert_int_eq(open_disk(), 0); /* … but for XDG's */
	archive_disk_close(&disk);
	unlink(path_of("xdg/state/history"));
	rmdir(path_of("xdg/state"));
}
END_TEST

START_TEST(what_was_written_is_found_again)
{
	static const uint8_t boot[16] = {1};
	const struct timeline_entry entry = {.serial = 1, .t_ns = 5, .text = "hello"};
	struct archive_index *index;
	struct archive *archive;
	struct wallclock wall;
	const uint8_t *bytes;
	uint32_t page;
	wallclock_init(&wall);
	ck_assert_int_eq(archive_disk_open(&disk, &index), 0);
	ck_assert_int_eq(archive_create(boot, NULL, &archive), 0);
	archive_adopt(archive, index);
	archive_on_event(archive, &entry);
	size_t size = archive_seal(archive, 10, &wall, NULL, true, &bytes, &page);
	ck_assert_uint_gt(size, 0);
	ck_assert_int_eq(archive_disk_write(&disk, page, bytes, size), 0);
	ck_assert_int_eq(archive_disk_write(&disk, SIZE / ARCHIVE_PAGE, bytes, size), -EBADF);
	archive_written(archive, 0);
	archive_release(archive);
	ck_assert_int_eq(archive_disk_open(&disk, &index), 0);
	archive_adopt(archive, index);
	struct archive_span span;
	archive_span(archive, &span);
	ck_assert_uint_eq(span.blocks, 1);
	archive_destroy(archive);
}
END_TEST

START_TEST(what_is_not_ours_is_refused_and_left_alone)
{
	put_file("target", "precious", SIZE);
	char target[256];
	snprintf(target, sizeof(target), "%s", path_of("target"));
	ck_assert_int_eq(symlink(target, path_of("history")), 0);
	ck_assert_int_eq(open_disk(), -EPERM);
	ck_assert_ptr_nonnull(strstr(disk.why, "symbolic link"));
	unlink(path_of("history"));
	ck_assert_int_eq(link(target, path_of("history")), 0);
	ck_assert_int_eq(open_disk(), -EPERM);
	ck_assert_ptr_nonnull(strstr(disk.why, "another link"));
	unlink(path_of("history"));
	ck_assert_int_eq(mkfifo(path_of("history"), 0600), 0);
	ck_assert_int_eq(open_disk(), -EPERM);
	unlink(path_of("history"));
	ck_assert_int_eq(mkdir(path_of("history"), 0700), 0);
	ck_assert_int_eq(open_disk(), -EPERM);
	rmdir(path_of("history"));
	put_file("history", "", SIZE);
	ck_assert_int_eq(chmod(path_of("history"), 0620), 0);
	ck_assert_int_eq(open_disk(), -EPERM);
	ck_assert_ptr_nonnull(strstr(disk.why, "written by others"));
	ck_assert_int_eq(chmod(path_of("history"), 0600), 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(path_of("history"), 65534, 65534), 0);
		ck_assert_int_eq(open_disk(), -EPERM);
		ck_assert_ptr_nonnull(strstr(disk.why, "another user"));
	}
	ck_assert(has_text("target", "precious"));
	ck_assert_int_eq(access(path_of("history.1"), F_OK), -1);
	unlink(path_of("history"));
	ck_assert_int_eq(chmod(dir, 0770), 0);
	ck_assert_int_eq(open_disk(), -EPERM);
	ck_assert_int_eq(chmod(dir, 0700), 0);
	ck_assert_int_eq(open_disk(), 0);
}
END_TEST

START_TEST(a_link_in_place_of_the_folder_is_not_followed)
{
	ck_assert_int_eq(mkdir(path_of("elsewhere"), 0700), 0);
	ck_assert_int_eq(symlink("elsewhere", path_of("state")), 0);
	archive_disk_init(&disk, path_of("state"), false, SIZE);
	ck_assert_int_eq(open_disk(), -EPERM);
	ck_assert_int_eq(access(path_of("elsewhere/history"), F_OK), -1);
}
END_TEST

START_TEST(other_kinds_are_set_aside_each_under_a_name_of_its_own)
{
	char name[16], text[16];
	for (int i = 1; i <= ARCHIVE_ASIDE_MAX; i++) {
		snprintf(text, sizeof(text), "kind %d", i);
		put_file("history", text, i % 2 ? SIZE : 100); /* foreign; too short for a page */
		ck_assert_int_eq(open_disk(), 0);
		ck_assert(disk.fresh);
		snprintf(name, sizeof(name), "history.%d", i);
		ck_assert_ptr_nonnull(strstr(disk.aside, name));
		ck_assert(has_text(name, text));
		archive_disk_close(&disk);
		ck_assert_int_eq(unlink(path_of("history")), 0);
	}
	put_file("history", "kind 10", SIZE);
	ck_assert_int_eq(open_disk(), -EEXIST);
	ck_assert_ptr_nonnull(strstr(disk.why, "all taken"));
	ck_assert(has_text("history", "kind 10"));
	ck_assert(has_text("history.1", "kind 1"));
	/* Room again: it goes on by itself. */
	ck_assert_int_eq(unlink(path_of("history.4")), 0);
	ck_assert_int_eq(open_disk(), 0);
	ck_assert(has_text("history.4", "kind 10"));
}
END_TEST

START_TEST(another_version_or_length_is_set_aside)
{
	uint8_t page[ARCHIVE_PAGE];
	ck_assert_int_eq(open_disk(), 0);
	archive_disk_close(&disk);
	archive_disk_init(&disk, dir, false, 2 * SIZE); /* [history] persist_size was changed */
	ck_assert_int_eq(open_disk(), 0);
	ck_assert(disk.fresh);
	ck_assert_int_eq(access(path_of("history.1"), F_OK), 0);
	ck_assert_int_eq(pread(disk.fd, page, sizeof(page), 0), (ssize_t)sizeof(page));
	page[20] ^= 0x7f; /* the version */
	ck_assert_int_eq(pwrite(disk.fd, page, sizeof(page), 0), (ssize_t)sizeof(page));
	ck_assert_int_eq(open_disk(), 0);
	ck_assert(disk.fresh);
	ck_assert_int_eq(access(path_of("history.2"), F_OK), 0);
	/* A header that a power cut left as zeros costs nothing: the blocks say what they are. */
	memset(page, 0, sizeof(page));
	ck_assert_int_eq(pwrite(disk.fd, page, sizeof(page), 0), (ssize_t)sizeof(page));
	ck_assert_int_eq(open_disk(), 0);
	ck_assert(!disk.fresh);
	ck_assert_int_eq(access(path_of("history.3"), F_OK), -1);
}
END_TEST

START_TEST(a_second_daemon_is_turned_away)
{
	struct archive_disk second;
	struct archive_index *index;
	archive_disk_init(&second, dir, false, SIZE);
	ck_assert_int_eq(open_disk(), 0);
	ck_assert_int_eq(archive_disk_open(&second, &index), -EBUSY);
	archive_disk_close(&disk);
	ck_assert_int_eq(archive_disk_open(&second, &index), 0);
	archive_index_destroy(index);
	archive_disk_close(&second);
}
END_TEST

START_TEST(a_file_that_went_away_is_noticed)
{
	static const uint8_t bytes[ARCHIVE_PAGE];
	ck_assert_int_eq(open_disk(), 0);
	ck_assert_int_eq(archive_disk_write(&disk, 1, bytes, sizeof(bytes)), 0);
	char moved[256];
	snprintf(moved, sizeof(moved), "%s", path_of("moved"));
	ck_assert_int_eq(rename(path_of("history"), moved), 0);
	ck_assert_int_eq(archive_disk_write(&disk, 1, bytes, sizeof(bytes)), -ESTALE);
	put_file("history", "another", SIZE);
	ck_assert_int_eq(archive_disk_write(&disk, 1, bytes, sizeof(bytes)), -ESTALE);
	ck_assert_ptr_nonnull(strstr(disk.why, "removed, replaced"));
	ck_assert_int_eq(open_disk(), 0); /* sets it aside */
	ck_assert(has_text("history.1", "another"));
	ck_assert_int_eq(ftruncate(disk.fd, 4096), 0);
	ck_assert_int_eq(archive_disk_write(&disk, 1, bytes, sizeof(bytes)), -ESTALE);
}
END_TEST

/* A medium that fails after so many writes, with this error; 0 = a write that writes nothing. */
static struct {
	int after, error, sync_error;
	uint64_t written;
} trouble;

static ssize_t bad_pwrite(int fd, const void *bytes, size_t size, off_t at)
{
	if (trouble.after-- > 0) {
		size = size > 1000 ? size / 2 : size; /* short ones are gone on with */
		trouble.written += size;
		return pwrite(fd, bytes, size, at);
	}
	errno = trouble.error;
	return trouble.error ? -1 : 0;
}

static int bad_fdatasync(int fd)
{
	(void)fd;
	errno = trouble.sync_error;
	return trouble.sync_error ? -1 : 0;
}

static const struct archive_disk_calls bad_calls = {bad_pwrite, bad_fdatasync};

START_TEST(failures_of_the_medium_are_told)
{
	static const uint8_t bytes[ARCHIVE_PAGE];
	static const int errors[] = {EIO, ENOSPC, EROFS, EDQUOT, 0};
	ck_assert_int_eq(open_disk(), 0);
	disk.calls = &bad_calls;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		int expected = errors[i] ? -errors[i] : -EIO;
		trouble.after = 1;
		trouble.error = errors[i];
		ck_assert_int_eq(archive_disk_write(&disk, 1, bytes, sizeof(bytes)), expected);
		ck_assert_ptr_nonnull(strstr(disk.why, strerror(-expected)));
	}
	trouble.after = 100;
	trouble.sync_error = EIO;
	ck_assert_int_eq(archive_disk_write(&disk, 1, bytes, sizeof(bytes)), -EIO);
	trouble.sync_error = 0;
	ck_assert_int_eq(archive_disk_write(&disk, 1, bytes, sizeof(bytes)), 0);
}
END_TEST

START_TEST(a_making_that_failed_goes_on_where_it_stopped)
{
	archive_disk_init(&disk, dir, false, 8 * SIZE);
	disk.calls = &bad_calls;
	trouble.after = 20;
	trouble.error = EIO;
	trouble.written = 0;
	ck_assert_int_eq(open_disk(), -EIO);
	ck_assert_int_eq(access(path_of("history"), F_OK), -1);
	ck_assert_int_eq(access(path_of("history.new"), F_OK), 0);
	for (int i = 0; i < 50; i++) { /* a medium that stays bad is not worn out */
		trouble.after = 0;
		ck_assert_int_eq(open_disk(), -EIO);
	}
	trouble.after = 10000;
	ck_assert_int_eq(open_disk(), 0);
	ck_assert_uint_le(trouble.written, 8 * SIZE + 2 * SIZE);
	ck_assert_int_eq(access(path_of("history.new"), F_OK), -1);
	/* A stop leaves nothing half made, and a full disk gets its room back. */
	archive_disk_close(&disk);
	ck_assert_int_eq(unlink(path_of("history")), 0);
	trouble.after = 20;
	ck_assert_int_eq(open_disk(), -EIO);
	archive_disk_close(&disk);
	ck_assert_int_eq(access(path_of("history.new"), F_OK), -1);
	trouble.after = 20;
	trouble.error = ENOSPC;
	ck_assert_int_eq(open_disk(), -ENOSPC);
	ck_assert_int_eq(access(path_of("history.new"), F_OK), -1);
	disk.cancel = 1;
	ck_assert_int_eq(open_disk(), -ECANCELED);
	ck_assert_int_eq(access(path_of("history.new"), F_OK), -1);
}
END_TEST

START_TEST(what_a_killed_process_left_half_made_is_replaced)
{
	put_file("history.new", "half", 1000);
	ck_assert_int_eq(open_disk(), 0);
	ck_assert_int_eq(access(path_of("history.new"), F_OK), -1);
	archive_disk_close(&disk);
	unlink(path_of("history"));
	/* A link in its place is removed, not followed. */
	put_file("target", "precious", 100);
	ck_assert_int_eq(symlink("target", path_of("history.new")), 0);
	ck_assert_int_eq(open_disk(), 0);
	ck_assert(has_text("target", "precious"));
}
END_TEST
