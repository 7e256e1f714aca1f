/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h: runs one source under the scheduler: its collector's life (open, sample, close), its
 * state, its cost and when it is due. No libuv and no clock of its own: time is an argument, so
 * tests drive it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/collect/sched/collector.h"
#include "daemon/collect/sched/fetch.h"

#define ENTRY_INTERVAL_MIN_NS UINT64_C(50000000)
#define ENTRY_INTERVAL_MAX_NS UINT64_C(3600000000000)
#define ENTRY_PROBE_NS UINT64_C(60000000000) /* how often what is absent is looked for again, */
#define ENTRY_SKIPS_MAX 14		     /* and how often not, while no device comes or goes */
#define ENTRY_EARLY_NS UINT64_C(1000000)     /* libuv's timers may fire this much early */

struct entry {
	const struct collector_ops *ops;
	struct collector_context ctx;
	struct source_options options;
	char reason[SOURCE_REASON_SIZE]; /* of the last open or sample; "" = none was given */
	void *state;
	bool open;
	bool probing;		     /* on a worker; not open yet */
	bool met;		     /* a state was reported once */
	uint32_t seen_serial;	     /* of the requests in core/sources */
	uint64_t base_interval_ns;   /* of the configuration */
	uint64_t due_ns;	     /* UINT64_MAX = never */
	uint64_t failing_ns;	     /* since when samples fail; 0 = they do not */
	uint64_t going_ns, spent_ns; /* of the sample that goes on, 0 = none does; its cost */
	unsigned holds;		     /* of collector_hold */
	void (*released)(void *ctx); /* after the last release; may be NULL */
	void *released_ctx;
	struct fetch fetch;
	struct fetch background[BACKGROUND_MAX]; /* the collector's (background.h) */
	uint64_t adapted_ns;			 /* by the adaptive rate; 0 = not */
	bool absent;				 /* it was not there when it was last looked for */
	long long devices;	     /* how many came or went until then; -1 = unknown */
	unsigned skipped;	     /* since then, for none has */
	uint64_t listed_ns, listing; /* when the collector's class was looked at, and what it had */
};

/* Adds the source. ctx->source and ctx->options are filled here. -EEXIST, -ENOSPC, -ENOMEM. */
int entry_init(struct entry *entry, const struct collector_ops *ops,
	const struct collector_context *ctx, const struct source_options *options,
	uint64_t sampling_ns);
void entry_finish(struct entry *entry); /* zeroed storage is fine */

/* New configuration; takes effect at the next entry_run. */
void entry_configure(
	struct entry *entry, const struct source_options *options, uint64_t sampling_ns);

/* Applies requests and, when due, probes or samples and commits. Afterwards due_ns is later than
 * now_ns. */
void entry_run(struct entry *entry, uint64_t now_ns);

/* Goes on with a sample. True when there is more of it. */
bool entry_continue(struct entry *entry);

/* Asks a thread to read for the tick at tick_ns, if that is the entry's next one and nothing is
 * being read. True when it was asked, now or before. */
bool entry_ask_ahead(struct entry *entry, uint64_t tick_ns);

/* Takes the answer of a worker that has finished, if it is this entry's. True when the entry has
 * requested the next job at once: after a probe, the first read. */
bool entry_on_answer(struct entry *entry, uint64_t now_ns);

/* The interval of the adaptive rate, for a source without one of its own; 0 = as configured. Takes
 * effect at the next entry_run. */
void entry_adapt(struct entry *entry, uint64_t interval_ns);

/* Ticked (or was probed, or is switched off) within its last 3 intervals. */
bool entry_healthy(const struct entry *entry, uint64_t now_ns);

/* The next whole multiple of interval_ns at which to sample after now_ns: sources of equal interval
 * share their wake-ups, a late tick does not shift the later ones, and two samples are never closer
 * than half an interval (rates need their time). */
uint64_t entry_next(uint64_t now_ns, uint64_t due_ns, uint64_t interval_ns);
