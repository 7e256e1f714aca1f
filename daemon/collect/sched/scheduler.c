/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.c: runs the sources when they are due. Every due time is a multiple of its interval on
 * the monotonic clock, so all sources of a second share one tick; entry.c decides what happens
 * then. Where files may hang, a thread wakes at the tick, reads them all, and wakes the loop: two
 * switches a second. Only if it has not done so GRACE_NS after the tick the loop's own timer runs
 * the tick: what hangs holds up no other source. */
#include "daemon/collect/sched/scheduler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/sched/adaptive.h"
#include "daemon/collect/sched/entry.h"
#include "daemon/collect/sched/fetch.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

/* Requests do not wake the scheduler: it checks for them this often. */
#define REQUESTS_EVERY_NS UINT64_C(1000000000)
/* What the first answers of healthy files take, and much less than a start may. */
#define FIRST_ANSWERS_NS UINT64_C(100000000)

/* Longer than a tick's files take on most boards, and what others may be late for one that hangs.
 */
#define GRACE_NS UINT64_C(25000000)

/* Into an iteration of the loop a tick or a part of one may begin, and how many iterations that
 * others have filled it waits for. */
#define ITERATION_NS UINT64_C(250000)
enum { WAITS = 3 };

/* How long a stop waits for files to be closed; what hangs is left behind. */
#define LAST_CLOSES_NS UINT64_C(100000000)

struct scheduler {
	uv_timer_t timer;
	uv_async_t wake; /* a worker is done */
	struct fetch_pool *pool;
	struct core *core;
	uint64_t interval_ns; /* [sampling] interval */
	struct adaptive_options adaptive_options;
	struct adaptive adaptive;
	uint64_t next_ns; /* of the next tick */
	bool ahead;	  /* files are to be read for it before it runs */
	bool spare;	  /* further threads may be started for what one has not done in time */
	size_t entries;
	struct entry *entry;
	unsigned waits; /* for an iteration that is free, in a row */
	bool closing;
	unsigned handles; /* that are not closed yet */
	void (*done)(void *ctx);
	void *done_ctx;
};

static const struct source_options *options_of(
	const struct scheduler_options *options, const char *name)
{
	for (size_t i = 0; i < options->source_count; i++) {
		if (strcmp(options->sources[i].name, name) == 0) {
			return &options->sources[i];
		}
	}
	return NULL;
}

static void apply_rate(struct scheduler *scheduler)
{
	uint64_t interval_ns = adaptive_interval(
		&scheduler->adaptive, &scheduler->adaptive_options, scheduler->interval_ns);
	bool normal = scheduler->adaptive.level == ADAPTIVE_NORMAL;
	for (size_t i = 0; i < scheduler->entries; i++) {
		entry_adapt(&scheduler->entry[i], normal ? 0 : interval_ns);
	}
	if (scheduler->core->counters) {
		scheduler->core->counters->sampling_interval_ns = interval_ns;
	}
}

static void adapt(struct scheduler *scheduler, uint64_t now_ns)
{
	double cpu = metrics_value(scheduler->core->metrics, "cpu/utilization");
	double celsius = metrics_value(scheduler->core->metrics, "temperature/max");
	if (!adaptive_observe(
		    &scheduler->adaptive, &scheduler->adaptive_options, cpu, celsius, now_ns)) {
		return;
	}
	apply_rate(scheduler);
	timeline_add(scheduler->core->timeline, now_ns, TIMELINE_DAEMON, TIMELINE_INFO, "sampling",
		"adaptive sampling rate changed: the machine is %s",
		adaptive_level_name(scheduler->adaptive.level));
}

static void run_entries(
	struct scheduler *scheduler, bool fetching, uint64_t now_ns, uint64_t *next_ns)
{
	for (size_t i = 0; i < scheduler->entries; i++) {
		struct entry *entry = &scheduler->entry[i];
		if ((entry->ops->fetch != NULL) == fetching) {
			entry_run(entry, now_ns);
			*next_ns = entry->due_ns < *next_ns ? entry->due_ns : *next_ns;
		}
	}
}

uint64_t scheduler_run(struct scheduler *scheduler, uint64_t now_ns)
{
	if (scheduler->adaptive_options.enabled) {
		adapt(scheduler, now_ns);
	}
	uint64_t next_ns = entry_next(now_ns, 0, REQUESTS_EVERY_NS);
	/* Those for the threads first: they are read while the loop reads the others. */
	run_entries(scheduler, true, now_ns, &next_ns);
	(void)offload_pool_dispatch_one(
		scheduler->pool->threads, now_ns + ENTRY_EARLY_NS >= scheduler->next_ns);
	scheduler->spare = true;
	run_entries(scheduler, false, now_ns, &next_ns);
	return next_ns;
}

static void on_timer(uv_timer_t *timer);

