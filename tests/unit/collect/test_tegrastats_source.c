/* SPDX-License-Identifier: Apache-2.0 */
/* tegrastats as a source: fake programs under the real scheduler, with made-up time for everything
 * but the processes themselves. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "daemon/collect/board/tegrastats_metrics.h"
#include "daemon/collect/sched/registry.h"
#include "daemon/collect/sched/scheduler.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"
#include "tests/unit/alloc_faults.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)
#define START (1000 * SECOND)

static const struct collector_ops *const only_tegrastats[] = {&collector_tegrastats, NULL};

static struct bench bench;
static uv_loop_t loop;
static struct scheduler *scheduler;
static struct source_options section;
static struct scheduler_options options;
static uint64_t clock_ns;
static struct sysops table;
static struct tree tree;

static uint64_t made_up_clock(void)
{
	return clock_ns;
}

static void setup(void)
{
	log_max_level = LOG_LEVEL_ERROR;
	tree_make(&tree);
	tree_write(&tree, "proc/stat", "");
	bench_make(&bench, tree.path, NULL);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	table = *sysops();
	table.now_ns = made_up_clock;
	sysops_replace(&table);
	clock_ns = START;
	section = (struct source_options){.name = "tegrastats", .enabled = true};
	options = (struct scheduler_options){.interval_ns = SECOND,
		.collectors = only_tegrastats,
		.sources = &section,
		.source_count = 1};
}

static int closed;

static void on_closed(void *ctx)
{
	(void)ctx;
	closed++;
}

static void close_all(void)
{
	closed = 0;
	scheduler_close(scheduler, on_closed, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(closed, scheduler != NULL);
	scheduler = NULL;
}

/* Whatever the child did: none is left, and nothing is open. */
static void teardown(void)
{
	close_all();
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
	sysops_replace(NULL);
	bench_finish(&bench);
	tree_remove(&tree);
}

static void use(const char *command)
{
	section.keys = 1;
	snprintf(section.key[0].key, sizeof(section.key[0].key), "command");
	snprintf(section.key[0].value, sizeof(section.key[0].value), "%.200s", command);
}

/* One of tests/fixtures/bin. */
static void use_fake(const char *name)
{
	char path[200], here[128];
	const char *source = getenv("EDGEPROF_SOURCE");
	source = source ? source : getcwd(here, sizeof(here));
	ck_assert_ptr_nonnull(source);
	snprintf(path, sizeof(path), "%s/tests/fixtures/bin/tegrastats-%s", source, name);
	use(path);
}

/* A script of the test's own. */
static void use_script(const char *text)
{
	char path[200];
	tree_write(&tree, "script", text);
	snprintf(path, sizeof(path), "%.180s/script", tree.path);
	ck_assert_int_eq(chmod(path, 0700), 0);
	use(path);
}

static void start(void)
{
	ck_assert_int_eq(
		scheduler_open(&loop, &bench.core, &bench.root, &bench.real, &options, &scheduler),
		0);
	bench.source = sources_find(bench.core.sources, "tegrastats");
}

/* One turn of the loop that does not wait for ever. */
static void turn(void)
{
	uv_run(&loop, UV_RUN_ONCE);
}

/* The next tick, some seconds later. */
static void pass(uint64_t seconds)
{
	clock_ns += seconds * SECOND;
	scheduler_run(scheduler, clock_ns);
}

static void wait_for_lines(uint64_t ticks)
{
	while (bench.source->ticks < ticks) {
		turn();
	}
}

static void wait_for_state(enum source_state state)
{
	while (bench.source->state != state) {
		turn();
		pass(1);
	}
}

TEST_TIMEOUT(100);
FIXTURE(setup, teardown);

/* covers G0.15 */
START_TEST(absent_is_unavailable_and_no_error)
{
	use("/nonexistent/tegrastats");
	start();
	ck_assert_int_eq(bench.source->state, SOURCE_UNAVAILABLE);
	ck_assert_str_eq(
		bench.source->reason, "command /nonexistent/tegrastats: No such file or directory");
	for (int i = 0; i < 300; i++) {
		pass(1);
		ck_assert_int_eq(bench.source->state, SOURCE_UNAVAILABLE);
	}
	ck_assert_uint_eq(bench.source->errors, 0);
	ck_assert_uint_le(bench.source->ticks, 7);
	ck_assert_uint_eq(timeline_last_serial(bench.core.timeline), 0);
}
END_TEST

