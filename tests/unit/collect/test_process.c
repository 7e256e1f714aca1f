/* SPDX-License-Identifier: Apache-2.0 */
/* Watched processes over a made-up proc: sums, rates, reused pids, names that lie. */
#include <errno.h>

#include "daemon/collect/process/procfs.h"
#include "daemon/collect/sched/collector.h"
#include "tests/unit/alloc_faults.h"
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

static void process(int pid, const char *comm, int user, int start, int rss_kb)
{
	char path[64], text[512];
	snprintf(path, sizeof(path), "proc/%d/stat", pid);
	snprintf(text, sizeof(text),
		"%d (%s) R 1 1 1 0 -1 0 %d 0 2 0 %d 10 0 0 20 0 3 0 %d 1000 10\n", pid, comm,
		user * 2, user, start);
	tree_write(&tree, path, text);
	snprintf(path, sizeof(path), "proc/%d/status", pid);
	snprintf(text, sizeof(text),
		"Name:\tx\nUid:\t42\t0\t0\t0\nVmSize:\t 900 kB\nVmHWM:\t 500 kB\nVmRSS:\t %d kB\n",
		rss_kb);
	tree_write(&tree, path, text);
}

static void gone(int pid)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/stat", pid);
	tree_unlink(&tree, path);
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

FIXTURE(setup, teardown);

START_TEST(a_name_sums_over_its_processes)
{
	process(10, "work)er (1", 100, 5, 100);
	process(11, "work)er (2", 200, 6, 200);
	process(12, "other", 300, 7, 400);
	watch(WATCH_PATTERN, "workers", "work*", 0);
	start();
	bench_expect(&bench, "process/workers/count", 2);
	bench_expect(&bench, "process/workers/rss", 300 * 1024);
	bench_expect(&bench, "process/workers/vms", 1800 * 1024);
	bench_expect(&bench, "process/workers/peak_rss", 1000 * 1024);
	bench_expect(&bench, "process/workers/threads", 6);
	bench_expect(&bench, "process/workers/mem_percent", 30);
	bench_expect_null(&bench, "process/workers/cpu", "needs two samples");
	ck_assert_uint_eq(bench.processes.rows, 2);
	ck_assert_uint_eq(bench.processes.row[0].uid, 42);
	double hertz = (double)sysconf(_SC_CLK_TCK);
	process(10, "work)er (1", 110, 5, 100);
	process(11, "work)er (2", 230, 6, 200);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "process/workers/user", 40 / hertz * 100);
	bench_expect(&bench, "process/workers/system", 0);
	bench_expect(&bench, "process/workers/cpu", 40 / hertz * 100);
	bench_expect(&bench, "process/workers/minor_faults", 80);
}
END_TEST

START_TEST(a_stopped_process_is_counted)
{
	process(10, "cam", 100, 5, 100);
	process(11, "cam", 100, 6, 100);
	watch(WATCH_PATTERN, "cam", "cam", 0);
	start();
	bench_expect(&bench, "process/cam/stopped", 0);
	tree_write(&tree, "proc/10/stat",
		"10 (cam) T 1 1 1 0 -1 0 0 0 2 0 100 10 0 0 20 0 3 0 5 1000 10\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "process/cam/stopped", 1);
}
END_TEST

START_TEST(a_reused_pid_is_another_process)
{
	process(10, "cam", 100, 5, 100);
	watch(WATCH_PID, "cam", "", 10);
	start();
	process(10, "cam", 500, 6, 100);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "process/cam/cpu", "needs two samples");
	bench_expect(&bench, "process/cam/count", 1);
}
END_TEST

START_TEST(a_watch_with_a_start_time_never_means_another_process)
{
	struct watch w = {.kind = WATCH_PID, .name = "cam", .pid = 10, .start_ticks = 5};
	process(10, "cam", 100, 6, 100);
	ck_assert_int_eq(processes_watch(&bench.processes, &w), 0);
	start();
	bench_expect(&bench, "process/cam/count", 0);
	bench_expect_null(&bench, "process/cam/rss", "no process");
	ck_assert_uint_eq(bench.processes.rows, 0);
}
END_TEST

