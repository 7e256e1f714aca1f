/* SPDX-License-Identifier: Apache-2.0 */
/* Links of a real sysfs lead round in circles (.../gpu/device/devfreq/.../device). Nothing that
 * reads a tree below --root may follow them for ever, and neither may the tests. */
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/unit.h"

static struct tree tree;

/* One link of each kind: to itself, to its folder, above it, two to each other, to nothing. */
static void tie(const char *folder, const char *name)
{
	static const char *const targets[] = {"%s90", ".", "../..", "%s94", "%s93", "nothing"};
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		char path[512], target[128];
		snprintf(path, sizeof(path), "%s/%s9%zu", folder, name, i);
		if (strchr(targets[i], '%')) {
			snprintf(target, sizeof(target), "%s9%c", name, targets[i][3]);
		} else {
			snprintf(target, sizeof(target), "%s", targets[i]);
		}
		tree_link(&tree, path, target);
	}
}

static void setup(void)
{
	static const char *const places[][2] = {
		{"sys/class/thermal", "thermal_zone"},
		{"sys/class/thermal", "cooling_device"},
		{"sys/class/hwmon", "hwmon"},
		{"sys/class/devfreq", "devfreq"},
		{"sys/class/drm", "card"},
		{"sys/class/power_supply", "BAT"},
		{"sys/class/powercap", "intel-rapl:"},
		{"sys/devices/system/cpu", "cpu"},
		{"sys/devices/system/cpu/cpufreq", "policy"},
		{"sys/bus/i2c/drivers/ina3221", "1-004"},
		{"sys/fs/cgroup", "slice"},
		{"sys/kernel/debug", "bpmp"},
		{"proc", "1"},
		{"proc/1", "task"},
		{"dev", "nvmap"},
	};
	char board[512];
	tree_make(&tree);
	snprintf(board, sizeof(board), "%s/tests/fixtures/sysroot/xavier-nx-jp5",
		getenv("EDGEPROF_SOURCE"));
	tree_overlay(&tree, board);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		tie(places[i][0], places[i][1]);
		tie(places[i][0], "device");
	}
	tree_link(&tree, "sys/devices/ring.0/devfreq/ring.0/device", "../../../ring.0");
	tree_link(&tree, "sys/devices/ring.0/device", "../ring.0");
	tree_link(&tree, "sys/class/devfreq/ring.0", "../../devices/ring.0/devfreq/ring.0");
	tree_link(&tree, "sys/class/hwmon/hwmon50", "/sys/class/hwmon/hwmon51");
	tree_link(&tree, "sys/class/hwmon/hwmon51", "/sys/class/hwmon/hwmon50");
}

static void teardown(void)
{
	tree_remove(&tree);
}

TEST_TIMEOUT(30);
FIXTURE(setup, teardown);

START_TEST(every_collector_comes_to_an_end)
{
	for (size_t i = 0; collectors[i]; i++) {
		struct bench bench;
		bench_make(&bench, tree.path, collectors[i]->name);
		if (bench_open(&bench) == 0) {
			bench_sample(&bench);
			bench_sample(&bench);
		}
		bench_finish(&bench);
	}
}
END_TEST

START_TEST(a_copy_of_such_a_tree_comes_to_an_end)
{
	struct tree copy;
	char path[512];
	struct stat st;
	tree_make(&copy);
	tree_overlay(&copy, tree.path);
	tree_overlay(&copy, tree.path); /* over what is there */
	snprintf(path, sizeof(path), "%s/sys/devices/ring.0/device", copy.path);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
	tree_remove(&copy);
}
END_TEST
