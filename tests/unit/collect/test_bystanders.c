/* SPDX-License-Identifier: Apache-2.0 */
/* Who else uses a busy machine: over a made-up proc, and once over the machine's own. */
#include "daemon/core/status/bystanders.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/util/sysops.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/unit.h"

enum { KERNEL_THREAD = 0x00200000 };

static struct tree tree;
static struct bench bench;
static struct bystanders *const found = &bench.bystanders;
static struct source *cpu;
static struct metric *sign;
static double hertz;
static size_t reads;

static struct sysops table;

static uint64_t bench_clock(void)
{
	return bench.now_ns;
}

static ssize_t counted_pread(int fd, void *buf, size_t size, off_t offset)
{
	ssize_t n = pread(fd, buf, size, offset);
	reads++;
	return n < 0 ? -errno : n;
}

static size_t busiest(void)
{
	size_t count = 0;
	while (count < BYSTANDERS_MAX && found->most[USE_CPU][count].pid != 0) {
		count++;
	}
	return count;
}

static void setup(void)
{
	tree_make(&tree);
	hertz = (double)sysconf(_SC_CLK_TCK);
	table = *sysops();
	table.now_ns = bench_clock;
	table.pread = counted_pread;
	sysops_replace(&table);
	reads = 0;
}

static void teardown(void)
{
	sysops_replace(NULL);
	bench_finish(&bench);
	tree_remove(&tree);
}

/* Sets the metric that says how busy the machine is. */
static void load(const char *name, double value)
{
	ck_assert_int_eq(metrics_add(bench.core.metrics, cpu, name, UNIT_PERCENT, &sign), 0);
	metric_set(sign, value);
	metrics_commit(bench.core.metrics, cpu, bench.now_ns);
}

static void open_source(const char *root)
{
	bench_make(&bench, root, "bystanders");
	ck_assert_int_eq(sources_add(bench.core.sources, "cpu", 1000000000, &cpu), 0);
	ck_assert_int_eq(bench_open(&bench), 0);
}

static void start(void)
{
	open_source(tree.path);
	load("cpu/utilization", 60);
}

static void put(int pid, const char *file, const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/%s", pid, file);
	tree_write(&tree, path, text);
}

static void process_of(int pid, const char *comm, char state, unsigned flags, int ticks,
	int start_ticks, int pages)
{
	char text[512];
	snprintf(text, sizeof(text),
		"%d (%s) %c 1 1 1 0 -1 %u 0 0 0 0 %d 0 0 0 20 0 1 0 %d 1000 %d\n", pid, comm, state,
		flags, ticks, start_ticks, pages);
	put(pid, "stat", text);
	put(pid, "status", "Name:\tx\nUid:\t42\t0\t0\t0\n");
}

static void process(int pid, const char *comm, int ticks)
{
	process_of(pid, comm, 'R', 0x400000, ticks, 5, 10);
}

static void put_io(int pid, int mebibytes)
{
	char text[256];
	snprintf(text, sizeof(text),
		"rchar: 1\nwchar: 1\nread_bytes: %d\nwrite_bytes: %d\ncancelled_write_bytes: 0\n",
		mebibytes << 19, mebibytes << 19);
	put(pid, "io", text);
}

static void sample(int times)
{
	while (times-- > 0) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
}

FIXTURE(setup, teardown);

START_TEST(nothing_is_read_at_rest)
{
	process(10, "a", 100);
	open_source(tree.path);
	load("cpu/utilization", 49);
	load("cpu/0/utilization", 89);
	load("cpu/iowait", 95);
	load("memory/used_percent", 79);
	sample(30);
	ck_assert_uint_eq(reads, 0);
	ck_assert_uint_eq(found->t_ns, 0);
}
END_TEST

static const struct {
	const char *metric;
	double value;
} signs[] = {{"cpu/utilization", 50}, {"cpu/7/utilization", 90}, {"pressure/cpu/some", 5},
	{"pressure/memory/some", 5}, {"pressure/io/some", 5}, {"memory/used_percent", 80}};

