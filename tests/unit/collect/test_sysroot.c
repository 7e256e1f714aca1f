/* SPDX-License-Identifier: Apache-2.0 */
/* Every device tree, the project's own ones and those of the shared fixtures, read by the real
 * collectors and compared with what its expected.json says. The shared ones are a run of their own.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "daemon/collect/sched/collector.h"
#include "tests/unit/collect/fixture_tree.h"
#include "tests/unit/shared.h"
#include "tests/unit/unit.h"

/* the project's own first, composed here as such boards tell themselves */
static const char *const devices[] = {"xavier-nx-jp5", "rk3588", "jetson-nano-jp4",
	"jetson-orin-nano-jp6", "rpi4", "rpi5", "vm-generic", "x86-laptop"};

enum { OWN = 2, DEVICES = sizeof(devices) / sizeof(devices[0]) };

static char folder[512];
static cJSON *expected;
static struct bench bench;

static void load(int index)
{
	char path[640];
	static char text[64 * 1024];
	const char *base = getenv(index < OWN ? "EDGEPROF_SOURCE" : "EDGEPROF_SHARED");
	snprintf(folder, sizeof(folder), "%s/%sfixtures/sysroot/%s", base ? base : "",
		index < OWN ? "tests/" : "", devices[index]);
	snprintf(path, sizeof(path), "%s/expected.json", folder);
	FILE *file = fopen(path, "r");
	ck_assert_msg(file != NULL, "%s", path);
	size_t n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	expected = cJSON_Parse(text);
	ck_assert_ptr_nonnull(expected);
}

static void unload(void)
{
	bench_finish(&bench);
	cJSON_Delete(expected);
}

static const cJSON *field(const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(expected, name);
}

/* Opens and samples once; what has nothing there must say unavailable. False then. */
static bool start(const char *root, const char *collector, bool expect_some)
{
	bench_make(&bench, root, collector);
	int r = bench_open(&bench);
	if (!expect_some) {
		ck_assert_int_eq(r, -ENOENT);
		ck_assert_str_ne(bench.reason, "");
		return false;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	return true;
}

/* "3:SEN2" -> the metric's name; dups are counted by the caller's list. */
static void name_of(const char *prefix, const cJSON *list, const cJSON *item, char path[128])
{
	char clean[PROTO_NAME_SIZE];
	const char *type = strchr(item->string, ':') + 1;
	int number = 1;
	for (const cJSON *other = list->child; other != item; other = other->next) {
		number += strcmp(strchr(other->string, ':') + 1, type) == 0;
	}
	proto_name_clean(type, strlen(type), clean);
	if (number == 1) {
		snprintf(path, 128, "%s/%s", prefix, clean);
	} else {
		snprintf(path, 128, "%s/%s.%d", prefix, clean, number);
	}
}

static bool ignored(const char *type, double value)
{
	const cJSON *item;
	char with_value[80];
	snprintf(with_value, sizeof(with_value), "%s (%g)", type, value);
	cJSON_ArrayForEach(item, field("ignore_zones"))
	{
		if (strcmp(item->valuestring, type) == 0 ||
			strcmp(item->valuestring, with_value) == 0) {
			return true;
		}
	}
	return false;
}

/* A state is zeroed: what an opening did not reach must not be closed as descriptor 0. */
START_TEST(an_opening_that_fails_closes_only_what_it_opened)
{
	const char *name;
	snprintf(folder, sizeof(folder), "%s/tests/fixtures/sysroot/%s", getenv("EDGEPROF_SOURCE"),
		devices[0]);
	ck_assert_int_ge(fcntl(0, F_GETFD), 0);
	for (size_t i = 0; collectors[i]; i++) {
		bool reached = true;
		name = collectors[i]->name;
		for (size_t fail = 1; reached; fail++) {
			bench_make(&bench, folder, name);
			alloc_faults_start(fail);
			int r = bench_open(&bench);
			reached = alloc_calls >= fail;
			alloc_faults_stop();
			ck_assert_msg(!reached || r == 0 || r == -ENOMEM, "%s: %d", name, r);
			bench_finish(&bench);
			ck_assert_msg(fcntl(0, F_GETFD) >= 0, "%s, allocation %zu", name, fail);
		}
	}
}
END_TEST

/* covers G0.11 */
START_LOOP_TEST(zones_and_cooling_devices_read_as_expected, 0, OWN)
{
	load(_i);
	const cJSON *zones = field("zones"), *cooling = field("cooling"), *item;
	bool some = cJSON_GetArraySize(zones) > 0 || cJSON_GetArraySize(cooling) > 0;
	double max = NAN;
	int count = 0;
	char path[128];
	if (!start(folder, "thermal", some)) {
		unload();
		return;
	}
	cJSON_ArrayForEach(item, zones)
	{
		name_of("temperature", zones, item, path);
		count++;
		if (cJSON_IsNull(item)) {
			bench_expect_null(&bench, path, "offline");
			continue;
		}
		bench_expect(&bench, path, item->valuedouble);
		if (!ignored(strchr(item->string, ':') + 1, item->valuedouble) &&
			!(item->valuedouble <= max)) {
			max = item->valuedouble;
		}
	}
	bench_expect(&bench, "temperature/max", max);
	cJSON_ArrayForEach(item, cooling)
	{
		name_of("cooling", cooling, item, path);
		bench_expect(&bench, path, cJSON_GetArrayItem(item, 0)->valuedouble);
		ck_assert_double_eq(bench_metric(&bench, path)->limit,
			cJSON_GetArrayItem(item, 1)->valuedouble);
	}
	/* and nothing that is not there */
	uint32_t cursor = 0;
	const struct metric *metric;
	while ((metric = metrics_next(bench.core.metrics, &cursor))) {
		count -= strncmp(metric->name, "temperature/", 12) == 0 &&
			 strcmp(metric->name, "temperature/max") != 0;
	}
	ck_assert_int_eq(count, 0);
	unload();
}
END_TEST

START_LOOP_TEST(clocks_read_as_expected, 0, OWN)
{
	load(_i);
	const cJSON *item, *policies = field("cpu_mhz");
	if (!start(folder, "cpufreq", policies != NULL)) {
		unload();
		return;
	}
	cJSON_ArrayForEach(item, policies)
	{
		char path[768], text[128];
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpufreq/%s/affected_cpus",
			item->string);
		ck_assert_int_gt(root_read(&bench.root, path, text, sizeof(text)), 0);
		for (char *p = text, *end; *p >= '0'; p = *end == ' ' ? end + 1 : end) {
			snprintf(path, sizeof(path), "cpu/%ld/frequency", strtol(p, &end, 10));
			bench_expect(&bench, path, item->valuedouble * 1e6);
		}
	}
	unload();
}
END_TEST

START_LOOP_TEST(utilization_between_two_samples_is_as_expected, 0, OWN)
{
	load(_i);
	struct tree tree;
	char path[640];
	const cJSON *item;
	tree_make(&tree);
	tree_overlay(&tree, folder);
	ck_assert(start(tree.path, "cpu", true));
	bench_expect_null(&bench, "cpu/utilization", "needs two samples");
	bench_expect_null(&bench, "cpu/0/utilization", "needs two samples");
	snprintf(path, sizeof(path), "%s/snap2", folder);
	tree_overlay(&tree, path);
	ck_assert_int_eq(bench_sample(&bench), 0);
	cJSON_ArrayForEach(item, field("cpu_pct_between_stat_and_snap2"))
	{
		if (item->string[3] == '\0') {
			snprintf(path, sizeof(path), "cpu/utilization");
		} else {
			snprintf(path, sizeof(path), "cpu/%s/utilization", item->string + 3);
		}
		if (cJSON_IsNull(item)) {
			ck_assert(isnan(bench_value(&bench, path)));
		} else {
			ck_assert_double_eq_tol(
				bench_value(&bench, path), item->valuedouble, 0.005);
		}
	}
	tree_remove(&tree);
	unload();
}
END_TEST

/* covers G0.8 */
START_LOOP_TEST(memory_reads_as_expected, 0, OWN)
{
	load(_i);
	const cJSON *memory = field("mem_kb");
	double total = cJSON_GetObjectItem(memory, "total")->valuedouble * 1024;
	const cJSON *available = cJSON_GetObjectItem(memory, "available");
	double swap = cJSON_GetObjectItem(memory, "swap_total")->valuedouble -
		      cJSON_GetObjectItem(memory, "swap_free")->valuedouble;
	ck_assert(start(folder, "memory", true));
	bench_expect(&bench, "memory/total", total);
	bench_expect(&bench, "swap/used", swap * 1024);
	if (cJSON_IsNull(available)) {
		ck_assert(isnan(bench_value(&bench, "memory/available")));
		ck_assert(isnan(bench_value(&bench, "memory/used")));
		ck_assert(isnan(bench_value(&bench, "memory/used_percent")));
	} else {
		double bytes = available->valuedouble * 1024;
		bench_expect(&bench, "memory/available", bytes);
		bench_expect(&bench, "memory/used", total - bytes);
		bench_expect(&bench, "memory/used_percent", (total - bytes) / total * 100);
	}
	unload();
}
END_TEST

START_LOOP_TEST(load_reads_as_expected, 0, OWN)
{
	load(_i);
	const cJSON *list = field("loadavg");
	ck_assert(start(folder, "load", true));
	bench_expect(&bench, "cpu/load1", cJSON_GetArrayItem(list, 0)->valuedouble);
	bench_expect(&bench, "cpu/load5", cJSON_GetArrayItem(list, 1)->valuedouble);
	bench_expect(&bench, "cpu/load15", cJSON_GetArrayItem(list, 2)->valuedouble);
	unload();
}
END_TEST

START_LOOP_TEST(pressure_is_absent_with_advice_or_read, 0, OWN)
{
	load(_i);
	const cJSON *pressure = field("pressure");
	if (!start(folder, "pressure", pressure == NULL)) {
		ck_assert_ptr_nonnull(strstr(bench.reason, "psi=1"));
	} else {
		char path[] = "proc/pressure/cpu", text[256];
		double some;
		ck_assert_int_gt(root_read(&bench.root, path, text, sizeof(text)), 0);
		ck_assert_int_eq(sscanf(text, "some avg10=%lf", &some), 1);
		bench_expect(&bench, "pressure/cpu/some", some);
		bench_expect(&bench, "pressure/memory/full", 0);
	}
	unload();
}
END_TEST

/* The Pi 5's counts pages of 16 KiB, this machine most likely 4 KiB: the kernel's own kB are taken.
 * covers G0.8 covers G1.20 G1.21 */
START_LOOP_TEST(processes_read_as_expected, 0, OWN)
{
	load(_i);
	const cJSON *item;
	bench_make(&bench, folder, "process");
	cJSON_ArrayForEach(item, field("procs"))
	{
		struct watch by_pid = {
			.kind = WATCH_PID, .pid = (pid_t)strtol(item->string, NULL, 10)};
		snprintf(by_pid.name, sizeof(by_pid.name), "pid%s", item->string);
		struct watch by_name = {.kind = WATCH_PATTERN};
		snprintf(by_name.name, sizeof(by_name.name), "name%s", item->string);
		snprintf(by_name.pattern, sizeof(by_name.pattern), "%s",
			cJSON_GetObjectItem(item, "comm")->valuestring);
		ck_assert_int_eq(processes_watch(&bench.processes, &by_pid), 0);
		ck_assert_int_eq(processes_watch(&bench.processes, &by_name), 0);
	}
	ck_assert_int_eq(bench_open(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0);
	ck_assert_int_eq(bench_sample(&bench), 0); /* PSS is there for the next sample */
	ck_assert_uint_eq(bench.processes.rows, bench.processes.watches);
	cJSON_ArrayForEach(item, field("procs"))
	{
		static const char *const kinds[] = {"pid", "name"};
		for (size_t i = 0; i < 2; i++) {
			char path[128];
			snprintf(path, sizeof(path), "process/%s%s/rss", kinds[i], item->string);
			bench_expect(&bench, path,
				cJSON_GetObjectItem(item, "rss_kb")->valuedouble * 1024);
			snprintf(
				path, sizeof(path), "process/%s%s/threads", kinds[i], item->string);
			bench_expect(
				&bench, path, cJSON_GetObjectItem(item, "threads")->valuedouble);
			double pss_kib;
			char rollup[64], text[1024];
			snprintf(rollup, sizeof(rollup), "proc/%s/smaps_rollup", item->string);
			ck_assert_int_gt(root_read(&bench.root, rollup, text, sizeof(text)), 0);
			const char *pss = strstr(text, "Pss:");
			ck_assert_int_eq(sscanf(pss, "Pss: %lf", &pss_kib), 1);
			snprintf(path, sizeof(path), "process/%s%s/pss", kinds[i], item->string);
			bench_expect(&bench, path, pss_kib * 1024);
			snprintf(path, sizeof(path), "process/%s%s/count", kinds[i], item->string);
			bench_expect(&bench, path, 1);
		}
	}
	for (size_t i = 0; i < bench.processes.rows; i++) {
		char pid[16];
		snprintf(pid, sizeof(pid), "%d", (int)bench.processes.row[i].pid);
		const char *comm =
			cJSON_GetObjectItem(cJSON_GetObjectItem(field("procs"), pid), "comm")
				->valuestring;
		ck_assert_int_eq(strncmp(bench.processes.row[i].comm, comm, 15), 0);
		ck_assert_int_eq(bench.processes.row[i].state, 'S');
	}
	unload();
}
END_TEST

/* covers G2.7 */
START_LOOP_TEST(power_reads_as_expected, 0, OWN)
{
	load(_i);
	const cJSON *item, *rails = field("power_mw"), *limits = field("power_limit_mw");
	size_t count = 0;
	if (!start(folder, "power", rails != NULL || limits != NULL)) {
		unload();
		return;
	}
	cJSON_ArrayForEach(item, limits)
	{
		char path[256];
		snprintf(path, sizeof(path), "power_limit/%s", item->string);
		bench_expect(&bench, path, item->valuedouble);
		ck_assert_uint_eq(bench.source->metrics, 1); /* and no total of it */
	}
	if (rails) {
		cJSON_ArrayForEach(item, rails)
		{
			char path[256];
			snprintf(path, sizeof(path), "power/%s", item->string);
			/* expected.json is in whole milliwatts, some cut and some rounded */
			ck_assert_double_eq_tol(bench_value(&bench, path), item->valuedouble, 1);
			count++;
		}
		ck_assert_double_eq_tol(bench_value(&bench, "power/total"),
			field("total_power_mw")->valuedouble, 1);
		ck_assert_uint_eq(bench.source->metrics, count + 1);
	}
	unload();
}
END_TEST

START_LOOP_TEST(gpu_reads_as_expected, 0, OWN)
{
	load(_i);
	const cJSON *gpu = field("gpu");
	if (start(folder, "gpu", gpu != NULL)) {
		bench_expect(&bench, "gpu/utilization",
			cJSON_GetObjectItem(gpu, "load_pct")->valuedouble);
		bench_expect(&bench, "gpu/frequency",
			cJSON_GetObjectItem(gpu, "freq_mhz")->valuedouble * 1e6);
	}
	unload();
}
END_TEST

START_LOOP_TEST(fans_read_as_the_files_say, 0, OWN)
{
	static const struct {
		const char *device, *metric;
		double rpm;
		const char *duty; /* of the chip that drives it */
		double pwm;
	} fans[] = {
		{"jetson-nano-jp4", "fan/pwm-fan", 0, "fan_duty/pwm-fan", 0},
		{"jetson-orin-nano-jp6", "fan/pwm_tach", 2140, "fan_duty/pwmfan", 60},
		{"rk3588", NULL, 0, "fan_duty/pwmfan", 95},
		{"rpi5", "fan/pwmfan", 3785, "fan_duty/pwmfan", 75},
		{"xavier-nx-jp5", "fan/pwm_tach", 1875, "fan_duty/pwmfan", 77},
	};
	load(_i);
	size_t at = 0;
	while (at < sizeof(fans) / sizeof(fans[0]) && strcmp(fans[at].device, devices[_i]) != 0) {
		at++;
	}
	bool some = at < sizeof(fans) / sizeof(fans[0]);
	if (start(folder, "fan", some)) {
		if (fans[at].metric) {
			bench_expect(&bench, fans[at].metric, fans[at].rpm);
		}
		bench_expect(&bench, fans[at].duty, fans[at].pwm * 100 / 255);
		ck_assert_uint_eq(bench.source->metrics, fans[at].metric ? 2 : 1);
	}
	unload();
}
END_TEST

/* A cap on one device of several: the source named is the one that caps. */
START_LOOP_TEST(caps_are_told_with_the_device_that_caps, 0, OWN)
{
	static const char *const caps[OWN] = {
		"cooling_device thermal-devfreq-*", "cooling_device cpufreq-*"};
	load(_i);
	ck_assert(start(folder, "throttle", true));
	bench_expect(&bench, "throttle/active", 1);
	bench_expect(&bench, "throttle/freq_capped", 1);
	ck_assert(isnan(bench_value(&bench, "throttle/throttled")));
	ck_assert_str_eq(bench.throttle.source, caps[_i]);
	unload();
}
END_TEST

SHARED_TESTS;

TEST_AGAIN(zones_and_cooling_devices_read_as_expected, OWN, DEVICES);
TEST_AGAIN(clocks_read_as_expected, OWN, DEVICES);
TEST_AGAIN(utilization_between_two_samples_is_as_expected, OWN, DEVICES);
TEST_AGAIN(memory_reads_as_expected, OWN, DEVICES);
TEST_AGAIN(load_reads_as_expected, OWN, DEVICES);
TEST_AGAIN(pressure_is_absent_with_advice_or_read, OWN, DEVICES);
TEST_AGAIN(processes_read_as_expected, OWN, DEVICES);
TEST_AGAIN(power_reads_as_expected, OWN, DEVICES);
TEST_AGAIN(gpu_reads_as_expected, OWN, DEVICES);
TEST_AGAIN(fans_read_as_the_files_say, OWN, DEVICES);
