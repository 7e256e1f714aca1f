/* Between a collector and fetch.c, whose circuit breaker it shares: a file that hangs holds one
 * thread, however often it is asked for or its source is closed and opened again. */
#include "daemon/collect/sched/background.h"

void background_open(struct background *background, const struct collector_context *ctx,
	const struct collector_ops *ops, size_t slot, void *state)
{
	*background = (struct background){
		.ctx = ctx,
		.ops = ops,
		.fetch = ctx->workers ? &ctx->background[slot] : NULL,
		.state = state,
	};
}

void background_close(struct background *background)
{
	if (background->fetch && background->fetch->job) {
		fetch_close(background->fetch);
	} else if (background->state) {
		background->ops->close(background->state);
	}
	background->state = NULL;
}

bool background_ready(struct background *background, uint64_t now_ns)
{
	struct fetch *fetch = background->fetch;
	if (!fetch) {
		return !background->answered;
	}
	if (fetch->job) {
		return fetch_look(fetch, now_ns) == FETCH_NOTHING;
	}
	return fetch_left(fetch, now_ns) == FETCH_NOTHING &&
	       fetch_open(fetch, background->ctx->workers, background->ops, NULL,
		       background->state) == 0;
}

void background_ask(struct background *background, uint64_t now_ns)
{
	if (background->fetch) {
		fetch_ask(background->fetch, now_ns, now_ns + FETCH_LATE_MAX_NS, FETCH_LATE_MAX_NS);
		workers_go(background->ctx->workers);
	} else {
		background->result = background->ops->fetch(background->ctx, background->state);
		background->answered = true;
	}
}

bool background_take(struct background *background, int *result)
{
	struct worker_result answer;
	if (!background->fetch) {
		bool answered = background->answered;
		background->answered = false;
		*result = background->result;
		return answered;
	}
	if (!fetch_take(background->fetch, &answer)) {
		return false;
	}
	background->fetch->late = false;
	*result = answer.result;
	return true;
}

const char *background_late(struct background *background, uint64_t now_ns)
{
	struct fetch *fetch = background->fetch;
	if (!fetch) {
		return NULL;
	}
	enum fetch_look look = fetch->job ? fetch_look(fetch, now_ns) : fetch_left(fetch, now_ns);
	if (look == FETCH_NO_WORKER) {
		return "waits for a worker";
	}
	fetch->late = fetch->late || look == FETCH_LATE;
	return look == FETCH_LATE ? "did not answer in time" : NULL;
}
