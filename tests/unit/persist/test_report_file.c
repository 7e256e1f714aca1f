/* SPDX-License-Identifier: Apache-2.0 */
/* Report files: whole or not at all, within their limits, and nothing in the folder is followed. */
#include "daemon/recorder/reports.h"

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

#include "daemon/core/report/report.h"
#include "daemon/core/status/facts.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"
#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/unit.h"

static char dir[64];
static struct report_owners owners;

static const char *path_of(const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void setup_folder(void)
{
	memset(&owners, 0, sizeof(owners));
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

static void teardown_folder(void)
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
	static char text[4096];
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
	return report_file_write(dir, &owners, app, 0, text, strlen(text));
}

FIXTURE(setup_folder, teardown_folder);

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
	ck_assert_int_eq(report_file_write("/nonexistent", &owners, "cam", 0, "x", 1), -ENOENT);
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
	ck_assert_int_eq(report_file_write(dir, &owners, "a", 0, text, third), 0);
	age("reports/a.txt", 2);
	ck_assert_int_eq(report_file_write(dir, &owners, "b", 0, text, third), 0);
	age("reports/b.txt", 1);
	ck_assert_int_eq(report_file_write(dir, &owners, "c", 0, text, third), 0);
	ck_assert_uint_eq(each_report(NULL), 3);
	ck_assert_int_eq(write_text("d", "four"), 0);
	ck_assert_uint_eq(each_report(NULL), 3);
	ck_assert(!there("reports/b.txt"));
	ck_assert_int_eq(report_file_write(dir, &owners, "e", 0, text, REPORT_BYTES_MAX), 0);
	ck_assert_uint_eq(each_report(NULL), 1);
	free(text);
}
END_TEST

/* covers D6: one user's short runs do not remove the reports of others */
START_TEST(the_user_who_has_most_gives_first)
{
	char app[16], name[40];
	for (int i = 0; i < 3 * REPORT_FILES_MAX; i++) {
		uid_t uid = i < 3 ? 7 : i < REPORT_FILES_MAX ? 8 : 9;
		snprintf(app, sizeof(app), "app%d", i);
		ck_assert_int_eq(report_file_write(dir, &owners, app, uid, "text", 4), 0);
		snprintf(name, sizeof(name), "reports/%s.txt", app);
		age(name, i);
	}
	ck_assert_uint_eq(each_report(NULL), REPORT_FILES_MAX);
	ck_assert(there("reports/app0.txt") && there("reports/app2.txt"));
	ck_assert(!there("reports/app3.txt") && there("reports/app63.txt"));
}
END_TEST

START_TEST(a_restart_forgets_no_owner)
{
	char app[16], name[40], text[64];
	for (int i = 0; i < 2 * REPORT_FILES_MAX; i++) {
		const unsigned uid = i < 3 ? 7 : 4294967294;
		memset(&owners, 0, sizeof(owners));
		snprintf(app, sizeof(app), "app%d", i);
		snprintf(text, sizeof(text), "REPORT OF %s\nUser        %u\n", app, uid);
		ck_assert_int_eq(report_file_write(dir, &owners, app, uid, text, strlen(text)), 0);
		snprintf(name, sizeof(name), "reports/%s.txt", app);
		age(name, i);
	}
	ck_assert_uint_eq(each_report(NULL), REPORT_FILES_MAX);
	ck_assert(there("reports/app0.txt") && there("reports/app2.txt"));
	ck_assert(!there("reports/app3.txt"));
}
END_TEST

/* The daemon's part: apps end, and their reports are written one after the other. */

static uv_loop_t loop;
static struct machine_facts facts;
static struct core core;
static struct reports *reports;

static void open_reports(void)
{
	setup_folder();
	setup();
	snprintf(facts.run_dir, sizeof(facts.run_dir), "%s", dir);
	core = (struct core){
		.apps = apps, .metrics = metrics, .timeline = timeline, .facts = &facts};
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(reports_open(&loop, &core, &reports), 0);
}

static void close_reports(void)
{
	reports_close(reports);
	ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	reports_destroy(reports);
	reports = NULL;
}

static void finish_reports(void)
{
	if (reports) {
		close_reports();
	}
	teardown();
	teardown_folder();
}

