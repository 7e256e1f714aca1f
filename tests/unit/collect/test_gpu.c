/* SPDX-License-Identifier: Apache-2.0 */
/* GPU, NPU, memory controller and fans of boards, and every spelling of their files. */
#include <errno.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/sched/collector.h"
#include "daemon/core/status/modes.h"
#include "daemon/util/sysops.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/unit.h"

static struct tree tree;
static struct bench bench;

static void setup(void)
{
	tree_make(&tree);
}

static void teardown(void)
{
	sysops_replace(NULL);
	tree_remove(&tree);
}

static void start(const char *collector)
{
	bench_make(&bench, tree.path, collector);
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
}

static void put_freq(const char *device, const char *hertz)
{
	char path[128];
	snprintf(path, sizeof(path), "sys/class/devfreq/%s/cur_freq", device);
	tree_write(&tree, path, hertz);
}

static void expect_none(const char *name)
{
	ck_assert_msg(metrics_find(bench.core.metrics, name) == NULL, "%s", name);
}

#define PERMILLE "sys/devices/gpu.0/load"
#define PERCENT "sys/class/drm/card0/device/gpu_busy_percent"

static const struct {
	const char *text, *path;
	const char *reason; /* NULL: a value */
	double percent;
} loads[] = {
	{"630\n", PERMILLE, NULL, 63},
	{"0", PERMILLE, NULL, 0},
	{"1000", PERMILLE, NULL, 100},
	{"1001", PERMILLE, "out of range", 0},
	{"99\n", PERCENT, NULL, 99},
	{"101", PERCENT, "out of range", 0},
	{"12@300000000Hz\n", PERCENT, NULL, 12},
	{"12@300000000Hz\n", PERMILLE, NULL, 12},
	{"7%", PERMILLE, NULL, 7},
	{"", PERCENT, "offline", 0},
	{" \n", PERCENT, "offline", 0},
	{"-1", PERCENT, "malformed", 0},
	{"@300", PERCENT, "malformed", 0},
	{"12 34", PERCENT, "malformed", 0},
	{"1e2", PERCENT, "malformed", 0},
	{"99999999999999999999999", PERCENT, "malformed", 0},
};

FIXTURE(setup, teardown);

START_LOOP_TEST(loads_are_read_in_every_spelling, 0, COUNT(loads))
{
	tree_write(&tree, loads[_i].path, loads[_i].text);
	start("gpu");
	if (loads[_i].reason) {
		bench_expect_null(&bench, "gpu/utilization", loads[_i].reason);
	} else {
		bench_expect(&bench, "gpu/utilization", loads[_i].percent);
	}
	bench_finish(&bench);
}
END_TEST

START_TEST(xavier_tells_the_load_beside_the_device)
{
	tree_write(&tree, "sys/devices/platform/17000000.gv11b/load", "417\n");
	tree_write(&tree, "sys/devices/platform/gpu.0", "17000000.gv11b");
	tree_write(&tree, "sys/class/devfreq/17000000.gv11b/device",
		"../../../devices/platform/17000000.gv11b");
	put_freq("17000000.gv11b", "1109250000\n");
	start("gpu");
	bench_expect(&bench, "gpu/utilization", 41.7);
	bench_expect(&bench, "gpu/frequency", 1109250000);
	ck_assert_uint_eq(bench.source->metrics, 2);
	bench_finish(&bench);
}
END_TEST

START_TEST(rk3588_tells_gpu_npu_and_memory_in_devfreq)
{
	put_freq("fb000000.gpu", "300000000\n");
	tree_write(&tree, "sys/class/devfreq/fb000000.gpu/load", "12@300000000Hz\n");
	put_freq("fdab0000.npu", "1000000000\n");
	tree_write(&tree, "sys/class/devfreq/fdab0000.npu/load", "45@1000000000Hz\n");
	put_freq("dmc", "528000000\n");
	tree_write(&tree, "sys/class/devfreq/dmc/load", "96@528000000Hz\n");
	start("gpu");
	bench_expect(&bench, "gpu/utilization", 12);
	bench_expect(&bench, "gpu/frequency", 300000000);
	bench_expect(&bench, "engine/npu/utilization", 45);
	bench_expect(&bench, "clock/npu", 1000000000);
	bench_expect(&bench, "clock/emc", 528000000);
	bench_expect(&bench, "emc/utilization", 96);
	ck_assert_uint_eq(bench.source->metrics, 6);
	bench_finish(&bench);
}
END_TEST

