/* SPDX-License-Identifier: Apache-2.0 */
/* Rails of every kind of board, the total that counts nothing twice, and energy. */
#include <errno.h>

#include "daemon/collect/power/energy.h"
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

static void put(const char *folder, const char *file, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	tree_write(&tree, path, text);
}

/* One channel of an INA3221; NULL input = no such file. */
static void channel(const char *hwmon, int n, const char *label, const char *mv, const char *ma)
{
	char file[32];
	put(hwmon, "name", "ina3221\n");
	snprintf(file, sizeof(file), "in%d_label", n);
	put(hwmon, file, label);
	snprintf(file, sizeof(file), "in%d_input", n);
	if (mv) {
		put(hwmon, file, mv);
	}
	snprintf(file, sizeof(file), "curr%d_input", n);
	if (ma) {
		put(hwmon, file, ma);
	}
}

static void start(void)
{
	bench_make(&bench, tree.path, "power");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
}

static void expect_none(const char *name)
{
	ck_assert_msg(metrics_find(bench.core.metrics, name) == NULL, "%s", name);
}

FIXTURE(setup, teardown);

/* covers G2.7 */
START_TEST(xavier_nx_has_its_total_on_vdd_in)
{
	/* only the bus: no class folder, chip behind a link that a checkout made a file */
	const char *chip = "sys/devices/c240000.i2c/i2c-7/7-0040/hwmon/hwmon4";
	tree_write(&tree, "sys/bus/i2c/drivers/ina3221/7-0040",
		"../../../../devices/c240000.i2c/i2c-7/7-0040");
	channel(chip, 1, "VDD_IN\n", "4984\n", "1856\n");
	channel(chip, 2, "VDD_CPU_GPU_CV\n", "4976\n", "448\n");
	channel(chip, 3, "VDD_SOC\n", "4976\n", "488\n");
	channel(chip, 4, "", "9\n", "2\n");
	channel(chip, 7, "sum of shunt voltages\n", "13\n", "3\n");
	start();
	bench_expect(&bench, "power/VDD_IN", 4984 * 1856 / 1000.0);
	bench_expect(&bench, "power/VDD_CPU_GPU_CV", 4976 * 448 / 1000.0);
	bench_expect(&bench, "power/total", 4984 * 1856 / 1000.0);
	ck_assert_str_eq(bench_metric(&bench, "power/total")->origin, "rail VDD_IN");
	ck_assert_int_eq(bench_metric(&bench, "power/total")->unit, UNIT_MILLIWATTS);
	ck_assert_uint_eq(bench.source->metrics, 4);
	bench_finish(&bench);
}
END_TEST

START_TEST(a_chip_on_two_ways_is_told_once)
{
	const char *chip = "sys/devices/i2c-1/1-0040/hwmon/hwmon1";
	tree_write(&tree, "sys/class/hwmon/hwmon1", "../../devices/i2c-1/1-0040/hwmon/hwmon1");
	tree_write(&tree, "sys/bus/i2c/devices/1-0040", "../../../devices/i2c-1/1-0040");
	channel(chip, 1, "VDD_IN", "5000", "1000");
	start();
	bench_expect(&bench, "power/VDD_IN", 5000);
	ck_assert_uint_eq(bench.source->metrics, 2);
	bench_finish(&bench);
}
END_TEST

/* covers G2.7 */
START_TEST(agx_orin_sums_its_rails_without_what_is_inside)
{
	channel("sys/class/hwmon/hwmon1", 1, "VDD_GPU_SOC\n", "20000", "200");
	channel("sys/class/hwmon/hwmon1", 2, "VDD_CPU_CV\n", "20000", "50");
	channel("sys/class/hwmon/hwmon1", 3, "VIN_SYS_5V0\n", "5000", "800");
	channel("sys/class/hwmon/hwmon2", 1, "NC\n", "20000", "0");
	channel("sys/class/hwmon/hwmon2", 2, "VDDQ_VDD2_1V8AO\n", "20000", "30");
	channel("sys/class/hwmon/hwmon2", 3, "NC\n", "20000", "7");
	start();
	bench_expect(&bench, "power/VDDQ_VDD2_1V8AO", 600);
	bench_expect(&bench, "power/total", 4000 + 1000 + 4000);
	ck_assert_str_eq(bench_metric(&bench, "power/total")->origin,
		"sum of the rails without VDDQ_VDD2_1V8AO");
	expect_none("power/NC");
	ck_assert_uint_eq(bench.source->metrics, 5);
	bench_finish(&bench);
}
END_TEST

