/* Runs the sources when they are due. All dues are multiples of the intervals on the monotonic
 * clock, so one timer, armed for the earliest, wakes the loop once a second for all sources of a
 * second; entry.c decides what happens then. */
#include "daemon/collect/scheduler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/entry.h"
#include "daemon/util/seam.h"

/* Wishes have no wake-up of their own: they are looked at this often. */
#define WISHES_EVERY_NS UINT64_C(1000000000)

struct scheduler {
	uv_timer_t timer;
	size_t entries;
	struct entry *entry;
	bool closing, timer_closed;
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

uint64_t scheduler_run(struct scheduler *scheduler, uint64_t now_ns)
{
	uint64_t next_ns = entry_next(now_ns, 0, WISHES_EVERY_NS);
	for (size_t i = 0; i < scheduler->entries; i++) {
		entry_run(&scheduler->entry[i], now_ns);
		if (scheduler->entry[i].due_ns < next_ns) {
			next_ns = scheduler->entry[i].due_ns;
		}
	}
	return next_ns;
}

static void on_timer(uv_timer_t *timer);

static void arm(struct scheduler *scheduler, uint64_t next_ns)
{
	uv_update_time(scheduler->timer.loop);
	uint64_t now_ns = seam()->now_ns();
	uint64_t wait_ns = next_ns > now_ns ? next_ns - now_ns : 0;
	uv_timer_start(&scheduler->timer, on_timer, (wait_ns + 999999) / 1000000, 0);
}

static void on_timer(uv_timer_t *timer)
{
	struct scheduler *scheduler = timer->data;
	arm(scheduler, scheduler_run(scheduler, seam()->now_ns()));
}

static void destroy(struct scheduler *scheduler)
{
	for (size_t i = 0; i < scheduler->entries; i++) {
		entry_finish(&scheduler->entry[i]);
	}
	free(scheduler->entry);
	free(scheduler);
}

int scheduler_open(uv_loop_t *loop, struct core *core, const struct root *root,
	const struct root *real_root, const struct scheduler_options *options,
	struct scheduler **ret)
{
	const struct collector_ops *const *list =
		options->collectors ? options->collectors : collectors;
	const struct collector_context ctx = {
		.root = root, .real_root = real_root, .core = core, .loop = loop};
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
	for (size_t i = 0; i < count; i++) {
		r = entry_init(&scheduler->entry[i], list[i], &ctx,
			options_of(options, list[i]->name), options->interval_ns);
		if (r < 0) {
			goto error;
		}
		scheduler->entries++;
	}
	uv_timer_init(loop, &scheduler->timer);
	scheduler->timer.data = scheduler;
	arm(scheduler, scheduler_run(scheduler, seam()->now_ns()));
	*ret = scheduler;
	return 0;
error:
	destroy(scheduler);
	return r;
}

int scheduler_configure(struct scheduler *scheduler, const struct scheduler_options *options)
{
	for (size_t i = 0; i < scheduler->entries; i++) {
		struct entry *entry = &scheduler->entry[i];
		entry_configure(entry, options_of(options, entry->ops->name), options->interval_ns);
	}
	return 0;
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

/* After the timer's and the collectors' last handle. */
static void finish(void *ctx)
{
	struct scheduler *scheduler = ctx;
	if (!scheduler->timer_closed) {
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
	scheduler->timer_closed = true;
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
	uv_close((uv_handle_t *)&scheduler->timer, on_closed);
}
