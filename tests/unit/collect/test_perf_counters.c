/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of processes over a perf_event_open of the test: each descriptor is a pipe with what its
 * reads will say. */
#include "daemon/collect/process/perf_counters.h"

#include <errno.h>
#include <linux/perf_event.h>

#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

static struct tree tree;
static struct root root;
static struct perf_counters perf;
static struct process_extra extra;
static int refuse_hardware, refuse_software; /* -errno */
static int opened;

/* Two readings: 1000 × (1 + the event's number), then 3000 × …; the second with half the time on
 * the counter, so it stands for twice as many. */
static int open_pipe(struct perf_event_attr *attr, pid_t tid)
{
	(void)tid;
	bool hardware = attr->type == PERF_TYPE_HARDWARE;
	int refusal = hardware ? refuse_hardware : refuse_software;
	if (refusal < 0) {
		return refusal;
	}
	ck_assert_int_eq(attr->exclude_kernel, hardware);
	ck_assert_int_eq(attr->inherit, 1);
	int ends[2];
	uint64_t factor = attr->config == PERF_COUNT_HW_INSTRUCTIONS ? 2 : 1;
	uint64_t readings[2][3] = {{1000 * factor, 10, 10}, {3000 * factor, 20, 10}};
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(write(ends[1], readings, sizeof(readings)), (ssize_t)sizeof(readings));
	close(ends[1]);
	opened++;
	return ends[0];
}

static void setup(void)
{
	tree_make(&tree);
	ck_assert_int_eq(root_init(&root, tree.path), 0);
	perf_counters_init(&perf, &root);
	perf.open = open_pipe;
	refuse_hardware = refuse_software = 0;
	opened = 0;
}

static void teardown(void)
{
	perf_counters_finish(&perf);
	ck_assert_uint_eq(perf.descriptors, 0);
	root_finish(&root);
	tree_remove(&tree);
}

static void look(pid_t pid, size_t threads, uint64_t now_s)
{
	static const pid_t tids[PERF_THREADS_MAX + 1] = {1, 2, 3};
	perf_counters_read(&perf, pid, 5, tids, threads, now_s * 1000000000, &extra);
}

FIXTURE(setup, teardown);

/* covers G1.4 G1.5 */
START_TEST(rates_are_of_all_threads_and_scaled)
{
	look(7, 2, 1);
	ck_assert(isnan(extra.counter[PROCESS_CYCLES]));
	ck_assert_str_eq(extra.counter_reason[PROCESS_CYCLES], "needs two samples");
	look(7, 2, 3);
	ck_assert_int_eq(opened, 2 * PROCESS_COUNTERS);
	/* 2 threads, from 1000 to 3000 × 2, in 2 s */
	ck_assert_double_eq(extra.counter[PROCESS_CYCLES], 5000);
	ck_assert_double_eq(extra.counter[PROCESS_INSTRUCTIONS], 10000);
	ck_assert_double_eq(extra.counter[PROCESS_MIGRATIONS], 5000);
	ck_assert_ptr_null(extra.counter_reason[PROCESS_CYCLES]);
	ck_assert_double_eq(process_ipc(extra.counter), 2);
	ck_assert_str_eq(process_ipc_verdict(process_ipc(extra.counter)), "efficient");
}
END_TEST

START_TEST(a_machine_without_a_pmu_is_asked_once)
{
	refuse_hardware = -ENOENT;
	look(7, 1, 1);
	look(7, 1, 2);
	ck_assert_str_eq(extra.counter_reason[PROCESS_CYCLES], "no PMU in this machine");
	ck_assert(isnan(process_ipc(extra.counter)));
	ck_assert_str_eq(process_ipc_verdict(process_ipc(extra.counter)), "");
	ck_assert(!isnan(extra.counter[PROCESS_MIGRATIONS]));
	refuse_hardware = 0; /* would be seen if it were asked again */
	look(8, 1, 2);
	ck_assert_str_eq(extra.counter_reason[PROCESS_CYCLES], "no PMU in this machine");
}
END_TEST

START_TEST(a_refusal_names_the_level)
{
	tree_write(&tree, "proc/sys/kernel/perf_event_paranoid", "3\n");
	refuse_hardware = refuse_software = -EACCES;
	look(7, 1, 1);
	ck_assert_str_eq(extra.counter_reason[PROCESS_CYCLES],
		"perf_event_paranoid is 3: needs CAP_PERFMON");
	ck_assert_uint_eq(perf.descriptors, 0);
	tree_write(&tree, "proc/sys/kernel/perf_event_paranoid", "99\n");
	look(8, 1, 1);
	ck_assert_str_eq(
		extra.counter_reason[PROCESS_MIGRATIONS], "perf_event_paranoid forbids it");
}
END_TEST

START_TEST(descriptors_are_bounded_and_given_back)
{
	for (pid_t pid = 1; pid <= PERF_PROCESSES_MAX + 4; pid++) {
		look(pid, 3, 1);
	}
	ck_assert_uint_le(perf.descriptors, PERF_DESCRIPTORS_MAX);
	ck_assert_int_eq(opened, (int)perf.descriptors);
	ck_assert_str_eq(extra.counter_reason[PROCESS_CYCLES], "too many processes with counters");
	perf_counters_drop(&perf, 1, 5);
	ck_assert_int_eq(opened, (int)perf.descriptors + 3 * PROCESS_COUNTERS);
	look(PERF_PROCESSES_MAX + 4, 3, 2);
	ck_assert_str_eq(extra.counter_reason[PROCESS_CYCLES], "needs two samples");
	look(99, PERF_THREADS_MAX + 1, 2);
	ck_assert_str_eq(extra.counter_reason[PROCESS_CYCLES], "too many threads for counters");
}
END_TEST
