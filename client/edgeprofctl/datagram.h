/* SPDX-License-Identifier: Apache-2.0 */
/* datagram.h: sends statsd lines to the daemon's socket for datagrams, and checks them first. */
#pragma once

#include "client/edgeprofctl/ctl.h"
#include "proto/text.h"

enum {
	DATAGRAM_SIZE = 8192, /* what statsd clients send at most over Unix sockets */
	DATAGRAM_WAIT_MS = 200,
};

/* Connects: *ret is the caller's with CTL_FINE. Why it failed goes to `errors`, unless NULL. */
int datagram_open(struct ctl *ctl, FILE *errors, int *ret);

/* Waits up to wait_ms for a daemon that is busy. -EAGAIN: it still is; other errors: reconnect. */
int datagram_send(int fd, const char *lines, size_t length, int wait_ms);

/* Adds "name:value|type" and the tags that the options ask for. frame: NULL for none. */
void datagram_add_line(const struct ctl *ctl, struct text *line, const char *name,
	const char *value, const char *type, const char *frame);

/* Why the daemon refuses a stage that took so long and ends now; NULL: it does not. */
const char *datagram_bad_duration(double ms);

/* The line as the daemon will read it must say what was asked for; else CTL_USAGE after a message.
 */
int datagram_check(struct ctl *ctl, const char *name, const struct text *line);