START_LOOP_TEST(each_sign_of_load_starts_the_search, 0, COUNT(signs))
{
	process(10, "a", 100);
	open_source(tree.path);
	load("cpu/utilization", 1);
	load(signs[_i].metric, signs[_i].value);
	sample(2);
	ck_assert_uint_eq(found->t_ns, bench.now_ns);
}
END_TEST

START_TEST(the_busiest_are_named_with_what_they_use)
{
	start();
	for (int i = 0; i < 12; i++) {
		process(10 + i, "worker", 0);
	}
	process_of(40, "big", 'S', 0, 7, 5, 4000);
	process_of(41, "kswapd0", 'R', KERNEL_THREAD, 0, 5, 0);
	sample(1);
	ck_assert_uint_eq(found->t_ns, 0); /* one pass is no difference */
	for (int i = 0; i < 12; i++) {
		process(10 + i, "worker", (int)hertz * 3 * ((5 * i) % 12) / 100);
	}
	process_of(41, "kswapd0", 'R', KERNEL_THREAD, (int)hertz, 5, 0);
	sample(1);
	ck_assert_uint_eq(busiest(), BYSTANDERS_MAX);
	for (int i = 0; i < BYSTANDERS_MAX; i++) {
		ck_assert_int_eq(found->most[USE_CPU][i].pid, 10 + 5 * (11 - i) % 12);
		ck_assert_double_eq_tol(found->most[USE_CPU][i].use[USE_CPU], 33 - 3 * i, 1e-6);
		ck_assert_str_eq(found->most[USE_CPU][i].name, "worker");
		ck_assert(isnan(found->most[USE_CPU][i].use[USE_IO]));
	}
	ck_assert_int_eq(found->most[USE_MEMORY][0].pid, 40);
	ck_assert_double_eq(
		found->most[USE_MEMORY][0].use[USE_MEMORY], 4000.0 * (double)sysconf(_SC_PAGESIZE));
	ck_assert_int_eq(found->most[USE_IO][0].pid, 0);
	/* the next pass is 5 s after that one, and what rests by then is not named */
	sample(4);
	ck_assert_uint_eq(busiest(), BYSTANDERS_MAX);
	sample(1);
	ck_assert_uint_eq(found->t_ns, bench.now_ns);
	ck_assert_uint_eq(busiest(), 0);
}
END_TEST

START_TEST(a_process_is_busy_since_the_pass_before)
{
	start();
	process(10, "old", 0);
	process(11, "new", 0);
	sample(1);
	uint64_t first_ns = bench.now_ns;
	process(10, "old", (int)hertz * 60 / 100);
	process(11, "new", (int)hertz * 20 / 100);
	sample(1);
	uint64_t second_ns = bench.now_ns;
	ck_assert_uint_eq(found->most[USE_CPU][0].busy_ns, first_ns);
	ck_assert_uint_eq(found->most[USE_CPU][1].busy_ns, 0);
	process(10, "old", (int)hertz * 360 / 100);
	process(11, "new", (int)hertz * 470 / 100);
	sample(5);
	ck_assert_int_eq(found->most[USE_CPU][0].pid, 11);
	ck_assert_uint_eq(found->most[USE_CPU][0].busy_ns, second_ns);
	ck_assert_uint_eq(found->most[USE_CPU][1].busy_ns, first_ns);
}
END_TEST

START_TEST(who_came_is_named_by_the_next_sample_but_not_in_each)
{
	start();
	process(10, "old", 0);
	sample(2);
	process(11, "hog", (int)hertz);
	sample(5);
	ck_assert_uint_eq(found->t_ns, bench.now_ns);
	ck_assert_uint_eq(busiest(), 0);
	process(11, "hog", (int)hertz * 2);
	process(12, "another", (int)hertz);
	sample(1);
	ck_assert_int_eq(found->most[USE_CPU][0].pid, 11);
	ck_assert_double_eq_tol(found->most[USE_CPU][0].use[USE_CPU], 100, 1e-6);
	uint64_t t_ns = found->t_ns;
	process_of(13, "sleeper", 'S', 0, 1, 5, 10);
	sample(4);
	ck_assert_uint_eq(found->t_ns, t_ns);
	sample(2); /* the one that came in between is not looked for early again */
	ck_assert_uint_eq(found->t_ns, bench.now_ns - 1000000000);
}
END_TEST