static void ask_ahead(struct scheduler *scheduler, uint64_t now_ns)
{
	scheduler->ahead = false;
	for (size_t i = 0; i < scheduler->entries; i++) {
		scheduler->ahead |= entry_ask_ahead(&scheduler->entry[i], scheduler->next_ns);
	}
	if (scheduler->ahead) {
		offload_pool_start_at(scheduler->pool->threads, scheduler->next_ns, now_ns);
	}
}

static void arm(struct scheduler *scheduler)
{
	uv_update_time(scheduler->timer.loop);
	uint64_t now_ns = sysops()->now_ns();
	ask_ahead(scheduler, now_ns);
	uint64_t wake_ns = scheduler->next_ns + (scheduler->ahead ? GRACE_NS : 0);
	if (scheduler->spare && offload_pool_behind(scheduler->pool->threads)) {
		wake_ns = now_ns + GRACE_NS < wake_ns ? now_ns + GRACE_NS : wake_ns;
	}
	for (size_t i = 0; i < scheduler->entries;
		i++) { /* the next part after a turn for others */
		wake_ns = scheduler->entry[i].going_ns > 0 ? now_ns : wake_ns;
	}
	uint64_t wait_ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
	/* never 0: such a timer would run again in the same iteration of the loop */
	uv_timer_start(&scheduler->timer, on_timer, wait_ns / 1000000 + 1, 0);
}

/* True when there is more to wait for. */
static bool collect_answers(struct scheduler *scheduler)
{
	uint64_t now_ns = sysops()->now_ns();
	bool asked = false;
	for (size_t i = 0; i < scheduler->entries; i++) {
		asked = entry_on_answer(&scheduler->entry[i], now_ns) || asked;
		(void)entry_continue(&scheduler->entry[i]);
	}
	(void)offload_pool_dispatch_one(scheduler->pool->threads, false);
	return asked;
}

/* The tick, if it is time for it, which also takes what has been read; else only that. */
static void run(struct scheduler *scheduler)
{
	uint64_t now_ns = sysops()->now_ns();
	if (now_ns + ENTRY_EARLY_NS >= scheduler->next_ns) {
		scheduler->next_ns = scheduler_run(scheduler, now_ns);
	} else {
		(void)collect_answers(scheduler);
	}
	arm(scheduler);
}

/* Whether other timers have taken long in this iteration. */
static bool is_filled(const struct scheduler *scheduler)
{
	const struct counters *counters = scheduler->core->counters;
	return counters && counters->waited_ns > 0 &&
	       sysops()->now_ns() - counters->waited_ns > ITERATION_NS;
}

/* Also when a thread has not done in time what is queued: then others help. */
static void on_timer(uv_timer_t *timer)
{
	struct scheduler *scheduler = timer->data;
	if (scheduler->waits < WAITS && is_filled(scheduler)) {
		scheduler->waits++;
		uv_timer_start(timer, on_timer, 1, 0);
		return;
	}
	scheduler->waits = 0;
	if (scheduler->spare && offload_pool_behind(scheduler->pool->threads)) {
		scheduler->spare = false;
		offload_pool_dispatch(scheduler->pool->threads);
	}
	run(scheduler);
}

static void on_wake(uv_async_t *wake)
{
	struct scheduler *scheduler = wake->data;
	if (!scheduler->closing) {
		run(scheduler);
	}
}

void scheduler_wait(struct scheduler *scheduler, uint64_t limit_ns)
{
	offload_pool_wait(scheduler->pool->threads, GRACE_NS < limit_ns ? GRACE_NS : limit_ns);
	do {
		offload_pool_dispatch(scheduler->pool->threads);
		offload_pool_wait(scheduler->pool->threads, limit_ns);
	} while (collect_answers(scheduler));
}

static void take_options(struct scheduler *scheduler, const struct scheduler_options *options)
{
	scheduler->interval_ns = options->interval_ns;
	scheduler->adaptive_options = options->adaptive;
	scheduler->adaptive = (struct adaptive){.level = ADAPTIVE_NORMAL};
	apply_rate(scheduler);
}

static void detach_pool(struct scheduler *scheduler)
{
	if (scheduler->pool) {
		offload_pool_detach(scheduler->pool->threads);
		scheduler->pool = NULL;
	}
}

static void destroy(struct scheduler *scheduler)
{
	for (size_t i = 0; i < scheduler->entries; i++) {
		entry_finish(&scheduler->entry[i]);
	}
	detach_pool(scheduler);
	free(scheduler->entry);
	free(scheduler);
}

/* ", name" of each source in the state, after the title; nothing when there is none. */
static size_t list_sources(const struct scheduler *scheduler, enum source_state state,
	const char *title, char *text, size_t size)
{
	struct text list = text_in(text, size);
	for (size_t i = 0; i < scheduler->entries; i++) {
		const struct source *source = scheduler->entry[i].ctx.source;
		if (source->state == state) {
			text_add(&list, "%s%s", list.length == 0 ? title : ", ", source->name);
		}
	}
	return list.length;
}

