/* SPDX-License-Identifier: Apache-2.0 */
/* The throttle collector: precedence of sources on composed boards, and the shared device trees. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/util/sysops.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/collect/pi_fake.h"
#include "tests/unit/shared.h"
#include "tests/unit/unit.h"

static struct tree tree;
static struct bench bench;

static void setup(void)
{
	tree_make(&tree);
	pi_fake_start();
}

static void teardown(void)
{
	sysops_replace(NULL);
	pi_fake_stop();
	tree_remove(&tree);
}

static void start(void)
{
	bench_make(&bench, tree.path, "throttle");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
}

static void add_cooling(int number, const char *type, const char *state)
{
	char path[128];
	snprintf(path, sizeof(path), "sys/class/thermal/cooling_device%d/type", number);
	tree_write(&tree, path, type);
	snprintf(path, sizeof(path), "sys/class/thermal/cooling_device%d/cur_state", number);
	tree_write(&tree, path, state);
}

static void expect_unknown(const char *name)
{
	const struct metric *metric = bench_metric(&bench, name);
	ck_assert_msg(isnan(metric->value), "%s is %g", name, metric->value);
	ck_assert_ptr_nonnull(metric->reason);
}

static bool tried(const char *source, const char *result)
{
	for (size_t i = 0; i < bench.throttle.tried_count; i++) {
		if (strcmp(bench.throttle.tried[i].source, source) == 0) {
			return strstr(bench.throttle.tried[i].result, result) != NULL;
		}
	}
	return false;
}

#define WORD_FILE "sys/devices/platform/soc/soc:firmware/get_throttled"
#define ALARM_FOLDER "sys/class/hwmon/hwmon2"

static void add_sysfs_and_alarm(void)
{
	tree_write(&tree, WORD_FILE, "80008\n");
	tree_write(&tree, ALARM_FOLDER "/name", "rpi_volt\n");
	tree_write(&tree, ALARM_FOLDER "/in0_lcrit_alarm", "1\n");
}

TEST_TIMEOUT(30);
FIXTURE(setup, teardown);

/* covers G0.13 */
START_TEST(on_a_pi_the_mailbox_comes_first)
{
	tree_write(&tree, "dev/vcio", "");
	add_sysfs_and_alarm();
	pi_fake.word = 0x50000;
	start();
	ck_assert_str_eq(bench.throttle.source, "firmware mailbox");
	ck_assert_uint_eq(bench.throttle.raw, 0x50000);
	bench_expect(&bench, "throttle/active", 0);
	bench_expect(&bench, "throttle/under_voltage", 0);
	bench_expect(&bench, "throttle/soft_temp_limit", 0);
	bench_expect(&bench, "throttle/under_voltage_occurred", 1);
	bench_expect(&bench, "throttle/freq_capped_occurred", 0);
	bench_expect(&bench, "throttle/throttled_occurred", 1);
	expect_unknown("throttle/over_current");
	ck_assert(tried("sysfs get_throttled", "not needed"));
	ck_assert(tried("vcgencmd", "not configured"));
	ck_assert_int_eq(bench_metric(&bench, "throttle/active")->unit, UNIT_BOOL);
	bench_finish(&bench);
}
END_TEST

/* covers G0.13 */
START_TEST(then_the_command_then_the_live_bits_of_sysfs_then_the_alarm)
{
	tree_write(&tree, "dev/vcio", "");
	add_sysfs_and_alarm();
	pi_fake.tags_unknown = true;
	pi_fake_answer("get_throttled", "throttled=0x60002\n");
	start();
	ck_assert_str_eq(bench.throttle.source, "firmware command");
	bench_expect(&bench, "throttle/active", 1);
	bench_expect(&bench, "throttle/freq_capped", 1);
	bench_expect(&bench, "throttle/throttled", 0);
	bench_expect(&bench, "throttle/throttled_occurred", 1);
	bench_expect(&bench, "throttle/under_voltage_occurred", 0);
	/* the firmware fails: asked again after a minute, not at each sample */
	pi_fake.command_error = pi_fake.tag_error = EIO;
	ck_assert_int_eq(bench_sample(&bench), 0);
	unsigned calls = pi_fake.calls;
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_uint_eq(pi_fake.calls, calls);
	ck_assert_str_eq(bench.throttle.source, "sysfs get_throttled");
	bench_expect(&bench, "throttle/freq_capped", 0);
	bench_expect(&bench, "throttle/soft_temp_limit", 1);
	bench_expect(&bench, "throttle/throttled_occurred", 1); /* it was seen */
	expect_unknown("throttle/under_voltage_occurred");
	tree_unlink(&tree, WORD_FILE);
	tree_write(&tree, WORD_FILE, "");
	bench_close(&bench);
	tree_unlink(&tree, WORD_FILE);
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_str_eq(bench.throttle.source, "hwmon rpi_volt");
	bench_expect(&bench, "throttle/under_voltage", 1);
	bench_expect(&bench, "throttle/under_voltage_occurred", 1);
	expect_unknown("throttle/active");
	expect_unknown("throttle/freq_capped");
	ck_assert(!bench.throttle.has_raw);
	ck_assert(tried("/dev/vcio", "Input/output error"));
	bench_finish(&bench);
}
END_TEST

