/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_kernel.c: looks for features of the kernel, and for tools. A feature is probed, never
 * derived from a version, except where the version explains why something is missing. */
#include "client/edgeprofctl/doctor/doctor.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIX_SIZE = 512, CONFIG_SIZE = 512 * 1024 };

/* PSI came with Linux 4.20. */
static bool older_than_psi(const char *release)
{
	char *rest;
	long major = strtol(release, &rest, 10);
	long minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
	return major > 0 && (major < 4 || (major == 4 && minor < 20));
}

/* The kernel's build configuration is there and does not have the option. */
static bool built_without(const char *root, const char *release, const char *option)
{
	char path[PATH_MAX];
	char *config = malloc(CONFIG_SIZE);
	bool without = false;
	int length = snprintf(path, sizeof(path), "boot/config-%s", release);
	if (config && length > 0 && (size_t)length < sizeof(path)) {
		ssize_t size = machine_read(root, path, config, CONFIG_SIZE);
		without = size > 0 && size + 1 < CONFIG_SIZE && !machine_word(config, option);
	}
	free(config);
	return without;
}

static void check_pressure(cJSON *checks, const char *root, const char *release)
{
	char fix[FIX_SIZE], text[256];
	if (machine_read(root, "proc/pressure/memory", text, sizeof(text)) > 0) {
		finding_add(checks, FINDING_OK, "pressure", NULL,
			"the kernel reports pressure stall information (PSI)");
	} else if (older_than_psi(release)) {
		finding_add(checks, FINDING_HINT, "pressure", NULL,
			"no pressure: kernel %.64s is older than PSI (4.20)", release);
	} else if (built_without(root, release, "CONFIG_PSI=y")) {
		finding_add(checks, FINDING_HINT, "pressure", NULL,
			"no pressure: the kernel was built without CONFIG_PSI");
	} else {
		machine_fix_boot(root, "psi=1", fix, sizeof(fix));
		finding_add(checks, FINDING_HINT, "pressure", fix,
			"no pressure: PSI is off in this kernel");
	}
}

static void check_cgroup(cJSON *checks, const char *root)
{
	char fix[FIX_SIZE], controllers[512];
	if (machine_read(root, "sys/fs/cgroup/cgroup.controllers", controllers,
		    sizeof(controllers)) < 0) {
		machine_fix_boot(root, "systemd.unified_cgroup_hierarchy=1", fix, sizeof(fix));
		finding_add(checks, FINDING_HINT, "cgroup", fix,
			"no control groups version 2 at /sys/fs/cgroup: quotas and throttling of "
			"processes are unknown");
		return;
	}
	bool memory = machine_word(controllers, "memory");
	bool cpu = machine_word(controllers, "cpu");
	if (!memory) {
		machine_fix_boot(root, "cgroup_enable=memory", fix, sizeof(fix));
	}
	finding_add(checks, memory && cpu ? FINDING_OK : FINDING_HINT, "cgroup",
		memory ? NULL : fix, "control groups version 2%s%s",
		memory ? "" : "; no memory controller: MemoryMax of services has no effect",
		cpu ? "" : "; no cpu controller: quotas have no effect");
}

static void check_scheduler(cJSON *checks, const char *root)
{
	static const char fix[] = "sudo sysctl -w kernel.task_delayacct=1";
	char text[128];
	bool there = machine_read(root, "proc/self/schedstat", text, sizeof(text)) > 0;
	finding_either(checks, there && strncmp(text, "0 0 0", 5) != 0, "schedstat",
		there ? fix : NULL, "the kernel counts the time processes wait for a CPU",
		there ? "the kernel does not count the time processes wait for a CPU"
		      : "no /proc/PID/schedstat: the time processes wait for a CPU is unknown");
	if (machine_read(root, "proc/sys/kernel/task_delayacct", text, sizeof(text)) > 0) {
		finding_either(checks, strcmp(text, "0") != 0, "delayacct", fix,
			"the kernel counts the time processes wait for I/O",
			"the time processes wait for I/O (iodelay) is not counted");
	}
}

