/* SPDX-License-Identifier: Apache-2.0 */
/* doctor's judgement of a machine: trees that stand for "/", and what it says about them. */
#include "client/edgeprofctl/doctor/doctor.h"
#include "client/edgeprofctl/link/json.h"
#include "tests/unit/tree.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct tree tree;
static const char *const root = tree.path;
static cJSON *checks;

static void setup(void)
{
	tree_make(&tree);
	checks = cJSON_CreateArray();
}

static void teardown(void)
{
	cJSON_Delete(checks);
	tree_remove(&tree);
}

static void put(const char *path, const char *text)
{
	tree_write(&tree, path, text);
}

static const cJSON *row(const char *name)
{
	const cJSON *item = checks->child;
	while (item != NULL && strcmp(json_word(item, "name"), name) != 0) {
		item = item->next;
	}
	return item;
}

static void check_row(const char *name, const char *state, const char *text, const char *fix)
{
	const cJSON *item = row(name);
	ck_assert_msg(item != NULL, "no finding %s", name);
	ck_assert_str_eq(json_word(item, "state"), state);
	ck_assert_msg(strstr(json_word(item, "text"), text) != NULL, "%s: %s", name,
		json_word(item, "text"));
	if (fix == NULL) {
		ck_assert_ptr_null(json_text(item, "fix"));
	} else {
		ck_assert_msg(
			strstr(json_word(item, "fix"), fix) != NULL, "%s", json_word(item, "fix"));
	}
}

static void again(void)
{
	cJSON_Delete(checks);
	checks = cJSON_CreateArray();
}

FIXTURE(setup, teardown);

START_TEST(a_full_kernel_is_ok)
{
	put("proc/pressure/memory", "some avg10=0.00\n");
	put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
	put("proc/self/schedstat", "72458 49754 2\n");
	put("proc/sys/kernel/task_delayacct", "1\n");
	put("sys/bus/event_source/devices/armv8_cortex_a76/events/cpu_cycles", "event=0x11\n");
	doctor_kernel(checks, root, "6.6.31+rpt-rpi-2712");
	ck_assert_int_eq(findings_count(checks, FINDING_OK), 5);
	ck_assert_int_eq(cJSON_GetArraySize(checks), 5);
	check_row("pmu", "ok", "armv8_cortex_a76", NULL);
}
END_TEST

START_TEST(an_empty_machine_has_hints_only)
{
	doctor_kernel(checks, root, "6.1.0");
	check_row("pressure", "hint", "PSI is off", "psi=1");
	check_row("cgroup", "hint", "version 2", "systemd.unified_cgroup_hierarchy=1");
	check_row("schedstat", "hint", "no /proc/PID/schedstat", NULL);
	check_row("pmu", "hint", "no hardware counters", NULL);
	ck_assert_ptr_null(row("delayacct"));
	ck_assert_int_eq(findings_count(checks, FINDING_PROBLEM), 0);
}
END_TEST