START_TEST(processes_that_come_and_go_are_followed)
{
	watch(WATCH_PATTERN, "cam", "cam", 0);
	start();
	bench_expect(&bench, "process/cam/count", 0);
	process(10, "cam", 100, 5, 100);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "process/cam/count", 1);
	gone(10);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "process/cam/count", 0);
	bench_expect_null(&bench, "process/cam/rss", "no process");
}
END_TEST

START_TEST(metrics_go_with_their_last_watch)
{
	watch(WATCH_PID, "a", "", 10);
	watch(WATCH_PID, "b", "", 11);
	process(11, "b", 1, 1, 10);
	start();
	ck_assert_int_eq(processes_unwatch(&bench.processes, WATCH_PID, "a", 0), 1);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "process/a/rss"));
	bench_expect(&bench, "process/b/rss", 10 * 1024);
	ck_assert_int_eq(processes_unwatch(&bench.processes, WATCH_PID, "b", 0), 1);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_uint_eq(metrics_count(bench.core.metrics), 0);
}
END_TEST

START_TEST(the_command_line_matches_by_its_first_word)
{
	process(10, "python3", 1, 1, 10);
	tree_write_bytes(&tree, "proc/10/cmdline", "/opt/bin/detector\0--fast\0", 25);
	process(11, "python3", 1, 1, 20);
	tree_write_bytes(&tree, "proc/11/cmdline", "python3\0detector\0", 17);
	watch(WATCH_PATTERN, "by-name", "detect*", 0);
	watch(WATCH_PATTERN, "by-path", "/opt/*", 0);
	start();
	bench_expect(&bench, "process/by-name/rss", 10 * 1024);
	bench_expect(&bench, "process/by-path/rss", 10 * 1024);
}
END_TEST

START_TEST(patterns_match_the_complete_command_line)
{
	process(10, "python3", 1, 1, 10);
	tree_write_bytes(&tree, "proc/10/cmdline", "/usr/bin/python3\0-u\0sample_img.py\0", 34);
	process(11, "python3", 1, 1, 20);
	tree_write_bytes(&tree, "proc/11/cmdline", "python3\0other.py\0", 17);
	process(12, "edgeprofctl", 1, 1, 40); /* who asks for the watch is not meant */
	tree_write_bytes(&tree, "proc/12/cmdline", "edgeprofctl\0ps\0--watch\0*sample_img*\0", 37);
	watch(WATCH_PATTERN, "anywhere", "*sample_img*", 0);
	watch(WATCH_PATTERN, "end", "*python3 -u sample_img.py", 0);
	watch(WATCH_PATTERN, "program", "python3", 0);
	watch(WATCH_PATTERN, "asker", "edgeprofctl", 0);
	start();
	bench_expect(&bench, "process/anywhere/count", 1);
	bench_expect(&bench, "process/anywhere/rss", 10 * 1024);
	bench_expect(&bench, "process/end/count", 1);
	bench_expect(&bench, "process/program/count", 2);
	bench_expect(&bench, "process/asker/count", 1);
}
END_TEST

START_TEST(one_process_under_two_watches_of_a_name_counts_once)
{
	process(10, "cam", 1, 1, 10);
	watch(WATCH_PATTERN, "cam", "cam", 0);
	watch(WATCH_PID, "cam", "", 10);
	watch(WATCH_PID, "other", "", 10);
	start();
	bench_expect(&bench, "process/cam/count", 1);
	process(10, "cam", 11, 1, 10);
	ck_assert_int_eq(bench_sample(&bench), 0);
	double percent = 10 / (double)sysconf(_SC_CLK_TCK) * 100;
	bench_expect(&bench, "process/cam/cpu", percent);
	bench_expect(&bench, "process/other/cpu", percent);
}
END_TEST

START_TEST(a_kernel_thread_has_no_memory)
{
	process(10, "kworker/u8:1-events", 1, 1, 10);
	tree_write(&tree, "proc/10/status", "Name:\tkworker\nThreads:\t1\n");
	watch(WATCH_PATTERN, "k", "kworker*", 0);
	start();
	bench_expect_null(&bench, "process/k/rss", "no memory of its own");
	bench_expect(&bench, "process/k/count", 1);
}
END_TEST

START_TEST(self_and_apps_are_always_of_this_machine)
{
	process((int)getpid(), "liar", 1, 1, 1);
	watch(WATCH_SELF, "edgeprofd", "", 0);
	watch(WATCH_APP, "app", "", getpid());
	start();
	ck_assert(bench_value(&bench, "process/edgeprofd/rss") > 100 * 1024);
	ck_assert(bench_value(&bench, "process/app/rss") > 100 * 1024);
}
END_TEST

