/*
 * Datagrams: the `statsd` socket and, when asked for, a UDP port. Their lines become records of
 * pseudo processes of core/apps, so that everything behind it is as for instrumented apps.
 */
#pragma once

#include <uv.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"

struct statsd;

struct statsd_options {
	const char *path;  /* of the socket (run directory) */
	const char *group; /* NULL: mode 0666; else 0660 and this group */
	const char *udp;   /* as statsd_address_parse reads it; NULL or "" = no UDP */
};

/* Binds and starts. -EADDRINUSE: somebody receives there, or has the UDP port; -EEXIST: the path is
 * something else; -EINVAL: not an address; -ENOMEM; other -errno of socket and bind. */
int statsd_open(uv_loop_t *loop, struct core *core, const struct statsd_options *options,
	struct statsd **ret);

/* Sockets are closed and the path removed at once, so that it may be opened anew; memory goes with
 * the last handle. how is what is told of its apps: PROCESS_RELEASED when the daemon stops,
 * PROCESS_ENDED when only this does. */
void statsd_close(struct statsd *statsd, enum process_end how);
