/* SPDX-License-Identifier: Apache-2.0 */
/* Power mode, governors and pinned clocks, from the files of Jetsons and others. */
#include <errno.h>

#include "daemon/collect/board/modes.h"
#include "daemon/collect/sched/collector.h"
#include "daemon/core/status/modes.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/shared.h"
#include "tests/unit/unit.h"

static struct tree tree;
static struct bench bench;
static struct modes modes;

static void setup(void)
{
	tree_make(&tree);
	memset(&modes, 0, sizeof(modes));
}

static void teardown(void)
{
	tree_remove(&tree);
}

static int start(const char *root)
{
	bench_make(&bench, root, "modes");
	bench.core.modes = &modes;
	int r = bench_open(&bench);
	if (r == 0) {
		ck_assert_int_eq(bench_sample(&bench), 0);
	}
	return r;
}

static void put_policy(int n, const char *governor, const char *min, const char *max)
{
	char path[128];
	snprintf(path, sizeof(path), "sys/devices/system/cpu/cpufreq/policy%d/scaling_governor", n);
	tree_write(&tree, path, governor);
	snprintf(path, sizeof(path), "sys/devices/system/cpu/cpufreq/policy%d/scaling_min_freq", n);
	tree_write(&tree, path, min);
	snprintf(path, sizeof(path), "sys/devices/system/cpu/cpufreq/policy%d/scaling_max_freq", n);
	tree_write(&tree, path, max);
}

static void put_gpu(const char *governor, const char *min, const char *max)
{
	tree_write(&tree, "sys/class/devfreq/17000000.gpu/governor", governor);
	tree_write(&tree, "sys/class/devfreq/17000000.gpu/min_freq", min);
	tree_write(&tree, "sys/class/devfreq/17000000.gpu/max_freq", max);
}

static const struct {
	const char *text;
	int id;
} statuses[] = {
	{"pmode:0002", 2},
	{"pmode:0000\n", 0},
	{"fmode:0001\npmode:0008 \n", 8},
	{"pmode:", -EBADMSG},
	{"pmode:x", -EBADMSG},
	{"pmode:-1", -EBADMSG},
	{"pmode:12345", -EBADMSG},
	{"pmode:2 3", -EBADMSG},
	{"mode:2", -EBADMSG},
	{"", -EBADMSG},
};

FIXTURE(setup, teardown);

START_LOOP_TEST(the_status_is_a_number_or_nothing, 0, COUNT(statuses))
{
	ck_assert_int_eq(modes_parse_status(statuses[_i].text), statuses[_i].id);
}
END_TEST

static const char conf[] = "# < POWER_MODEL ID=2 NAME=COMMENT >\n"
			   "< POWER_MODEL ID=0 NAME=15W >\n"
			   "CPU_ONLINE CORE_0 1\n"
			   "< POWER_MODEL ID=1 >\n"
			   "< POWER_MODEL ID=2 NAME=MAXN_SUPER >\n"
			   "< POWER_MODEL ID=12 NAME=LAST>\n"
			   "< PM_CONFIG DEFAULT=2 >";

static const struct {
	int id;
	const char *name;
} names[] = {{0, "15W"}, {1, NULL}, {2, "MAXN_SUPER"}, {3, NULL}, {12, "LAST"}};

START_LOOP_TEST(names_come_from_the_configuration, 0, COUNT(names))
{
	char name[48] = "untouched";
	int r = modes_find_name(conf, names[_i].id, name, sizeof(name));
	ck_assert_int_eq(r, names[_i].name ? 0 : -ENOENT);
	ck_assert_str_eq(name, names[_i].name ? names[_i].name : "untouched");
	char small[4];
	if (names[_i].id == 2) {
		ck_assert_int_eq(modes_find_name(conf, 2, small, sizeof(small)), 0);
		ck_assert_str_eq(small, "MAX");
	}
	ck_assert_int_eq(modes_find_name("", 0, name, sizeof(name)), -ENOENT);
}
END_TEST

/* covers G2.13 */
START_TEST(a_budget_is_what_the_name_states)
{
	ck_assert_double_eq(modes_budget_mw("15W"), 15000);
	ck_assert_double_eq(modes_budget_mw("MODE_20W_6CORE"), 20000);
	ck_assert_double_eq(modes_budget_mw("MODE_30W_ALL"), 30000);
	ck_assert_double_eq(modes_budget_mw("6CORE_7W"), 7000);
	ck_assert_double_eq(modes_budget_mw("MAXN"), 0);
	ck_assert_double_eq(modes_budget_mw("MAXN_SUPER"), 0);
	ck_assert_double_eq(modes_budget_mw("MODE_8WIDE"), 0);
	ck_assert_double_eq(modes_budget_mw("99999999999999999999W"), 0);
	ck_assert_double_eq(modes_budget_mw(""), 0);
}
END_TEST

START_TEST(words_are_listed_once)
{
	char list[16] = "";
	modes_add_word(list, sizeof(list), "perf");
	modes_add_word(list, sizeof(list), "perf");
	modes_add_word(list, sizeof(list), "per");
	modes_add_word(list, sizeof(list), "");
	modes_add_word(list, sizeof(list), "far too long");
	ck_assert_str_eq(list, "perf,per");
}
END_TEST

