/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c: runs the state machine of one source. Unavailable and failed opens are retried every
 * minute, those of absent devices when one has come; a failing sample is retried at every tick and
 * reopened after a minute, as a class to which a device has come. The values of a source that fails
 * become null at once. */
#include "daemon/collect/sched/entry.h"

#include <errno.h>
#include <string.h>

#include "daemon/collect/sched/entry_private.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

static uint64_t clamp(uint64_t interval_ns)
{
	if (interval_ns < ENTRY_INTERVAL_MIN_NS) {
		return ENTRY_INTERVAL_MIN_NS;
	}
	return interval_ns > ENTRY_INTERVAL_MAX_NS ? ENTRY_INTERVAL_MAX_NS : interval_ns;
}

static uint64_t base_interval(const struct entry *entry, uint64_t sampling_ns)
{
	uint64_t interval_ns = entry->options.interval_ns;
	if (interval_ns == 0) {
		interval_ns = entry->ops->interval_ns;
	}
	return clamp(interval_ns == 0 ? sampling_ns : interval_ns);
}

static void take_options(struct entry *entry, const struct source_options *options)
{
	if (options) {
		entry->options = *options;
		entry->ctx.options = &entry->options;
	} else {
		entry->options = (struct source_options){.enabled = true};
		entry->ctx.options = NULL;
	}
}

int entry_init(struct entry *entry, const struct collector_ops *ops,
	const struct collector_context *ctx, const struct source_options *options,
	uint64_t sampling_ns)
{
	entry->ops = ops;
	entry->ctx = *ctx;
	entry->ctx.entry = entry;
	entry->ctx.background = entry->background;
	entry->ctx.reason = entry->reason;
	take_options(entry, options);
	entry->base_interval_ns = base_interval(entry, sampling_ns);
	int r = sources_add(
		ctx->core->sources, ops->name, entry->base_interval_ns, &entry->ctx.source);
	if (r < 0) {
		return r;
	}
	entry->ctx.source->wanted = entry->options.enabled;
	entry->seen_serial = entry->ctx.source->request_serial;
	return 0;
}

static void close_collector(struct entry *entry)
{
	if (entry->fetch.job) {
		fetch_close(&entry->fetch);
	} else {
		collector_free(entry->ops, entry->state);
	}
	entry->state = NULL;
	entry->open = entry->probing = false;
	entry->failing_ns = entry->going_ns = 0;
}

void entry_finish(struct entry *entry)
{
	close_collector(entry);
	fetch_finish(&entry->fetch);
	for (size_t i = 0; i < BACKGROUND_MAX; i++) {
		fetch_finish(&entry->background[i]);
	}
}

static bool same_keys(const struct source_options *a, const struct source_options *b)
{
	if (a->keys != b->keys) {
		return false;
	}
	for (size_t i = 0; i < a->keys; i++) {
		if (strcmp(a->key[i].key, b->key[i].key) != 0 ||
			strcmp(a->key[i].value, b->key[i].value) != 0) {
			return false;
		}
	}
	return true;
}

void entry_configure(
	struct entry *entry, const struct source_options *options, uint64_t sampling_ns)
{
	const struct source_options before = entry->options;
	entry->absent = false;
	uint64_t interval_before = entry->base_interval_ns;
	struct source *source = entry->ctx.source;
	take_options(entry, options);
	entry->base_interval_ns = base_interval(entry, sampling_ns);
	if (!same_keys(&before, &entry->options)) {
		close_collector(entry);
		entry->due_ns = 0;
	}
	/* A request of SetSource is in effect until the configuration changes that setting. */
	if (before.enabled != entry->options.enabled) {
		source->wanted = entry->options.enabled;
	}
	if (interval_before != entry->base_interval_ns) {
		source->wanted_interval_ns = 0;
	}
	source->request_serial++;
}

void entry_report(struct entry *entry, enum source_state state, const char *reason, uint64_t now)
{
	struct source *source = entry->ctx.source;
	enum source_state before = source->state;
	source_report(source, state, reason);
	bool first = !entry->met;
	entry->met = true;
	if ((before == state && !first) || (first && state == SOURCE_OK)) {
		return;
	}
	bool bad = state == SOURCE_ERROR;
	const char *colon = state == SOURCE_OK ? "" : ": ";
	const char *why = state == SOURCE_OK ? "" : source->reason;
	/* A source that the machine never had does not appear on the timeline; the scheduler logs
	 * one line for all of them. */
	if (first && !bad) {
		log_debug("source %s: %s%s%s", source->name, source_state_name(state), colon, why);
	} else {
		timeline_add(entry->ctx.core->timeline, now, TIMELINE_SOURCE,
			bad ? TIMELINE_WARNING : TIMELINE_INFO, source->name, "%s%s%s",
			source_state_name(state), colon, why);
	}
}

/* Sets all values to null when a source stops reporting: no old number stays. */
void entry_commit_nulls(struct entry *entry, const char *reason, uint64_t now_ns)
{
	struct metrics *metrics = entry->ctx.core->metrics;
	struct metric *metric;
	if (entry->ops->forget) {
		entry->ops->forget(&entry->ctx);
	}
	if (entry->ctx.source->metrics == 0) {
		return;
	}
	for (size_t i = 0; (metric = metrics_of(metrics, entry->ctx.source, i)); i++) {
		metric_set_null(metric, reason);
	}
	metrics_commit(metrics, entry->ctx.source, now_ns);
}

