/* SPDX-License-Identifier: Apache-2.0 */
/* A supervised child: real processes, in every way they end. */
#include "daemon/collect/lib/child.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static uv_loop_t loop;
static struct child child;
static const char *argv[4];
static struct child_options options;
static char seen[512];
static size_t seen_bytes;
static unsigned beginnings;
static int closed;

static void on_output(void *ctx, const char *bytes, size_t length)
{
	ck_assert_ptr_eq(ctx, &child);
	beginnings += length == 0;
	size_t used = strlen(seen);
	snprintf(seen + used, sizeof(seen) - used, "%.*s", (int)length, bytes);
	seen_bytes += length;
}

static void on_closed(void *ctx)
{
	ck_assert_ptr_eq(ctx, &child);
	closed++;
}

static void setup(void)
{
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	options = (struct child_options){.argv = argv,
		.backoff_min_ms = 0,
		.backoff_max_ms = 60000,
		.kill_ms = 1000,
		.output = on_output,
		.closed = on_closed,
		.ctx = &child};
}

/* Everything is gone, whatever the test did. */
static void teardown(void)
{
	child.options.kill_ms = 1000; /* on a busy machine even SIGKILL takes more than 20 ms */
	child_close(&child);
	child_close(&child);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(closed, 1);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}

static void open_child(const char *program, const char *option, const char *argument)
{
	argv[0] = program;
	argv[1] = option;
	argv[2] = argument;
	child_open(&child, &loop, &options);
}

static void open_script(const char *script)
{
	open_child("/bin/sh", "-c", script);
}

static void run_until_deaths(uint32_t deaths)
{
	while (child.deaths < deaths) {
		uv_run(&loop, UV_RUN_ONCE);
	}
}

static void run_until_seen(const char *text)
{
	while (!strstr(seen, text)) {
		uv_run(&loop, UV_RUN_ONCE);
	}
}

static bool exists(pid_t pid)
{
	return kill(pid, 0) == 0 || errno != ESRCH;
}

static size_t open_files(void)
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

PROGRAM_START(pdeath_exec_run);
TEST_TIMEOUT(100);
FIXTURE(setup, teardown);

START_TEST(what_it_writes_arrives_and_it_leads_its_own_group)
{
	open_script("echo one; echo two >&2; echo three; exec sleep 1000");
	run_until_seen("one\nthree\n");
	ck_assert_int_eq(child.phase, CHILD_RUNNING);
	ck_assert_int_eq(getpgid(child.process.pid), child.process.pid);
	ck_assert_uint_eq(beginnings, 1);
	ck_assert_str_eq(seen, "one\nthree\n");
}
END_TEST

START_TEST(its_environment_is_cleared)
{
	setenv("SECRET", "password", 1);
	open_child("/usr/bin/env", NULL, NULL);
	run_until_deaths(1);
	ck_assert_str_eq(seen, "PATH=/usr/sbin:/usr/bin:/sbin:/bin\nLC_ALL=C\n");
}
END_TEST

