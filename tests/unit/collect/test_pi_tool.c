/* SPDX-License-Identifier: Apache-2.0 */
/* vcgencmd as a child: scripts in its place, and a made-up clock. */
#include "daemon/collect/board/pi_tool.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "daemon/util/sysops.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

static struct tree tree;
static struct bench bench;
static struct pi_tool tool;
static char program[512];
static uint64_t clock_ns;
static struct sysops table;

static uint64_t made_up_clock(void)
{
	return clock_ns;
}

static void setup(void)
{
	tree_make(&tree);
	snprintf(program, sizeof(program), "%s/vcgencmd", tree.path);
	table = *sysops();
	table.now_ns = made_up_clock;
	sysops_replace(&table);
	clock_ns = 1000 * SECOND;
	pi_tool_init(&tool, program, "get_throttled");
}

static void teardown(void)
{
	pi_tool_close(&tool);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child, no zombie */
	ck_assert_int_eq(errno, ECHILD);
	sysops_replace(NULL);
	tree_remove(&tree);
}

static void write_program(const char *body)
{
	char text[1024];
	snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", body);
	tree_write(&tree, "vcgencmd", text);
	ck_assert_int_eq(chmod(program, 0755), 0);
}

/* Its first result, however long a busy machine takes: the made-up clock stands. */
static int ask(void)
{
	int r;
	do {
		r = pi_tool_ask(&tool);
	} while (r == -EAGAIN || (r < 0 && tool.pid != 0));
	return r;
}

TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_TEST(its_answer_is_what_it_printed)
{
	write_program("echo throttled=0x50005");
	ck_assert_int_eq(ask(), 0);
	ck_assert_str_eq(tool.answer, "throttled=0x50005\n");
	ck_assert_int_eq(tool.pid, 0);
	ck_assert_int_eq(tool.fd, -1);
}
END_TEST

START_TEST(it_gets_one_argument_an_empty_environment_and_no_input)
{
	setenv("EDGEPROF_TEST_SECRET", "x", 1);
	write_program("echo \"$#:$1:$(wc -c < /proc/$$/environ):$(cat)\"");
	ck_assert_int_eq(ask(), 0);
	ck_assert_str_eq(tool.answer, "1:get_throttled:0:\n");
}
END_TEST

