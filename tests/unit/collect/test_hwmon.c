/* SPDX-License-Identifier: Apache-2.0 */
/* Temperatures of chips: those that no thermal zone tells, and the maximum where there is no zone.
 */
#include <errno.h>

#include "daemon/collect/sched/collector.h"
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
	bench_finish(&bench);
	tree_remove(&tree);
}

static void put(const char *folder, const char *file, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	tree_write(&tree, path, text);
}

static void chip(int number, const char *name, const char *millidegrees)
{
	char folder[64];
	snprintf(folder, sizeof(folder), "sys/class/hwmon/hwmon%d", number);
	put(folder, "name", name);
	put(folder, "temp1_input", millidegrees);
}

static void start(void)
{
	bench_make(&bench, tree.path, "hwmon");
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
}

FIXTURE(setup, teardown);

/* covers G0.11 */
START_TEST(thor_tells_its_two_tmp451)
{
	static const char *const zone = "sys/devices/virtual/thermal/thermal_zone0";
	put("sys/class/thermal/thermal_zone0", "type", "tj-thermal\n");
	put("sys/class/thermal/thermal_zone1", "type", "acpitz\n");
	/* a zone's own hwmon: below the zone, or of its name */
	put(zone, "hwmon0/name", "tj_thermal\n");
	put(zone, "hwmon0/temp1_input", "50000\n");
	tree_write(&tree, "sys/class/hwmon/hwmon0",
		"../../devices/virtual/thermal/thermal_zone0/hwmon0");
	chip(1, "acpitz\n", "60000\n");
	chip(2, "tmp451\n", "41250\n");
	put("sys/class/hwmon/hwmon2", "temp2_input", "47875\n");
	chip(3, "tmp451\n", "-256000\n");
	put("sys/class/hwmon/hwmon3", "temp2_input", "");
	start();
	bench_expect(&bench, "temperature/tmp451", 41.25);
	bench_expect(&bench, "temperature/tmp451_2", 47.875);
	bench_expect_null(&bench, "temperature/tmp451.2", "offline");
	bench_expect_null(&bench, "temperature/tmp451_2.2", "offline");
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "temperature/acpitz"));
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "temperature/tj_thermal"));
	ck_assert_int_eq(bench_metric(&bench, "temperature/tmp451")->unit, UNIT_CELSIUS);
}
END_TEST

START_TEST(without_zones_the_hottest_chip_is_the_maximum_until_thermal_tells)
{
	struct source *thermal;
	struct metric *max;
	chip(0, "k10temp\n", "61125\n");
	put("sys/class/hwmon/hwmon0", "temp1_label", "Tctl\n");
	chip(1, "nvme\n", "80850\n");
	put("sys/class/hwmon/hwmon1", "temp1_label", "Composite\n");
	chip(2, "iwlwifi_1\n", "99000\n");
	chip(3, "odd\n", "warm\n");
	start();
	bench_expect(&bench, "temperature/k10temp_Tctl", 61.125);
	bench_expect(&bench, "temperature/nvme_Composite", 80.85);
	bench_expect_null(&bench, "temperature/odd", "malformed");
	bench_expect(&bench, "temperature/max", 61.125);
	ck_assert_int_eq(sources_add(bench.core.sources, "thermal", 1000000000, &thermal), 0);
	ck_assert_int_eq(
		metrics_add(bench.core.metrics, thermal, "temperature/max", UNIT_CELSIUS, &max), 0);
	metric_set(max, 55);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_ptr_eq(bench_metric(&bench, "temperature/max")->source, thermal);
	ck_assert(max->value == 55);
}
END_TEST

/* ACPI's zone may be a constant. Whichever of the two opens first. */
START_LOOP_TEST(the_processors_chip_is_the_maximum_where_acpi_has_the_only_zone, 0, 2)
{
	struct bench other;
	struct bench *first = _i == 0 ? &bench : &other, *second = _i == 0 ? &other : &bench;
	put("sys/class/thermal/thermal_zone0", "type", "acpitz\n");
	put("sys/class/thermal/thermal_zone0", "temp", "16800\n");
	put("sys/class/thermal/thermal_zone1", "type", "iwlwifi_1\n");
	put("sys/class/thermal/thermal_zone1", "temp", "45000\n");
	chip(0, "k10temp\n", "61125\n");
	bench_make(&bench, tree.path, "hwmon");
	bench_make(&other, tree.path, "thermal");
	metrics_destroy(other.core.metrics);
	other.core.metrics = bench.core.metrics;
	ck_assert_int_eq(
		sources_add(bench.core.sources, "thermal", 1000000000, &other.ctx.source), 0);
	other.source = other.ctx.source;
	ck_assert_int_eq(bench_open(first), 0);
	ck_assert_int_eq(bench_sample(first), 0);
	bench_expect(first, "temperature/max", _i == 0 ? 61.125 : 45);
	ck_assert_int_eq(bench_open(second), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(bench_sample(first), 0);
		ck_assert_int_eq(bench_sample(second), 0);
		bench_expect(&bench, "temperature/max", 61.125);
		bench_expect(&bench, "temperature/acpitz", 16.8);
	}
	bench_close(&other);
	ck_assert_int_eq(metrics_create(&other.core.metrics), 0);
	bench_finish(&other);
}
END_TEST

START_TEST(an_input_that_nothing_is_connected_to_is_no_maximum)
{
	chip(0, "k10temp\n", "48125\n");
	chip(1, "nct6775\n", "127500\n");
	chip(2, "it8728\n", "127000\n");
	start();
	bench_expect(&bench, "temperature/nct6775", 127.5);
	bench_expect(&bench, "temperature/max", 48.125);
}
END_TEST

START_TEST(disks_alone_are_no_maximum)
{
	chip(0, "nvme\n", "40850\n");
	start();
	bench_expect(&bench, "temperature/nvme", 40.85);
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "temperature/max"));
}
END_TEST

START_TEST(without_chips_it_is_absent_with_a_reason)
{
	put("sys/class/hwmon/hwmon0", "name", "pwmfan\n");
	bench_make(&bench, tree.path, "hwmon");
	ck_assert_int_eq(bench_open(&bench), -ENOENT);
	ck_assert_ptr_nonnull(strstr(bench.reason, "no temperature"));
}
END_TEST

START_TEST(samples_allocate_nothing_and_open_survives_no_memory)
{
	chip(0, "k10temp\n", "61125\n");
	/* without temperature/max it still opens */
	bench_check_memory(&bench, tree.path, "hwmon", true);
}
END_TEST
