/* SPDX-License-Identifier: Apache-2.0 */
/* facts.c: reads model, system and kernel: what GetStatus and the MQTT info message say of the
 * device. */
#include "daemon/host/facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "daemon/core/status/facts.h"
#include "daemon/util/sysops.h"

/* Replaces what is not printable ASCII or UTF-8 lead/continuation bytes, cuts at the first NUL or
 * newline: device trees end strings with NUL, files with a newline. */
static void read_line(const struct root *root, const char *path, char *text, size_t size)
{
	char buf[512];
	ssize_t n = root_read(root, path, buf, sizeof(buf));
	text[0] = '\0';
	if (n <= 0) {
		return;
	}
	buf[strcspn(buf, "\r\n")] = '\0';
	snprintf(text, size, "%.*s", (int)size - 1, buf);
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f) {
			*c = '?';
		}
	}
}

static void read_os(const struct root *root, char *text, size_t size)
{
	static const char key[] = "PRETTY_NAME=";
	char buf[4096];
	text[0] = '\0';
	if (root_read(root, "etc/os-release", buf, sizeof(buf)) <= 0) {
		return;
	}
	for (char *line = strtok(buf, "\n"); line; line = strtok(NULL, "\n")) {
		if (strncmp(line, key, sizeof(key) - 1) != 0) {
			continue;
		}
		char *value = line + sizeof(key) - 1;
		size_t length = strlen(value);
		if (length >= 2 && (value[0] == '"' || value[0] == '\'')) {
			value[length - 1] = '\0';
			value++;
		}
		snprintf(text, size, "%s", value);
	}
}

/* x86 guests have a flag; elsewhere the vendor of the firmware gives it away. */
static bool is_virtual(const struct root *root)
{
	static const char *const vendors[] = {
		"QEMU", "VMware", "innotek", "Xen", "Parallels", "Bochs"};
	char buf[8192] = "", vendor[64];
	/* -EFBIG: there are more processors, of which the first are enough */
	ssize_t n = root_read(root, "proc/cpuinfo", buf, sizeof(buf) - 1);
	if ((n > 0 || n == -EFBIG) && strstr(buf, " hypervisor")) {
		return true;
	}
	read_line(root, "sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor));
	for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++) {
		if (strncmp(vendor, vendors[i], strlen(vendors[i])) == 0) {
			return true;
		}
	}
	return false;
}

void facts_read(struct machine_facts *facts, const struct root *root, const struct root *real_root)
{
	static const char *const models[] = {"proc/device-tree/model",
		"sys/firmware/devicetree/base/model", "sys/class/dmi/id/product_version",
		"sys/class/dmi/id/product_name"};
	struct utsname name;
	facts->model[0] = '\0';
	snprintf(facts->version, sizeof(facts->version), "%s", EDGEPROF_VERSION);
	if (gethostname(facts->hostname, sizeof(facts->hostname) - 1) < 0) {
		facts->hostname[0] = '\0';
	}
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]) && !facts->model[0]; i++) {
		read_line(root, models[i], facts->model, sizeof(facts->model));
	}
	read_os(root, facts->os, sizeof(facts->os));
	if (uname(&name) == 0) {
		snprintf(facts->kernel, sizeof(facts->kernel), "%.100s", name.release);
		snprintf(facts->arch, sizeof(facts->arch), "%.31s", name.machine);
	}
	read_line(real_root, "proc/sys/kernel/random/boot_id", facts->boot_id,
		sizeof(facts->boot_id));
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	facts->cpus = cpus > 0 ? (uint32_t)cpus : 1;
	facts->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	facts->virtual_machine = is_virtual(root);
	facts->started_ns = sysops()->now_ns();
}
