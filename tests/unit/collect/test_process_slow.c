/* SPDX-License-Identifier: Apache-2.0 */
/* smaps_rollup and command lines that hang while a worker reads them: the samples go on, and what
 * was read is there for a later one. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "daemon/collect/sched/fetch.h"
#include "daemon/util/sysops.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/unit.h"

static struct tree tree;
static struct bench bench;

static void setup(void)
{
	tree_make(&tree);
	tree_write(&tree, "proc/meminfo", "MemTotal: 1000 kB\n");
	bench_make(&bench, tree.path, "process");
}

static void teardown(void)
{
	bench_finish(&bench);
	tree_remove(&tree);
}

static void watch(enum watch_kind kind, const char *name, const char *pattern, pid_t pid)
{
	struct watch w = {.kind = kind, .pid = pid};
	snprintf(w.name, sizeof(w.name), "%s", name);
	snprintf(w.pattern, sizeof(w.pattern), "%s", pattern);
	ck_assert_int_eq(processes_watch(&bench.processes, &w), 0);
}

static void start(void)
{
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
}

/* The clock of the samples; one file hangs in read on whichever thread but the loop's, where it is
 * only counted. */
static struct sysops table;
static pthread_t loop_thread;
static const char *_Atomic hanging;
static sem_t hung, go;
static int read_on_the_loop;

static uint64_t bench_clock(void)
{
	return bench.now_ns;
}

static ssize_t hanging_pread(int fd, void *buf, size_t size, off_t offset)
{
	char link[64], path[256];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	const char *file = hanging;
	if (file && strstr(path, file)) {
		if (pthread_equal(pthread_self(), loop_thread)) {
			read_on_the_loop++;
		} else {
			sem_post(&hung);
			sem_wait(&go);
		}
	}
	n = pread(fd, buf, size, offset);
	return n < 0 ? -errno : n;
}

static void sysops_start(void)
{
	table = *sysops();
	table.now_ns = bench_clock;
	table.pread = hanging_pread;
	loop_thread = pthread_self();
	sysops_replace(&table);
}

/* As under the scheduler. */
static uv_loop_t loop;
static uv_async_t wake;
static struct fetch_pool *pool;
static struct fetch slots[BACKGROUND_MAX];

static void start_threads(const char *file)
{
	sem_init(&hung, 0, 0);
	sem_init(&go, 0, 0);
	hanging = file;
	sysops_start();
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(uv_async_init(&loop, &wake, NULL), 0);
	ck_assert_int_eq(fetch_pool_create(&wake, &bench.root, &bench.real, &pool), 0);
	bench.ctx.pool = pool;
	bench.ctx.background = slots;
}