/* A run of the app that can be told by the number of its stage's runs. */
static void run_of_user(uid_t uid, const char *app, int runs, int stages)
{
	static pid_t pid = 10;
	const uint64_t now_ns = sysops()->now_ns(); /* the clock of what is logged */
	struct app_process *p = attach_as(app, uid, ++pid, now_ns - S);
	declare(p, 0, "infer", "");
	for (int i = 1; i < stages; i++) {
		char name[64];
		snprintf(name, sizeof(name), "one-of-the-stages-that-make-a-long-report-%d", i);
		declare(p, (uint32_t)i, name, "");
		put_run(p, (uint16_t)i, now_ns - S, MS);
	}
	for (int i = 0; i < runs; i++) {
		put_run(p, 0, now_ns - S, MS);
	}
	apps_detach(apps, p, PROCESS_ENDED, now_ns);
}

static void run_of(const char *app, int runs)
{
	run_of_user(1000, app, runs, 1);
}

/* "APP:RUNS " of each report that the timeline names, in their order; how many. */
static int written(char *ret, size_t size)
{
	int count = 0;
	struct text text = text_in(ret, size);
	for (uint64_t serial = 1; serial <= timeline_last_serial(timeline); serial++) {
		const struct timeline_entry *entry = timeline_from(timeline, serial);
		char start[256];
		snprintf(start, sizeof(start), "ended: report at %s/reports/%s.txt: ", dir,
			entry->subject);
		if (text_starts_with(entry->text, start)) {
			text_add(
				&text, "%s:%d ", entry->subject, atoi(entry->text + strlen(start)));
			count++;
		}
	}
	return count;
}

static void has_report(const char *app, int runs)
{
	char name[64], expected[32];
	snprintf(name, sizeof(name), "reports/%s.txt", app);
	snprintf(expected, sizeof(expected), "%d\n", runs);
	const char *row = strstr(content(name), "\ninfer ");
	ck_assert_ptr_nonnull(row);
	const char *end = strchr(row + 1, '\n');
	ck_assert_int_eq(strncmp(end + 1 - strlen(expected), expected, strlen(expected)), 0);
}

FIXTURE(open_reports, finish_reports);

START_TEST(all_that_end_at_once_are_written_in_order_and_it_closes_when_done)
{
	enum { OTHERS = 10 }; /* more are not logged at once */
	char app[16], order[1024];
	run_of("a", 1); /* with the worker from now on */
	run_of("a", 2);
	run_of("b", 3);
	run_of("a", 4); /* in the place of 2 */
	for (int i = 0; i < OTHERS; i++) {
		snprintf(app, sizeof(app), "c%d", i);
		run_of(app, 9);
	}
	run_of("b", 5);
	close_reports();
	ck_assert_int_eq(written(order, sizeof(order)), 3 + OTHERS);
	ck_assert_int_eq(strncmp(order, "a:1 a:4 b:5 c0:9 ", 17), 0);
	has_report("a", 4);
	has_report("b", 5);
	ck_assert(text_starts_with(content("reports/b.txt"), "REPORT OF b\nUser        1000\n"));
}
END_TEST

START_TEST(one_user_fills_half_of_the_queue)
{
	char app[16], expected[64];
	int last = 0;
	while (last < REPORT_FILES_MAX && !text_starts_with(last_text(), "cannot")) {
		snprintf(app, sizeof(app), "c%d", ++last);
		run_of_user(1000, app, 9, 100);
	}
	ck_assert_int_gt(last, REPORT_BYTES_MAX / 2 / APP_REPORT_SIZE);
	snprintf(expected, sizeof(expected), "cannot write report c%d: No space left on device",
		last);
	ck_assert_str_eq(last_text(), expected);
	run_of_user(1001, "other", 6, 1);
	close_reports();
	has_report("other", 6);
}
END_TEST

START_TEST(failure_is_told)
{
	char order[256], expected[256];
	put_file("reports", "in the way");
	run_of("a", 1);
	while (strncmp(last_text(), "cannot", 6) != 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	snprintf(expected, sizeof(expected),
		"cannot write report %s/reports/a.txt: Not a directory", dir);
	ck_assert_str_eq(last_text(), expected);
	ck_assert_int_eq(written(order, sizeof(order)), 0);
	reports_close(NULL);
	reports_destroy(NULL);
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
	char order[256];
	refusals = 2;
	run_of("a", 1);
	run_of("b", 2);
	ck_assert_int_eq(refusals, 0);
	while (written(order, sizeof(order)) < 2) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_str_eq(order, "a:1 b:2 ");
	has_report("a", 1);
	/* at the end it is lost, and that is said */
	refusals = 2;
	run_of("c", 3);
	close_reports();
	char expected[256];
	snprintf(expected, sizeof(expected),
		"cannot write report %s/reports/c.txt: Resource temporarily unavailable", dir);
	ck_assert_str_eq(last_text(), expected);
}
END_TEST
