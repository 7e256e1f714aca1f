/* Datagrams that were read together and are worked off line by line. */
#pragma once

#include "daemon/ingest/statsd/apps.h"

struct deferred_close;

enum { STATSD_BATCH = 8 };

struct statsd_item {
	struct statsd_reader reader;
	struct statsd_sender sender;
};

struct statsd_batch {
	struct core *core;
	struct statsd_apps *apps;
	uint64_t now_ns;  /* when it was read */
	size_t count, at; /* at == count: worked off */
	struct statsd_item item[STATSD_BATCH];
	char *bytes;			       /* STATSD_BATCH times STATSD_DATAGRAM_MAX */
	struct deferred_close *deferred_close; /* of descriptors that come along */
};

/* -ENOMEM. finish is fine after a failure. */
int statsd_batch_init(struct statsd_batch *batch, struct core *core, struct statsd_apps *apps);
void statsd_batch_finish(struct statsd_batch *batch);

/* Reads what waits, at most STATSD_BATCH datagrams, into a batch that is worked off; how many. Who
 * has no credentials (UDP) is nobody, uid 65534. *lost is the kernel's count of this socket as of
 * the last datagram. Nothing is read while descriptors that came along wait for being closed. */
size_t statsd_batch_read(struct statsd_batch *batch, int fd, uint32_t *lost);

/* Works it off and takes the work from *budget: a line, a further value of it and 64 bytes are 1
 * each, a refused line 8 more. False: the budget ended first. */
bool statsd_batch_take(struct statsd_batch *batch, size_t *budget);