START_TEST(a_fixture_tree_starts_nothing_by_itself)
{
	start();
	ck_assert_int_eq(bench.source->state, SOURCE_UNAVAILABLE);
}
END_TEST

static const struct {
	const char *command, *reason;
	enum source_state state;
} bad_commands[] = {
	{"tegrastats", "command tegrastats: not an absolute path", SOURCE_ERROR},
	{"./tegrastats", "command ./tegrastats: not an absolute path", SOURCE_ERROR},
	{"/proc/version", "command /proc/version: Permission denied", SOURCE_ERROR},
	{"/", "command /: Permission denied", SOURCE_ERROR},
	{"/proc/version/x", "command /proc/version/x: Not a directory", SOURCE_UNAVAILABLE},
};

START_LOOP_TEST(a_bad_command_is_told, 0, COUNT(bad_commands))
{
	use(bad_commands[_i].command);
	start();
	ck_assert_int_eq(bench.source->state, bad_commands[_i].state);
	ck_assert_str_eq(bench.source->reason, bad_commands[_i].reason);
}
END_TEST

/* covers G0.15 */
START_TEST(lines_become_metrics_when_they_arrive)
{
	use_fake("steady");
	section.interval_ns = 50000000;
	start();
	ck_assert_int_eq(bench.source->state, SOURCE_STALE);
	ck_assert_str_eq(bench.source->reason, "waits for the first line");
	clock_ns += 60000000;
	wait_for_lines(1);
	ck_assert_int_eq(bench.source->state, SOURCE_OK);
	ck_assert_uint_eq(bench_metric(&bench, "tegra/lfb")->t_ns, clock_ns);
	bench_expect_null(&bench, "cpu/utilization", "needs two samples");
	bench_expect_null(&bench, "cpu/0/utilization", "needs two samples");
	bench_expect_null(&bench, "cpu/1/utilization", "offline");
	clock_ns += 60000000;
	wait_for_lines(2);
	bench_expect(&bench, "cpu/utilization", 20);
	bench_expect(&bench, "cpu/0/utilization", 10);
	bench_expect(&bench, "cpu/2/frequency", 1.2e9);
	bench_expect_null(&bench, "cpu/1/frequency", "offline");
	bench_expect(&bench, "memory/total", 4000.0 * 1048576);
	bench_expect(&bench, "tegra/lfb", 40.0 * 1048576);
	bench_expect(&bench, "tegra/lfb_block", 4.0 * 1048576);
	bench_expect(&bench, "emc/utilization", 5);
	bench_expect(&bench, "clock/emc", 1.6e9);
	bench_expect(&bench, "gpu/utilization", 40);
	bench_expect(&bench, "gpu/frequency", 6e8);
	bench_expect(&bench, "engine/NVDEC/utilization", 10);
	bench_expect(&bench, "clock/NVDEC", 5e8);
	bench_expect_null(&bench, "engine/VIC/utilization", "off");
	bench_expect(&bench, "clock/APE", 1.5e8);
	bench_expect(&bench, "temperature/cpu", 40.5);
	bench_expect_null(&bench, "temperature/gpu", "offline");
	bench_expect(&bench, "temperature/PMIC", 50);
	bench_expect(&bench, "temperature/max", 41);
	bench_expect(&bench, "power/VDD_IN", 5000);
	bench_expect(&bench, "power/NC", 1);
	bench_expect(&bench, "power/NC.2", 2);
	bench_expect(&bench, "power/total", 5000);
	ck_assert_str_eq(bench_metric(&bench, "power/total")->origin, "rail VDD_IN");
	ck_assert_uint_eq(bench.source->errors, 0);
}
END_TEST

START_TEST(after_warm_up_a_line_allocates_nothing)
{
	static struct tegrastats stats;
	static const char line[] = "RAM 1/2MB CPU [1%@2,off] VIC off APE 3 tj@4C VDD_IN 5/6 NC 1/1";
	start();
	ck_assert_int_eq(tegrastats_parse(line, strlen(line), &stats), 0);
	tegrastats_metrics_set(bench.core.metrics, bench.source, &stats, true);
	alloc_faults_start(0);
	tegrastats_metrics_set(bench.core.metrics, bench.source, &stats, true);
	sysops_replace(&table);
	ck_assert_uint_eq(alloc_calls, 0);
	ck_assert_uint_gt(metrics_count(bench.core.metrics), 8);
}
END_TEST