START_TEST(pressure_that_can_not_be_has_no_fix)
{
	static const struct {
		const char *release, *config, *text;
	} cases[] = {
		{"4.9.253-tegra", "", "older than PSI"},
		{"3.10.40", "", "older than PSI"},
		{"4.20.1", "# CONFIG_PSI is not set\n", "without CONFIG_PSI"},
		{"6.1.0", "CONFIG_PSI_DEFAULT_DISABLED=y\n", "without CONFIG_PSI"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[64];
		snprintf(path, sizeof(path), "boot/config-%s", cases[i].release);
		put(path, cases[i].config[0] == '\0' ? "x\n" : cases[i].config);
		again();
		doctor_kernel(checks, root, cases[i].release);
		check_row("pressure", "hint", cases[i].text, NULL);
	}
	put("boot/config-6.2.0", "CONFIG_A=y\nCONFIG_PSI=y\n");
	again();
	doctor_kernel(checks, root, "6.2.0");
	check_row("pressure", "hint", "PSI is off", "psi=1");
}
END_TEST

START_TEST(boot_parameters_go_where_the_boot_loader_reads_them)
{
	static const struct {
		const char *file, *fix;
	} cases[] = {
		{"etc/default/grub",
			"sudo sed -i 's|^GRUB_CMDLINE_LINUX=\"|&psi=1 |' /etc/default/grub && sudo "
			"update-grub && sudo reboot"},
		{"boot/extlinux/extlinux.conf",
			"sudo sed -i '/^ *APPEND/ s|$| psi=1|' /boot/extlinux/extlinux.conf && "
			"sudo reboot"},
		{"boot/cmdline.txt",
			"sudo sed -i '1 s|$| psi=1|' /boot/cmdline.txt && sudo reboot"},
		{"boot/firmware/cmdline.txt",
			"sudo sed -i '1 s|$| psi=1|' /boot/firmware/cmdline.txt && sudo reboot"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char fix[256];
		put(cases[i].file, "x\n");
		machine_fix_boot(root, "psi=1", fix, sizeof(fix));
		ck_assert_str_eq(fix, cases[i].fix);
	}
}
END_TEST

START_TEST(a_cgroup_without_memory_is_a_hint)
{
	put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io pids memory2\n");
	put("boot/firmware/cmdline.txt", "console=tty1\n");
	put("proc/self/schedstat", "0 0 0\n");
	put("proc/sys/kernel/task_delayacct", "0\n");
	doctor_kernel(checks, root, "6.6.0");
	check_row("cgroup", "hint", "no memory controller", "cgroup_enable=memory");
	check_row("schedstat", "hint", "does not count", "task_delayacct=1");
	check_row("delayacct", "hint", "iodelay", "task_delayacct=1");
}
END_TEST

START_TEST(subjects_are_read_from_status)
{
	struct access_subject subject = {.is_daemon = true};
	put("proc/7/status", "Name:\tx\nUid:\t1\t998\t1\t1\nGid:\t1\t997\t1\t1\nGroups:\t44 1000 \n"
			     "CapEff:\t0000004000000000\n");
	ck_assert_int_eq(access_subject_read(root, "7", &subject), 0);
	ck_assert_uint_eq(subject.uid, 998);
	ck_assert_uint_eq(subject.group_count, 3);
	ck_assert_uint_eq(subject.groups[0], 997);
	ck_assert_uint_eq(subject.groups[2], 1000);
	ck_assert_uint_eq(subject.capabilities, UINT64_C(1) << 38);
	ck_assert(subject.is_daemon);
	ck_assert_int_eq(access_subject_read(root, "8", &subject), -ENOENT);
	static const char *const bad[] = {"", "Name:\tx\n", "\nUid:\tx\n", "\nUid:\t1\t2\n",
		"\nUid:\t1\t2\nGid:\t1\n", "Uid:\t1\t2\nGid:\t1\t2\n"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put("proc/9/status", bad[i]);
		ck_assert_int_eq(access_subject_read(root, "9", &subject), -EBADMSG);
	}
}
END_TEST

START_TEST(counters_follow_paranoia_and_capabilities)
{
	static const struct {
		const char *level;
		uint64_t capabilities;
		uid_t uid;
		const char *state, *text;
	} cases[] = {
		{"-1\n", 0, 998, "ok", "everything is allowed"},
		{"0\n", 0, 998, "hint", "raw tracepoints"},
		{"1\n", 0, 998, "hint", "with the kernel's part"},
		{"2\n", 0, 998, "hint", "without the kernel's part"},
		{"4\n", 0, 998, "hint", "nothing may be counted"},
		{"4\n", UINT64_C(1) << 38, 998, "ok", "has CAP_PERFMON"},
		{"4\n", 0, 0, "ok", "has CAP_PERFMON"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct access_subject subject = {.is_daemon = true,
			.service = true,
			.uid = cases[i].uid,
			.capabilities = cases[i].capabilities};
		put("proc/sys/kernel/perf_event_paranoid", cases[i].level);
		again();
		doctor_access(checks, root, &subject);
		bool ok = strcmp(cases[i].state, "ok") == 0;
		check_row("perf", cases[i].state, cases[i].text,
			ok ? NULL : "AmbientCapabilities=CAP_PERFMON\\nSystemCallFilter");
	}
}
END_TEST

/* What is shipped is installed, not typed: it may hold more than the lines that are missing. */
START_TEST(an_installed_drop_in_is_the_fix)
{
	char path[256], fix[512];
	static const char then[] =
		"sudo systemctl daemon-reload && sudo systemctl restart edgeprofd";
	struct access_subject subject = {.is_daemon = true, .service = true, .uid = 998};
	snprintf(path, sizeof(path), "%s/perf-counters.conf", machine_dropins);
	put("proc/sys/kernel/perf_event_paranoid", "4\n");
	put(path, "[Service]\n");
	doctor_access(checks, root, &subject);
	snprintf(fix, sizeof(fix),
		"sudo install -D -m 644 -t /etc/systemd/system/edgeprofd.service.d /%s && %s", path,
		then);
	check_row("perf", "hint", "has no CAP_PERFMON", fix);
	/* and one that is not installed is typed */
	check_row("processes", "hint", "may not read smaps_rollup",
		"printf '[Service]\\nCapabilityBoundingSet=CAP_SYS_PTRACE\\n"
		"AmbientCapabilities=CAP_SYS_PTRACE\\n' | sudo tee "
		"/etc/systemd/system/edgeprofd.service.d/other-users.conf && ");
}
END_TEST

START_TEST(a_kernel_without_counters_has_no_fix)
{
	struct access_subject subject = {.is_daemon = true, .uid = 998};
	doctor_access(checks, root, &subject);
	check_row("perf", "hint", "no perf events", NULL);
	ck_assert_ptr_null(row("firmware"));
	check_row("processes", "hint", "the daemon may not read smaps_rollup",
		"sudo setcap cap_sys_ptrace+ep \"$(command -v edgeprofd)\"");
	again();
	subject.capabilities = UINT64_C(1) << 19;
	doctor_access(checks, root, &subject);
	check_row("processes", "ok", "may read", NULL);
}
END_TEST

static void mailbox(mode_t mode, const struct access_subject *subject)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/dev/vcio", root);
	put("dev/vcio", "");
	ck_assert_int_eq(chmod(path, mode), 0);
	again();
	doctor_access(checks, root, subject);
	ck_assert_int_eq(unlink(path), 0);
}

START_TEST(the_mailbox_is_judged_by_owner_group_and_mode)
{
	struct access_subject subject = {.is_daemon = true, .service = true, .uid = 998};
	mailbox(0604, &subject);
	check_row("firmware", "ok", "/dev/vcio", NULL);
	mailbox(0600, &subject);
	check_row("firmware", "hint", "may not open /dev/vcio", "/etc/udev/rules.d/90-vcio.rules");
	subject.groups[subject.group_count++] = getegid();
	mailbox(0640, &subject);
	check_row("firmware", "ok", "/dev/vcio", NULL);
	mailbox(0604, &subject); /* the group's bits count, not the others' */
	check_row("firmware", "hint", "may not open", "udev");
	subject.uid = geteuid();
	mailbox(0400, &subject);
	check_row("firmware", "ok", "/dev/vcio", NULL);
}
END_TEST

START_TEST(a_group_that_may_is_joined_by_a_drop_in)
{
	char path[512];
	struct access_subject subject = {.is_daemon = true, .service = true, .uid = 998};
	snprintf(path, sizeof(path), "%s/dev/vcio", root);
	put("dev/vcio", "");
	if (chown(path, 0, 44) < 0) {
		return; /* only root gives files away; the other tests judge modes */
	}
	ck_assert_int_eq(chmod(path, 0660), 0);
	doctor_access(checks, root, &subject);
	check_row("firmware", "hint", "may not open",
		"PrivateDevices=no\\nDeviceAllow=/dev/vcio r\\nSupplementaryGroups=video");
	again();
	snprintf(path, sizeof(path), "%s/raspberry-pi.conf", machine_dropins);
	put(path, "[Service]\n");
	doctor_access(checks, root, &subject);
	check_row("firmware", "hint", "may not open", "edgeprofd/dropins/raspberry-pi.conf && ");
	again();
	subject.service = false;
	doctor_access(checks, root, &subject);
	check_row("firmware", "hint", "may not open", "usermod -aG video $USER");
}
END_TEST

START_TEST(a_pi_without_mailbox_is_told)
{
	struct access_subject subject = {.is_daemon = true, .uid = 998};
	put("proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4");
	doctor_access(checks, root, &subject);
	check_row("firmware", "hint", "no /dev/vcio", NULL);
	put("dev/vcio_gencmd", "");
	again();
	doctor_access(checks, root, &subject);
	ck_assert_ptr_nonnull(strstr(json_word(row("firmware"), "text"), "vcio_gencmd"));
}
END_TEST

START_TEST(clocks_are_told_apart)
{
	doctor_clock(checks, true, false, false);
	check_row("clock", "ok", "synchronised", NULL);
	again();
	doctor_clock(checks, true, true, false);
	check_row("clock", "hint", "within a minute", NULL);
	again();
	doctor_clock(checks, false, true, true);
	check_row("clock", "hint", "not synchronised", "sudo timedatectl set-ntp true");
}
END_TEST

START_TEST(tools_are_found_along_the_path)
{
	/* covers G1.19 */
	char path[2048], file[512];
	put("a/perf", "");
	put("b/perf", "");
	put("b/tc/x", "");
	snprintf(file, sizeof(file), "%s/b/perf", root);
	ck_assert_int_eq(chmod(file, 0755), 0);
	snprintf(path, sizeof(path), "::relative:%s/a:%s/none:%s/b", root, root, root);
	cJSON *tools = doctor_tools(path);
	const cJSON *tool = tools->child;
	ck_assert_str_eq(json_word(tool, "name"), "perf");
	ck_assert_str_eq(json_word(tool, "path"), file); /* a/perf can't be run */
	for (tool = tool->next; tool != NULL; tool = tool->next) {
		ck_assert(cJSON_IsNull(cJSON_GetObjectItem(tool, "path")));
	}
	cJSON_Delete(tools);
	tools = doctor_tools("");
	ck_assert_int_eq(cJSON_GetArraySize(tools), 14);
	cJSON_Delete(tools);
}
END_TEST

START_TEST(costs_are_shares_of_a_second)
{
	cJSON *reply = cJSON_Parse(
		"{\"sources\":["
		"{\"name\":\"a\",\"state\":\"ok\",\"interval_ms\":100,\"duration_us\":250},"
		"{\"name\":\"b\",\"state\":\"unavailable\",\"interval_ms\":1000,"
		"\"duration_us\":900,\"reason\":\"none\"},"
		"{\"name\":\"c\",\"state\":\"ok\",\"interval_ms\":0,\"duration_us\":900}]}");
	cJSON *rows = doctor_sources(reply);
	const cJSON *first = rows->child;
	ck_assert_double_eq(json_number(first, "us_per_s"), 2500);
	ck_assert_double_eq_tol(json_number(first, "share_percent"), 0.25, 1e-12);
	ck_assert(isnan(json_number(first->next, "us_per_s")));
	ck_assert_str_eq(json_word(first->next, "reason"), "none");
	ck_assert(isnan(json_number(first->next->next, "us_per_s")));
	cJSON_Delete(rows);
	cJSON_Delete(reply);
}
END_TEST

START_TEST(files_are_read_within_their_room)
{
	char text[8];
	put("x", "0123456789\n");
	ck_assert_int_eq(machine_read(root, "x", text, sizeof(text)), 7);
	ck_assert_str_eq(text, "0123456");
	put("x", "12\n");
	ck_assert_int_eq(machine_read(root, "x", text, sizeof(text)), 2);
	put("x", "");
	ck_assert_int_eq(machine_read(root, "x", text, sizeof(text)), 0);
	ck_assert_int_eq(machine_read(root, "absent", text, sizeof(text)), -ENOENT);
	ck_assert_int_eq(machine_read(root, ".", text, sizeof(text)), -EISDIR);
	ck_assert_str_eq(text, "");
	static char longer[5000];
	memset(longer, 'x', sizeof(longer) - 1);
	ck_assert_int_eq(machine_read(root, longer, text, sizeof(text)), -ENAMETOOLONG);
	ck_assert(machine_word("cpuset cpu\nio", "cpu"));
	ck_assert(machine_word("cpuset cpu\nio", "io"));
	ck_assert(!machine_word("cpuset io", "cpu"));
	ck_assert(!machine_word("", "cpu"));
}
END_TEST