START_TEST(thor_takes_the_carriers_supply)
{
	channel("sys/class/hwmon/hwmon2", 1, "VDD_GPU", "900", "-3");
	channel("sys/class/hwmon/hwmon2", 2, "VDD_CPU_SOC_MSS", "1000", "9000");
	channel("sys/class/hwmon/hwmon2", 3, "VIN_SYS_5V0", "5000", "1500");
	put("sys/class/hwmon/hwmon3", "name", "ina238\n");
	put("sys/class/hwmon/hwmon3", "in1_input", "19800");
	put("sys/class/hwmon/hwmon3", "curr1_input", "1500");
	put("sys/class/hwmon/hwmon3", "power1_input", "29704000\n");
	start();
	bench_expect(&bench, "power/VIN", 29704);
	bench_expect(&bench, "power/VDD_GPU", -2.7);
	bench_expect(&bench, "power/total", 29704);
	ck_assert_str_eq(bench_metric(&bench, "power/total")->origin, "rail VIN");
	bench_finish(&bench);
}
END_TEST

START_TEST(xavier_without_a_supply_rail_is_a_sum)
{
	const char *first = "sys/bus/iio/devices/iio:device0";
	const char *second = "sys/bus/iio/devices/iio:device1";
	put(first, "name", "ina3221x");
	put(first, "rail_name_0", "GPU\n");
	put(first, "in_power0_input", "310\n");
	put(first, "rail_name_1", "CPU\n");
	put(first, "in_voltage1_input", "19000\n");
	put(first, "in_current1_input", "20\n");
	put(first, "crit_current_limit_0", "32760 ma\n");
	put(second, "rail_name_0", "CPU\n");
	put(second, "in_power0_input", "90\n");
	start();
	bench_expect(&bench, "power/GPU", 310);
	bench_expect(&bench, "power/CPU", 380);
	bench_expect(&bench, "power/CPU.2", 90);
	bench_expect(&bench, "power/total", 780);
	ck_assert_str_eq(bench_metric(&bench, "power/total")->origin, "sum of the rails");
	/* a part that is not known makes the sum unknown */
	put(second, "in_power0_input", "");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "power/CPU.2", "offline");
	bench_expect_null(&bench, "power/total", "a rail of the sum is null");
	bench_finish(&bench);
}
END_TEST

/* covers G2.7 */
START_TEST(power_needs_both_inputs_of_one_channel)
{
	channel("sys/class/hwmon/hwmon1", 1, "ONLY_V", "5000", NULL);
	channel("sys/class/hwmon/hwmon1", 2, "ONLY_I", NULL, "1000");
	bench_make(&bench, tree.path, "power");
	ck_assert_int_eq(bench_open(&bench), -ENOENT);
	ck_assert_ptr_nonnull(strstr(bench.reason, "no power monitor"));
	ck_assert_uint_eq(metrics_count(bench.core.metrics), 0);
	bench_finish(&bench);
}
END_TEST