/* covers G0.18 */
START_TEST(a_jetson_tells_mode_governors_and_clocks)
{
	tree_write(&tree, "var/lib/nvpmodel/status", "pmode:0002");
	tree_write(&tree, "etc/nvpmodel.conf", conf);
	put_policy(0, "schedutil\n", "729600\n", "1728000\n");
	put_policy(4, "performance\n", "1728000\n", "1728000\n");
	put_gpu("nvhost_podgov\n", "1020000000\n", "1020000000\n");
	ck_assert_int_eq(start(tree.path), 0);
	ck_assert(modes.have_power_mode);
	ck_assert_int_eq(modes.power_mode, 2);
	ck_assert_str_eq(modes.power_mode_name, "MAXN_SUPER");
	ck_assert_str_eq(modes.governor, "schedutil,performance");
	ck_assert_str_eq(modes.gpu_governor, "nvhost_podgov");
	ck_assert_int_eq(modes.clocks, CLOCKS_FREE);
	ck_assert_uint_eq(timeline_last_serial(bench.core.timeline), 0);
	/* jetson_clocks, then another mode: both are told */
	put_policy(0, "schedutil\n", "1728000\n", "1728000\n");
	tree_write(&tree, "var/lib/nvpmodel/status", "pmode:0000");
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_int_eq(modes.clocks, CLOCKS_PINNED);
	ck_assert_str_eq(modes.power_mode_name, "15W");
	ck_assert_uint_eq(timeline_last_serial(bench.core.timeline), 2);
	ck_assert_str_eq(timeline_from(bench.core.timeline, 1)->text,
		"power mode changed to 0 (15W) from 2 (MAXN_SUPER)");
	ck_assert_str_eq(timeline_from(bench.core.timeline, 2)->text, "clocks are pinned");
	/* and a status that went is no mode */
	tree_unlink(&tree, "var/lib/nvpmodel/status");
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert(!modes.have_power_mode);
	ck_assert_str_eq(modes.power_mode_name, "");
	bench_finish(&bench);
}
END_TEST

START_TEST(a_limited_clock_is_a_share_of_what_the_hardware_can_do)
{
	put_policy(0, "schedutil\n", "600000\n", "1500000\n");
	put_policy(4, "schedutil\n", "600000\n", "1200000\n");
	put_gpu("nvhost_podgov\n", "306000000\n", "510000000\n");
	tree_write(&tree, "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "1500000\n");
	tree_write(&tree, "sys/devices/system/cpu/cpufreq/policy4/cpuinfo_max_freq", "2000000\n");
	tree_write(&tree, "sys/class/devfreq/17000000.gpu/available_frequencies",
		"306000000 1020000000 510000000\n");
	ck_assert_int_eq(start(tree.path), 0);
	ck_assert_double_eq(modes.frequency_limit, 0.6);
	ck_assert_double_eq(modes.gpu_frequency_limit, 0.5);
	ck_assert_uint_eq(modes.limit_ns, bench.now_ns);
	/* what the kernel lowers while the hardware throttles is no setting of anybody's */
	uint64_t before_ns = bench.now_ns;
	bench.throttle.flag[THROTTLE_ACTIVE].value = THROTTLE_YES;
	put_policy(0, "schedutil\n", "600000\n", "600000\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_double_eq(modes.frequency_limit, 0.6);
	ck_assert_uint_eq(modes.limit_ns, before_ns);
	bench.throttle.flag[THROTTLE_ACTIVE].value = THROTTLE_NO;
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_double_eq(modes.frequency_limit, 0.4);
	/* an overclocked core is not limited, an unreadable one not known */
	put_policy(0, "schedutil\n", "600000\n", "1800000\n");
	tree_unlink(&tree, "sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq");
	tree_write(&tree, "sys/class/devfreq/17000000.gpu/max_freq", "x\n");
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_double_eq(modes.frequency_limit, 1);
	ck_assert(isnan(modes.gpu_frequency_limit));
	bench_finish(&bench);
}
END_TEST

START_TEST(pinned_clocks_are_jetsons_only)
{
	put_policy(0, "performance\n", "1000\n", "1000\n");
	ck_assert_int_eq(start(tree.path), 0);
	ck_assert_str_eq(modes.governor, "performance");
	ck_assert_int_eq(modes.clocks, CLOCKS_UNKNOWN);
	ck_assert(!modes.have_power_mode);
	bench_finish(&bench);
}
END_TEST

START_TEST(a_machine_without_governor_says_so)
{
	ck_assert_int_eq(start(tree.path), -ENOENT);
	ck_assert_ptr_nonnull(strstr(bench.reason, "no governor"));
	bench_finish(&bench);
}
END_TEST

SHARED_TESTS;

START_LOOP_TEST(the_fixtures_tell_their_mode, 0, 3)
{
	static const struct {
		const char *device;
		int mode;
		const char *gpu_governor;
	} boards[] = {
		{"jetson-nano-jp4", 0, "nvhost_podgov"},
		{"jetson-orin-nano-jp6", 2, "nvhost_podgov"},
		{"rpi5", -1, ""},
	};
	char path[512];
	snprintf(path, sizeof(path), "sysroot/%s", boards[_i].device);
	ck_assert_int_eq(start(shared_path(path)), 0);
	ck_assert_int_eq(modes.have_power_mode, boards[_i].mode >= 0);
	if (boards[_i].mode >= 0) {
		ck_assert_int_eq(modes.power_mode, boards[_i].mode);
		ck_assert_int_eq(modes.clocks, CLOCKS_FREE);
	}
	ck_assert_str_ne(modes.governor, "");
	ck_assert_str_eq(modes.gpu_governor, boards[_i].gpu_governor);
	bench_finish(&bench);
}
END_TEST