static void entry_commit_values(struct entry *entry, uint64_t now_ns)
{
	struct metrics *metrics = entry->ctx.core->metrics;
	struct source *source = entry->ctx.source;
	struct metric *metric;
	for (size_t i = 0; entry->ops->internal && (metric = metrics_of(metrics, source, i)); i++) {
		metric->full_rate = false;
	}
	metrics_commit(metrics, source, now_ns);
	if (source->metrics == 0) {
		source->last_ok_ns = now_ns; /* without metrics there is nothing that could fail */
	}
}

static uint64_t effective_interval(const struct entry *entry)
{
	uint64_t requested = entry->ctx.source->wanted_interval_ns;
	if (requested != 0) {
		return clamp(requested);
	}
	return entry->adapted_ns != 0 ? clamp(entry->adapted_ns) : entry->base_interval_ns;
}

void entry_adapt(struct entry *entry, uint64_t interval_ns)
{
	bool own = entry->options.interval_ns != 0 || entry->ops->interval_ns != 0;
	entry->adapted_ns = own ? 0 : interval_ns;
	entry->ctx.source->request_serial++; /* so that apply_requests sees it */
}

uint64_t entry_next(uint64_t now_ns, uint64_t due_ns, uint64_t interval_ns)
{
	uint64_t base = due_ns > now_ns && due_ns - now_ns <= ENTRY_EARLY_NS ? due_ns : now_ns;
	uint64_t next = (base / interval_ns + 1) * interval_ns;
	return next - base < interval_ns / 2 ? next + interval_ns : next;
}

static void apply_requests(struct entry *entry, uint64_t now_ns)
{
	struct source *source = entry->ctx.source;
	if (entry->seen_serial == source->request_serial && entry->met) {
		return;
	}
	entry->seen_serial = source->request_serial;
	uint64_t interval_ns = effective_interval(entry);
	bool changed = source->interval_ns != interval_ns;
	source->interval_ns = interval_ns;
	if (!source->wanted) {
		close_collector(entry);
		if (source->state != SOURCE_SUSPENDED) {
			entry_report(entry, SOURCE_SUSPENDED, "switched off", now_ns);
			entry_commit_nulls(entry, "source is switched off", now_ns);
		}
		entry->due_ns = UINT64_MAX;
		entry->absent = false;
	} else if (source->state == SOURCE_SUSPENDED) {
		entry->due_ns = now_ns;
	} else if (changed && entry->open) {
		uint64_t next = entry_next(now_ns, 0, interval_ns);
		entry->due_ns = next < entry->due_ns ? next : entry->due_ns;
	}
}

static int open_here(struct entry *entry)
{
	entry->state = collector_state(entry->ops);
	int r = entry->state ? entry->ops->open(&entry->ctx, entry->state) : -ENOMEM;
	return r < 0 ? r : entry_open_fetch(entry);
}

/* True when the collector is open afterwards. */
static bool open_collector(struct entry *entry, uint64_t now_ns)
{
	switch (fetch_abandoned(&entry->fetch, now_ns)) {
	case FETCH_IDLE:
		break;
	case FETCH_PENDING:
		return false;
	case FETCH_LATE:
	case FETCH_NO_THREAD:
		entry_report(entry, SOURCE_ERROR, "has not answered since it was closed", now_ns);
		return false;
	}
	if (entry_is_in_vain(entry, now_ns)) {
		entry_commit_nulls(entry, "source is unavailable", now_ns);
		return false;
	}
	if (!entry->ops->probe) {
		return entry_opened(entry, open_here(entry), now_ns);
	}
	int r = entry_probe(entry, now_ns);
	return r < 0 ? entry_opened(entry, r, now_ns) : false;
}

bool entry_opened(struct entry *entry, int r, uint64_t now_ns)
{
	const char *reason = entry->reason;
	entry->absent = r == -ENOENT;
	if (r == 0) {
		entry->open = true;
		return true;
	}
	close_collector(entry);
	bool absent = r == -ENOENT || r == -ENODATA;
	entry->ctx.source->errors += !absent;
	entry_report(entry, absent ? SOURCE_UNAVAILABLE : SOURCE_ERROR,
		reason[0] ? reason : errno_reason(r), now_ns);
	entry_commit_nulls(entry, absent ? "source is unavailable" : "source failed", now_ns);
	return false;
}

/* An event-driven source between its events. It restarts what it feeds on itself: a failure does
 * not close it. */
