/* SPDX-License-Identifier: Apache-2.0 */
/* session_environment.c: notes what a session's numbers depend on: the device and how it is set,
 * and the processors that the app may use (Cpus_allowed_list of /proc/PID/status). */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/status/modes.h"
#include "daemon/recorder/session_private.h"
#include "daemon/util/sysops.h"
#include "proto/utf8.h"

/* What is not known, or does not fit, is not there. */
static void note(struct session *row, const char *name, const char *value)
{
	char clean[SESSION_TAG_VALUE];
	snprintf(clean, sizeof(clean), "%s", value);
	proto_utf8_clean(clean);
	if (clean[0]) {
		session_tags_add(&row->environment, name, clean);
	}
}

void session_note_device(struct session *row, const struct core *core)
{
	const struct facts *facts = core->facts;
	const struct modes *modes = core->modes;
	char number[16];
	note(row, "device", facts->model);
	note(row, "os", facts->os);
	note(row, "kernel", facts->kernel);
	note(row, "arch", facts->arch);
	note(row, "edgeprofd", facts->version);
	snprintf(number, sizeof(number), "%u", facts->cpus);
	note(row, "cpus", number);
	if (!modes) {
		return;
	}
	snprintf(number, sizeof(number), "%d", modes->power_mode);
	note(row, "power_mode",
		modes->power_mode_name[0] ? modes->power_mode_name
		: modes->have_power_mode  ? number
					  : "");
	note(row, "governor", modes->governor);
	note(row, "gpu_governor", modes->gpu_governor);
	note(row, "clocks",
		modes->clocks == CLOCKS_PINNED ? "pinned"
		: modes->clocks == CLOCKS_FREE ? "free"
					       : "");
}

void session_note_affinity(struct session *row, const struct app *app)
{
	static const char key[] = "\nCpus_allowed_list:\t";
	char path[64], text[4096];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)app->last_pid);
	int fd = app->last_pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? -1 : sysops()->pread(fd, text, sizeof(text) - 1, 0);
	if (fd >= 0) {
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	char *at = strstr(text, key);
	if (at) {
		at += strlen(key);
		at[strcspn(at, "\n")] = '\0';
		note(row, "affinity", at);
	}
}
