/* The daemon's socket for datagrams, for emit. */
#pragma once

#include <stddef.h>

#include "client/edgeprofctl/ctl.h"

/* Finds and connects it: beside --socket, else where the daemon is looked for. CTL_FINE with a
 * descriptor in *ret, or an exit status after saying why on stderr. */
int emit_connect(struct ctl *ctl, int *ret);

/* Sends lines in one datagram. Never waits longer than wait_ms for a daemon that is behind.
 * CTL_FINE, or CTL_UNREACHABLE after saying why. */
int emit_send(struct ctl *ctl, int fd, const char *lines, size_t length, int wait_ms);