/* Its drivers set busy and total to 1 and never measure; debugfs has what the NPU does. */
START_TEST(a_constant_of_rockchip_is_no_load)
{
	put_freq("fdab0000.npu", "1000000000\n");
	tree_write(&tree, "sys/class/devfreq/fdab0000.npu/load", "100@1000000000Hz\n");
	put_freq("fdbd0000.rkvenc-core", "800000000\n");
	tree_write(&tree, "sys/class/devfreq/fdbd0000.rkvenc-core/load", "100@800000000Hz\n");
	put_freq("fb000000.gpu", "300000000\n");
	tree_write(&tree, "sys/class/devfreq/fb000000.gpu/load", "100@300000000Hz\n");
	start("gpu");
	bench_expect_null(&bench, "engine/npu/utilization",
		"not measured by its driver, or at 100 % since the start");
	bench_expect_null(&bench, "engine/rkvenc-core/utilization",
		"not measured by its driver, or at 100 % since the start");
	bench_expect(&bench, "gpu/utilization", 100);
	bench_finish(&bench);
	tree_write(&tree, "sys/kernel/debug/rknpu/load",
		"NPU load:  Core0: 45%, Core1: 30%, Core2:  0%,\n");
	start("gpu");
	bench_expect(&bench, "engine/npu/utilization", 25);
	tree_write(&tree, "sys/kernel/debug/rknpu/load", "NPU load:  100%\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "engine/npu/utilization", 100);
	tree_write(&tree, "sys/kernel/debug/rknpu/load", "NPU load:  Core0: 450%,\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "engine/npu/utilization", "out of range");
	bench_finish(&bench);
}
END_TEST

START_TEST(an_engine_that_was_seen_idle_may_be_at_100_percent)
{
	put_freq("fdab0000.npu", "1000000000\n");
	tree_write(&tree, "sys/class/devfreq/fdab0000.npu/load", "99@1000000000Hz\n");
	start("gpu");
	bench_expect(&bench, "engine/npu/utilization", 99);
	tree_write(&tree, "sys/class/devfreq/fdab0000.npu/load", "100@1000000000Hz\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "engine/npu/utilization", 100);
	bench_finish(&bench);
}
END_TEST

START_TEST(load_and_clock_are_of_one_card)
{
	tree_write(&tree, "sys/class/drm/card0/gt_act_freq_mhz", "350\n");
	start("gpu");
	bench_expect(&bench, "gpu/frequency", 350e6);
	bench_finish(&bench);
	tree_write(&tree, "sys/class/drm/card1/device/gpu_busy_percent", "73\n");
	start("gpu");
	bench_expect(&bench, "gpu/utilization", 73);
	expect_none("gpu/frequency");
	bench_finish(&bench);
	tree_write(&tree, "sys/class/drm/card1/gt_act_freq_mhz", "900\n");
	start("gpu");
	bench_expect(&bench, "gpu/frequency", 900e6);
	bench_finish(&bench);
}
END_TEST

START_TEST(thor_has_clocks_but_no_load)
{
	put_freq("gpu-gpc-0", "1575000000");
	put_freq("bwmgr", "4266000000");
	start("gpu");
	bench_expect(&bench, "gpu/frequency", 1575000000);
	bench_expect(&bench, "clock/emc", 4266000000);
	expect_none("gpu/utilization");
	expect_none("emc/utilization");
	bench_finish(&bench);
}
END_TEST

START_TEST(two_engines_of_one_name_keep_their_addresses)
{
	put_freq("15a50000.nvenc", "1000");
	put_freq("15b50000.nvenc", "2000");
	start("gpu");
	bench_expect(&bench, "clock/nvenc", 1000);
	bench_expect(&bench, "clock/15b50000.nvenc", 2000);
	bench_finish(&bench);
}
END_TEST

START_TEST(emc_activity_is_a_share_of_its_clock)
{
	tree_write(&tree, "sys/kernel/debug/bpmp/debug/clk/emc/rate", "2133000000\n");
	tree_write(&tree, "sys/kernel/debug/cactmon/mc_all", "533250\n");
	start("gpu");
	bench_expect(&bench, "clock/emc", 2133000000);
	bench_expect(&bench, "emc/utilization", 25);
	tree_write(&tree, "sys/kernel/debug/bpmp/debug/clk/emc/rate", "0\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "emc/utilization", "no clock to relate to");
	bench_finish(&bench);
}
END_TEST

START_TEST(a_gated_gpu_is_null_and_comes_back)
{
	tree_write(&tree, "sys/devices/gpu.0/load", "");
	put_freq("57000000.gpu", "fast\n");
	start("gpu");
	bench_expect_null(&bench, "gpu/utilization", "offline");
	bench_expect_null(&bench, "gpu/frequency", "malformed");
	tree_write(&tree, "sys/devices/gpu.0/load", "5000");
	put_freq("57000000.gpu", "-1");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "gpu/utilization", "out of range");
	bench_expect_null(&bench, "gpu/frequency", "out of range");
	char path[512];
	snprintf(path, sizeof(path), "%s/sys/devices/gpu.0/load", tree.path);
	FILE *file = fopen(path, "w");
	ck_assert_uint_eq(fwrite("12\0"
				 "34\n",
				  1, 6, file),
		6);
	fclose(file);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "gpu/utilization", "malformed");
	tree_write(&tree, "sys/devices/gpu.0/load", "500");
	put_freq("57000000.gpu", "76800000");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "gpu/utilization", 50);
	bench_expect(&bench, "gpu/frequency", 76800000);
	bench_finish(&bench);
}
END_TEST

START_LOOP_TEST(a_machine_without_gpu_or_fan_says_so, 0, 2)
{
	static const char *const names[] = {"gpu", "fan"};
	bench_make(&bench, tree.path, names[_i]);
	ck_assert_int_eq(bench_open(&bench), -ENOENT);
	ck_assert_str_ne(bench.reason, "");
	bench_finish(&bench);
}
END_TEST

START_TEST(fans_are_told_by_label_or_chip)
{
	tree_write(&tree, "sys/class/hwmon/hwmon0/name", "nct6775\n");
	tree_write(&tree, "sys/class/hwmon/hwmon0/fan1_input", "1200\n");
	tree_write(&tree, "sys/class/hwmon/hwmon0/fan2_input", "900\n");
	tree_write(&tree, "sys/class/hwmon/hwmon0/fan2_label", "CPU Fan\n");
	tree_write(&tree, "sys/class/hwmon/hwmon0/fan3_input", "\n");
	tree_write(&tree, "sys/class/hwmon/hwmon2/name", "pwm_tach\n");
	tree_write(&tree, "sys/class/hwmon/hwmon2/rpm", "2140\n");
	tree_write(&tree, "sys/class/hwmon/hwmon3/name", "pwmfan\n");
	tree_write(&tree, "sys/class/hwmon/hwmon3/pwm1", "60\n");
	tree_write(&tree, "sys/devices/pwm-fan/rpm_measured", "0\n");
	tree_write(&tree, "sys/devices/pwm-fan/cur_pwm", "255\n");
	tree_write(&tree, "sys/class/hwmon/hwmon0/pwm2", "51\n");
	start("fan");
	bench_expect(&bench, "fan/nct6775", 1200);
	bench_expect(&bench, "fan/CPU_Fan", 900);
	bench_expect_null(&bench, "fan/nct6775.2", "malformed");
	bench_expect(&bench, "fan/pwm_tach", 2140);
	bench_expect(&bench, "fan/pwm-fan", 0);
	/* a fan without a tachometer tells what it is driven with */
	expect_none("fan/pwmfan");
	bench_expect(&bench, "fan_duty/pwmfan", 60 * 100.0 / 255);
	bench_expect(&bench, "fan_duty/CPU_Fan", 20);
	bench_expect(&bench, "fan_duty/pwm-fan", 100);
	ck_assert_int_eq(bench_metric(&bench, "fan_duty/pwmfan")->unit, UNIT_PERCENT);
	ck_assert_int_eq(bench_metric(&bench, "fan/pwm_tach")->unit, UNIT_RPM);
	tree_write(&tree, "sys/class/hwmon/hwmon2/rpm", "-5\n");
	tree_write(&tree, "sys/class/hwmon/hwmon3/pwm1", "256\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "fan/pwm_tach", "out of range");
	bench_expect_null(&bench, "fan_duty/pwmfan", "out of range");
	bench_finish(&bench);
}
END_TEST

/* Looking for it in a fixture or a deep tree costs more than reading all the others. */
START_TEST(a_file_that_stays_away_is_looked_for_less_often)
{
	struct device_file file;
	long long value = 0;
	int reads = 0;
	bench_make(&bench, tree.path, NULL);
	ck_assert_int_eq(device_file_init(&file, true, "sys/away"), 0);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(device_file_read_i64(&file, &bench.root, &value), -ENOENT);
	}
	tree_write(&tree, "sys/away", "7");
	while (device_file_read_i64(&file, &bench.root, &value) < 0) {
		ck_assert_int_lt(++reads, DEVICE_FILE_PATIENCE);
	}
	ck_assert_int_gt(reads, 0);
	ck_assert_int_eq(value, 7);
	device_file_close(&file);
	/* what has just gone is looked for at once */
	tree_unlink(&tree, "sys/away");
	ck_assert_int_eq(device_file_read_i64(&file, &bench.root, &value), -ENOENT);
	tree_write(&tree, "sys/away", "8");
	ck_assert_int_eq(device_file_read_i64(&file, &bench.root, &value), 0);
	device_file_close(&file);
	bench_finish(&bench);
}
END_TEST

START_LOOP_TEST(samples_allocate_nothing_and_open_survives_no_memory, 0, 4)
{
	static const char *const names[] = {"gpu", "fan", "modes", "energy"};
	tree_write(&tree, "sys/devices/gpu.0/load", "100");
	put_freq("fdab0000.npu", "1000");
	tree_write(&tree, "sys/class/hwmon/hwmon2/rpm", "2140\n");
	tree_write(&tree, "sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave");
	tree_write(&tree, "var/lib/nvpmodel/status", "pmode:0001");
	tree_write(&tree, "etc/nvpmodel.conf", "< POWER_MODEL ID=1 NAME=5W >");
	bench_check_memory(&bench, tree.path, names[_i], false);
	bench_finish(&bench);
}
END_TEST