static void log_sources(const struct scheduler *scheduler)
{
	char text[512] = "";
	size_t active = 0, used = 0;
	for (size_t i = 0; i < scheduler->entries; i++) {
		active += scheduler->entry[i].ctx.source->state == SOURCE_OK;
	}
	used = list_sources(scheduler, SOURCE_UNAVAILABLE,
		"; not available on this machine: ", text, sizeof(text));
	(void)list_sources(
		scheduler, SOURCE_SUSPENDED, "; switched off: ", text + used, sizeof(text) - used);
	log_info("%zu sources active%s", active, text);
}

int scheduler_open(uv_loop_t *loop, struct core *core, const struct root *root,
	const struct root *real_root, const struct scheduler_options *options,
	struct scheduler **ret)
{
	const struct collector_ops *const *list =
		options->collectors ? options->collectors : collectors;
	struct collector_context ctx = {.root = root,
		.real_root = real_root,
		.core = core,
		.loop = loop,
		.pdeath_exec = options->pdeath_exec};
	size_t count = 0;
	while (list[count]) {
		count++;
	}
	int r = -ENOMEM;
	struct scheduler *scheduler = mem_zalloc(sizeof(*scheduler));
	if (!scheduler) {
		return r;
	}
	scheduler->entry = mem_calloc(count + 1, sizeof(scheduler->entry[0]));
	if (!scheduler->entry) {
		goto error;
	}
	r = fetch_pool_create(&scheduler->wake, root, real_root, &scheduler->pool);
	if (r < 0) {
		goto error;
	}
	ctx.pool = scheduler->pool;
	for (size_t i = 0; i < count; i++) {
		r = entry_init(&scheduler->entry[i], list[i], &ctx,
			options_of(options, list[i]->name), options->interval_ns);
		if (r < 0) {
			goto error;
		}
		scheduler->entries++;
	}
	r = uv_async_init(loop, &scheduler->wake, on_wake);
	if (r < 0) {
		goto error;
	}
	uv_timer_init(loop, &scheduler->timer);
	scheduler->wake.data = scheduler;
	scheduler->timer.data = scheduler;
	scheduler->handles = 2;
	scheduler->core = core;
	take_options(scheduler, options);
	scheduler->next_ns = scheduler_run(scheduler, sysops()->now_ns());
	scheduler_wait(scheduler, FIRST_ANSWERS_NS);
	log_sources(scheduler);
	arm(scheduler);
	*ret = scheduler;
	return 0;
error:
	destroy(scheduler);
	return r;
}

void scheduler_configure(struct scheduler *scheduler, const struct scheduler_options *options)
{
	for (size_t i = 0; i < scheduler->entries; i++) {
		struct entry *entry = &scheduler->entry[i];
		entry_configure(entry, options_of(options, entry->ops->name), options->interval_ns);
	}
	take_options(scheduler, options);
}

bool scheduler_healthy(const struct scheduler *scheduler, uint64_t now_ns)
{
	for (size_t i = 0; i < scheduler->entries; i++) {
		if (!entry_healthy(&scheduler->entry[i], now_ns)) {
			return false;
		}
	}
	return true;
}

/* After the last handle, of the collectors' as well. */
static void finish(void *ctx)
{
	struct scheduler *scheduler = ctx;
	if (scheduler->handles > 0) {
		return;
	}
	for (size_t i = 0; i < scheduler->entries; i++) {
		if (scheduler->entry[i].holds > 0) {
			return;
		}
	}
	void (*done)(void *ctx) = scheduler->done;
	void *done_ctx = scheduler->done_ctx;
	destroy(scheduler);
	if (done) {
		done(done_ctx);
	}
}

static void on_closed(uv_handle_t *handle)
{
	struct scheduler *scheduler = handle->data;
	scheduler->handles--;
	finish(scheduler);
}

void scheduler_close(struct scheduler *scheduler, void (*done)(void *ctx), void *ctx)
{
	if (!scheduler || scheduler->closing) {
		return;
	}
	scheduler->closing = true;
	scheduler->done = done;
	scheduler->done_ctx = ctx;
	for (size_t i = 0; i < scheduler->entries; i++) {
		scheduler->entry[i].released = finish;
		scheduler->entry[i].released_ctx = scheduler;
		entry_finish(&scheduler->entry[i]);
	}
	offload_pool_dispatch(scheduler->pool->threads);
	offload_pool_wait(scheduler->pool->threads, LAST_CLOSES_NS);
	detach_pool(scheduler);
	uv_close((uv_handle_t *)&scheduler->wake, on_closed);
	uv_close((uv_handle_t *)&scheduler->timer, on_closed);
}