START_TEST(signals_that_a_worker_blocks_are_not_blocked_in_it)
{
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	write_program("kill -TERM $$; echo still here");
	ck_assert_int_eq(ask(), -EREMOTEIO);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
END_TEST

static const struct {
	const char *body;
	int result;
} failures[] = {
	{"echo throttled=0x0; exit 255", -EREMOTEIO},
	{"exit 1", -EREMOTEIO},
	{"kill -SEGV $$", -EREMOTEIO},
	{"cat /dev/zero", -EMSGSIZE},
	{"while :; do echo throttled=0x0; done", -EMSGSIZE},
};

START_LOOP_TEST(a_failure_is_told_and_then_it_is_left_alone_for_a_minute, 0, COUNT(failures))
{
	write_program(failures[_i].body);
	ck_assert_int_eq(ask(), failures[_i].result);
	ck_assert_str_eq(tool.answer, "");
	write_program("echo throttled=0x0");
	clock_ns += 59 * SECOND;
	ck_assert_int_eq(pi_tool_ask(&tool), failures[_i].result);
	ck_assert_int_eq(tool.pid, 0);
	clock_ns += SECOND;
	(void)pi_tool_ask(&tool);
	while (tool.pid != 0) {
		(void)pi_tool_ask(&tool);
	}
	ck_assert_int_eq(pi_tool_ask(&tool), 0);
}
END_TEST

START_TEST(what_cannot_be_started_says_why)
{
	char path[600];
	ck_assert_int_eq(pi_tool_check(&tool), -ENOENT);
	ck_assert_int_eq(pi_tool_ask(&tool), -ENOENT);
	tree_write(&tree, "vcgencmd", "#!/bin/sh\n");
	pi_tool_init(&tool, program, "get_throttled");
	ck_assert_int_eq(pi_tool_check(&tool), -EACCES);
	ck_assert_int_eq(pi_tool_ask(&tool), -EACCES);
	tree_write(&tree, "vcgencmd", "no program");
	ck_assert_int_eq(chmod(program, 0755), 0);
	pi_tool_init(&tool, program, "get_throttled");
	ck_assert_int_eq(pi_tool_ask(&tool), -ENOEXEC);
	pi_tool_init(&tool, tree.path, "get_throttled");
	ck_assert_int_eq(pi_tool_ask(&tool), -EACCES);
	snprintf(path, sizeof(path), "%s/nothing/here", program);
	pi_tool_init(&tool, path, "get_throttled");
	ck_assert_int_eq(pi_tool_ask(&tool), -ENOTDIR);
	pi_tool_init(&tool, "bin/sh", "get_throttled");
	ck_assert_int_eq(pi_tool_ask(&tool), -EINVAL);
	ck_assert_str_eq(pi_tool_reason(-EINVAL), "not an absolute path");
	pi_tool_init(&tool, NULL, "get_throttled");
	ck_assert_int_eq(pi_tool_ask(&tool), -ENODEV);
	ck_assert_int_eq(tool.fd, -1);
}
END_TEST

static const char *const hangs[] = {
	"exec sleep 1000",
	"trap '' TERM INT HUP; while :; do sleep 1000; done",
	"exec >&-; exec sleep 1000",
	"echo throttled=0x0; exec sleep 1000",
};

START_LOOP_TEST(one_that_hangs_is_killed_after_two_seconds, 0, COUNT(hangs))
{
	write_program(hangs[_i]);
	ck_assert_int_eq(pi_tool_ask(&tool), -EAGAIN);
	pid_t pid = tool.pid;
	ck_assert_int_gt(pid, 0);
	clock_ns += 2 * SECOND - 1;
	ck_assert_int_eq(pi_tool_ask(&tool), -EAGAIN);
	ck_assert_int_eq(kill(pid, 0), 0);
	clock_ns += 1;
	ck_assert_int_eq(ask(), -ETIMEDOUT);
	ck_assert_int_eq(kill(pid, 0), -1);
	ck_assert_int_eq(errno, ESRCH);
}
END_TEST

/* The end of a pipe that only they hold tells that they are gone. */
static int open_fifo(void)
{
	char path[600];
	snprintf(path, sizeof(path), "%s/fifo", tree.path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	fcntl(fd, F_SETFL, 0);
	return fd;
}

START_LOOP_TEST(what_it_started_is_ended_with_it, 0, 2)
{
	char byte;
	char body[700];
	int fd = open_fifo();
	snprintf(body, sizeof(body), "exec 9>%s/fifo; sleep 1000 & echo throttled=0x0 >&9; %s",
		tree.path, _i == 0 ? "echo throttled=0x0" : "sleep 1000");
	write_program(body);
	if (_i == 0) {
		ck_assert_int_eq(ask(), 0);
		ck_assert_str_eq(tool.answer, "throttled=0x0\n");
	} else {
		ck_assert_int_eq(pi_tool_ask(&tool), -EAGAIN);
		pi_tool_close(&tool);
		ck_assert_int_eq(tool.pid, 0);
	}
	while (read(fd, &byte, 1) == 1) {
	}
	close(fd);
}
END_TEST

static size_t runs(void)
{
	char path[600], text[256];
	snprintf(path, sizeof(path), "%s/runs", tree.path);
	int fd = open(path, O_RDONLY);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : 0;
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

START_TEST(it_runs_at_most_every_five_seconds_and_its_answer_stands_between)
{
	char body[600];
	snprintf(body, sizeof(body), "printf x >> %s/runs; echo throttled=0x0", tree.path);
	write_program(body);
	ck_assert_int_eq(ask(), 0);
	for (int i = 0; i < 19; i++) { /* once a second */
		clock_ns += SECOND;
		ck_assert_int_eq(pi_tool_ask(&tool), 0);
		while (tool.pid != 0) {
			(void)pi_tool_ask(&tool);
		}
	}
	ck_assert_uint_eq(runs(), 4);
}
END_TEST

static size_t descriptors(void)
{
	size_t count = 0;
	DIR *dir = opendir("/proc/self/fd");
	while (readdir(dir)) {
		count++;
	}
	closedir(dir);
	return count;
}

START_TEST(a_hundred_runs_leave_no_descriptor_behind)
{
	write_program("echo throttled=0x0; exit 3");
	(void)ask();
	size_t before = descriptors();
	for (int i = 0; i < 100; i++) {
		clock_ns += 60 * SECOND;
		do {
			ck_assert_int_eq(pi_tool_ask(&tool), -EREMOTEIO);
		} while (tool.pid != 0);
	}
	ck_assert_uint_eq(descriptors(), before);
}
END_TEST

static void open_bench(const char *source)
{
	bench_make(&bench, tree.path, source);
	bench.options.keys = 1;
	snprintf(bench.options.key[0].key, sizeof(bench.options.key[0].key), "vcgencmd");
	memcpy(bench.options.key[0].value, program, strlen(program) + 1);
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
}

static bool tried(const char *result)
{
	for (size_t i = 0; i < bench.throttle.tried_count; i++) {
		if (strcmp(bench.throttle.tried[i].source, "vcgencmd") == 0) {
			return strcmp(bench.throttle.tried[i].result, result) == 0;
		}
	}
	return false;
}

/* covers G0.13 */
START_TEST(it_tells_of_throttling_where_nothing_else_does)
{
	write_program("[ \"$1\" = get_throttled ] && echo throttled=0x50005");
	open_bench("throttle");
	while (bench_metric(&bench, "throttle/throttled")->reason) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	bench_expect(&bench, "throttle/throttled", 1);
	bench_expect(&bench, "throttle/under_voltage", 1);
	bench_expect(&bench, "throttle/freq_capped", 0);
	bench_expect(&bench, "throttle/freq_capped_occurred", 0);
	ck_assert_uint_eq(bench.throttle.raw, 0x50005);
	ck_assert_str_eq(bench.throttle.source, "vcgencmd");
	ck_assert(tried("used"));
	bench_finish(&bench);
}
END_TEST

START_TEST(it_is_not_run_where_something_else_tells)
{
	char body[600];
	snprintf(body, sizeof(body), "printf x >> %s/runs; echo throttled=0xf", tree.path);
	write_program(body);
	tree_write(&tree, "sys/devices/platform/soc/soc:firmware/get_throttled", "80008\n");
	open_bench("throttle");
	ck_assert_str_eq(bench.throttle.source, "sysfs get_throttled");
	ck_assert(tried("found, not needed"));
	ck_assert_uint_eq(runs(), 0);
	bench_finish(&bench);
}
END_TEST

static const struct {
	const char *body, *reason;
} garbage[] = {
	{"echo VCHI initialization failed", "printed something else"},
	{"echo 'error=1 error_msg=\"x\"'", "printed something else"},
	{"head -c 100 /dev/urandom; echo", "printed something else"},
	{"true", "printed something else"},
	{"exit 255", "ended with a failure"},
	{"yes", "killed: printed too much"},
};

START_LOOP_TEST(garbage_is_unknown_with_its_reason_in_the_tried_list, 0, COUNT(garbage))
{
	write_program(garbage[_i].body);
	open_bench("throttle");
	while (tried("has not answered yet")) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	ck_assert_msg(tried(garbage[_i].reason), "%s", bench.throttle.raw_reason);
	ck_assert_str_eq(bench.throttle.raw_reason, garbage[_i].reason);
	ck_assert(!bench.throttle.has_raw);
	bench_expect_null(&bench, "throttle/active", garbage[_i].reason);
	bench_expect_null(&bench, "throttle/under_voltage_occurred", garbage[_i].reason);
	bench_expect_null(&bench, "throttle/over_current", "no source on this machine reports it");
	bench_finish(&bench);
}
END_TEST

/* covers G0.12 */
START_TEST(it_tells_the_temperature_where_nothing_else_does)
{
	write_program("[ \"$1\" = measure_temp ] && echo \"temp=52.6'C\"");
	open_bench("pi");
	while (bench_metric(&bench, "temperature/firmware")->reason) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	bench_expect(&bench, "temperature/firmware", 52.6);
	ck_assert_str_eq(
		bench_metric(&bench, "temperature/firmware")->origin, "vcgencmd measure_temp");
	bench_finish(&bench);
	write_program("echo temp=hot");
	open_bench("pi");
	while (strcmp(bench_metric(&bench, "temperature/firmware")->reason,
		       "has not answered yet") == 0) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	bench_expect_null(&bench, "temperature/firmware", "printed something else");
	bench_finish(&bench);
}
END_TEST