START_TEST(a_firmware_that_fails_too_late_to_be_heard_of_rests_too)
{
	tree_write(&tree, "dev/vcio", "");
	tree_write(&tree, WORD_FILE, "80008\n");
	start();
	pi_fake.command_error = pi_fake.tag_error = ETIMEDOUT;
	ck_assert_int_eq(bench.ops->fetch(&bench.ctx, bench.state), 0); /* thrown away */
	unsigned calls = pi_fake.calls;
	pi_fake.command_error = pi_fake.tag_error = 0;
	for (int i = 0; i < 60; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
		ck_assert_str_eq(bench.throttle.source, "sysfs get_throttled");
	}
	ck_assert_uint_eq(pi_fake.calls, calls);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	ck_assert_str_eq(bench.throttle.source, "firmware mailbox");
	bench_finish(&bench);
}
END_TEST

START_TEST(a_flickering_alarm_is_one_under_voltage)
{
	tree_write(&tree, ALARM_FOLDER "/name", "rpi_volt\n");
	tree_write(&tree, ALARM_FOLDER "/in0_lcrit_alarm", "0\n");
	start();
	bench_expect(&bench, "throttle/under_voltage", 0);
	expect_unknown("throttle/under_voltage_occurred");
	for (int i = 0; i < 12; i++) {
		tree_write(&tree, ALARM_FOLDER "/in0_lcrit_alarm", i % 3 == 0 ? "1\n" : "0\n");
		ck_assert_int_eq(bench_sample(&bench), 0);
		bench_expect(&bench, "throttle/under_voltage", 1);
	}
	for (int i = 0; i < 15; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	bench_expect(&bench, "throttle/under_voltage", 0);
	bench_expect(&bench, "throttle/under_voltage_occurred", 1);
	ck_assert_uint_eq(timeline_last_serial(bench.core.timeline), 2);
	bench_finish(&bench);
}
END_TEST

static const char *const bad_words[] = {"", "\n", "zz\n", "throttled=\n", "123456789abc\n", "-1"};

START_LOOP_TEST(a_word_that_is_none_is_unknown_never_no, 0, COUNT(bad_words))
{
	tree_write(&tree, WORD_FILE, "0\n");
	start();
	bench_expect(&bench, "throttle/active", 0);
	tree_write(&tree, WORD_FILE, bad_words[_i]);
	ck_assert_int_eq(bench_sample(&bench), 0);
	expect_unknown("throttle/active");
	expect_unknown("throttle/under_voltage");
	ck_assert(!bench.throttle.has_raw);
	bench_finish(&bench);
}
END_TEST

/* A Xavier NX with JP5: no alerts of the firmware, caps of CPU and GPU, a fan, event counters. */
START_TEST(a_xavier_nx_throttles_when_a_cap_says_so)
{
	add_cooling(0, "pwm-fan\n", "3\n");
	add_cooling(1, "thermal-cpufreq-0\n", "0\n");
	add_cooling(2, "thermal-devfreq-0\n", "0\n");
	add_cooling(3, "gpu-throttle-alert\n", "0\n");
	add_cooling(4, "hot-surface-alert\n", "1\n");
	tree_write(&tree, "sys/class/hwmon/hwmon4/name", "soctherm_oc\n");
	tree_write(&tree, "sys/class/hwmon/hwmon4/oc1_event_cnt", "0\n");
	tree_write(&tree, "sys/class/hwmon/hwmon4/oc2_event_cnt", "10\n");
	start();
	bench_expect(&bench, "throttle/active", 0);
	bench_expect(&bench, "throttle/throttled", 0);
	bench_expect(&bench, "throttle/freq_capped", 0);
	bench_expect_null(&bench, "throttle/oc2_rate", "needs two samples");
	bench_expect_null(&bench, "throttle/over_current", "needs two samples");
	add_cooling(2, "thermal-devfreq-0\n", "2\n");
	tree_write(&tree, "sys/class/hwmon/hwmon4/oc2_event_cnt", "14\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "throttle/active", 1);
	bench_expect(&bench, "throttle/freq_capped", 1);
	bench_expect(&bench, "throttle/throttled", 0);
	bench_expect(&bench, "throttle/oc2_rate", 4);
	bench_expect(&bench, "throttle/over_current", 1);
	bench_expect(&bench, "throttle/under_voltage", 0);
	ck_assert_str_eq(bench.throttle.source, "cooling_device *-throttle-alert, soctherm_oc");
	/* over-current at full power is as designed: a rate, no throttling */
	add_cooling(2, "thermal-devfreq-0\n", "0\n");
	tree_write(&tree, "sys/class/hwmon/hwmon4/oc2_event_cnt", "3\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "throttle/active", 0);
	bench_expect_null(&bench, "throttle/oc2_rate", "counter went back");
	bench_finish(&bench);
}
END_TEST

START_TEST(an_rk3588_throttles_by_its_cpufreq_and_devfreq_devices)
{
	add_cooling(0, "cpufreq-cpu0\n", "0\n");
	add_cooling(1, "cpufreq-cpu4\n", "3\n");
	add_cooling(2, "cpufreq-cpu6\n", "0\n");
	add_cooling(3, "devfreq-fb000000.gpu\n", "0\n");
	add_cooling(4, "devfreq-dmc\n", "0\n");
	start();
	bench_expect(&bench, "throttle/active", 1);
	bench_expect(&bench, "throttle/freq_capped", 1);
	expect_unknown("throttle/throttled");
	expect_unknown("throttle/under_voltage_occurred");
	ck_assert_str_eq(bench.throttle.source, "cooling_device cpufreq-*");
	ck_assert_uint_eq(timeline_last_serial(bench.core.timeline), 2);
	/* one that cannot be read does not hide the others */
	add_cooling(1, "cpufreq-cpu4\n", "lots\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "throttle/active", 0);
	for (int i = 0; i < 5; i++) {
		char path[128];
		snprintf(path, sizeof(path), "sys/class/thermal/cooling_device%d/cur_state", i);
		tree_write(&tree, path, "");
	}
	ck_assert_int_eq(bench_sample(&bench), 0);
	expect_unknown("throttle/active");
	bench_finish(&bench);
}
END_TEST

START_TEST(fans_chargers_and_idle_powerclamp_are_no_throttling)
{
	add_cooling(0, "Fan", "3");
	add_cooling(1, "gpio-fan", "1");
	add_cooling(2, "rpi-poe-fan", "4");
	add_cooling(3, "TCC Offset", "3");
	add_cooling(4, "iwlwifi_1", "5");
	add_cooling(5, "smbb-usbin", "2500000");
	bench_make(&bench, tree.path, "throttle");
	ck_assert_int_eq(bench_open(&bench), -ENOENT);
	bench_finish(&bench);
	add_cooling(6, "intel_powerclamp", "-1");
	add_cooling(7, "Processor", "0");
	start();
	bench_expect(&bench, "throttle/active", 0);
	add_cooling(7, "Processor", "2");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "throttle/active", 1);
	bench_finish(&bench);
}
END_TEST

static void add_cpu(int cpu, int core, const char *count, const char *package_count)
{
	char path[160], text[16];
	static const char folder[] = "sys/devices/system/cpu/cpu";
	snprintf(path, sizeof(path), "%s%d/topology/physical_package_id", folder, cpu);
	tree_write(&tree, path, "0\n");
	snprintf(path, sizeof(path), "%s%d/topology/core_id", folder, cpu);
	snprintf(text, sizeof(text), "%d\n", core);
	tree_write(&tree, path, text);
	snprintf(path, sizeof(path), "%s%d/thermal_throttle/core_throttle_count", folder, cpu);
	tree_write(&tree, path, count);
	snprintf(path, sizeof(path), "%s%d/thermal_throttle/package_throttle_count", folder, cpu);
	tree_write(&tree, path, package_count);
}

#define CPU0 "sys/devices/system/cpu/cpu0/thermal_throttle/"

START_TEST(an_episode_of_an_x86_lasts_until_its_time_is_told)
{
	add_cpu(0, 0, "5\n", "7\n");
	add_cpu(1, 0, "5\n", "7\n");
	tree_write(&tree, CPU0 "core_throttle_total_time_ms", "100\n");
	tree_write(&tree, CPU0 "package_throttle_total_time_ms", "0\n");
	start();
	bench_expect_null(&bench, "throttle/active", "needs two samples");
	bench_expect_null(&bench, "throttle/events_rate", "needs two samples");
	bench_expect(&bench, "throttle/core_events", 5);
	bench_expect(&bench, "throttle/package_events", 7);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "throttle/active", 0);
	add_cpu(0, 0, "6\n", "7\n");
	add_cpu(1, 0, "6\n", "7\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "throttle/active", 1);
	bench_expect(&bench, "throttle/events_rate", 1);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "throttle/active", 1);
	bench_expect(&bench, "throttle/events_rate", 0);
	tree_write(&tree, CPU0 "core_throttle_total_time_ms", "2100\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "throttle/active", 0);
	/* a counter that cannot be read is unknown */
	add_cpu(0, 0, "many\n", "-1\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	expect_unknown("throttle/active");
	bench_finish(&bench);
}
END_TEST

#define POLICY "sys/devices/system/cpu/cpufreq/policy0/"

START_TEST(at_last_the_clock_of_the_hardware_tells)
{
	tree_write(&tree, POLICY "cpuinfo_cur_freq", "1728000\n");
	tree_write(&tree, POLICY "scaling_cur_freq", "1728000\n");
	start();
	bench_expect(&bench, "throttle/active", 0);
	tree_write(&tree, POLICY "cpuinfo_cur_freq", "862000\n");
	for (int i = 0; i < 3; i++) {
		bench_expect(&bench, "throttle/active", 0);
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	bench_expect(&bench, "throttle/freq_capped", 1);
	bench_expect(&bench, "throttle/active", 1);
	tree_write(&tree, POLICY "cpuinfo_cur_freq", "0\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	expect_unknown("throttle/active");
	bench_finish(&bench);
}
END_TEST

START_TEST(beside_the_alarm_alone_the_clock_of_the_hardware_tells)
{
	tree_write(&tree, ALARM_FOLDER "/name", "rpi_volt\n");
	tree_write(&tree, ALARM_FOLDER "/in0_lcrit_alarm", "0\n");
	tree_write(&tree, POLICY "cpuinfo_cur_freq", "2400000\n");
	tree_write(&tree, POLICY "scaling_cur_freq", "2400000\n");
	start();
	expect_unknown("throttle/active");
	expect_unknown("throttle/freq_capped_occurred");
	tree_write(&tree, POLICY "cpuinfo_cur_freq", "1500000\n");
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	bench_expect(&bench, "throttle/active", 1);
	ck_assert_str_eq(bench.throttle.source, "hwmon rpi_volt, cpuinfo_cur_freq");
	tree_write(&tree, POLICY "cpuinfo_cur_freq", "2400000\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	expect_unknown("throttle/active");
	bench_expect(&bench, "throttle/freq_capped_occurred", 1);
	bench_finish(&bench);
}
END_TEST

/* covers G0.13 */
START_TEST(without_any_source_all_is_unknown_and_what_was_tried_is_told)
{
	bench_make(&bench, tree.path, "throttle");
	ck_assert_int_eq(bench_open(&bench), -ENOENT);
	ck_assert_str_ne(bench.reason, "");
	expect_unknown("throttle/active");
	ck_assert_uint_ge(bench.throttle.tried_count, 8);
	ck_assert(tried("/dev/vcio", "No such file"));
	ck_assert_str_eq(bench.throttle.flag[THROTTLE_ACTIVE].reason,
		"no source on this machine reports it");
	ck_assert_str_eq(bench.throttle.source, "");
	bench_finish(&bench);
}
END_TEST

START_TEST(a_closed_source_leaves_nothing_behind)
{
	tree_write(&tree, WORD_FILE, "f000f\n");
	start();
	bench_expect(&bench, "throttle/active", 1);
	bench_close(&bench);
	ck_assert_int_eq(bench.throttle.flag[THROTTLE_ACTIVE].value, THROTTLE_UNKNOWN);
	ck_assert(!bench.throttle.has_raw);
	bench_finish(&bench);
}
END_TEST

START_TEST(every_failed_allocation_is_enomem_and_samples_allocate_nothing)
{
	tree_write(&tree, "dev/vcio", "");
	add_sysfs_and_alarm();
	add_cooling(0, "cpufreq-cpu0\n", "0\n");
	add_cpu(0, 0, "5\n", "7\n");
	bench_check_memory(&bench, tree.path, "throttle", false);
	bench_expect(&bench, "throttle/under_voltage", 0);
	bench_finish(&bench);
}
END_TEST

static void shared_tree(const char *device)
{
	char path[512];
	tree_remove(&tree);
	tree_make(&tree);
	snprintf(path, sizeof(path), "sysroot/%s", device);
	tree_overlay(&tree, shared_path(path));
	start();
}

static void second_snapshot(const char *device)
{
	char path[512];
	snprintf(path, sizeof(path), "sysroot/%s/snap2", device);
	tree_overlay(&tree, shared_path(path));
	ck_assert_int_eq(bench_sample(&bench), 0);
}

SHARED_TESTS;

/* covers G0.13 */
START_TEST(shared_raspberry_pis_read_as_expected)
{
	shared_tree("rpi4");
	ck_assert_uint_eq(bench.throttle.raw, 0x60002);
	bench_expect(&bench, "throttle/freq_capped", 1);
	bench_expect(&bench, "throttle/under_voltage", 0);
	bench_expect(&bench, "throttle/throttled", 0);
	bench_expect(&bench, "throttle/soft_temp_limit", 0);
	bench_expect(&bench, "throttle/freq_capped_occurred", 1);
	bench_expect(&bench, "throttle/throttled_occurred", 1);
	expect_unknown("throttle/under_voltage_occurred");
	ck_assert_str_eq(bench.throttle.source, "sysfs get_throttled");
	bench_finish(&bench);
	shared_tree("rpi5");
	ck_assert(!bench.throttle.has_raw);
	bench_expect(&bench, "throttle/under_voltage", 1);
	expect_unknown("throttle/active");
	ck_assert_str_eq(bench.throttle.source, "hwmon rpi_volt");
	bench_finish(&bench);
}
END_TEST

START_TEST(shared_jetsons_read_as_expected)
{
	static const char orin[] = "jetson-orin-nano-jp6";
	shared_tree(orin);
	bench_expect(&bench, "throttle/active", 1);
	bench_expect(&bench, "throttle/throttled", 1);
	bench_expect(&bench, "throttle/freq_capped", 0);
	second_snapshot(orin);
	bench_expect(&bench, "throttle/oc1_rate", 0);
	bench_expect(&bench, "throttle/oc2_rate", 0);
	bench_expect(&bench, "throttle/oc3_rate", 22);
	bench_expect(&bench, "throttle/over_current", 1);
	bench_expect(&bench, "throttle/under_voltage", 0);
	ck_assert_str_eq(bench.throttle.source, "cooling_device *-throttle-alert, soctherm_oc");
	bench_finish(&bench);
	shared_tree("jetson-nano-jp4");
	bench_expect(&bench, "throttle/active", 0);
	ck_assert_str_eq(bench.throttle.source, "cooling_device *-balanced");
	bench_finish(&bench);
}
END_TEST

START_TEST(shared_x86_and_vm_read_as_expected)
{
	shared_tree("x86-laptop");
	bench_expect(&bench, "throttle/core_events", 2);
	bench_expect(&bench, "throttle/package_events", 78);
	second_snapshot("x86-laptop");
	bench_expect(&bench, "throttle/core_events", 5);
	bench_expect(&bench, "throttle/package_events", 90);
	bench_expect(&bench, "throttle/events_rate", 15);
	bench_expect(&bench, "throttle/active", 1);
	bench_finish(&bench);
	bench_make(&bench, shared_path("sysroot/vm-generic"), "throttle");
	ck_assert_int_eq(bench_open(&bench), -ENOENT);
	expect_unknown("throttle/active");
	bench_finish(&bench);
}
END_TEST
