/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.h: opens, reads and closes files that may hang, on threads of a pool. Each source has one
 * job, which is asked for at a tick, late at a deadline, and never asked for again while it hangs:
 * a circuit breaker, so that a file that hangs holds one thread however often its source comes due
 * or is closed and opened again. Times are arguments.
 */
#pragma once

#include "daemon/collect/sched/collector.h"
#include "daemon/util/offload/pool.h"

enum { FETCH_THREADS_MAX = 4 };

/* How long an answer may take: one interval, within these. */
#define FETCH_LATE_MIN_NS UINT64_C(250000000) /* a busy machine is not a hung file */
#define FETCH_LATE_MAX_NS UINT64_C(2000000000)

struct fetch_pool {
	struct offload_pool *threads;
	struct root root, real_root;  /* duplicates: a hung thread outlives the scheduler */
	struct collector_context ctx; /* of probe and fetch: the roots and nothing else */
};

/* wake: sent to when an answer is there; the caller's, until offload_pool_detach(threads), which
 * frees the pool as well, once no thread uses it. -ENOMEM, or the -errno of dup. */
int fetch_pool_create(uv_async_t *wake, const struct root *root, const struct root *real_root,
	struct fetch_pool **ret);

struct reading;

struct fetch {
	struct offload_job *job; /* NULL = not open */
	struct reading *reading; /* the data of the job */
	struct offload_job *abandoned;
	uint64_t abandoned_late_ns; /* from when on that is late; 0 = not checked yet */
	uint64_t asked_ns, limit_ns, deadline_ns;
	uint64_t tick_ns;  /* the tick after this one, when the deadline comes before it */
	uint64_t ahead_ns; /* the tick for which it was asked ahead; 0 = none */
	bool late;
};

enum fetch_state { FETCH_IDLE, FETCH_PENDING, FETCH_LATE, FETCH_NO_THREAD };

struct fetch_answer {
	int result;	      /* of probe or fetch */
	uint64_t finished_ns; /* CLOCK_MONOTONIC */
	uint64_t spent_ns;
	char reason[SOURCE_REASON_SIZE]; /* of probe */
	void *state;			 /* what probe opened, or fetch read */
};

/* Without a state the first thing that is asked for is the probe, with a copy of the options (may
 * be NULL). From here on the state is the fetch's to close. awaited: answers wake the loop.
 * -ENOMEM. */
int fetch_open(struct fetch *fetch, struct fetch_pool *pool, const struct collector_ops *ops,
	const struct source_options *options, void *state, bool awaited);
void fetch_close(struct fetch *fetch);
void fetch_finish(struct fetch *fetch); /* zeroed storage is fine */

/* Whether the job of a closed fetch has ended: idle, pending, or late. */
enum fetch_state fetch_abandoned(struct fetch *fetch, uint64_t now_ns);

/* Starts a job; an answer is late from deadline_ns on. ahead: the pool starts it at now_ns, which
 * is a tick to come. Only when idle. */
void fetch_ask(
	struct fetch *fetch, uint64_t now_ns, uint64_t deadline_ns, uint64_t limit_ns, bool ahead);

enum fetch_state fetch_state(struct fetch *fetch, uint64_t now_ns);

/* True with the answer, which is fit to be used unless it is late. The state is the caller's until
 * the next fetch_ask(). */
bool fetch_accept(struct fetch *fetch, struct fetch_answer *ret);

/* What a collector reads between two samples, of which its sample uses what is there and never
 * waits: one state, the thread's while it reads and the sample's otherwise. */
struct background {
	const struct collector_context *ctx;
	const struct collector_ops *ops; /* state_size, fetch and close are used */
	struct fetch *fetch;		 /* the framework's; NULL: reads at once */
	void *state;			 /* the caller's while background_ready() */
	bool answered;			 /* at once, not accepted yet */
	int result;
};

/* slot: which of ctx->background is its own. The state is zeroed; background_close(), which also
 * accepts a zeroed one, or, later, a thread frees it. -ENOMEM. */
int background_open(struct background *background, const struct collector_context *ctx,
	const struct collector_ops *ops, size_t slot);
void background_close(struct background *background);

/* True when it can be asked: nothing is being read, or has hung since before the opening. */
bool background_ready(struct background *background, uint64_t now_ns);

/* Calls ops->fetch; only when it is ready. Not soon: after what the next tick reads, where a thread
 * wakes for that anyway. */
void background_ask(struct background *background, uint64_t now_ns, bool soon);

/* True once for each answer: the result of fetch. */
bool background_accept(struct background *background, int *result);

/* Why there is no answer though it should be there by now; NULL = it is not late. */
const char *background_late(struct background *background, uint64_t now_ns);
