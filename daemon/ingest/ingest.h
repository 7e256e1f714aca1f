/* SPDX-License-Identifier: Apache-2.0 */
/* ingest.h: accepts instrumented processes on the events socket, reads the mappings that they
 * attach, and feeds core/apps. */
#pragma once

#include <uv.h>

#include "daemon/core/core.h"

struct ingest;

struct ingest_options {
	int fd;	     /* the bound events socket; the caller closes it after ingest */
	uid_t owner; /* of the run directory: trusted */
	uint64_t sample_interval_ns; /* stage statistics become metrics at this interval */
	uint64_t drain_interval_ns;  /* 0 = 100 ms while mappings are attached; no timer without */
	uint64_t end_wait_ns;	     /* 0 = 1 s: for the kernel to report how a process ended */
	size_t max_connections;	     /* 64 */
	uint64_t max_mapping_bytes;  /* 16 MiB of all users; one may hold half of what the others
					leave */
};

/* Listens and starts. */
int ingest_open(uv_loop_t *loop, struct core *core, const struct ingest_options *options,
	struct ingest **ret);

/* After a reload: another sample_interval_ns, from the next sample on. */
void ingest_configure(struct ingest *ingest, uint64_t sample_interval_ns);

/* Drains everything now, for a query that wants current numbers, up to what one iteration of the
 * loop may do; the rest follows in the next iterations. False when some are left. */
bool ingest_drain(struct ingest *ingest);

/* Final drain and checkpoint; connections closed; freed with the last handle. Accepts
 * NULL. */
void ingest_close(struct ingest *ingest);
