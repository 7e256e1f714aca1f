/* SPDX-License-Identifier: Apache-2.0 */
/* Zones and cooling devices: every spelling of "offline", constants, repeated and dirty names. */
#include <errno.h>
#include <sys/stat.h>

#include "daemon/collect/sched/collector.h"
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

static void add_zone(int number, const char *type, const char *temp)
{
	char path[128];
	snprintf(path, sizeof(path), "sys/class/thermal/thermal_zone%d/type", number);
	tree_write(&tree, path, type);
	snprintf(path, sizeof(path), "sys/class/thermal/thermal_zone%d/temp", number);
	if (temp) {
		tree_write(&tree, path, temp);
	}
}

static void add_trip(int number, int trip, const char *type, const char *temp)
{
	char path[128];
	snprintf(path, sizeof(path), "sys/class/thermal/thermal_zone%d/trip_point_%d_type", number,
		trip);
	tree_write(&tree, path, type);
	snprintf(path, sizeof(path), "sys/class/thermal/thermal_zone%d/trip_point_%d_temp", number,
		trip);
	tree_write(&tree, path, temp);
}

static void add_cooling(int number, const char *type, const char *cur, const char *max)
{
	char path[128];
	snprintf(path, sizeof(path), "sys/class/thermal/cooling_device%d/type", number);
	tree_write(&tree, path, type);
	snprintf(path, sizeof(path), "sys/class/thermal/cooling_device%d/cur_state", number);
	tree_write(&tree, path, cur);
	snprintf(path, sizeof(path), "sys/class/thermal/cooling_device%d/max_state", number);
	tree_write(&tree, path, max);
}

static void start(void)
{
	bench_make(&bench, tree.path, "thermal");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
}

TEST_TIMEOUT(30);
FIXTURE(setup, teardown);

/* covers G0.11 */
START_TEST(zones_are_read_in_celsius_by_type)
{
	add_zone(0, "cpu-thermal\n", "53968\n");
	add_zone(1, "gpu-thermal\n", "-5500\n");
	start();
	bench_expect(&bench, "temperature/cpu-thermal", 53.968);
	bench_expect(&bench, "temperature/gpu-thermal", -5.5);
	bench_expect(&bench, "temperature/max", 53.968);
	ck_assert_int_eq(bench_metric(&bench, "temperature/max")->unit, UNIT_CELSIUS);
	ck_assert_int_eq(bench_metric(&bench, "temperature/gpu-thermal")->zone, 1);
	ck_assert_int_eq(bench_metric(&bench, "temperature/max")->zone, 0);
	bench_finish(&bench);
}
END_TEST

static const struct {
	const char *temp;
	const char *reason;
} bad[] = {
	{NULL, "offline"},
	{"", "offline"},
	{"-256000\n", "offline"},
	{"-200000", "offline"},
	{"warm\n", "malformed"},
	{"\n", "malformed"},
	{"12 34", "malformed"},
	{"0x10", "malformed"},
	{"45.0", "malformed"},
	{"999999999999999999999999", "malformed"},
	{"1000001", "out of range"},
};

START_LOOP_TEST(a_zone_that_cannot_be_read_is_null_alone, 0, COUNT(bad))
{
	add_zone(0, "bad", bad[_i].temp);
	add_zone(1, "good", "41000\n");
	start();
	bench_expect_null(&bench, "temperature/bad", bad[_i].reason);
	bench_expect(&bench, "temperature/good", 41);
	bench_expect(&bench, "temperature/max", 41);
	bench_finish(&bench);
}
END_TEST

START_TEST(a_value_with_nul_bytes_is_malformed)
{
	add_zone(0, "bad", NULL);
	tree_write_bytes(&tree, "sys/class/thermal/thermal_zone0/temp",
		"45\0"
		"000\n",
		7);
	start();
	bench_expect_null(&bench, "temperature/bad", "malformed");
	bench_expect_null(&bench, "temperature/max", "no real zone can be read");
	bench_finish(&bench);
}
END_TEST

static int pread_error;
static int pread_calls;