/* A supply's contract is no measurement: neither a rail nor a total. */
START_TEST(what_a_usb_supply_promises_is_a_limit)
{
	put("sys/class/hwmon/hwmon2", "name", "tcpm_source_psy_4_0022");
	put("sys/class/hwmon/hwmon2", "in0_input", "12000\n");
	put("sys/class/hwmon/hwmon2", "curr1_input", "3000\n");
	start();
	bench_expect(&bench, "power_limit/tcpm_source_psy_4_0022", 36000);
	ck_assert_str_eq(bench_metric(&bench, "power_limit/tcpm_source_psy_4_0022")->origin,
		"negotiated with the supply, not measured");
	expect_none("power/total");
	ck_assert_uint_eq(bench.source->metrics, 1);
	put("sys/class/hwmon/hwmon2", "in0_input", "0\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "power_limit/tcpm_source_psy_4_0022", "no supply");
	bench_finish(&bench);
}
END_TEST

START_TEST(a_gpus_own_power_is_a_rail_and_no_total)
{
	put("sys/class/hwmon/hwmon1", "name", "amdgpu");
	put("sys/class/hwmon/hwmon1", "power1_average", "7000000");
	put("sys/class/hwmon/hwmon1", "power1_label", "slowPPT");
	start();
	bench_expect(&bench, "power/slowPPT", 7000);
	expect_none("power/total");
	bench_finish(&bench);
}
END_TEST

START_TEST(a_total_of_another_source_stays_its_own)
{
	struct source *other;
	struct metric *total;
	channel("sys/class/hwmon/hwmon1", 1, "VDD_IN", "5000", "1000");
	bench_make(&bench, tree.path, "power");
	ck_assert_int_eq(sources_add(bench.core.sources, "pi", 1000000000, &other), 0);
	ck_assert_int_eq(
		metrics_add(bench.core.metrics, other, "power/total", UNIT_MILLIWATTS, &total), 0);
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "power/VDD_IN", 5000);
	ck_assert_ptr_eq(bench_metric(&bench, "power/total")->source, other);
	bench_finish(&bench);
}
END_TEST

static const struct {
	const char *mv, *ma, *reason;
} bad[] = {
	{"", "1000", "offline"},
	{"5000", "", "offline"},
	{"x", "1000", "malformed"},
	{"5000", "32760 ma", "malformed"},
	{"5000", "99999999999999999999", "malformed"},
	{"5000", "2000000000", "out of range"},
	{"9223372036854775807", "9223372036854775807", "out of range"},
};

START_LOOP_TEST(a_rail_that_cannot_be_read_is_null_alone, 0, COUNT(bad))
{
	channel("sys/class/hwmon/hwmon1", 1, "BAD", bad[_i].mv, bad[_i].ma);
	channel("sys/class/hwmon/hwmon1", 2, "VDD_IN", "5000", "1000");
	start();
	bench_expect_null(&bench, "power/BAD", bad[_i].reason);
	bench_expect(&bench, "power/total", 5000);
	bench_finish(&bench);
}
END_TEST

static ssize_t refused_pread(int fd, void *buf, size_t size, off_t offset)
{
	(void)fd;
	(void)buf;
	(void)size;
	(void)offset;
	return -EACCES;
}

START_TEST(closed_files_of_late_r32_are_null_with_the_reason)
{
	channel("sys/class/hwmon/hwmon1", 1, "VDD_IN", "5000", "1000");
	start();
	struct sysops closed = *sysops();
	closed.pread = refused_pread;
	sysops_replace(&closed);
	ck_assert_int_eq(bench_sample(&bench), 0);
	sysops_replace(NULL);
	bench_expect_null(&bench, "power/VDD_IN", "Permission denied");
	bench_expect_null(&bench, "power/total", "Permission denied");
	bench_finish(&bench);
}
END_TEST

START_TEST(samples_allocate_nothing_and_open_survives_no_memory)
{
	channel("sys/class/hwmon/hwmon1", 1, "VDD_IN", "5000", "1000");
	channel("sys/bus/i2c/devices/1-0041/hwmon/hwmon2", 1, "VDD_SOC", "5000", "500");
	bench_check_memory(&bench, tree.path, "power", false);
	bench_finish(&bench);
}
END_TEST

#define SECOND UINT64_C(1000000000)

START_TEST(trapezoids_over_real_times)
{
	struct integral integral = {0};
	integral_add(&integral, 10 * SECOND, 1000, 10 * SECOND);
	ck_assert_double_eq(integral.millijoules, 0);
	integral_add(&integral, 11 * SECOND, 3000, 10 * SECOND);
	ck_assert_double_eq(integral.millijoules, 2000);
	integral_add(&integral, 11 * SECOND + SECOND / 2, 1000, 10 * SECOND);
	ck_assert_double_eq(integral.millijoules, 3000);
	/* the same commit again, or an older one, adds nothing */
	integral_add(&integral, 11 * SECOND + SECOND / 2, 9000, 10 * SECOND);
	integral_add(&integral, 11 * SECOND, 9000, 10 * SECOND);
	ck_assert_double_eq(integral.millijoules, 3000);
	ck_assert_uint_eq(integral.gap_ns, 0);
}
END_TEST