START_TEST(it_is_ended_by_a_closed_pipe_although_the_daemon_ignores_sigpipe)
{
	signal(SIGPIPE, SIG_IGN);
	open_child("/bin/grep", "^Sig\\(Ign\\|Blk\\)", "/proc/self/status");
	run_until_deaths(1);
	ck_assert_str_eq(seen, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}
END_TEST

START_TEST(with_pdeath_exec_it_is_the_same_process)
{
	setenv("SECRET", "password", 1);
	options.pdeath_exec = "/proc/self/exe";
	open_script("echo $$ $0; env; exec sleep 1000");
	char first[64];
	run_until_seen("LC_ALL=C\n");
	snprintf(first, sizeof(first), "%d /bin/sh\n", child.process.pid);
	ck_assert_ptr_eq(strstr(seen, first), seen);
	ck_assert_ptr_null(strstr(seen, "SECRET"));
	ck_assert_int_eq(getpgid(child.process.pid), child.process.pid);
}
END_TEST

START_TEST(pdeath_exec_that_cannot_run_it_says_why)
{
	options.pdeath_exec = "/proc/self/exe";
	open_child("/nonexistent/program", NULL, NULL);
	run_until_deaths(1);
	ck_assert_str_eq(seen, "cannot run /nonexistent/program: No such file or directory\n");
	ck_assert_str_eq(child.why, "exited with status 127");
}
END_TEST

/* What a daemon killed with SIGKILL leaves behind: nothing, even of a child that says nothing and
 * ignores every signal that can be. */
START_TEST(with_pdeath_exec_it_does_not_outlive_a_killed_daemon)
{
	int report[2], status = 0;
	pid_t pid = 0;
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	ck_assert_int_eq(pipe(report), 0);
	pid_t daemon = fork();
	if (daemon == 0) {
		uv_loop_fork(&loop);
		options.pdeath_exec = "/proc/self/exe";
		open_script("trap '' TERM INT HUP; echo ready; exec sleep 100");
		run_until_seen("ready\n");
		pid = child.process.pid;
		if (write(report[1], &pid, sizeof(pid)) == sizeof(pid)) {
			pause();
		}
		_exit(1);
	}
	ck_assert_int_eq(read(report[0], &pid, sizeof(pid)), sizeof(pid));
	ck_assert(exists(pid));
	ck_assert_int_eq(kill(daemon, SIGKILL), 0);
	ck_assert_int_eq(waitpid(daemon, &status, 0), daemon);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	open_script("exit 0"); /* for the teardown */
	close(report[0]);
	close(report[1]);
}
END_TEST

static const struct {
	const char *script, *why;
} ends[] = {
	{"exit 3", "exited with status 3"},
	{"echo x; exit 0", "exited with status 0"},
	{"kill -SEGV $$", "ended by signal 11 (SIGSEGV)"},
	{"exec >&-; exec sleep 1000", "closed its output"},
};

START_LOOP_TEST(the_end_says_why_and_the_next_is_started, 0, COUNT(ends))
{
	open_script(ends[_i].script);
	run_until_deaths(1);
	ck_assert_str_eq(child.why, ends[_i].why);
	ck_assert_int_eq(child.spawn_error, 0);
	run_until_deaths(2);
	ck_assert_uint_ge(child.starts, 2);
	ck_assert_uint_eq(beginnings, child.starts);
}
END_TEST

START_TEST(a_program_that_is_absent_fails_to_start)
{
	open_child("/nonexistent/tegrastats", NULL, NULL);
	run_until_deaths(3);
	ck_assert_int_eq(child.spawn_error, -ENOENT);
	ck_assert_str_eq(child.why, "no such file or directory");
	ck_assert_str_eq(seen, "");
}
END_TEST

START_TEST(the_back_off_doubles_up_to_its_limit)
{
	options.backoff_min_ms = 1;
	options.backoff_max_ms = 4000;
	open_child("/nonexistent/tegrastats", NULL, NULL);
	for (uint32_t i = 1; i <= 3; i++) {
		run_until_deaths(i); /* or more of them, on a busy machine */
		while (child.phase != CHILD_IDLE) {
			uv_run(&loop, UV_RUN_ONCE);
		}
		ck_assert_uint_eq(child.backoff_ms, UINT64_C(1) << child.deaths);
	}
	options.backoff_max_ms = child.options.backoff_max_ms = 9;
	run_until_deaths(child.deaths + 3);
	ck_assert_uint_le(child.backoff_ms, 9);
}
END_TEST

/* Of a process that is no child of ours. */
static void await_end(pid_t pid)
{
	/* Its new parent reaps it in its own time; it does not run any more. */
	char path[64], stat[256] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	const uint64_t begun_ns = uv_hrtime();
	for (;;) {
		ck_assert_msg(uv_hrtime() - begun_ns < 10000000000u, "%s: %s", path, stat);
		FILE *file = fopen(path, "re");
		if (!file) {
			break;
		}
		size_t n = fread(stat, 1, sizeof(stat) - 1, file);
		fclose(file);
		stat[n] = '\0';
		if (n == 0 || strstr(stat, ") Z ") || strstr(stat, ") X ")) {
			break;
		}
	}
}

START_TEST(one_that_ignores_sigterm_is_killed_with_what_it_started)
{
	options.kill_ms = 20;
	open_script("trap '' TERM; sleep 1000 & echo $! .; wait; sleep 1000");
	run_until_seen(" .");
	pid_t pid = child.process.pid;
	pid_t grandchild = (pid_t)strtol(seen, NULL, 10);
	ck_assert_int_gt(grandchild, 1);
	child_restart(&child, "told to", false);
	run_until_deaths(1);
	ck_assert_str_eq(child.why, "told to");
	ck_assert(!exists(pid));
	await_end(grandchild);
}
END_TEST

/* Both are left behind by a program that ends of itself, at once or told by SIGTERM. */
START_TEST(what_it_left_running_ends_with_it)
{
	static const char *const last[] = {"exit 3", "kill -SEGV $$", "trap 'exit 0' TERM; wait"};
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++) {
		char script[256];
		snprintf(script, sizeof(script),
			"(trap '' TERM HUP; exec sleep 1000 >/dev/null) & echo $! .; %s", last[i]);
		memset(seen, 0, sizeof(seen));
		open_script(script);
		run_until_seen(" .");
		pid_t grandchild = (pid_t)strtol(seen, NULL, 10);
		ck_assert_int_gt(grandchild, 1);
		if (i == 2) {
			child_restart(&child, "told to", false);
		}
		run_until_deaths(1);
		await_end(grandchild);
		if (i < 2) {
			child_close(&child);
			uv_run(&loop, UV_RUN_DEFAULT);
			closed = 0;
		}
	}
}
END_TEST