START_TEST(more_processes_than_rows_are_counted)
{
	for (int i = 1; i <= PROCESS_ROWS_MAX + 10; i++) {
		process(i, "cam", 1, 1, 1);
	}
	watch(WATCH_PATTERN, "cam", "cam", 0);
	start();
	ck_assert_uint_eq(bench.processes.rows, PROCESS_ROWS_MAX);
	ck_assert_uint_eq(bench.processes.refused, 10);
}
END_TEST

START_TEST(many_are_read_in_parts_and_shown_together)
{
	for (int i = 1; i <= 20; i++) {
		char name[16];
		process(i, "cam", 1, 1, i);
		snprintf(name, sizeof(name), "cam%d", i);
		watch(WATCH_PID, name, "", i);
	}
	start();
	ck_assert_uint_eq(bench.processes.rows, 20);
	process(20, "cam", 1, 1, 400);
	bench.ctx.now_ns += 1000000000;
	int parts = 0;
	while (bench.ops->sample(&bench.ctx, bench.state) == -EINPROGRESS) {
		/* whoever asks meanwhile sees what was before, and watches may change */
		struct watch w = {.kind = WATCH_PID, .name = "cam20", .pid = 20};
		ck_assert_uint_eq(bench.processes.rows, 20);
		ck_assert_double_eq_tol(bench.processes.row[19].rss_bytes, 20 * 1024, 1e-9);
		if (parts++ == 0) {
			ck_assert_int_eq(processes_watch(&bench.processes, &w), -EEXIST);
			processes_unwatch(&bench.processes, WATCH_PID, "cam1", 1);
		}
	}
	ck_assert_int_eq(parts, 2);
	ck_assert_double_eq_tol(bench.processes.row[19].rss_bytes, 400 * 1024, 1e-9);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_uint_eq(bench.processes.rows, 19);
}
END_TEST

