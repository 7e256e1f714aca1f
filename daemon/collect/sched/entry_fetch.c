/* SPDX-License-Identifier: Apache-2.0 */
/* entry_fetch.c: runs the ticks of a source whose files may hang. A tick asks a thread to probe,
 * then to read; the ticks after that are asked for ahead, so that the reading thread wakes itself.
 * The answer arrives by the loop's wake-up and is parsed there. A late answer is
 * discarded: the source is an error until one is in time, so that a file that is always slow does
 * not flap. */
#include "daemon/collect/sched/entry_private.h"

#include <stdio.h>
#include <string.h>

#include "daemon/util/sysops.h"

static void ask(struct entry *entry, uint64_t now_ns, uint64_t limit_ns, bool ahead)
{
	limit_ns = limit_ns < FETCH_LATE_MIN_NS ? FETCH_LATE_MIN_NS : limit_ns;
	limit_ns = limit_ns > FETCH_LATE_MAX_NS ? FETCH_LATE_MAX_NS : limit_ns;
	/* On the grid: checks for late answers share the wake-ups of the ticks. */
	uint64_t deadline_ns = entry_next(now_ns, entry->due_ns, limit_ns);
	fetch_ask(&entry->fetch, now_ns, deadline_ns, limit_ns, ahead);
}

int entry_open_fetch(struct entry *entry)
{
	if (!entry->ops->fetch) {
		return 0;
	}
	return fetch_open(&entry->fetch, entry->ctx.pool, entry->ops, NULL, entry->state, true);
}

int entry_probe(struct entry *entry, uint64_t now_ns)
{
	int r = fetch_open(
		&entry->fetch, entry->ctx.pool, entry->ops, entry->ctx.options, NULL, true);
	if (r == 0) {
		entry->probing = true;
		ask(entry, now_ns, FETCH_LATE_MAX_NS, false);
	}
	return r;
}

static void report_late(struct entry *entry, bool no_thread, uint64_t now_ns)
{
	struct fetch *fetch = &entry->fetch;
	struct source *source = entry->ctx.source;
	char reason[SOURCE_REASON_SIZE];
	unsigned threads = no_thread ? offload_pool_threads(entry->ctx.pool->threads) : 0;
	if (no_thread && threads < FETCH_THREADS_MAX) {
		snprintf(reason, sizeof(reason), "no thread could be started (%u of %d)", threads,
			FETCH_THREADS_MAX);
	} else if (no_thread) {
		snprintf(reason, sizeof(reason), "waits for a worker: %u others do not answer",
			threads);
	} else {
		snprintf(reason, sizeof(reason), "did not answer within %g s",
			(double)fetch->limit_ns / 1e9);
	}
	source->errors += !fetch->late;
	fetch->late = true;
	source->duration_us = entry_microseconds(now_ns - fetch->asked_ns);
	entry_commit_nulls(
		entry, no_thread ? "waits for a worker" : "did not answer in time", now_ns);
	entry_report(entry, SOURCE_ERROR, reason, now_ns);
}

void entry_fetch(struct entry *entry, uint64_t now_ns)
{
	switch (fetch_state(&entry->fetch, now_ns + ENTRY_EARLY_NS)) {
	case FETCH_IDLE:
		if (entry->fetch.ahead_ns != entry->due_ns) { /* else it is answered already */
			ask(entry, now_ns, entry->ctx.source->interval_ns, false);
		}
		break;
	case FETCH_PENDING:
		break;
	case FETCH_LATE:
		report_late(entry, false, now_ns);
		break;
	case FETCH_NO_THREAD:
		report_late(entry, true, now_ns);
		break;
	}
}

bool entry_ask_ahead(struct entry *entry, uint64_t tick_ns)
{
	struct fetch *fetch = &entry->fetch;
	if (!entry->open || !fetch->job || entry->due_ns != tick_ns) {
		return false;
	}
	if (fetch->ahead_ns != tick_ns && fetch_state(fetch, 0) == FETCH_IDLE) {
		ask(entry, tick_ns, entry->ctx.source->interval_ns, true);
	}
	return fetch->ahead_ns == tick_ns;
}

void entry_await(struct entry *entry)
{
	struct fetch *fetch = &entry->fetch;
	if (fetch->job && !fetch->late && fetch_state(fetch, 0) != FETCH_IDLE &&
		fetch->deadline_ns < entry->due_ns) {
		fetch->tick_ns = entry->due_ns;
		entry->due_ns = fetch->deadline_ns;
	}
}

/* A late probe is as good as another: what it found is still there, and read next. */
static bool on_probed(struct entry *entry, struct fetch_answer *answer, uint64_t now_ns)
{
	uint64_t started_ns = sysops()->now_ns();
	int r = answer->result;
	entry->probing = false;
	memcpy(entry->reason, answer->reason, sizeof(entry->reason));
	if (r == 0) {
		entry->state = answer->state;
		r = entry->ops->open(&entry->ctx, entry->state);
	}
	bool open = entry_opened(entry, r, now_ns);
	if (open) {
		ask(entry, now_ns, entry->ctx.source->interval_ns, false);
		entry_await(entry);
	} else {
		entry_rest(entry, false, now_ns);
		entry_account(entry->ctx.source, started_ns - answer->spent_ns);
	}
	return open;
}

bool entry_on_answer(struct entry *entry, uint64_t now_ns)
{
	struct fetch *fetch = &entry->fetch;
	struct fetch_answer answer;
	if (!fetch_accept(fetch, &answer)) {
		return false;
	}
	if (fetch->tick_ns != 0 && entry->due_ns == fetch->deadline_ns) {
		entry->due_ns = fetch->tick_ns;
	}
	if (entry->probing) {
		return on_probed(entry, &answer, now_ns);
	}
	struct source *source = entry->ctx.source;
	if (fetch->late) {
		source->duration_us = entry_microseconds(answer.spent_ns);
		source->ticks++;
		return false;
	}
	uint64_t started_ns = sysops()->now_ns();
	int r = answer.result;
	entry->reason[0] = '\0';
	r = r < 0 ? r : entry_sample(entry, answer.finished_ns);
	entry_conclude(entry, r, r < 0 ? now_ns : answer.finished_ns);
	entry_account(source, started_ns - answer.spent_ns);
	return false;
}
