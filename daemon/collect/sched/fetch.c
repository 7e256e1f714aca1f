/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c: hands sources to the threads of a pool and judges what comes back. */
#include "daemon/collect/sched/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "daemon/util/sysops.h"

/* Resolving a path below a fixture root takes 16 KiB; sanitizers multiply it. */
#define STACK_BYTES ((size_t)512 * 1024)

/* What the loop and a thread share of one source. */
struct reading {
	const struct fetch_pool *pool;
	const struct collector_ops *ops;
	const struct source_options *options; /* NULL = none */
	struct source_options options_copy;
	struct fetch_answer answer;
};

static void pool_free(void *ctx)
{
	struct fetch_pool *pool = ctx;
	root_finish(&pool->root);
	root_finish(&pool->real_root);
	free(pool);
}

static int copy_root(const struct root *root, struct root *ret)
{
	ret->fixture = root->fixture;
	ret->fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
	return ret->fd < 0 ? -errno : 0;
}

int fetch_pool_create(uv_async_t *wake, const struct root *root, const struct root *real_root,
	struct fetch_pool **ret)
{
	struct fetch_pool *pool = mem_zalloc(sizeof(*pool));
	if (!pool) {
		return -ENOMEM;
	}
	const struct offload_pool_options options = {.wake = wake,
		.threads_max = FETCH_THREADS_MAX,
		.stack_bytes = STACK_BYTES,
		.release = pool_free,
		.ctx = pool};
	pool->root.fd = pool->real_root.fd = -1;
	pool->ctx.root = &pool->root;
	pool->ctx.real_root = &pool->real_root;
	int r = copy_root(root, &pool->root);
	r = r < 0 ? r : copy_root(real_root, &pool->real_root);
	r = r < 0 ? r : offload_pool_create(&options, &pool->threads);
	if (r < 0) {
		pool_free(pool);
		return r;
	}
	*ret = pool;
	return 0;
}

/* What a failed probe leaves is closed here: the loop need not wait for it. */
static int probe(struct reading *reading, struct collector_context *ctx)
{
	struct fetch_answer *answer = &reading->answer;
	answer->reason[0] = '\0';
	ctx->reason = answer->reason;
	ctx->options = reading->options;
	answer->state = collector_state(reading->ops);
	int r = answer->state ? reading->ops->probe(ctx, answer->state) : -ENOMEM;
	if (r < 0) {
		collector_free(reading->ops, answer->state);
		answer->state = NULL;
	}
	return r;
}

static int probe_or_fetch(void *data)
{
	struct reading *reading = data;
	struct collector_context ctx = reading->pool->ctx;
	struct fetch_answer *answer = &reading->answer;
	uint64_t started_ns = sysops()->now_ns();
	answer->result =
		answer->state ? reading->ops->fetch(&ctx, answer->state) : probe(reading, &ctx);
	answer->finished_ns = sysops()->now_ns();
	answer->spent_ns = answer->finished_ns - started_ns;
	return answer->result;
}

static void release(void *data)
{
	struct reading *reading = data;
	collector_free(reading->ops, reading->answer.state);
	free(reading);
}

static bool holds_nothing(const void *data)
{
	return !((const struct reading *)data)->answer.state;
}

int fetch_open(struct fetch *fetch, struct fetch_pool *pool, const struct collector_ops *ops,
	const struct source_options *options, void *state, bool awaited)
{
	static const struct offload_ops job_ops[] = {
		{.work = probe_or_fetch, .release = release, .unawaited = true},
		{.work = probe_or_fetch, .release = release}};
	struct reading *reading = mem_zalloc(sizeof(*reading));
	int r = reading ? offload_job_create(pool->threads, &job_ops[awaited], reading, &fetch->job)
			: -ENOMEM;
	if (r < 0) {
		free(reading);
		return r;
	}
	reading->pool = pool;
	reading->ops = ops;
	reading->answer.state = state;
	if (options) {
		reading->options_copy = *options;
		reading->options = &reading->options_copy;
	}
	fetch->reading = reading;
	fetch->late = false;
	fetch->ahead_ns = 0;
	return 0;
}

