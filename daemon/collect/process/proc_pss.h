/* smaps_rollup of some processes, read on a worker: the kernel walks through all pages, which takes
 * 50 ms for a process of 2 GiB, and waits for whoever changes its memory map. */
#pragma once

#include "daemon/collect/process/proc_threads.h"
#include "daemon/collect/sched/collector.h"

enum { PSS_PER_TICK = 8 };

struct pss_reads {
	size_t count;
	struct {
		struct thread_owner owner;
		int result; /* 0 or -errno; the others are of 0 */
		double bytes;
		uint64_t t_ns; /* when it was read */
	} read[PSS_PER_TICK];
};

/* fetch reads what owner says, close is free(3). */
extern const struct collector_ops proc_pss_reader;