static ssize_t failing_pread(int fd, void *buf, size_t size, off_t offset)
{
	(void)fd;
	(void)buf;
	(void)size;
	(void)offset;
	pread_calls++;
	return -pread_error;
}

static uint64_t no_time(void)
{
	return 1;
}

static const struct sysops failing_reads = {
	.now_ns = no_time, .pread = failing_pread, .calloc = calloc};

static const struct {
	int error;
	const char *reason;
} read_errors[] = {
	{EAGAIN, "offline"},
	{ENODATA, "offline"},
	{EIO, "offline"},
	{EINVAL, "offline"},
	{ENXIO, "offline"},
	{ENODEV, "offline"},
	{EACCES, "Permission denied"},
};

START_LOOP_TEST(a_failing_read_is_not_repeated_and_the_zone_stays, 0, COUNT(read_errors))
{
	add_zone(0, "gpu", "40000\n");
	start();
	pread_error = read_errors[_i].error;
	pread_calls = 0;
	sysops_replace(&failing_reads);
	ck_assert_int_eq(bench_sample(&bench), 0);
	sysops_replace(NULL);
	ck_assert_int_eq(pread_calls, 1);
	bench_expect_null(&bench, "temperature/gpu", read_errors[_i].reason);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "temperature/gpu", 40);
	bench_finish(&bench);
}
END_TEST

START_TEST(constants_and_dummies_never_count_in_max)
{
	add_zone(0, "cpu", "45000");
	add_zone(1, "PMIC-Die", "100000");
	add_zone(2, "INT3400 Thermal", "120000");
	add_zone(3, "SEN1", "0");
	add_zone(4, "hot", "99000");
	bench_make(&bench, tree.path, "thermal");
	bench.options.keys = 1;
	strcpy(bench.options.key[0].key, "exclude");
	strcpy(bench.options.key[0].value, "nothing  h?t");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "temperature/max", 45);
	bench_expect(&bench, "temperature/hot", 99);
	bench_expect(&bench, "temperature/PMIC-Die", 100);
	bench_finish(&bench);
}
END_TEST

START_TEST(a_dummy_at_zero_does_not_hide_a_cold_machine)
{
	add_zone(0, "cpu", "-7000");
	add_zone(1, "SEN1", "0");
	start();
	bench_expect(&bench, "temperature/max", -7);
	bench_finish(&bench);
}
END_TEST

START_TEST(headroom_is_to_the_lowest_passive_trip_that_is_set)
{
	add_zone(0, "cpu", "60000");
	add_trip(0, 0, "critical\n", "105000\n");
	add_trip(0, 1, "passive\n", "-274000\n");
	add_trip(0, 2, "passive\n", "95000\n");
	add_trip(0, 3, "passive\n", "85000\n");
	add_trip(0, 4, "active\n", "50000\n");
	add_zone(1, "gpu", "60000");
	add_trip(1, 0, "passive", "0");
	start();
	bench_expect(&bench, "headroom/cpu", 25);
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "headroom/gpu"));
	tree_write(&tree, "sys/class/thermal/thermal_zone0/temp", "");
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect_null(&bench, "headroom/cpu", "offline");
	bench_finish(&bench);
}
END_TEST

START_TEST(repeated_and_dirty_types_get_clean_names_of_their_own)
{
	add_zone(0, "a/b\x1b[2J", "1000");
	add_zone(1, "a/b\x1b[2J", "2000");
	add_zone(2, "max", "3000");
	add_zone(3, "", "4000");
	start();
	bench_expect(&bench, "temperature/a_b__2J", 1);
	bench_expect(&bench, "temperature/a_b__2J.2", 2);
	bench_expect(&bench, "temperature/max.2", 3);
	bench_expect(&bench, "temperature/thermal_zone3", 4);
	bench_finish(&bench);
}
END_TEST