void fetch_close(struct fetch *fetch)
{
	if (offload_job_detach(fetch->job, holds_nothing)) {
		offload_job_unref(fetch->job);
	} else {
		fetch->abandoned = fetch->job;
		fetch->abandoned_late_ns = fetch->late ? 1 : 0;
	}
	fetch->job = NULL;
}

void fetch_finish(struct fetch *fetch)
{
	offload_job_unref(fetch->abandoned);
	fetch->abandoned = NULL;
}

enum fetch_state fetch_abandoned(struct fetch *fetch, uint64_t now_ns)
{
	if (fetch->abandoned && offload_job_phase(fetch->abandoned) == OFFLOAD_GONE) {
		fetch_finish(fetch);
	}
	if (!fetch->abandoned) {
		return FETCH_IDLE;
	}
	if (fetch->abandoned_late_ns == 0) {
		fetch->abandoned_late_ns = now_ns + FETCH_LATE_MAX_NS;
	}
	return now_ns < fetch->abandoned_late_ns ? FETCH_PENDING : FETCH_LATE;
}

void fetch_ask(
	struct fetch *fetch, uint64_t now_ns, uint64_t deadline_ns, uint64_t limit_ns, bool ahead)
{
	fetch->asked_ns = now_ns;
	fetch->deadline_ns = deadline_ns;
	fetch->limit_ns = limit_ns;
	fetch->tick_ns = 0;
	fetch->ahead_ns = ahead ? now_ns : 0;
	fetch->late = false;
	offload_job_queue(fetch->job, ahead);
}

enum fetch_state fetch_state(struct fetch *fetch, uint64_t now_ns)
{
	enum offload_phase phase = offload_job_phase(fetch->job);
	if (phase == OFFLOAD_IDLE) {
		return FETCH_IDLE;
	}
	if (phase == OFFLOAD_DONE || now_ns < fetch->deadline_ns) {
		return FETCH_PENDING;
	}
	return phase == OFFLOAD_QUEUED ? FETCH_NO_THREAD : FETCH_LATE;
}

bool fetch_accept(struct fetch *fetch, struct fetch_answer *ret)
{
	if (!fetch->job || offload_job_phase(fetch->job) != OFFLOAD_DONE) {
		return false;
	}
	(void)offload_job_accept(fetch->job);
	*ret = fetch->reading->answer;
	return true;
}

int background_open(struct background *background, const struct collector_context *ctx,
	const struct collector_ops *ops, size_t slot)
{
	*background = (struct background){
		.ctx = ctx,
		.ops = ops,
		.fetch = ctx->pool ? &ctx->background[slot] : NULL,
		.state = collector_state(ops),
	};
	return background->state ? 0 : -ENOMEM;
}

void background_close(struct background *background)
{
	if (background->fetch && background->fetch->job) {
		fetch_close(background->fetch);
	} else {
		collector_free(background->ops, background->state);
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
		return fetch_state(fetch, now_ns) == FETCH_IDLE;
	}
	return fetch_abandoned(fetch, now_ns) == FETCH_IDLE &&
	       fetch_open(fetch, background->ctx->pool, background->ops, NULL, background->state,
		       false) == 0;
}

void background_ask(struct background *background, uint64_t now_ns, bool soon)
{
	if (background->fetch) {
		fetch_ask(background->fetch, now_ns, now_ns + FETCH_LATE_MAX_NS, FETCH_LATE_MAX_NS,
			!soon);
		(void)offload_pool_dispatch_one(background->ctx->pool->threads, false);
	} else {
		background->result = background->ops->fetch(background->ctx, background->state);
		background->answered = true;
	}
}

bool background_accept(struct background *background, int *result)
{
	struct fetch_answer answer;
	if (!background->fetch) {
		bool answered = background->answered;
		background->answered = false;
		*result = background->result;
		return answered;
	}
	if (!fetch_accept(background->fetch, &answer)) {
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
	enum fetch_state state =
		fetch->job ? fetch_state(fetch, now_ns) : fetch_abandoned(fetch, now_ns);
	if (state == FETCH_NO_THREAD) {
		return "waits for a worker";
	}
	fetch->late = fetch->late || state == FETCH_LATE;
	return state == FETCH_LATE ? "did not answer in time" : NULL;
}
