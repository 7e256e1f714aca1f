/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_environment.c: finds what limits the threads of an app's numeric libraries: the variables
 * *_NUM_THREADS that its first process was started with (/proc/PID/environ). The daemon adds what
 * it knows itself. Only root and the user of a process may read them, and only on this machine;
 * otherwise the session has none.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/sessions/sessions.h"

enum { VARIABLES_MAX = 16, VALUE_MAX = 256 /* of a tag */ };

static void add_variables(FILE *file, cJSON *environment)
{
	char *line = NULL;
	size_t size = 0;
	int found = 0;
	while (found < VARIABLES_MAX && getdelim(&line, &size, '\0', file) > 0) {
		char *value = strchr(line, '=');
		if (value) {
			*value++ = '\0';
		}
		if (value && strlen(value) <= VALUE_MAX && fnmatch("*_NUM_THREADS", line, 0) == 0) {
			session_add_tag(environment, line, value);
			found++;
		}
	}
	free(line);
}

/* Returns the pid of the app's first process; without a name, of the only app that runs. 0:
 * unknown. */
static int64_t process_of(const cJSON *apps, const char *app)
{
	int64_t pid = 0;
	for (const cJSON *row = json_first(apps, "apps"); row; row = row->next) {
		int64_t its = json_integer(json_first(row, "processes"), "pid");
		if (its > 0 && (!app || strcmp(json_word(row, "name"), app) == 0)) {
			pid = pid == 0 ? its : -1;
		}
	}
	return pid > 0 ? pid : 0;
}

void session_add_environment(struct ctl *ctl, cJSON *parameters, const char *app)
{
	cJSON *reply;
	char path[64];
	if (ctl_hosts(ctl) > 0 || ctl_try(ctl, "ListApps", NULL, &reply) != CTL_FINE) {
		return; /* StartSession reports what is wrong */
	}
	snprintf(path, sizeof(path), "/proc/%" PRId64 "/environ", process_of(reply, app));
	FILE *file = fopen(path, "re");
	if (file) {
		add_variables(file, cJSON_AddArrayToObject(parameters, "environment"));
		fclose(file);
	}
	cJSON_Delete(reply);
}
