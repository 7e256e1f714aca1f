/*
 * The probe and the reads of one source on a worker: asked for at a tick, late at a deadline, never
 * asked for again while one hangs. Times are arguments.
 */
#pragma once

#include "daemon/collect/sched/worker.h"

/* How long an answer may take: one interval, within these. */
#define FETCH_LATE_MIN_NS UINT64_C(250000000) /* a busy machine is not a hung file */
#define FETCH_LATE_MAX_NS UINT64_C(2000000000)

struct fetch {
	struct worker_job *job;	 /* NULL = not open */
	struct worker_job *left; /* of a state that is being closed */
	uint64_t left_late_ns;	 /* from when on that is late; 0 = not looked at yet */
	uint64_t asked_ns, limit_ns, deadline_ns;
	uint64_t tick_ns; /* the tick after this one, when the deadline comes before it */
	bool late;
};

enum fetch_look { FETCH_NOTHING, FETCH_PENDING, FETCH_LATE, FETCH_NO_WORKER };

/* Without a state the first thing that is asked for is the probe, with a copy of the options (may
 * be NULL). -ENOMEM. From here on the state is the fetch's to close. */
int fetch_open(struct fetch *fetch, struct workers *workers, const struct collector_ops *ops,
	const struct source_options *options, void *state);
void fetch_close(struct fetch *fetch);
void fetch_finish(struct fetch *fetch); /* zeroed storage is fine */

/* What was closed: nothing (left), pending, or late. */
enum fetch_look fetch_left(struct fetch *fetch, uint64_t now_ns);

/* Asks; an answer is late from deadline_ns on. Only when nothing is pending. */
void fetch_ask(struct fetch *fetch, uint64_t now_ns, uint64_t deadline_ns, uint64_t limit_ns);

/* Whether there is something to wait for, as of now_ns. */
enum fetch_look fetch_look(struct fetch *fetch, uint64_t now_ns);

/* True with the answer, which is fit to be used unless it is late. */
bool fetch_take(struct fetch *fetch, struct worker_result *ret);