/* 400 lines of names that never come again, and one source that wants its metric afterwards. */
START_TEST(made_up_names_do_not_take_the_places_of_others)
{
	static struct tegrastats stats;
	start();
	for (int i = 0; i < 400; i++) {
		char line[2048];
		int length = snprintf(line, sizeof(line), "RAM 1/2MB tj@%dC", 30 + i % 50);
		for (int j = 0; j < 32; j++) {
			length += snprintf(line + length, sizeof(line) - (size_t)length,
				" R%dx%d 5mW/6mW Z%dx%d@4C", i, j, i, j);
		}
		ck_assert_int_eq(tegrastats_parse(line, (size_t)length, &stats), 0);
		tegrastats_metrics_set(bench.core.metrics, bench.source, &stats, true);
		metrics_commit(bench.core.metrics, bench.source, clock_ns);
		ck_assert_uint_le(metrics_count(bench.core.metrics), 640);
		bench_expect(&bench, "temperature/tj", 30 + i % 50);
	}
	ck_assert_uint_eq(metrics_refused(bench.core.metrics), 0);
	ck_assert_ptr_nonnull(metrics_find(bench.core.metrics, "power/R399x31"));
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "power/R1x1"));
}
END_TEST

static struct metric *other(const char *name)
{
	static struct source *source;
	struct metric *metric = NULL;
	if (!sources_find(bench.core.sources, "thermal")) {
		ck_assert_int_eq(sources_add(bench.core.sources, "thermal", SECOND, &source), 0);
	}
	source = sources_find(bench.core.sources, "thermal");
	ck_assert_int_eq(metrics_add(bench.core.metrics, source, name, UNIT_CELSIUS, &metric), 0);
	return metric;
}

/* Whoever was first: tegrastats tells what nobody else does. */
START_LOOP_TEST(other_sources_come_first_in_either_order, 0, 2)
{
	static const char *const names[] = {"temperature/cpu", "temperature/tj-thermal",
		"temperature/max", "power/total", "gpu/utilization"};
	use_fake("hang");
	start();
	static struct tegrastats stats;
	static const char line[] = "RAM 1/2MB GR3D_FREQ 3% cpu@30C tj@31C VDD_IN 5/6";
	ck_assert_int_eq(tegrastats_parse(line, strlen(line), &stats), 0);
	for (size_t i = 0; _i == 0 && i < 5; i++) {
		metric_set(other(names[i]), 77);
	}
	tegrastats_metrics_set(bench.core.metrics, bench.source, &stats, true);
	for (size_t i = 0; _i == 1 && i < 5; i++) {
		metric_set(other(names[i]), 77);
	}
	tegrastats_metrics_set(bench.core.metrics, bench.source, &stats, true);
	for (size_t i = 0; i < 5; i++) {
		const struct metric *metric = bench_metric(&bench, names[i]);
		ck_assert_str_eq(metric->source->name, "thermal");
		ck_assert(metric->value == 77);
	}
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "temperature/tj"));
	bench_expect(&bench, "power/VDD_IN", 5);
}
END_TEST

START_TEST(users_get_no_memory_bus_load_and_nothing_out_of_range)
{
	static struct tegrastats stats;
	static const char line[] = "RAM 1/2MB CPU [101%@1] EMC_FREQ 0% GR3D_FREQ 12% tj@9999C";
	start();
	ck_assert_int_eq(tegrastats_parse(line, strlen(line), &stats), 0);
	tegrastats_metrics_set(bench.core.metrics, bench.source, &stats, true);
	bench_expect_null(&bench, "emc/utilization", "reported only to root");
	bench_expect(&bench, "gpu/utilization", 12);
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "clock/emc"));
	const struct metric *load = metrics_find(bench.core.metrics, "cpu/0/utilization");
	ck_assert(!load || isnan(load->value));
	const struct metric *tj = metrics_find(bench.core.metrics, "temperature/tj");
	ck_assert(!tj || isnan(tj->value));
}
END_TEST