static void finish_threads(void)
{
	bench_close(&bench);
	for (size_t i = 0; i < BACKGROUND_MAX; i++) {
		fetch_finish(&slots[i]);
	}
	offload_pool_dispatch(pool->threads);
	offload_pool_wait(pool->threads, UINT64_C(20000000000));
	offload_pool_detach(pool->threads);
	sysops_replace(NULL);
	uv_close((uv_handle_t *)&wake, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}

/* Samples whenever the workers are done, or one hangs, until the metric has a value. */
static void sample_until(const char *name)
{
	ck_assert_int_eq(bench_sample(&bench), 0);
	while (isnan(bench_value(&bench, name))) {
		offload_pool_wait(pool->threads, UINT64_C(100000000));
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
}

static void a_detector(void)
{
	tree_write(&tree, "proc/10/stat",
		"10 (python3) R 1 1 1 0 -1 0 9 0 2 0 9 10 0 0 20 0 3 0 5 1000 10\n");
	tree_write(&tree, "proc/10/status", "Name:\tpython3\nVmRSS:\t 100 kB\n");
	tree_write(&tree, "proc/10/smaps_rollup", "Rss: 9 kB\nPss: 7 kB\n");
	tree_write_bytes(&tree, "proc/10/cmdline", "detector\0--fast\0", 16);
	watch(WATCH_PID, "cam", "", 10);
	watch(WATCH_PATTERN, "line", "*--fast", 0);
}

static const struct {
	const char *file, *metric, *before, *other;
	double value;
} slow_files[] = {
	{"10/smaps_rollup", "process/cam/pss", "is being read", "process/line/count", 7 * 1024},
	{"10/cmdline", "process/line/count", "not looked for yet", "process/cam/pss", 1},
};

FIXTURE(setup, teardown);

START_LOOP_TEST(a_file_that_hangs_is_null_alone_and_never_the_loop_s, 0, COUNT(slow_files))
{
	const char *metric = slow_files[_i].metric;
	start_threads(slow_files[_i].file);
	a_detector();
	start();
	ck_assert_int_eq(read_on_the_loop, 0);
	sem_wait(&hung);
	bench_expect_null(&bench, metric, slow_files[_i].before);
	sample_until(slow_files[_i].other);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	bench_expect_null(&bench, metric, "did not answer in time");
	bench_expect(&bench, "process/cam/rss", 100 * 1024);
	ck_assert(!isnan(bench_value(&bench, "process/cam/cpu")));
	hanging = NULL;
	sem_post(&go);
	sample_until(metric);
	bench_expect(&bench, metric, slow_files[_i].value);
	ck_assert_int_eq(read_on_the_loop, 0);
	finish_threads();
}
END_TEST

START_TEST(a_file_that_hangs_holds_one_thread_however_often_its_source_is_opened)
{
	start_threads("10/smaps_rollup");
	a_detector();
	start();
	sem_wait(&hung);
	for (int i = 0; i < 6; i++) {
		bench_close(&bench);
		offload_pool_dispatch(pool->threads);
		ck_assert_int_eq(bench_open(&bench), 0);
		sample_until("process/line/count");
	}
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	bench_expect_null(&bench, "process/cam/pss", "did not answer in time");
	ck_assert_int_ne(sem_trywait(&hung), 0);
	hanging = NULL;
	sem_post(&go);
	sample_until("process/cam/pss");
	finish_threads();
}
END_TEST

START_TEST(a_source_is_closed_while_a_file_hangs)
{
	start_threads("10/cmdline");
	a_detector();
	start();
	sem_wait(&hung);
	bench_close(&bench);
	hanging = NULL;
	sem_post(&go);
	finish_threads();
}
END_TEST

/* The kernel's first one makes its caller wait. */
START_TEST(counters_are_opened_once_a_worker_has_opened_the_first)
{
	const struct process_row *row = bench.processes.row;
	const size_t switches = PROCESS_CONTEXT_SWITCHES;
	start_threads("smaps_rollup");
	watch(WATCH_APP, "cam", "", getpid());
	start();
	sem_wait(&hung);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
		ck_assert_str_eq(row->extra.counter_reason[switches], "needs two samples");
	}
	hanging = NULL;
	sem_post(&go);
	sample_until("process/cam/pss");
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	const char *reason = row->extra.counter_reason[switches];
	ck_assert(!reason || strcmp(reason, "needs two samples") != 0);
	finish_threads();
}
END_TEST

START_TEST(what_was_found_outlives_a_change_of_the_watches)
{
	start_threads(NULL);
	watch(WATCH_PATTERN, "first", "nothing", 0);
	a_detector();
	start();
	sample_until("process/line/count");
	ck_assert_int_eq(processes_unwatch(&bench.processes, WATCH_PATTERN, "first", 0), 1);
	watch(WATCH_PATTERN, "more", "detector", 0);
	offload_pool_wait(
		pool->threads, UINT64_C(20000000000)); /* for a scan of the watches from before */
	hanging = "10/cmdline";
	ck_assert_int_eq(bench_sample(&bench), 0);
	sem_wait(&hung);
	bench_expect(&bench, "process/line/count", 1);
	bench_expect_null(&bench, "process/more/count", "not looked for yet");
	bench_expect_null(&bench, "process/more/rss", "not looked for yet");
	hanging = NULL;
	sem_post(&go);
	sample_until("process/more/count");
	bench_expect(&bench, "process/line/count", 1);
	/* nothing has started or exited */
	ck_assert_uint_eq(timeline_last_serial(bench.core.timeline), 0);
	finish_threads();
}
END_TEST