START_TEST(nothing_is_read_after_it_was_told_to_end)
{
	options.kill_ms = 20;
	open_script("trap '' TERM; echo first; while :; do echo more; done");
	run_until_seen("first");
	child_restart(&child, "enough", true);
	size_t before = seen_bytes;
	uint32_t starts = child.starts;
	while (child.deaths == 0) {
		uv_run(&loop, UV_RUN_ONCE);
		ck_assert(child.starts > starts || seen_bytes == before);
	}
}
END_TEST

/* covers G0.15 */
START_TEST(many_deaths_leave_no_zombie_and_no_descriptor)
{
	options.backoff_max_ms = 0;
	open_child("/bin/true", NULL, NULL);
	run_until_deaths(2);
	while (child.phase != CHILD_RUNNING) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	size_t before = open_files();
	run_until_deaths(campaign(200, 1000));
	while (child.phase != CHILD_RUNNING) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_uint_eq(open_files(), before);
}
END_TEST

START_TEST(failed_starts_leave_no_descriptor)
{
	options.backoff_max_ms = 0;
	open_child("/nonexistent/tegrastats", NULL, NULL);
	run_until_deaths(2);
	size_t before = open_files();
	run_until_deaths(300);
	ck_assert_uint_le(open_files(), before + 2);
}
END_TEST

START_LOOP_TEST(it_can_be_closed_in_each_phase, 0, 5)
{
	open_script("trap '' TERM; echo up; while :; do sleep 1; done");
	switch (_i) {
	case 0: /* before the first start */
		return;
	case 1:
		run_until_seen("up");
		return;
	case 2:
		run_until_seen("up");
		child_restart(&child, "test", true);
		ck_assert_int_eq(child.phase, CHILD_STOPPING);
		return;
	case 3:
		run_until_seen("up");
		child_restart(&child, "test", true);
		while (child.phase == CHILD_STOPPING && !child.killed) {
			uv_run(&loop, UV_RUN_ONCE);
		}
		return;
	default:
		run_until_seen("up");
		kill(child.process.pid, SIGKILL);
		run_until_deaths(1);
	}
}
END_TEST
