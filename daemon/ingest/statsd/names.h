/* The names of one app of datagrams: each is a declaration, found again by a hash. */
#pragma once

#include "daemon/ingest/statsd/apps.h"

struct statsd_name {
	uint64_t hash;
	double gauge; /* the last value, for differences */
	uint8_t length;
};

struct statsd_names {
	uint8_t slot[2 * STATSD_NAMES_MAX]; /* index + 1; 0 = free */
	size_t count;
	struct statsd_name name[STATSD_NAMES_MAX];
};

/* Index of the line's name, declared at its first use; -ENOSPC: no room for another name. */
int statsd_names_find(struct statsd_names *names, struct apps *apps, struct app_process *process,
	const struct statsd_line *line);