START_TEST(metrics_of_new_names_are_added_in_parts)
{
	process(1, "cam", 1, 1, 1);
	watch(WATCH_PID, "cam1", "", 1);
	start();
	const size_t of_one = bench.source->metrics;
	for (int i = 2; i <= 31; i++) {
		char name[16];
		process(i, "cam", 1, 1, i);
		snprintf(name, sizeof(name), "cam%d", i);
		watch(WATCH_PID, name, "", i);
	}
	bench.ctx.now_ns += 1000000000;
	int r = -EINPROGRESS;
	while (r == -EINPROGRESS) {
		const size_t before = bench.source->metrics;
		r = bench.ops->sample(&bench.ctx, bench.state);
		ck_assert_uint_le(bench.source->metrics - before, 12 * of_one);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(bench.source->metrics, 31 * of_one);
	ck_assert_uint_eq(bench.processes.rows, 31);
}
END_TEST

static void thread(int pid, int tid, int step)
{
	char path[64], text[128];
	snprintf(path, sizeof(path), "proc/%d/task/%d/schedstat", pid, tid);
	snprintf(text, sizeof(text), "%d %d 9\n", (tid - pid) * 10000000 * step, 5000000 * step);
	tree_write(&tree, path, text);
	snprintf(path, sizeof(path), "proc/%d/task/%d/status", pid, tid);
	snprintf(text, sizeof(text),
		"Name:\tt%d\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n",
		tid - pid, 10 * step, 3 * step);
	tree_write(&tree, path, text);
}

/* Here stat says that a process has three. */
START_TEST(a_thread_in_the_place_of_another_is_found)
{
	const struct process_extra *extra = &bench.processes.row[0].extra;
	process(10, "cam", 1, 1, 1);
	watch(WATCH_PID, "cam", "", 10);
	for (int step = 1; step <= 3; step++) {
		thread(10, 10, step);
		thread(10, 11, step);
		if (step < 3) {
			thread(10, 12, step);
		} else {
			tree_unlink(&tree, "proc/10/task/12/schedstat");
			thread(10, 13, step);
		}
		if (step == 1) {
			start();
		} else {
			ck_assert_int_eq(bench_sample(&bench), 0);
		}
		ck_assert_uint_eq(extra->threads, 3);
	}
	/* the rates are of those that were there before */
	bench_expect(&bench, "process/cam/voluntary_switches", 20);
	ck_assert_str_eq(extra->thread[0].comm, "t1");
	ck_assert_str_eq(extra->thread[2].comm, "t3");
	/* and while they are three, nobody looks for more */
	thread(10, 13, 4);
	thread(10, 14, 4);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_uint_eq(extra->threads, 3);
}
END_TEST

/* A process of one thread with everything that proc shows; numbers grow with step. */
static void whole_process(int pid, int step)
{
	char path[64], text[512];
	process(pid, "cam", 100 + step, 5, 100);
	snprintf(path, sizeof(path), "proc/%d/io", pid);
	snprintf(text, sizeof(text), "read_bytes: %d\nwrite_bytes: %d\ncancelled_write_bytes: %d\n",
		4096 * step, 8192 * step, 512 * step);
	tree_write(&tree, path, text);
	for (int tid = pid; tid < pid + 7; tid++) {
		thread(pid, tid, step);
	}
	snprintf(path, sizeof(path), "proc/%d/fd/0", pid);
	tree_write(&tree, path, "");
	snprintf(path, sizeof(path), "proc/%d/smaps_rollup", pid);
	tree_write(&tree, path, "Rss: 9 kB\nPss: 7 kB\n");
	snprintf(path, sizeof(path), "proc/%d/cgroup", pid);
	tree_write(&tree, path, "0::/system.slice/cam.service\n");
}

/* covers G1.2 covers G1.6 G1.16 */
START_TEST(the_closer_look_is_of_all_threads)
{
	tree_write(&tree, "sys/fs/cgroup/system.slice/cam.service/cpu.max", "50000 100000\n");
	tree_write(&tree, "sys/fs/cgroup/system.slice/cam.service/cpu.stat",
		"nr_throttled 4\nthrottled_usec 99\n");
	whole_process(10, 1);
	watch(WATCH_PID, "cam", "", 10);
	start();
	bench_expect_null(&bench, "process/cam/read_bytes", "needs two samples");
	bench_expect_null(&bench, "process/cam/voluntary_switches", "needs two samples");
	bench_expect_null(&bench, "process/cam/pss", "is being read");
	whole_process(10, 3);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "process/cam/pss", 7 * 1024);
	bench_expect(&bench, "process/cam/read_bytes", 8192);
	bench_expect(&bench, "process/cam/write_bytes", 16384);
	bench_expect(&bench, "process/cam/fds", 1);
	bench_expect(&bench, "process/cam/voluntary_switches", 140);
	bench_expect(&bench, "process/cam/involuntary_switches", 42);
	bench_expect(&bench, "process/cam/run_delay", 7);
	bench_expect_null(&bench, "process/cam/cycles", "not of this machine");
	bench_expect_null(&bench, "process/cam/ipc", "not of this machine");
	const struct process_extra *extra = &bench.processes.row[0].extra;
	ck_assert_double_eq(extra->cancelled_bytes, 1024);
	ck_assert_double_eq(extra->run_delay_ms, 105);
	ck_assert_double_eq(extra->quota_percent, 50);
	ck_assert_double_eq(extra->nr_throttled, 4);
	ck_assert_str_eq(extra->cgroup, "/system.slice/cam.service");
	ck_assert_uint_eq(extra->threads, PROCESS_THREADS_TOP);
	ck_assert_str_eq(extra->thread[0].comm, "t6");
	ck_assert_double_eq(extra->thread[0].cpu_percent, 12);
	ck_assert_int_eq(extra->thread[4].tid, 12);
	/* the group is read every 5 s: 2 s of 5 were spent waiting for the quota */
	ck_assert(isnan(extra->throttled_share));
	tree_write(&tree, "sys/fs/cgroup/system.slice/cam.service/cpu.stat",
		"nr_throttled 9\nthrottled_usec 2000099\n");
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	ck_assert_double_eq_tol(bench.processes.row[0].extra.throttled_share, 0.4, 1e-9);
}
END_TEST

static uint64_t bench_clock(void)
{
	return bench.now_ns;
}

