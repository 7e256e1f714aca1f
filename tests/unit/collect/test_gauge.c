/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of gauges: growth, ranges and reasons. */
#include "daemon/collect/lib/gauge.h"

#include <errno.h>

#include "daemon/collect/sched/collector.h"
#include "daemon/util/sysops.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/unit.h"

static struct tree tree;
static struct bench bench;

static const struct gauge_kind kind = {.prefix = "test",
	.unit = UNIT_PERCENT,
	.scale = 100,
	.divisor = 255,
	.min = 0,
	.max = 100,
	.below = "off"};

static void setup(void)
{
	tree_make(&tree);
	bench_make(&bench, tree.path, NULL);
	ck_assert_int_eq(sources_add(bench.core.sources, "test", 1000000000, &bench.source), 0);
	bench.ctx.source = bench.source;
}

static void teardown(void)
{
	sysops_replace(NULL);
	bench_finish(&bench);
	tree_remove(&tree);
}

FIXTURE(setup, teardown);

enum { FILES = 150 }; /* more than descriptors that stay open, and than two capacities */

START_TEST(a_table_grows_and_keeps_what_each_file_holds)
{
	struct gauges gauges;
	char name[32], path[64], text[32];
	gauges_init(&gauges, &bench.root, sizeof(struct gauge), 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		snprintf(path, sizeof(path), "sys/test/%d", i);
		snprintf(text, sizeof(text), "%d\n", i);
		tree_write(&tree, path, text);
		ck_assert_ptr_nonnull(gauges_add_existing(&gauges, &kind, name, "%s", path));
	}
	ck_assert_ptr_null(gauges_add_existing(&gauges, &kind, "none", "sys/test/none"));
	ck_assert_int_eq(gauges_open(&bench.ctx, &gauges), 0);
	ck_assert_int_eq(gauges_fetch(&bench.ctx, &gauges), 0);
	ck_assert_int_eq(gauges_sample(&bench.ctx, &gauges), 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "test/g%d", i);
		bench_expect(&bench, path, i * 100.0 / 255);
	}
	gauges_finish(&gauges);
	gauges_finish(&gauges);
}
END_TEST

START_TEST(a_table_never_holds_more_than_its_maximum)
{
	struct gauges gauges;
	gauges_init(&gauges, &bench.root, sizeof(struct gauge), 1);
	ck_assert_ptr_nonnull(gauges_add(&gauges, &kind, "a", "sys/a"));
	ck_assert_ptr_null(gauges_add(&gauges, &kind, "b", "sys/b"));
	ck_assert(!gauges.no_memory);
	gauges_finish(&gauges);
}
END_TEST

static const struct {
	const char *text, *reason;
} files[] = {
	{"-1\n", "off"},
	{"256\n", "out of range"},
	{"", "offline"},
	{"x\n", "malformed"},
	{NULL, "offline"},
};

START_LOOP_TEST(a_value_that_is_none_says_why, 0, COUNT(files))
{
	struct gauges gauges;
	double value;
	gauges_init(&gauges, &bench.root, sizeof(struct gauge), 0);
	const struct gauge *gauge = gauges_add(&gauges, &kind, "a", "sys/a");
	if (files[_i].text) {
		tree_write(&tree, "sys/a", files[_i].text);
	}
	gauges_read(&gauges, &bench.root);
	ck_assert_str_eq(gauge_value(gauge, &value), files[_i].reason);
	gauges_finish(&gauges);
}
END_TEST

START_TEST(a_path_that_is_too_long_is_null_alone)
{
	struct gauges gauges;
	char folder[2 * DEVICE_FILE_PATH];
	double value;
	memset(folder, 'a', sizeof(folder));
	folder[sizeof(folder) - 1] = '\0';
	gauges_init(&gauges, &bench.root, sizeof(struct gauge), 0);
	const struct gauge *gauge = gauges_add(&gauges, &kind, "a", "%s/%s", folder, folder);
	gauges_read(&gauges, &bench.root);
	ck_assert_str_eq(gauge_value(gauge, &value), "File name too long");
	gauges_finish(&gauges);
}
END_TEST

static void *refuse(size_t count, size_t size)
{
	(void)count;
	(void)size;
	return NULL;
}

START_TEST(refused_memory_is_noted)
{
	struct gauges gauges;
	struct sysops table = *sysops();
	table.calloc = refuse;
	gauges_init(&gauges, &bench.root, sizeof(struct gauge), 0);
	sysops_replace(&table);
	ck_assert_ptr_null(gauges_add(&gauges, &kind, "a", "sys/a"));
	ck_assert(gauges.no_memory);
	gauges_finish(&gauges);
}
END_TEST
