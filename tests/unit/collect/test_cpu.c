/* SPDX-License-Identifier: Apache-2.0 */
/* Utilization from proc/stat and clocks from cpufreq, over trees made here. */
#include <errno.h>

#include "daemon/collect/sched/collector.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/unit.h"

static struct tree tree;
static struct bench bench;

static void setup(void)
{
	tree_make(&tree);
	tree_write(&tree, "sys/devices/system/cpu/possible", "0-3\n");
	tree_write(&tree, "sys/devices/system/cpu/present", "0-1\n");
	tree_write(&tree, "sys/devices/system/cpu/online", "0-1\n");
}

static void teardown(void)
{
	bench_finish(&bench);
	tree_remove(&tree);
}

static void stat_is(const char *text)
{
	tree_write(&tree, "proc/stat", text);
}

static void start(void)
{
	bench_make(&bench, tree.path, "cpu");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
}

static void again(const char *text)
{
	stat_is(text);
	ck_assert_int_eq(bench_sample(&bench), 0);
}

FIXTURE(setup, teardown);

START_TEST(busy_is_all_but_idle_and_iowait)
{
	stat_is("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n");
	start();
	again("cpu  10 1 4 70 10 2 2 1 9 9\ncpu0 50 0 0 50 0 0 0 0 50 0\ncpu1 0 0 0 5 5 0 0 0 0 "
	      "0\n");
	bench_expect(&bench, "cpu/utilization", 20);
	bench_expect(&bench, "cpu/iowait", 10);
	bench_expect(&bench, "cpu/steal", 1);
	bench_expect(&bench, "cpu/0/utilization", 50);
	bench_expect(&bench, "cpu/1/utilization", 0);
}
END_TEST

START_TEST(steal_is_null_where_the_kernel_has_no_such_column)
{
	stat_is("cpu  1 0 0 1 0 0 0\ncpu0 1 0 0 1 0 0 0\n");
	start();
	again("cpu  2 0 0 2 0 0 0\ncpu0 2 0 0 2 0 0 0\n");
	bench_expect_null(&bench, "cpu/steal", "not reported by the kernel");
	bench_expect(&bench, "cpu/iowait", 0);
}
END_TEST

START_TEST(a_core_that_goes_is_offline_and_starts_anew_when_back)
{
	stat_is("cpu  1 0 0 1 0 0 0 0\ncpu0 1 0 0 1 0 0 0 0\ncpu1 1 0 0 1 0 0 0 0\n");
	start();
	again("cpu  2 0 0 2 0 0 0 0\ncpu0 2 0 0 2 0 0 0 0\n");
	bench_expect(&bench, "cpu/0/utilization", 50);
	bench_expect_null(&bench, "cpu/1/utilization", "offline");
	again("cpu  9 0 0 9 0 0 0 0\ncpu0 3 0 0 2 0 0 0 0\ncpu1 9 0 0 9 0 0 0 0\n");
	bench_expect_null(&bench, "cpu/1/utilization", "needs two samples");
	bench_expect(&bench, "cpu/0/utilization", 100);
	again("cpu  9 0 0 9 0 0 0 0\ncpu0 3 0 0 2 0 0 0 0\ncpu1 10 0 0 12 0 0 0 0\n");
	bench_expect(&bench, "cpu/1/utilization", 25);
	bench_expect_null(&bench, "cpu/0/utilization", "no time passed in proc/stat");
}
END_TEST

START_TEST(a_core_that_is_plugged_in_later_appears)
{
	stat_is("cpu  1 0 0 1 0 0 0 0\ncpu0 1 0 0 1 0 0 0 0\n");
	start();
	again("cpu  1 0 0 1 0 0 0 0\ncpu3 1 0 0 1 0 0 0 0\ncpu900 1 0 0 1 0 0 0 0\n");
	bench_expect_null(&bench, "cpu/3/utilization", "needs two samples");
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "cpu/900/utilization"));
}
END_TEST

START_TEST(a_torn_or_short_line_ends_the_reading)
{
	stat_is("cpu  1 0 0 1\ncpu0 1 0 0 1 0 0 0 0\ncpu1 1 0");
	start();
	again("cpu  2 0 0 2\ncpu0 2 0 0 1 0 0 0 0\ncpu1 1 0");
	bench_expect(&bench, "cpu/utilization", 50);
	bench_expect(&bench, "cpu/0/utilization", 100);
	bench_expect_null(&bench, "cpu/1/utilization", "offline");
}
END_TEST

static const char *const broken[] = {"", "intr 1 2 3\n", "cpu", "cpu  x y z\n", "\n", "cpu  1 2\n",
	"cpu  99999999999999999999999 0 0 0 0 0 0 0\n"};

START_LOOP_TEST(a_stat_without_cpu_lines_is_an_error_not_a_number, 0, COUNT(broken))
{
	stat_is(broken[_i]);
	bench_make(&bench, tree.path, "cpu");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), -EBADMSG);
	ck_assert(isnan(bench_value(&bench, "cpu/utilization")));
	ck_assert(isnan(bench_value(&bench, "cpu/0/utilization")));
}
END_TEST

