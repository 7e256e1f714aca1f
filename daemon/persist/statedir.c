/* SPDX-License-Identifier: Apache-2.0 */
/* statedir.c: finds the state directory. Only absolute paths count, as the working directory of the
 * daemon means nothing. */
#include "daemon/persist/statedir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/util/file.h"
#include "daemon/util/offload/offload.h"
#include "daemon/util/sysops.h"

/* The value when it is an absolute path. */
static const char *path_of(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] == '/' ? value : NULL;
}

int statedir_choose(const char *configured, char *path, size_t size, bool *parents)
{
	const char *service = path_of("STATE_DIRECTORY"), *state = path_of("XDG_STATE_HOME");
	const char *home = path_of("HOME");
	int length;
	*parents = false;
	if (configured[0] != '\0') {
		length = snprintf(path, size, "%s", configured);
	} else if (service) { /* several are separated by colons; ours is the first */
		length = snprintf(path, size, "%.*s", (int)strcspn(service, ":"), service);
	} else if (geteuid() == 0) {
		length = snprintf(path, size, "/var/lib/edgeprofd");
	} else if (state || home) {
		*parents = true;
		length = snprintf(path, size, "%s%s/edgeprofd", state ? state : home,
			state ? "" : "/.local/state");
	} else {
		path[0] = '\0';
		return -ENOENT;
	}
	if (length < 0 || (size_t)length >= size) {
		path[0] = '\0';
		return -ENAMETOOLONG;
	}
	return 0;
}

static int probe(void *data)
{
	int folder = folder_open(data, 0);
	if (folder >= 0) {
		close(folder);
	}
	return 0;
}

static void on_probed(void *ctx, int result, void *data)
{
	(void)ctx;
	(void)result;
	free(data);
}

bool statedir_answers(uv_loop_t *loop, const char *dir, unsigned ms)
{
	static const struct offload_ops ops = {.work = probe, .done = on_probed, .release = free};
	struct offload *job;
	char *copy = mem_strdup(dir);
	if (!copy || offload_start(loop, &ops, copy, NULL, &job) < 0) {
		free(copy);
		return false;
	}
	const bool answers = offload_wait(job, ms);
	if (!answers) {
		offload_detach(job);
	}
	return answers;
}
