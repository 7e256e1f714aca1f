/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statsd.h: receives datagrams on the `statsd` socket and, if configured, on a UDP port. Their
 * lines become records of pseudo processes of core/apps, which treats them as instrumented apps.
 */
#pragma once

#include <uv.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"

struct statsd;

struct statsd_options {
	int fd;		 /* the bound socket `statsd`; the caller closes it after statsd */
	const char *udp; /* as statsd_address_parse reads it; NULL or "" = no UDP */
};

/* Binds the UDP port and starts. -EADDRINUSE: another process serves it; -EINVAL: invalid address;
 * -ENOMEM; other -errno of socket and bind. */
int statsd_open(uv_loop_t *loop, struct core *core, const struct statsd_options *options,
	struct statsd **ret);

/* Closes the UDP socket at once, so that it can be opened again; memory is freed with the last
 * handle. how its apps end: PROCESS_RELEASED when the daemon stops, PROCESS_ENDED
 * when only this does. */
void statsd_close(struct statsd *statsd, enum process_end how);