static void look_at(struct entry *entry, uint64_t now_ns)
{
	const char *reason = entry->reason;
	int r = entry_sample(entry, now_ns);
	switch (-r) {
	case 0:
		return;
	case EAGAIN:
		source_report(entry->ctx.source, SOURCE_STALE, reason);
		return;
	case ETIME:
		entry_commit_nulls(entry, "source is stale", now_ns);
		entry_report(entry, SOURCE_STALE, reason, now_ns);
		return;
	case ENOENT:
	case ENODATA:
		close_collector(entry);
		entry_report(entry, SOURCE_UNAVAILABLE, reason, now_ns);
		entry_commit_nulls(entry, "source is unavailable", now_ns);
		return;
	default:
		entry_commit_nulls(entry, "source failed", now_ns);
		entry_report(entry, SOURCE_ERROR, reason, now_ns);
	}
}

uint32_t entry_microseconds(uint64_t ns)
{
	return ns / 1000 < UINT32_MAX ? (uint32_t)(ns / 1000) : UINT32_MAX;
}

void entry_account(struct source *source, uint64_t started_ns)
{
	source->duration_us = entry_microseconds(sysops()->now_ns() - started_ns);
	source->ticks++;
}

void collector_arrived(const struct collector_context *ctx, uint64_t now_ns, uint64_t started_ns)
{
	struct entry *entry = ctx->entry;
	if (!entry->open) {
		return;
	}
	entry_commit_values(entry, now_ns);
	entry_report(entry, SOURCE_OK, NULL, now_ns);
	entry_account(ctx->source, started_ns);
}

void collector_hold(const struct collector_context *ctx)
{
	ctx->entry->holds++;
}

void collector_release(const struct collector_context *ctx)
{
	struct entry *entry = ctx->entry;
	if (--entry->holds == 0 && entry->released) {
		entry->released(entry->released_ctx);
	}
}

int entry_sample(struct entry *entry, uint64_t now_ns)
{
	entry->reason[0] = '\0';
	entry->ctx.now_ns = now_ns;
	return entry->ops->sample(&entry->ctx, entry->state);
}

static void sample(struct entry *entry, uint64_t now_ns)
{
	if (entry->ops->event_driven) {
		look_at(entry, now_ns);
	} else if (entry->fetch.job) {
		entry_fetch(entry, now_ns);
	} else {
		entry->going_ns = now_ns;
		entry->spent_ns = 0;
		entry_continue(entry);
	}
}

bool entry_continue(struct entry *entry)
{
	uint64_t tick_ns = entry->going_ns, started_ns = sysops()->now_ns();
	if (tick_ns == 0) {
		return false;
	}
	int r = entry_sample(entry, tick_ns);
	if (r == -EINPROGRESS) {
		entry->spent_ns += sysops()->now_ns() - started_ns;
		return true;
	}
	entry->going_ns = 0;
	entry_conclude(entry, r, tick_ns);
	entry_account(entry->ctx.source, started_ns - entry->spent_ns);
	return false;
}

void entry_conclude(struct entry *entry, int r, uint64_t now_ns)
{
	const char *reason = entry->reason;
	if (r == 0) {
		entry->failing_ns = 0;
		entry_commit_values(entry, now_ns);
		entry_report(entry, SOURCE_OK, NULL, now_ns);
		return;
	}
	entry->ctx.source->errors++;
	entry_commit_nulls(entry, "source failed", now_ns);
	entry_report(entry, SOURCE_ERROR, reason[0] ? reason : errno_reason(r), now_ns);
	if (entry->failing_ns == 0) {
		entry->failing_ns = now_ns;
	} else if (now_ns - entry->failing_ns >= ENTRY_PROBE_NS) {
		close_collector(entry);
	}
}

void entry_run(struct entry *entry, uint64_t now_ns)
{
	entry_on_answer(entry, now_ns);
	apply_requests(entry, now_ns);
	if (entry->due_ns == UINT64_MAX || now_ns + ENTRY_EARLY_NS < entry->due_ns) {
		return;
	}
	struct source *source = entry->ctx.source;
	uint64_t started_ns = sysops()->now_ns();
	entry->reason[0] = '\0';
	while (entry_continue(entry)) { /* the tick before */
	}
	if (entry_has_changed(entry, now_ns)) {
		close_collector(entry);
	}
	bool open = entry->open || (!entry->probing && open_collector(entry, now_ns));
	if (open) {
		sample(entry, now_ns); /* may close it */
	} else if (entry->probing) {
		entry_fetch(entry, now_ns);
	}
	if (open || entry->probing) {
		entry->due_ns = entry_next(now_ns, entry->due_ns, source->interval_ns);
		entry_await(entry);
	} else {
		entry_rest(entry, entry->fetch.abandoned != NULL, now_ns);
	}
	if (!entry->probing && !open) { /* the others: by what they do */
		entry_account(source, started_ns);
	}
}

void entry_rest(struct entry *entry, bool soon, uint64_t now_ns)
{
	uint64_t interval_ns = entry->ctx.source->interval_ns;
	soon = soon || interval_ns > ENTRY_PROBE_NS;
	entry->due_ns = entry_next(now_ns, entry->due_ns, soon ? interval_ns : ENTRY_PROBE_NS);
}

bool entry_healthy(const struct entry *entry, uint64_t now_ns)
{
	/* due_ns is one interval after the last tick. */
	return now_ns <= entry->due_ns ||
	       now_ns - entry->due_ns <= 2 * entry->ctx.source->interval_ns;
}