START_TEST(gaps_do_not_count_and_are_told)
{
	struct integral integral = {0};
	integral_add(&integral, 1 * SECOND, 1000, 10 * SECOND);
	integral_add(&integral, 2 * SECOND, NAN, 10 * SECOND);
	integral_add(&integral, 4 * SECOND, 1000, 10 * SECOND);
	ck_assert_double_eq(integral.millijoules, 0);
	ck_assert_uint_eq(integral.gap_ns, 3 * SECOND);
	integral_add(&integral, 5 * SECOND, 1000, 10 * SECOND);
	ck_assert_double_eq(integral.millijoules, 1000);
	integral_add(&integral, 16 * SECOND, 1000, 10 * SECOND);
	ck_assert_double_eq(integral.millijoules, 1000);
	ck_assert_uint_eq(integral.gap_ns, 14 * SECOND);
}
END_TEST

static void commit_power(struct metric *total, double value, uint64_t t_ns)
{
	if (isnan(value)) {
		metric_set_null(total, "offline");
	} else {
		metric_set(total, value);
	}
	metrics_commit(bench.core.metrics, total->source, t_ns);
}

START_TEST(a_total_that_was_never_read_is_not_0_mj)
{
	struct source *source;
	struct metric *total;
	bench_make(&bench, tree.path, "energy");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(sources_add(bench.core.sources, "power", SECOND, &source), 0);
	ck_assert_int_eq(
		metrics_add(bench.core.metrics, source, "power/total", UNIT_MILLIWATTS, &total), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	for (uint64_t i = 0; i <= 2; i++) {
		commit_power(total, NAN, bench.now_ns + i * SECOND);
	}
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "energy/gap_time", 2);
	bench_expect_null(&bench, "energy/total", "power/total has no reading yet");
	bench_finish(&bench);
}
END_TEST

START_TEST(energy_follows_every_commit_of_whoever_tells_the_total)
{
	struct source *source;
	struct metric *total;
	bench_make(&bench, tree.path, "energy");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	expect_none("energy/total");
	ck_assert_int_eq(sources_add(bench.core.sources, "pi", SECOND, &source), 0);
	ck_assert_int_eq(
		metrics_add(bench.core.metrics, source, "power/total", UNIT_MILLIWATTS, &total), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "energy/total", "power/total has no reading yet");
	uint64_t t_ns = bench.now_ns;
	commit_power(total, 1000, t_ns);
	commit_power(total, 3000, t_ns + SECOND / 10);
	commit_power(total, 3000, t_ns + SECOND / 5);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "energy/total", 500);
	ck_assert_uint_eq(metric_time_ns(bench_metric(&bench, "energy/total")), t_ns + SECOND / 5);
	bench_expect(&bench, "energy/gap_time", 0);
	ck_assert_str_eq(bench_metric(&bench, "energy/total")->origin, "integral of power/total");
	commit_power(total, NAN, t_ns + SECOND);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "energy/total", 500);
	bench_expect(&bench, "energy/gap_time", 0.8);
	ck_assert_str_eq(bench_metric(&bench, "energy/total")->origin,
		"integral of power/total, gaps skipped");
	/* its source goes, and another comes */
	metrics_retire(bench.core.metrics, total);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "energy/total", 500);
	ck_assert_int_eq(
		metrics_add(bench.core.metrics, source, "power/total", UNIT_MILLIWATTS, &total), 0);
	commit_power(total, 2000, t_ns + 3 * SECOND);
	ck_assert_int_eq(bench_sample(&bench), 0);
	commit_power(total, 2000, t_ns + 4 * SECOND);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "energy/total", 2500);
	bench_expect(&bench, "energy/gap_time", 2.8);
	/* covers G2.13: a budget only where the device states one */
	bench_expect_null(&bench, "budget/power", "this machine has no power mode");
	struct modes modes = {.have_power_mode = true, .power_mode_name = "MODE_10W_2CORE"};
	bench.core.modes = &modes;
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "budget/power", 20);
	snprintf(modes.power_mode_name, sizeof(modes.power_mode_name), "MAXN");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "budget/power", "the power mode names no budget");
	bench_finish(&bench);
}
END_TEST