START_TEST(names_stay_and_gone_zones_are_retired_when_opened_again)
{
	add_zone(0, "x", "1000");
	add_zone(1, "x", "2000");
	add_zone(2, "y", "3000");
	start();
	bench_close(&bench);
	tree_unlink(&tree, "sys/class/thermal/thermal_zone2/type");
	tree_unlink(&tree, "sys/class/thermal/thermal_zone2/temp");
	char path[512];
	snprintf(path, sizeof(path), "%s/sys/class/thermal/thermal_zone2", tree.path);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "temperature/x", 1);
	bench_expect(&bench, "temperature/x.2", 2);
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "temperature/y"));
	ck_assert_uint_eq(metrics_count(bench.core.metrics), 3);
	bench_finish(&bench);
}
END_TEST

START_TEST(a_thousand_zones_need_few_descriptors)
{
	for (int i = 0; i < 1000; i++) {
		add_zone(i, "same", "50000");
	}
	start();
	bench_expect(&bench, "temperature/same.1000", 50);
	int open_files = 0;
	for (int fd = 0; fd < 1024; fd++) {
		open_files += fcntl(fd, F_GETFD) >= 0;
	}
	ck_assert_int_lt(open_files, 200);
	bench_finish(&bench);
}
END_TEST

/* covers G2.15 */
START_TEST(a_fifo_in_place_of_a_zone_is_null_alone_and_hangs_nobody)
{
	add_zone(0, "fifo", NULL);
	add_zone(1, "good", "41000");
	char path[512];
	snprintf(path, sizeof(path), "%s/sys/class/thermal/thermal_zone0/temp", tree.path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	start();
	bench_expect_null(&bench, "temperature/fifo", errno_reason(ESPIPE));
	bench_expect(&bench, "temperature/good", 41);
	bench_finish(&bench);
}
END_TEST

START_TEST(cooling_states_carry_their_max)
{
	add_cooling(0, "Processor", "0", "3");
	add_cooling(1, "Processor", "2\n", "3\n");
	add_cooling(2, "intel_powerclamp", "-1", "100");
	add_cooling(3, "broken", "much", "-3");
	start();
	bench_expect(&bench, "cooling/Processor", 0);
	bench_expect(&bench, "cooling/Processor.2", 2);
	ck_assert_double_eq(bench_metric(&bench, "cooling/Processor.2")->limit, 3);
	bench_expect(&bench, "cooling/intel_powerclamp", -1);
	bench_expect_null(&bench, "cooling/broken", "malformed");
	ck_assert(isnan(bench_metric(&bench, "cooling/broken")->limit));
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "temperature/max"));
	bench_finish(&bench);
}
END_TEST

START_TEST(the_projects_own_tree_is_read)
{
	char path[512];
	const char *project = getenv("EDGEPROF_SOURCE");
	if (!project) {
		return;
	}
	snprintf(path, sizeof(path), "%s/tests/fixtures/sysroot/board", project);
	bench_make(&bench, path, "thermal");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	bench_expect(&bench, "temperature/cpu-thermal", 48.312);
	bench_expect_null(&bench, "temperature/gpu-thermal", "offline");
	bench_expect(&bench, "temperature/max", 48.312);
	bench_expect(&bench, "headroom/cpu-thermal", 80 - 48.312);
	bench_expect(&bench, "cooling/pwm-fan", 1);
	bench_finish(&bench);
}
END_TEST

START_TEST(absent_source_is_enoent_with_what_was_looked_for)
{
	for (int empty = 0; empty < 2; empty++) {
		bench_make(&bench, tree.path, "thermal");
		ck_assert_int_eq(bench_open(&bench), -ENOENT);
		ck_assert_str_eq(bench.reason,
			"no thermal zone and no cooling device in /sys/class/thermal");
		bench_finish(&bench);
		tree_write(&tree, "sys/class/thermal/other/type", "neither");
	}
}
END_TEST

START_TEST(every_failed_allocation_is_enomem_and_leaks_nothing)
{
	add_zone(0, "cpu", "60000");
	add_trip(0, 0, "passive", "95000");
	add_cooling(0, "fan", "0", "3");
	bench_check_memory(&bench, tree.path, "thermal", false);
	bench_finish(&bench);
}
END_TEST
