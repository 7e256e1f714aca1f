/*
 * What a collector reads on a worker between two samples: files that take long or may hang, of
 * which its sample takes over what is there, and never waits. One state, the thread's while it
 * reads and the sample's otherwise.
 */
#pragma once

#include "daemon/collect/sched/fetch.h"

struct background {
	const struct collector_context *ctx;
	const struct collector_ops *ops; /* fetch and close are used */
	struct fetch *fetch; /* the framework's; NULL: what is asked for is read at once */
	void *state;	     /* the caller's while background_ready */
	bool answered;	     /* at once, not taken yet */
	int result;
};

/* state is freed with ops->close, by background_close or, later, by a thread. slot: which of
 * ctx->background is its own. */
void background_open(struct background *background, const struct collector_context *ctx,
	const struct collector_ops *ops, size_t slot, void *state);
void background_close(struct background *background);

/* True when it can be asked: nothing is being read, nor hangs since before the opening. */
bool background_ready(struct background *background, uint64_t now_ns);

/* Calls ops->fetch; only when it is ready. */
void background_ask(struct background *background, uint64_t now_ns);

/* True once for each answer: the result of fetch. */
bool background_take(struct background *background, int *result);

/* Why there is no answer though it should be there by now; NULL = it is not late. */
const char *background_late(struct background *background, uint64_t now_ns);
