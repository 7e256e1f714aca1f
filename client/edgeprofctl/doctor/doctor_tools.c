/* doctor: which tools are on this machine. */
#include "client/edgeprofctl/doctor/doctor_tools.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Relative directories of PATH depend on where one stands: they are left out. */
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
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]) && rows != NULL; i++) {
		char found[PATH_MAX];
		cJSON *row = cJSON_CreateObject();
		cJSON_AddStringToObject(row, "name", tools[i].name);
		if (find(path, tools[i].name, found)) {
			cJSON_AddStringToObject(row, "path", found);
		} else {
			cJSON_AddNullToObject(row, "path");
		}
		cJSON_AddStringToObject(row, "use", tools[i].use);
		cJSON_AddItemToArray(rows, row);
	}
	return rows;
}
