/* SPDX-License-Identifier: Apache-2.0 */
/* Report files: whole or not at all, within their limits, and nothing in the folder is followed. */
#include "daemon/recorder/report_file.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char dir[64];

static const char *path_of(const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/edgeprof-report.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static size_t each_report(void (*act)(const char *name))
{
	size_t count = 0;
	DIR *list = opendir(path_of("reports"));
	struct dirent *entry;
	while (list && (entry = readdir(list))) {
		if (entry->d_name[0] == '.' &&
			(entry->d_name[1] == '\0' || entry->d_name[1] == '.')) {
			continue;
		}
		count++;
		if (act) {
			act(entry->d_name);
		}
	}
	if (list) {
		closedir(list);
	}
	return count;
}

static void remove_report(const char *name)
{
	char path[320];
	snprintf(path, sizeof(path), "%s/reports/%s", dir, name);
	unlink(path);
}

static void teardown(void)
{
	each_report(remove_report);
	rmdir(path_of("reports"));
	unlink(path_of("reports"));
	unlink(path_of("victim"));
	rmdir(dir);
}

static void put_file(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static const char *content(const char *name)
{
	static char text[256];
	FILE *file = fopen(path_of(name), "r");
	size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	if (file) {
		fclose(file);
	}
	text[length] = '\0';
	return text;
}

static bool there(const char *name)
{
	struct stat st;
	return lstat(path_of(name), &st) == 0;
}

static int write_text(const char *app, const char *text)
{
	return report_file_write(dir, app, text, strlen(text));
}

FIXTURE(setup, teardown);

START_TEST(file_is_made_and_replaced)
{
	ck_assert_int_eq(write_text("cam", "first"), 0);
	ck_assert_str_eq(content("reports/cam.txt"), "first");
	ck_assert_int_eq(write_text("cam", "2nd"), 0);
	ck_assert_int_eq(write_text(".hidden", "x"), 0);
	ck_assert_str_eq(content("reports/cam.txt"), "2nd");
	ck_assert_str_eq(content("reports/.hidden.txt"), "x");
	ck_assert_uint_eq(each_report(NULL), 2);
}
END_TEST

START_TEST(links_are_replaced_and_not_followed)
{
	put_file("victim", "precious");
	ck_assert_int_eq(mkdir(path_of("reports"), 0755), 0);
	ck_assert_int_eq(symlink("../victim", path_of("reports/cam.txt")), 0);
	ck_assert_int_eq(symlink("../victim", path_of("reports/cam.new")), 0);
	ck_assert_int_eq(write_text("cam", "text"), 0);
	ck_assert_str_eq(content("reports/cam.txt"), "text");
	ck_assert_str_eq(content("victim"), "precious");
	struct stat st;
	ck_assert_int_eq(lstat(path_of("reports/cam.txt"), &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_uint_eq(each_report(NULL), 1);
}
END_TEST

START_TEST(folder_that_is_a_link_or_open_to_others_is_refused)
{
	ck_assert_int_eq(symlink("/tmp", path_of("reports")), 0);
	int r = write_text("cam", "text");
	ck_assert_msg(r == -ELOOP || r == -ENOTDIR, "%d", r);
	ck_assert_int_eq(unlink(path_of("reports")), 0);
	ck_assert_int_eq(mkdir(path_of("reports"), 0755), 0);
	ck_assert_int_eq(chmod(path_of("reports"), 0777), 0);
	ck_assert_int_eq(write_text("cam", "text"), -EPERM);
	ck_assert_uint_eq(each_report(NULL), 0);
	ck_assert_int_eq(report_file_write("/nonexistent", "cam", "x", 1), -ENOENT);
}
END_TEST

START_TEST(folder_in_the_place_of_the_file_leaves_no_leftovers)
{
	ck_assert_int_eq(mkdir(path_of("reports"), 0755), 0);
	ck_assert_int_eq(mkdir(path_of("reports/cam.txt"), 0755), 0);
	ck_assert_int_eq(write_text("cam", "text"), -EISDIR);
	ck_assert(!there("reports/cam.new"));
	rmdir(path_of("reports/cam.txt"));
	put_file("reports/old.new", "a crash left it");
	ck_assert_int_eq(write_text("cam", "text"), 0);
	ck_assert(!there("reports/old.new"));
}
END_TEST

static void age(const char *name, int seconds)
{
	const struct timespec times[2] = {{.tv_sec = 1000 + seconds}, {.tv_sec = 1000 + seconds}};
	ck_assert_int_eq(utimensat(AT_FDCWD, path_of(name), times, 0), 0);
}

START_TEST(oldest_goes_past_the_limit_of_files)
{
	char app[16], name[40];
	for (int i = 0; i < REPORT_FILES_MAX; i++) {
		snprintf(app, sizeof(app), "app%d", i);
		ck_assert_int_eq(write_text(app, "text"), 0);
		snprintf(name, sizeof(name), "reports/%s.txt", app);
		age(name, i == 7 ? 0 : i + 1);
	}
	ck_assert_uint_eq(each_report(NULL), REPORT_FILES_MAX);
	ck_assert_int_eq(write_text("app3", "again"), 0); /* no new one */
	ck_assert_uint_eq(each_report(NULL), REPORT_FILES_MAX);
	ck_assert(there("reports/app7.txt"));
	ck_assert_int_eq(write_text("new", "text"), 0);
	ck_assert_uint_eq(each_report(NULL), REPORT_FILES_MAX);
	ck_assert(!there("reports/app7.txt"));
	ck_assert(there("reports/app0.txt"));
}
END_TEST

START_TEST(oldest_goes_past_the_limit_of_bytes)
{
	size_t third = REPORT_BYTES_MAX / 3;
	char *text = calloc(1, REPORT_BYTES_MAX);
	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(report_file_write(dir, "a", text, third), 0);
	age("reports/a.txt", 2);
	ck_assert_int_eq(report_file_write(dir, "b", text, third), 0);
	age("reports/b.txt", 1);
	ck_assert_int_eq(report_file_write(dir, "c", text, third), 0);
	ck_assert_uint_eq(each_report(NULL), 3);
	ck_assert_int_eq(write_text("d", "four"), 0);
	ck_assert_uint_eq(each_report(NULL), 3);
	ck_assert(!there("reports/b.txt"));
	ck_assert_int_eq(report_file_write(dir, "e", text, REPORT_BYTES_MAX), 0);
	ck_assert_uint_eq(each_report(NULL), 1);
	free(text);
}
END_TEST

static struct {
	int calls, result;
	char apps[256];
} seen;

static void on_told(void *ctx, const struct report_file *file, const char *path, int result)
{
	ck_assert_ptr_eq(ctx, &seen);
	ck_assert_ptr_nonnull(strstr(path, "/reports/"));
	ck_assert_uint_eq(file->uid, 1000);
	size_t used = strlen(seen.apps);
	snprintf(seen.apps + used, sizeof(seen.apps) - used, "%s:%s ", file->app, file->note);
	seen.calls++;
	seen.result = result;
}

static int queue(struct report_files *files, const char *app, const char *text)
{
	struct report_file file = {.app = app, .text = text, .length = strlen(text), .uid = 1000};
	snprintf(file.note, sizeof(file.note), "%s", text);
	return report_files_write(files, &file);
}

START_TEST(queue_is_bounded_written_in_order_and_closes_when_done)
{
	uv_loop_t loop;
	struct report_files *files = NULL;
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(report_files_open(&loop, dir, on_told, &seen, &files), 0);
	ck_assert_int_eq(queue(files, "a", "1"), 0); /* with the worker from now on */
	ck_assert_int_eq(queue(files, "a", "2"), 0);
	ck_assert_int_eq(queue(files, "b", "3"), 0);
	ck_assert_int_eq(queue(files, "a", "4"), 0); /* in the place of 2 */
	for (int i = 2; i < REPORT_QUEUE_MAX; i++) {
		char app[16];
		snprintf(app, sizeof(app), "c%d", i);
		ck_assert_int_eq(queue(files, app, "x"), 0);
	}
	ck_assert_int_eq(queue(files, "more", "x"), -ENOSPC);
	ck_assert_int_eq(queue(files, "b", "5"), 0);
	struct report_file file = {.app = "b", .text = "", .length = REPORT_BYTES_MAX + 1};
	ck_assert_int_eq(report_files_write(files, &file), -E2BIG);
	report_files_close(files);
	ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	ck_assert_int_eq(seen.calls, 1 + REPORT_QUEUE_MAX);
	ck_assert_int_eq(strncmp(seen.apps, "a:1 a:4 b:5 c2:x ", 17), 0);
	ck_assert_int_eq(seen.result, 0);
	ck_assert_str_eq(content("reports/a.txt"), "4");
	ck_assert_str_eq(content("reports/b.txt"), "5");
}
END_TEST

START_TEST(failure_is_told_and_a_long_folder_refused)
{
	uv_loop_t loop;
	struct report_files *files = NULL;
	char far[300];
	memset(far, 'x', sizeof(far) - 1);
	far[sizeof(far) - 1] = '\0';
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(report_files_open(&loop, far, on_told, &seen, &files), -ENAMETOOLONG);
	put_file("reports", "in the way");
	ck_assert_int_eq(report_files_open(&loop, dir, on_told, &seen, &files), 0);
	ck_assert_int_eq(queue(files, "a", "1"), 0);
	ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	ck_assert_int_eq(seen.calls, 1);
	ck_assert_int_eq(seen.result, -ENOTDIR);
	report_files_close(files);
	report_files_close(NULL);
	ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

/* The system refuses so many threads. Found before the real one. */
static int refusals;
int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
	void *(*run)(void *), void *restrict arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	if (refusals > 0) {
		refusals--;
		return EAGAIN;
	}
	if (!real) {
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	}
	return real(thread, attributes, run, arg);
}

START_TEST(a_report_is_written_later_when_a_thread_is_refused)
{
	uv_loop_t loop;
	struct report_files *files = NULL;
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(report_files_open(&loop, dir, on_told, &seen, &files), 0);
	refusals = 2;
	ck_assert_int_eq(queue(files, "a", "1"), 0);
	ck_assert_int_eq(queue(files, "b", "2"), 0);
	ck_assert_int_eq(refusals, 0);
	ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	ck_assert_int_eq(seen.calls, 2);
	ck_assert_int_eq(seen.result, 0);
	ck_assert_str_eq(content("reports/a.txt"), "1");
	/* at the end it is lost, and that is said */
	refusals = 2;
	ck_assert_int_eq(queue(files, "c", "3"), 0);
	report_files_close(files);
	ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	ck_assert_int_eq(seen.calls, 3);
	ck_assert_int_eq(seen.result, -EAGAIN);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST
