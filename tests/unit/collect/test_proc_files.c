/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of proc beside stat and status, and control groups over a made-up tree. */
#include "daemon/collect/process/procfs.h"

#include <errno.h>

#include "daemon/collect/process/cgroup.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

static struct tree tree;
static struct root root;

static void setup(void)
{
	tree_make(&tree);
	ck_assert_int_eq(root_init(&root, tree.path), 0);
}

static void teardown(void)
{
	root_finish(&root);
	tree_remove(&tree);
}

#define IO "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\n"

static const struct {
	const char *text;
	int result;
} ios[] = {
	{IO "read_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 512\n", 0},
	{IO "read_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 51", -EBADMSG},
	{IO "read_bytes: 4096\nwrite_bytes: -1\ncancelled_write_bytes: 512\n", -EBADMSG},
	{IO "read_bytes: 99999999999999999999999\nwrite_bytes: 1\ncancelled_write_bytes: 5\n",
		-EBADMSG},
	{"", -EBADMSG},
};

FIXTURE(setup, teardown);

START_LOOP_TEST(io_is_read_whole_or_not_at_all, 0, COUNT(ios))
{
	struct proc_io io = {.read_bytes = 77};
	ck_assert_int_eq(proc_io_parse(ios[_i].text, &io), ios[_i].result);
	ck_assert_uint_eq(io.read_bytes, ios[_i].result == 0 ? 4096 : 77);
	if (ios[_i].result == 0) {
		ck_assert_uint_eq(io.write_bytes, 8192);
		ck_assert_uint_eq(io.cancelled_bytes, 512);
	}
}
END_TEST

START_TEST(schedstat_has_three_numbers)
{
	static const char *const bad[] = {"", "1", "1 2", "x 2 3\n", "1 -2 3\n", "1,2 3\n"};
	struct proc_schedstat stat = {.run_ns = 77};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(proc_schedstat_parse(bad[i], &stat), -EBADMSG);
		ck_assert_uint_eq(stat.run_ns, 77);
	}
	ck_assert_int_eq(proc_schedstat_parse("5 6 7\n", &stat), 0);
	ck_assert_uint_eq(stat.run_ns, 5);
	ck_assert_uint_eq(stat.delay_ns, 6);
}
END_TEST

START_TEST(what_a_process_does_not_have_is_enoent)
{
	struct proc_io io;
	double value;
	ck_assert_int_eq(proc_io_read(&root, 1, &io), -ENOENT);
	ck_assert_int_eq(proc_pss_read(&root, 1, &value), -ENOENT);
	ck_assert_int_eq(proc_fds_count(&root, 1, &value), -ENOENT);
}
END_TEST

START_TEST(descriptors_are_counted)
{
	struct root own;
	double before, after;
	tree_write(&tree, "proc/1/fd/0", "");
	tree_write(&tree, "proc/1/fd/1", "");
	tree_write(&tree, "proc/1/fd/17", "");
	ck_assert_int_eq(proc_fds_count(&root, 1, &before), 0);
	ck_assert_double_eq(before, 3);
	for (int i = 100; i < 1500; i++) { /* one by one, these hold the loop for milliseconds */
		char path[32];
		snprintf(path, sizeof(path), "proc/1/fd/%d", i);
		tree_write(&tree, path, "");
	}
	ck_assert_int_eq(proc_fds_count(&root, 1, &before), -EFBIG);
	ck_assert_int_eq(root_init(&own, NULL), 0);
	ck_assert_int_eq(proc_fds_count(&own, getpid(), &before), 0);
	int fd = open("/dev/null", O_RDONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(proc_fds_count(&own, getpid(), &after), 0);
	ck_assert_double_eq(after, before + 1);
	close(fd);
	root_finish(&own);
}
END_TEST

START_TEST(status_tells_switches_and_processors)
{
	struct proc_status status;
	proc_status_parse("Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-2,5\n"
			  "voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t34\n",
		&status);
	ck_assert_str_eq(status.cpus, "0-2,5");
	ck_assert_double_eq(status.voluntary, 12);
	ck_assert_double_eq(status.involuntary, 34);
	proc_status_parse("Name:\tx\n", &status);
	ck_assert_str_eq(status.cpus, "");
	ck_assert(isnan(status.voluntary) && isnan(status.involuntary));
	proc_status_parse("Cpus_allowed_list:\t0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,"
			  "38,40,42,44,46,48\n",
		&status);
	ck_assert_uint_lt(strlen(status.cpus), sizeof(status.cpus));
	ck_assert_str_eq(status.cpus + strlen(status.cpus) - 4, ",...");
	ck_assert_int_eq(strncmp(status.cpus, "0,2,4,", 6), 0);
}
END_TEST

/* covers G1.9 */
START_TEST(stat_tells_the_scheduling)
{
	static const char line[] =
		"7 (a) b) R 1 1 1 0 -1 0 7 0 0 0 10 20 0 0 -51 0 3 0 99 1 1 1 1 1 "
		"1 1 1 0 0 0 0 0 0 0 17 3 50 2 8 4 0\n";
	struct proc_stat stat;
	ck_assert_int_eq(proc_stat_parse(line, strlen(line), &stat), 0);
	ck_assert_int_eq(stat.priority, -51);
	ck_assert_int_eq(stat.nice, 0);
	ck_assert(stat.scheduling_known);
	ck_assert_int_eq(stat.last_core, 3);
	ck_assert_int_eq(stat.rt_priority, 50);
	ck_assert_str_eq(process_policy_name(stat.policy), "SCHED_RR");
	ck_assert_uint_eq(stat.iodelay_ticks, 8);
	ck_assert_uint_eq(stat.guest_ticks, 4);
}
END_TEST

static const struct {
	const char *text, *path;
	bool v1;
} groups[] = {
	{"0::/system.slice/cam.service\n", "/system.slice/cam.service", false},
	{"12:cpuset:/x\n4:cpu,cpuacct:/a/b\n0::/c\n", "/a/b", true},
	{"4:cpuacct,cpu:/a\n", "/a", true},
	{"4:cpuacct:/a\n0::/\n", "/", false},
	{"4:cpuset:/a\n", NULL, false},
	{"", NULL, false},
	{"nonsense\n::\n", NULL, false},
	{"0::relative\n", NULL, false},
};

START_LOOP_TEST(the_group_is_that_of_the_cpu_controller, 0, COUNT(groups))
{
	char path[PROCESS_CGROUP_SIZE];
	bool v1;
	int r = cgroup_parse(groups[_i].text, path, &v1);
	if (!groups[_i].path) {
		ck_assert_int_eq(r, -ENODATA);
		return;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(path, groups[_i].path);
	ck_assert_int_eq(v1, groups[_i].v1);
}
END_TEST

START_TEST(a_group_too_deep_is_refused)
{
	char text[512] = "0::/", path[PROCESS_CGROUP_SIZE];
	bool v1;
	memset(text + 4, 'a', 300);
	ck_assert_int_eq(cgroup_parse(text, path, &v1), -ENAMETOOLONG);
}
END_TEST

/* covers G1.9 */
START_TEST(the_tightest_quota_on_the_way_up_counts)
{
	struct cgroup_cpu cpu;
	tree_write(&tree, "sys/fs/cgroup/cpu.stat", "usage_usec 1\n");
	tree_write(&tree, "sys/fs/cgroup/s/cpu.max", "50000 100000\n");
	tree_write(&tree, "sys/fs/cgroup/s/cpu.stat", "nr_throttled 7\nthrottled_usec 900\n");
	tree_write(&tree, "sys/fs/cgroup/s/cam/cpu.max", "max 100000\n");
	tree_write(&tree, "sys/fs/cgroup/s/cam/cpu.stat", "nr_throttled 0\nthrottled_usec 0\n");
	cgroup_cpu_read(&root, "/s/cam", false, &cpu);
	ck_assert_double_eq(cpu.quota_percent, 50);
	ck_assert_double_eq(cpu.nr_throttled, 7);
	ck_assert_double_eq(cpu.throttled_us, 900);
	tree_write(&tree, "sys/fs/cgroup/s/cam/cpu.max", "20000 100000\n");
	cgroup_cpu_read(&root, "/s/cam", false, &cpu);
	ck_assert_double_eq(cpu.quota_percent, 20);
	ck_assert_double_eq(cpu.nr_throttled, 0);
	cgroup_cpu_read(&root, "/", false, &cpu);
	ck_assert(isnan(cpu.quota_percent) && isnan(cpu.nr_throttled));
	cgroup_cpu_read(&root, "/../s", false, &cpu);
	ck_assert(isnan(cpu.quota_percent) && isnan(cpu.throttled_us));
}
END_TEST

START_TEST(version_1_has_quota_and_throttling_too)
{
	struct cgroup_cpu cpu;
	tree_write(&tree, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n");
	tree_write(&tree, "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
	tree_write(&tree, "sys/fs/cgroup/cpu/a/cpu.stat",
		"nr_periods 9\nnr_throttled 3\nthrottled_time 5000000\n");
	cgroup_cpu_read(&root, "/a", true, &cpu);
	ck_assert_double_eq(cpu.quota_percent, 150);
	ck_assert_double_eq(cpu.nr_throttled, 3);
	ck_assert_double_eq(cpu.throttled_us, 5000);
	tree_write(&tree, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
	cgroup_cpu_read(&root, "/a", true, &cpu);
	ck_assert(isnan(cpu.quota_percent));
	ck_assert_double_eq(cpu.nr_throttled, 3);
}
END_TEST

START_TEST(a_unit_is_a_whole_part_of_the_path)
{
	ck_assert(cgroup_has_unit("/system.slice/cam.service", "cam.service"));
	ck_assert(cgroup_has_unit("/system.slice/cam.service/init", "cam.service"));
	ck_assert(!cgroup_has_unit("/system.slice/webcam.service", "cam.service"));
	ck_assert(!cgroup_has_unit("/system.slice/cam.service2", "cam.service"));
	ck_assert(cgroup_has_unit("/cam.service2/cam.service", "cam.service"));
	ck_assert(!cgroup_has_unit("", "cam.service"));
}
END_TEST