START_TEST(a_machine_without_stat_has_no_cpu_source)
{
	bench_make(&bench, tree.path, "cpu");
	ck_assert_int_eq(bench_open(&bench), -ENOENT);
	ck_assert_ptr_nonnull(strstr(bench.reason, "proc/stat"));
}
END_TEST

START_TEST(two_hundred_fifty_six_cores_are_read)
{
	static char text[64 * 1024];
	tree_write(&tree, "sys/devices/system/cpu/possible", "0-255\n");
	tree_write(&tree, "sys/devices/system/cpu/present", "0-255\n");
	for (int round = 1; round <= 2; round++) {
		size_t n = (size_t)snprintf(
			text, sizeof(text), "cpu  %d 0 0 %d 0 0 0 0 0 0\n", round, round);
		for (int i = 0; i < 256; i++) {
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				"cpu%d %d12345678 0 123456789 %d123456789 123456 0 123456 0 0 0\n",
				i, round, round);
		}
		stat_is(text);
		if (round == 1) {
			start();
		} else {
			ck_assert_int_eq(bench_sample(&bench), 0);
		}
	}
	bench_expect(&bench, "cpu/255/utilization", 100.0 / 11);
}
END_TEST

static void policy(int number, const char *cpus, const char *khz)
{
	char path[128];
	snprintf(
		path, sizeof(path), "sys/devices/system/cpu/cpufreq/policy%d/related_cpus", number);
	tree_write(&tree, path, cpus);
	snprintf(path, sizeof(path), "sys/devices/system/cpu/cpufreq/policy%d/scaling_cur_freq",
		number);
	tree_write(&tree, path, khz);
}

static void start_cpufreq(void)
{
	bench_make(&bench, tree.path, "cpufreq");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
}

START_TEST(a_policy_tells_the_clock_of_its_online_cores)
{
	policy(0, "0 1\n", "1500000\n");
	policy(2, "2-3\n", "800000\n");
	tree_write(&tree, "sys/devices/system/cpu/online", "0,2-3\n");
	start_cpufreq();
	bench_expect(&bench, "cpu/0/frequency", 1.5e9);
	bench_expect_null(&bench, "cpu/1/frequency", "offline");
	bench_expect(&bench, "cpu/3/frequency", 8e8);
	tree_write(&tree, "sys/devices/system/cpu/online", "0-3\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "cpu/1/frequency", 1.5e9);
}
END_TEST

#define HARDWARE "sys/devices/system/cpu/cpufreq/policy0/"

START_TEST(a_pi_5_shows_the_clock_of_the_hardware)
{
	policy(0, "0\n", "2400000\n");
	tree_write(&tree, HARDWARE "cpuinfo_avg_freq", "1800000\n");
	start_cpufreq();
	bench_expect(&bench, "cpu/0/frequency", 2.4e9);
	bench_finish(&bench);
	tree_write(&tree, "proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0");
	start_cpufreq();
	bench_expect(&bench, "cpu/0/frequency", 1.8e9);
	bench_finish(&bench);
	tree_write(&tree, HARDWARE "cpuinfo_cur_freq", "1500000\n");
	start_cpufreq();
	bench_expect(&bench, "cpu/0/frequency", 1.5e9);
	ck_assert_str_eq(
		bench_metric(&bench, "cpu/0/frequency")->origin, "measured by the hardware");
	tree_write(&tree, HARDWARE "cpuinfo_cur_freq", "<unknown>\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "cpu/0/frequency", 2.4e9);
	ck_assert_str_eq(bench_metric(&bench, "cpu/0/frequency")->origin, "set by the governor");
}
END_TEST

static const char *const bad_clocks[] = {"", "<unknown>\n", "0\n", "-1\n", "99999999999999\n"};

START_LOOP_TEST(a_clock_that_is_not_known_is_null_alone, 0, COUNT(bad_clocks))
{
	policy(0, "0\n", bad_clocks[_i]);
	policy(1, "1\n", "1000\n");
	start_cpufreq();
	bench_expect_null(&bench, "cpu/0/frequency", "not known");
	bench_expect(&bench, "cpu/1/frequency", 1e6);
}
END_TEST

START_TEST(no_policy_means_no_cpufreq)
{
	for (int cores = 0; cores < 2; cores++) {
		bench_make(&bench, tree.path, "cpufreq");
		ck_assert_int_eq(bench_open(&bench), -ENOENT);
		ck_assert_str_eq(bench.reason, "/sys/devices/system/cpu/cpufreq: no policy there");
		bench_finish(&bench);
		policy(0, "", "1500000\n"); /* of no core */
	}
	bench_make(&bench, tree.path, "cpufreq"); /* for the teardown */
}
END_TEST
