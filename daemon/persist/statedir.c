/* Where the state directory is. An absolute path is asked for everywhere: the daemon's working
 * directory means nothing. */
#include "daemon/persist/statedir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