static void make(int pid, int child_ticks)
{
	char text[256];
	snprintf(text, sizeof(text),
		"%d (make) S 1 1 1 0 -1 0 0 0 0 0 0 0 %d 0 20 0 1 0 5 1000 10\n", pid, child_ticks);
	put(pid, "stat", text);
}

START_TEST(short_lived_processes_count_for_the_one_that_starts_them)
{
	start();
	make(10, 0);
	make(11, 0);
	sample(1);
	make(11, (int)hertz * 3600); /* a child that ran for an hour has ended */
	make(10, (int)hertz * 80 / 100);
	sample(1);
	ck_assert_uint_eq(busiest(), 0); /* one growth may be such a child */
	make(10, (int)hertz * 330 / 100);
	sample(5);
	make(10, (int)hertz * 580 / 100);
	sample(5);
	ck_assert_uint_eq(busiest(), 1);
	ck_assert_int_eq(found->most[USE_CPU][0].pid, 10);
	ck_assert_double_eq_tol(found->most[USE_CPU][0].use[USE_CPU], 50, 1e-6);
	ck_assert_uint_ne(found->most[USE_CPU][0].busy_ns, 0);
}
END_TEST

START_TEST(who_reads_and_writes_most_is_known_without_computing)
{
	start();
	process_of(10, "dd", 'D', 0, 0, 5, 10);
	process(11, "cp", 0);
	process(12, "refused", 0);
	put_io(10, 10);
	put_io(11, 10);
	sample(1);
	process(11, "cp", (int)hertz / 10);
	process(12, "refused", (int)hertz / 5);
	sample(1);
	ck_assert_int_eq(found->most[USE_IO][0].pid, 0);
	put_io(10, 10 + 5 * 8);
	put_io(11, 10 + 5 * 2);
	process(11, "cp", (int)hertz * 3 / 5);
	process(12, "refused", (int)hertz);
	sample(5);
	ck_assert_str_eq(found->most[USE_IO][0].name, "dd");
	ck_assert_double_eq_tol(found->most[USE_IO][0].use[USE_IO], 8 * 1048576.0, 1);
	ck_assert_uint_eq(busiest(), 2);
	ck_assert(isnan(found->most[USE_CPU][0].use[USE_IO]));
	ck_assert_double_eq_tol(found->most[USE_CPU][1].use[USE_IO], 2 * 1048576.0, 1);
}
END_TEST

START_TEST(a_new_process_and_a_reused_pid_have_no_value_yet)
{
	start();
	process(10, "old", 0);
	sample(1);
	process_of(10, "reused", 'R', 0, 1000, 6, 10);
	process(11, "new", 1000);
	sample(1);
	ck_assert_uint_ne(found->t_ns, 0);
	ck_assert_uint_eq(busiest(), 0);
}
END_TEST

START_TEST(a_counter_that_goes_backwards_is_no_use)
{
	start();
	process(10, "a", 1000);
	sample(1);
	process(10, "a", 10);
	sample(1);
	ck_assert_uint_ne(found->t_ns, 0);
	ck_assert_uint_eq(busiest(), 0);
}
END_TEST

START_TEST(a_name_is_cleaned)
{
	static const struct {
		const char *comm, *name;
	} names[] = {{"a) R (b", "a) R (b"}, {"\x1b[31m\xff\n", "?[31m??"}, {"", "?"},
		{"aaaaaaaaaaaaaa\xc3", "aaaaaaaaaaaaaa"}, {"\xe2\x80\xaegnp", "?gnp"},
		{"\xf0\x9f\x98", "?"}};
	start();
	for (int i = 0; i < COUNT(names); i++) {
		process(10, names[i].comm, 0);
		sample(5);
		process(10, names[i].comm, (int)hertz * 5);
		sample(5);
		ck_assert_uint_eq(busiest(), 1);
		ck_assert_str_eq(found->most[USE_CPU][0].name, names[i].name);
	}
}
END_TEST