START_TEST(the_daemons_own_pss_is_read_once_a_minute)
{
	watch(WATCH_SELF, "edgeprofd", "", 0);
	struct sysops table = *sysops();
	table.now_ns = bench_clock;
	sysops_replace(&table);
	start();
	ck_assert_int_eq(bench_sample(&bench), 0);
	const struct process_row *row = &bench.processes.row[0];
	uint64_t read_ns = row->extra.pss_ns;
	ck_assert_uint_ne(read_ns, 0);
	for (int i = 0; i < 50; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	ck_assert_uint_eq(row->extra.pss_ns, read_ns);
	for (int i = 0; i < 15; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	sysops_replace(NULL);
	ck_assert_uint_gt(row->extra.pss_ns, read_ns);
}
END_TEST

START_TEST(what_is_read_less_often_has_its_own_age)
{
	whole_process(10, 1);
	watch(WATCH_PID, "cam", "", 10);
	struct sysops table = *sysops();
	table.now_ns = bench_clock;
	sysops_replace(&table);
	start();
	uint64_t read_ns = bench.now_ns;
	const struct metric *pss = bench_metric(&bench, "process/cam/pss");
	tree_write(&tree, "proc/10/smaps_rollup", "Rss: 9 kB\nPss: 900 kB\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	sysops_replace(NULL);
	bench_expect(&bench, "process/cam/pss", 7 * 1024);
	ck_assert_uint_eq(metric_time_ns(pss), read_ns);
	ck_assert_uint_gt(pss->t_ns, read_ns);
	const struct process_row *row = &bench.processes.row[0];
	ck_assert_uint_gt(row->t_ns, row->extra.pss_ns);
	ck_assert_uint_eq(row->extra.pss_ns, read_ns);
	ck_assert_uint_eq(row->extra.group_ns, read_ns);
	ck_assert_uint_eq(row->extra.t_ns, row->t_ns);
	ck_assert_uint_eq(metric_time_ns(bench_metric(&bench, "process/cam/fds")), row->t_ns);
}
END_TEST

START_TEST(delays_that_the_kernel_does_not_count_are_null)
{
	process(10, "cam", 100, 5, 100);
	tree_write(&tree, "proc/10/stat",
		"10 (cam) S 1 1 1 0 -1 0 5 0 5 0 10 10 0 0 20 0 1 0 1"
		"00 1000 10 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 7 0 0\n"); /* as far as the kernel's
									     line goes */
	tree_write(&tree, "proc/sys/kernel/task_delayacct", "0\n");
	watch(WATCH_PID, "cam", "", 10);
	start();
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "process/cam/iodelay", "kernel.task_delayacct is 0");
	ck_assert(isnan(bench.processes.row[0].iodelay_ticks));
	tree_write(&tree, "proc/sys/kernel/task_delayacct", "1\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "process/cam/iodelay", 0);
	ck_assert_ptr_null(bench.processes.row[0].iodelay_reason);
}
END_TEST

START_TEST(what_proc_does_not_show_is_null_with_the_reason)
{
	process(10, "cam", 100, 5, 100);
	watch(WATCH_PID, "cam", "", 10);
	start();
	ck_assert_int_eq(bench_sample(&bench), 0);
	static const char *const names[] = {
		"read_bytes", "pss", "fds", "run_delay", "voluntary_switches"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];
		snprintf(path, sizeof(path), "process/cam/%s", names[i]);
		bench_expect_null(&bench, path, errno_reason(ENOENT));
	}
}
END_TEST

/* covers G1.21 */
START_TEST(a_unit_means_the_processes_of_its_group)
{
	whole_process(10, 1);
	process(11, "cam", 1, 1, 10);
	tree_write(&tree, "proc/11/cgroup", "0::/system.slice/webcam.service\n");
	process(12, "helper", 1, 1, 20);
	tree_write(&tree, "proc/12/cgroup",
		"3:cpu:/\n1:name=systemd:/system.slice/cam.service/sub\n0::/\n");
	watch(WATCH_UNIT, "cam", "cam.service", 0);
	start();
	bench_expect(&bench, "process/cam/count", 2);
	bench_expect(&bench, "process/cam/rss", 120 * 1024);
}
END_TEST

static const char *last_event(uint64_t *count)
{
	uint64_t last = timeline_last_serial(bench.core.timeline);
	const struct timeline_entry *entry = timeline_from(bench.core.timeline, last);
	*count = last;
	return last == 0 ? "" : entry->text;
}

START_TEST(starts_exits_and_restarts_are_events)
{
	uint64_t count;
	process(10, "cam", 1, 5, 10);
	watch(WATCH_PID, "cam", "", 10);
	watch(WATCH_PID, "cam", "", 11);
	start();
	last_event(&count);
	ck_assert_uint_eq(count, 0); /* it was there before */
	gone(10);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_str_eq(last_event(&count), "process 10 exited");
	process(11, "cam", 1, 6, 10);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_str_eq(last_event(&count), "restarted as process 11 (previously 10)");
	process(10, "cam", 1, 7, 10);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_str_eq(last_event(&count), "process 10 started");
	ck_assert_uint_eq(count, 3);
	ck_assert_int_eq(bench_sample(&bench), 0);
	last_event(&count);
	ck_assert_uint_eq(count, 3);
}
END_TEST

/* covers G2.4 */
START_TEST(crossing_the_memory_limit_is_an_event_and_a_metric)
{
	uint64_t count;
	struct watch w = {.kind = WATCH_PATTERN,
		.name = "cam",
		.pattern = "cam*",
		.memory_limit_bytes = 1 << 20};
	ck_assert_int_eq(processes_watch(&bench.processes, &w), 0);
	watch(WATCH_PID, "free", "", 11);
	process(10, "cam", 1, 5, 1024);
	process(11, "cam2", 1, 5, 900);
	start();
	bench_expect(&bench, "process/cam/over_limit", 0); /* at the limit is not over it */
	ck_assert_int_eq(bench_metric(&bench, "process/cam/over_limit")->unit, UNIT_COUNT);
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "process/free/over_limit"));
	process(10, "cam", 1, 5, 1536);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "process/cam/over_limit", 1);
	ck_assert_str_eq(last_event(&count),
		"process 10: 1.5 MiB resident, over its memory limit of 1.0 MiB");
	ck_assert_int_eq(timeline_from(bench.core.timeline, count)->level, TIMELINE_WARNING);
	/* told once; close below the limit the number falls, but that is no news yet */
	ck_assert_int_eq(bench_sample(&bench), 0);
	process(10, "cam", 1, 5, 1000);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "process/cam/over_limit", 0);
	process(10, "cam", 1, 5, 1536);
	ck_assert_int_eq(bench_sample(&bench), 0);
	last_event(&count);
	ck_assert_uint_eq(count, 1);
	process(10, "cam", 1, 5, 512);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_str_eq(last_event(&count),
		"process 10: 0.5 MiB resident, below its memory limit of 1.0 MiB");
	/* two at once: one line a second, none is lost */
	process(10, "cam", 1, 5, 2048);
	process(11, "cam2", 1, 5, 2048);
	ck_assert_int_eq(bench_sample(&bench), 0);
	last_event(&count);
	ck_assert_uint_eq(count, 3);
	bench_expect(&bench, "process/cam/over_limit", 2);
	ck_assert_int_eq(bench_sample(&bench), 0);
	last_event(&count);
	ck_assert_uint_eq(count, 4);
	gone(10);
	gone(11);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "process/cam/over_limit", "no process");
	/* the limit goes, and so does the metric */
	ck_assert_int_eq(processes_unwatch(&bench.processes, WATCH_PATTERN, "cam", 0), 1);
	watch(WATCH_PATTERN, "cam", "cam*", 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "process/cam/over_limit"));
	bench_expect(&bench, "process/cam/count", 0);
}
END_TEST