START_TEST(a_child_that_exits_is_an_error_with_its_last_words)
{
	use_fake("crash");
	start();
	wait_for_state(SOURCE_ERROR);
	ck_assert_str_eq(bench.source->reason, "exited with status 3; it is started again; it "
					       "said: Error: cannot open /sys/kernel/debug");
	uint32_t serial = timeline_last_serial(bench.core.timeline);
	while (bench.source->errors < 2) { /* the second start is a second later */
		turn();
		pass(1);
		ck_assert_int_eq(bench.source->state, SOURCE_ERROR);
	}
	ck_assert_uint_eq(timeline_last_serial(bench.core.timeline), serial);
}
END_TEST

START_TEST(a_late_line_is_stale_and_a_hanging_child_is_ended)
{
	use_fake("hang");
	start();
	wait_for_lines(1);
	bench_expect(&bench, "temperature/tj", 41);
	pass(2);
	ck_assert_int_eq(bench.source->state, SOURCE_OK);
	pass(1);
	ck_assert_int_eq(bench.source->state, SOURCE_STALE);
	ck_assert_str_eq(bench.source->reason, "no line for 3.0 s");
	bench_expect_null(&bench, "temperature/tj", "source is stale");
	pass(7);
	ck_assert_int_eq(bench.source->state, SOURCE_STALE);
	pass(1);
	ck_assert_int_eq(bench.source->state, SOURCE_ERROR);
	ck_assert_str_eq(bench.source->reason, "hung: no line for 11 s; it is started again");
	wait_for_lines(2);
	ck_assert_int_eq(bench.source->state, SOURCE_OK);
	pass(1);
	ck_assert_uint_eq(bench.source->errors, 1);
	ck_assert_int_eq(bench.source->state, SOURCE_OK);
}
END_TEST

START_TEST(a_child_that_ignores_sigterm_does_not_outlive_the_source)
{
	use_fake("deaf");
	start();
	wait_for_lines(1);
	close_all();
}
END_TEST

START_TEST(a_flood_is_ended)
{
	use_fake("flood");
	start();
	while (bench.source->errors == 0) { /* made-up time stands: it cannot be called hung */
		turn();
	}
	pass(1);
	ck_assert_int_eq(bench.source->state, SOURCE_ERROR);
	ck_assert_str_eq(
		bench.source->reason, "wrote more than 1 MiB in an interval; it is started again");
}
END_TEST

START_TEST(half_a_line_dies_with_its_child)
{
	char text[600];
	snprintf(text, sizeof(text),
		"#!/bin/sh\nif [ -e '%.180s/second' ]; then\n"
		"echo 'RAM 1/2MB tj@5C'\nexec sleep 1000\nfi\n"
		": >'%.180s/second'\nprintf 'RAM 3/4MB cpu@99C '\n",
		tree.path, tree.path);
	use_script(text);
	start();
	wait_for_lines(1);
	bench_expect(&bench, "temperature/tj", 5);
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "temperature/cpu"));
}
END_TEST

START_TEST(a_closed_output_is_an_end)
{
	use_fake("closed");
	start();
	wait_for_state(SOURCE_ERROR);
	ck_assert_str_eq(bench.source->reason, "closed its output; it is started again");
}
END_TEST

START_TEST(binary_lines_cost_only_themselves)
{
	use_fake("binary");
	start();
	wait_for_lines(1);
	ck_assert_int_eq(bench.source->state, SOURCE_OK);
	bench_expect(&bench, "temperature/tj", 42);
}
END_TEST

START_TEST(lines_that_come_too_fast_are_told_at_the_ticks)
{
	use_script("#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9; do\n"
		   "echo \"RAM 1/2MB CPU [5%@1] tj@${i}C\"\ndone\nexec sleep 1000\n");
	start();
	wait_for_lines(1);
	bench_expect(&bench, "temperature/tj", 1);
	while (bench_value(&bench, "temperature/tj") != 9) {
		turn();
		pass(1);
		ck_assert_uint_le(bench.source->ticks, 9);
	}
	bench_expect(&bench, "cpu/utilization", 5);
}
END_TEST