START_TEST(the_number_of_processes_is_limited_and_counted)
{
	start();
	for (int i = 0; i < 1100; i++) {
		char path[64];
		snprintf(path, sizeof(path), "proc/%d/stat", 100 + i);
		tree_write(&tree, path, "1 (x) S 1 1 1 0 -1 0 0 0 0 0 9 0 0 0 20 0 1 0 5 0 1\n");
	}
	sample(2);
	ck_assert_uint_ne(found->t_ns, 0);
	ck_assert_uint_eq(found->skipped, 1100 - 1024);
	ck_assert_uint_le(reads, 2 * 1024 + 8);
}
END_TEST

/* Of 2100, whichever the folder lists first. */
START_TEST(beyond_the_limit_all_have_their_turn_and_the_busiest_are_followed)
{
	start();
	for (int i = 0; i < 2100; i++) {
		process_of(1000 + i, "idle", 'S', 0, 0, 5, 10);
	}
	for (int pass = 1; pass <= 14; pass++) {
		for (int i = 0; i < BYSTANDERS_MAX; i++) {
			process_of(2000 + 7 * i, "busy", 'S', 0, pass * (int)hertz, 5, 10);
		}
		sample(5);
		ck_assert_uint_le(found->skipped, 2100);
		for (int i = 0; i < BYSTANDERS_MAX && pass > 8; i++) {
			ck_assert_str_eq(found->most[USE_CPU][i].name, "busy");
			ck_assert_double_eq_tol(found->most[USE_CPU][i].use[USE_CPU], 20, 0.1);
		}
	}
}
END_TEST

START_TEST(a_pass_of_long_ago_is_not_compared)
{
	start();
	process(10, "a", 0);
	sample(2);
	load("cpu/utilization", 5);
	sample(20);
	uint64_t before_ns = found->t_ns;
	process(10, "a", 1000);
	load("cpu/utilization", 60);
	sample(1);
	ck_assert_uint_eq(found->t_ns, before_ns);
	sample(1);
	ck_assert_uint_eq(found->t_ns, bench.now_ns);
	ck_assert_uint_eq(busiest(), 0);
}
END_TEST

START_TEST(without_proc_the_source_says_so)
{
	start();
	ck_assert_int_eq(bench_sample(&bench), -ENOENT);
	ck_assert_str_eq(bench.reason, "proc: No such file or directory");
}
END_TEST

START_TEST(a_sample_allocates_nothing)
{
	start();
	process(10, "a", 0);
	sample(1);
	alloc_faults_start(0);
	sample(12);
	ck_assert_uint_eq(alloc_calls, 0);
	alloc_faults_stop();
}
END_TEST

static double cpu_seconds(pid_t pid)
{
	clockid_t clock;
	struct timespec t;
	ck_assert_int_eq(clock_getcpuclockid(pid, &clock), 0);
	ck_assert_int_eq(clock_gettime(clock, &t), 0);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static pid_t spin(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		for (volatile unsigned i = 0;; i++) {
		}
	}
	ck_assert_int_ge(pid, 0);
	return pid;
}

/* Over the proc of this machine, unless as many others as are listed are as busy. */
START_TEST(a_busy_loop_is_named)
{
	sysops_replace(NULL);
	open_source("/");
	load("cpu/utilization", 60);
	pid_t loop = spin();
	sample(1);
	double before = cpu_seconds(loop);
	const struct timespec wait = {.tv_sec = 1};
	nanosleep(&wait, NULL);
	double used = cpu_seconds(loop) - before;
	sample(1);
	kill(loop, SIGKILL);
	waitpid(loop, NULL, 0);
	bool named = false;
	size_t count = busiest();
	for (size_t i = 0; i < count; i++) {
		named |= found->most[USE_CPU][i].pid == loop;
		ck_assert_int_ne(found->most[USE_CPU][i].pid, getpid());
	}
	const struct bystander *last = &found->most[USE_CPU][BYSTANDERS_MAX - 1];
	ck_assert(named || last->use[USE_CPU] >= 50 * used || used < 0.1);
	ck_assert_int_gt(found->most[USE_MEMORY][0].pid, 0);
}
END_TEST
