/* SPDX-License-Identifier: Apache-2.0 */
/* meminfo, loadavg and pressure with damaged texts: null with a reason, never a number from
 * nowhere. */
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

static void start(const char *collector, const char *path, const char *text)
{
	tree_write(&tree, path, text);
	bench_make(&bench, tree.path, collector);
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
}

static const struct {
	const char *text;
	const char *total, *available, *used; /* reason; NULL = has a value */
} meminfo[] = {
	{"MemTotal: 100 kB\nMemAvailable: 40 kB\n", NULL, NULL, NULL},
	{"", "no MemTotal in proc/meminfo", "no MemAvailable in proc/meminfo (kernel before 3.14)",
		"no MemTotal in proc/meminfo"},
	{"MemTotal: 100\nMemAvailable: 40 kB\n", "malformed", NULL, "malformed"},
	{"MemTotal: -1 kB\nMemAvailable: 40 kB\n", "malformed", NULL, "malformed"},
	{"MemTotal: 100 kB\nMemAvailable: 99999999999999999999999 kB\n", NULL, "malformed",
		"malformed"},
	{"MemTotal: 100 kB\nMemAvailable: 4", NULL, "malformed", "malformed"},
	{"MemTotal: 0 kB\nMemAvailable: 0 kB\n", NULL, NULL, "available is more than total"},
	{"MemTotal: 1 kB\nMemAvailable: 2 kB\n", NULL, NULL, "available is more than total"},
	{"xMemTotal: 100 kB\nMemAvailable: 40 kB\n", "no MemTotal in proc/meminfo", NULL,
		"no MemTotal in proc/meminfo"},
};

static void expect(const char *name, double value, const char *reason)
{
	if (reason) {
		bench_expect_null(&bench, name, reason);
	} else if (!isnan(value)) {
		bench_expect(&bench, name, value);
	} else {
		ck_assert(!isnan(bench_value(&bench, name)));
	}
}

FIXTURE(setup, teardown);

START_LOOP_TEST(damaged_meminfo_costs_only_what_depends_on_it, 0, COUNT(meminfo))
{
	start("memory", "proc/meminfo", meminfo[_i].text);
	expect("memory/total", NAN, meminfo[_i].total);
	expect("memory/available", NAN, meminfo[_i].available);
	expect("memory/used", 60 * 1024, meminfo[_i].used);
	expect("memory/used_percent", 60, meminfo[_i].used);
	bench_expect_null(&bench, "swap/used", "kernel without swap");
}
END_TEST

static const struct {
	const char *text;
	double load1, load15;
} loads[] = {
	{"0.52 1.05 12.30 1/512 9012\n", 0.52, 12.3},
	{"", NAN, NAN},
	{"inf 1.00 1.00", NAN, NAN},
	{"0x1.0 1.00 1.00", NAN, NAN},
	{"1 1.00 1.00", NAN, NAN},
	{"1. 1.00 1.00", NAN, NAN},
	{"0.50 1.00", 0.5, NAN},
	{"-1.00 1.00 1.00", NAN, NAN},
};

START_LOOP_TEST(damaged_loadavg_is_null, 0, COUNT(loads))
{
	start("load", "proc/loadavg", loads[_i].text);
	expect("cpu/load1", loads[_i].load1, isnan(loads[_i].load1) ? "malformed" : NULL);
	expect("cpu/load15", loads[_i].load15, isnan(loads[_i].load15) ? "malformed" : NULL);
}
END_TEST

static const struct {
	const char *text;
	double some;
	const char *some_reason, *full_reason;
} pressures[] = {
	{"some avg10=3.10 avg60=2.20\nfull avg10=1.00 avg60\n", 3.1, NULL, NULL},
	{"some avg10=3.10 avg60=2.20\n", 3.1, NULL, "not reported by the kernel"},
	{"", NAN, "not reported by the kernel", "not reported by the kernel"},
	{"some avg60=3.10\nfull avg10=\n", NAN, "malformed", "malformed"},
	{"some avg10=nan\nfull avg10=101\n", NAN, "malformed", "malformed"},
	{"some avg10=-1\nfull avg10=1e999\n", NAN, "malformed", "malformed"},
	{"awesome avg10=3.10\n", NAN, "not reported by the kernel", "not reported by the kernel"},
};

START_LOOP_TEST(damaged_pressure_is_null_with_a_reason, 0, COUNT(pressures))
{
	start("pressure", "proc/pressure/memory", pressures[_i].text);
	expect("pressure/memory/some", pressures[_i].some, pressures[_i].some_reason);
	expect("pressure/memory/full", 1, pressures[_i].full_reason);
	bench_expect_null(&bench, "pressure/cpu/some", "No such file or directory");
}
END_TEST

START_TEST(absent_pressure_says_how_to_switch_it_on)
{
	bench_make(&bench, tree.path, "pressure");
	ck_assert_int_eq(bench_open(&bench), -ENOENT);
	ck_assert_ptr_nonnull(strstr(bench.reason, "psi=1"));
}
END_TEST