/* A PMU is a device that knows cycles of the CPU, whatever it is called. */
static void check_pmu(cJSON *checks, const char *root)
{
	static const char *const events[] = {"cpu-cycles", "cpu_cycles"};
	char pattern[PATH_MAX], text[NAME_MAX + 96] = "";
	glob_t found = {0};
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]) && text[0] == '\0'; i++) {
		static const char devices[] = "sys/bus/event_source/devices";
		snprintf(pattern, sizeof(pattern), "%s/%s/*/events/%s", root, devices, events[i]);
		if (glob(pattern, 0, NULL, &found) == 0) {
			const char *name = strstr(found.gl_pathv[0], devices) + sizeof(devices);
			snprintf(text, sizeof(text),
				"hardware counters of the CPU (%.*s): cycles, instructions, cache "
				"misses",
				(int)strcspn(name, "/"), name);
		}
		globfree(&found);
	}
	finding_either(checks, text[0] != '\0', "pmu", NULL, text,
		"no hardware counters of the CPU (a virtual machine, or a kernel without "
		"them): cycles, instructions and IPC are unknown");
}

void doctor_kernel(cJSON *checks, const char *root, const char *release)
{
	check_pressure(checks, root, release);
	check_cgroup(checks, root);
	check_scheduler(checks, root);
	check_pmu(checks, root);
}

void doctor_clock(cJSON *checks, bool kernel_synced, bool daemon_known, bool daemon_synced)
{
	if (!kernel_synced) {
		finding_add(checks, FINDING_HINT, "clock", "sudo timedatectl set-ntp true",
			"the clock is not synchronised: times of samples may be wrong");
	} else if (daemon_known && !daemon_synced) {
		finding_add(checks, FINDING_HINT, "clock", NULL,
			"the clock is synchronised; the daemon will notice within a minute");
	} else {
		finding_add(checks, FINDING_OK, "clock", NULL, "the clock is synchronised");
	}
}

static const struct {
	const char *name, *use;
} tools[] = {
	{"perf", "counters and flame graphs"},
	{"pidstat", "one process over time"},
	{"numactl", "memory and CPU nodes"},
	{"taskset", "CPU affinity"},
	{"chrt", "real-time scheduling"},
	{"cpupower", "governors and frequencies"},
	{"stress-ng", "load to test under"},
	{"mosquitto_sub", "see what goes to the broker"},
	{"tc", "network delay and loss"},
	{"vcgencmd", "Raspberry Pi firmware"},
	{"tegrastats", "Jetson sensors"},
	{"nvpmodel", "Jetson power modes"},
	{"jetson_clocks", "Jetson clocks at their maximum"},
	{"varlinkctl", "call the daemon's methods"},
};

/* Relative directories of PATH depend on the working directory: they are skipped. */
static bool find(const char *path, const char *name, char ret[PATH_MAX])
{
	while (*path != '\0') {
		size_t length = strcspn(path, ":");
		struct stat status;
		int written = snprintf(ret, PATH_MAX, "%.*s/%s", (int)length, path, name);
		if (path[0] == '/' && written > 0 && written < PATH_MAX &&
			stat(ret, &status) == 0 && S_ISREG(status.st_mode) &&
			access(ret, X_OK) == 0) {
			return true;
		}
		path += length;
		path += *path == ':';
	}
	return false;
}

cJSON *doctor_tools(const char *path)
{
	cJSON *rows = cJSON_CreateArray();
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		char found[PATH_MAX];
		cJSON *row = cJSON_CreateObject();
		cJSON_AddStringToObject(row, "name", tools[i].name);
		cJSON_AddItemToObject(row, "path",
			find(path, tools[i].name, found) ? cJSON_CreateString(found)
							 : cJSON_CreateNull());
		cJSON_AddStringToObject(row, "use", tools[i].use);
		cJSON_AddItemToArray(rows, row);
	}
	return rows;
}