/* What could not be used is counted where the source's cost is told, also while it is stale. */
START_TEST(a_long_line_and_crlf_are_survived_and_counted)
{
	static const struct collector_ops *const both[] = {
		&collector_collector, &collector_tegrastats, NULL};
	use_script("#!/bin/sh\nhead -c 70000 /dev/zero | tr '\\0' 'R'\necho\necho no such word\n"
		   "printf 'RAM 1/2MB strange words tj@7C\\r\\n'\nexec sleep 1000\n");
	options.collectors = both;
	start();
	wait_for_lines(1);
	pass(1);
	pass(1);
	bench_expect(&bench, "temperature/tj", 7);
	bench_expect(&bench, "collector/tegrastats/lines_cut", 1);
	bench_expect(&bench, "collector/tegrastats/lines_unknown", 1);
	bench_expect(&bench, "collector/tegrastats/tokens_unknown", 2);
	ck_assert(!bench_metric(&bench, "collector/tegrastats/lines_cut")->full_rate);
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "collector/collector/lines_cut"));
}
END_TEST

/* covers G0.14 */
START_TEST(averages_and_peaks_are_told_beside_the_present)
{
	static struct tegrastats stats;
	static const char line[] =
		"RAM 1/2MB tj@52.9C/55.5C VDD_IN 5000mW/4000mW/9000mW SOC 7/6 NC 3mW";
	start();
	ck_assert_int_eq(tegrastats_parse(line, strlen(line), &stats), 0);
	tegrastats_metrics_set(bench.core.metrics, bench.source, &stats, true);
	bench_expect(&bench, "power/VDD_IN", 5000);
	bench_expect(&bench, "power_average/VDD_IN", 4000);
	bench_expect(&bench, "power_peak/VDD_IN", 9000);
	bench_expect(&bench, "power_average/SOC", 6);
	bench_expect(&bench, "temperature_peak/tj", 55.5);
	bench_expect(&bench, "power/total", 5000);
	ck_assert_str_eq(
		bench_metric(&bench, "power_peak/VDD_IN")->origin, "since tegrastats' start");
	/* what was not printed has no metric */
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "power_peak/SOC"));
	ck_assert_ptr_null(metrics_find(bench.core.metrics, "power_average/NC"));
}
END_TEST

START_TEST(switching_off_ends_the_child_and_on_starts_it)
{
	use_script("#!/bin/sh\necho \"APE 1 RAM $$/2MB\"\nexec sleep 1000\n");
	start();
	wait_for_lines(1);
	pid_t pid = (pid_t)(bench_value(&bench, "memory/used") / 1048576);
	ck_assert_int_eq(kill(pid, 0), 0);
	source_request(bench.source, false, 0);
	pass(1);
	ck_assert_int_eq(bench.source->state, SOURCE_SUSPENDED);
	bench_expect_null(&bench, "memory/used", "source is switched off");
	while (kill(pid, 0) == 0) {
		turn();
	}
	source_request(bench.source, true, 0);
	pass(1);
	wait_for_lines(bench.source->ticks + 1);
	ck_assert_int_eq(bench.source->state, SOURCE_OK);
	pid_t next = (pid_t)(bench_value(&bench, "memory/used") / 1048576);
	ck_assert_int_ne(next, pid);
}
END_TEST

START_TEST(a_new_interval_or_command_is_a_new_child)
{
	use_script("#!/bin/sh\necho \"APE 1 RAM $2/1MB\"\nexec sleep 1000\n");
	start();
	wait_for_lines(1);
	bench_expect(&bench, "memory/used", 1000.0 * 1048576);
	source_request(bench.source, true, 2 * SECOND);
	clock_ns += SECOND;
	pass(1);
	wait_for_lines(2);
	bench_expect(&bench, "memory/used", 2000.0 * 1048576);
	pass(2);
	ck_assert_uint_eq(bench.source->errors, 0);
	ck_assert_int_eq(bench.source->state, SOURCE_OK);
	use_fake("hang");
	scheduler_configure(scheduler, &options);
	pass(1);
	wait_for_lines(3);
	bench_expect(&bench, "temperature/tj", 41);
}
END_TEST

START_LOOP_TEST(no_memory_is_an_error_and_leaks_nothing, 0, 2)
{
	use_fake("hang");
	section.enabled = false;
	start();
	source_request(bench.source, true, 0);
	alloc_faults_start((size_t)_i + 1);
	struct sysops failing = *sysops();
	failing.now_ns = made_up_clock;
	sysops_replace(&failing);
	pass(1);
	sysops_replace(&table);
	ck_assert_int_eq(bench.source->state, SOURCE_ERROR);
	ck_assert_str_eq(bench.source->reason, "Cannot allocate memory");
}
END_TEST