START_TEST(a_flood_of_processes_is_one_line)
{
	uint64_t count;
	watch(WATCH_PATTERN, "cam", "cam", 0);
	start();
	for (int round = 0; round < 2; round++) {
		for (int i = 1; i <= 270; i++) {
			process(i, "cam", 1, round * 1000 + i, 1);
		}
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	ck_assert_uint_le(bench.processes.rows, PROCESS_ROWS_MAX);
	/* found by a scan every other sample, gone at the next */
	ck_assert_str_eq(last_event(&count), "256 processes started");
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_uint_le(count, 2);
}
END_TEST

START_TEST(with_many_processes_each_has_its_turn)
{
	for (int i = 1; i <= 100; i++) {
		process(i, "cam", 1, 1, 1);
	}
	for (int i = 1; i <= 100; i++) {
		char path[32];
		snprintf(path, sizeof(path), "proc/%d/fd/0", i);
		tree_write(&tree, path, "");
	}
	watch(WATCH_PATTERN, "cam", "cam", 0);
	start();
	bench_expect(&bench, "process/cam/count", 100);
	ck_assert(bench_value(&bench, "process/cam/fds") < 100);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	bench_expect(&bench, "process/cam/fds", 100);
	/* whose it is, is known from the first sight; between its turns stat tells the memory */
	size_t from_stat = 0;
	for (size_t i = 0; i < bench.processes.rows; i++) {
		const struct process_row *row = &bench.processes.row[i];
		bool newer = row->rss_bytes == 10.0 * (double)sysconf(_SC_PAGESIZE);
		ck_assert_uint_eq(row->uid, 42);
		ck_assert(newer || row->rss_bytes == 1024);
		ck_assert_double_eq(row->vms_bytes, newer ? 1000 : 900 * 1024);
		from_stat += newer;
	}
	ck_assert_uint_ge(from_stat, 100 - 32);
	ck_assert_uint_lt(from_stat, 100);
}
END_TEST

static int open_descriptors(void)
{
	int count = 0;
	DIR *dir = opendir("/proc/self/fd");
	while (readdir(dir)) {
		count++;
	}
	closedir(dir);
	return count;
}

START_TEST(a_tick_allocates_nothing_and_leaves_nothing_open)
{
	whole_process(10, 1);
	watch(WATCH_PID, "cam", "", 10);
	watch(WATCH_PATTERN, "pattern", "cam", 0);
	watch(WATCH_APP, "app", "", getpid());
	start();
	ck_assert_int_eq(bench_sample(&bench), 0);
	int before = open_descriptors();
	alloc_faults_start(0);
	for (int step = 2; step < 30; step++) {
		whole_process(10, step);
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	ck_assert_uint_eq(alloc_calls, 0);
	alloc_faults_stop();
	ck_assert_int_eq(open_descriptors(), before);
}
END_TEST

START_TEST(a_pid_watched_at_run_time_is_pinned)
{
	struct watch w = {.kind = WATCH_PID, .name = "cam", .pid = 10, .runtime = true};
	process(10, "cam", 1, 5, 10);
	ck_assert_int_eq(processes_watch(&bench.processes, &w), 0);
	start();
	bench_expect(&bench, "process/cam/count", 1);
	process(10, "other", 1, 6, 10);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "process/cam/count", 0);
}
END_TEST

#define TAIL " 1 1 1 0 -1 0 7 0 0 0 1 2 0 0 20 0 3 0 99 1 1\n"

static const struct {
	const char *text;
	const char *comm; /* NULL = refused */
} stats[] = {
	{"1 (a) S" TAIL, "a"},
	{"1 (a) S 9 9 (b) S" TAIL, "a) S 9 9 (b"},
	{"1 () S" TAIL, ""},
	{"1 (((((()))) S" TAIL, "((((()))"},
	{"1 (a\nb) S" TAIL, "a\nb"},
	{"", NULL},
	{"1 (a", NULL},
	{"1 )a( S" TAIL, NULL},
	{"1 (a)", NULL},
	{"1 (a) S", NULL},
	{"1 (a) S 1 1 1", NULL},
	{"1 (a) S 1 1 1 0 -1 0 7 0 0 0 1 2 0 0 20 0 3 0 99x 1\n", NULL},
	{"1 (a) S 1 1 1 0 -1 0 7 0 0 0 99999999999999999999999 2 0 0 20 0 3 0 99 1\n", NULL},
};

START_LOOP_TEST(stat_is_split_at_the_last_parenthesis, 0, COUNT(stats))
{
	struct proc_stat stat = {.threads = 77};
	int r = proc_stat_parse(stats[_i].text, strlen(stats[_i].text), &stat);
	if (!stats[_i].comm) {
		ck_assert_int_eq(r, -EBADMSG);
		ck_assert_uint_eq(stat.threads, 77);
		return;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(stat.comm, stats[_i].comm);
	ck_assert_int_eq(stat.state, 'S');
	ck_assert_uint_eq(stat.minor_faults, 7);
	ck_assert_uint_eq(stat.user_ticks, 1);
	ck_assert_uint_eq(stat.system_ticks, 2);
	ck_assert_uint_eq(stat.threads, 3);
	ck_assert_uint_eq(stat.start_ticks, 99);
}
END_TEST
