/* Part of the scheduler: the ticks of a source whose files may hang. A tick asks a worker to probe,
 * then to read; its answer comes through the loop's wake-up and is parsed there. An answer that is
 * late is thrown away: the source is an error until one is in time, so a file that is always slow
 * does not flap.
 */
#include "daemon/collect/sched/entry_private.h"

#include <stdio.h>

#include "daemon/util/sysops.h"

static void ask(struct entry *entry, uint64_t now_ns, uint64_t limit_ns)
{
	limit_ns = limit_ns < FETCH_LATE_MIN_NS ? FETCH_LATE_MIN_NS : limit_ns;
	limit_ns = limit_ns > FETCH_LATE_MAX_NS ? FETCH_LATE_MAX_NS : limit_ns;
	/* On the grid: looking for late answers shares the wake-ups of the ticks. */
	uint64_t deadline_ns = entry_next(now_ns, entry->due_ns, limit_ns);
	fetch_ask(&entry->fetch, now_ns, deadline_ns, limit_ns);
}

int entry_open_fetch(struct entry *entry)
{
	if (!entry->ops->fetch || !entry->workers) {
		return 0;
	}
	return fetch_open(
		&entry->fetch, entry->workers, entry->ops, entry->ctx.options, entry->state);
}

int entry_probe(struct entry *entry, uint64_t now_ns)
{
	int r = fetch_open(&entry->fetch, entry->workers, entry->ops, entry->ctx.options, NULL);
	if (r == 0) {
		entry->probing = true;
		ask(entry, now_ns, FETCH_LATE_MAX_NS);
	}
	return r;
}

static void set_duration(struct source *source, uint64_t spent_ns)
{
	uint64_t spent_us = spent_ns / 1000;
	source->duration_us = spent_us < UINT32_MAX ? (uint32_t)spent_us : UINT32_MAX;
}

static void be_late(struct entry *entry, bool no_worker, uint64_t now_ns)
{
	struct fetch *fetch = &entry->fetch;
	char reason[SOURCE_REASON_SIZE];
	unsigned workers = no_worker ? workers_threads(entry->workers) : 0;
	if (no_worker && workers < WORKERS_MAX) {
		snprintf(reason, sizeof(reason), "no thread could be started (%u of %d)", workers,
			WORKERS_MAX);
	} else if (no_worker) {
		snprintf(reason, sizeof(reason), "waits for a worker: %u others do not answer",
			workers);
	} else {
		snprintf(reason, sizeof(reason), "did not answer within %g s",
			(double)fetch->limit_ns / 1e9);
	}
	entry->ctx.source->errors += !fetch->late;
	fetch->late = true;
	set_duration(entry->ctx.source, now_ns - fetch->asked_ns);
	entry_commit_nulls(
		entry, no_worker ? "waits for a worker" : "did not answer in time", now_ns);
	entry_report(entry, SOURCE_ERROR, reason, now_ns);
}

void entry_fetch(struct entry *entry, uint64_t now_ns)
{
	switch (fetch_look(&entry->fetch, now_ns + ENTRY_EARLY_NS)) {
	case FETCH_NOTHING:
		ask(entry, now_ns, entry->ctx.source->interval_ns);
		break;
	case FETCH_PENDING:
		break;
	case FETCH_LATE:
		be_late(entry, false, now_ns);
		break;
	case FETCH_NO_WORKER:
		be_late(entry, true, now_ns);
		break;
	}
}

void entry_await(struct entry *entry)
{
	struct fetch *fetch = &entry->fetch;
	if (fetch->job && !fetch->late && fetch->deadline_ns < entry->due_ns) {
		fetch->tick_ns = entry->due_ns;
		entry->due_ns = fetch->deadline_ns;
	}
}

/* A late probe is as good as another: what it found is still there, and read next. */
static bool take_probe(struct entry *entry, struct worker_result *answer, uint64_t now_ns)
{
	uint64_t started_ns = sysops()->now_ns();
	int r = answer->result;
	entry->probing = false;
	if (r == 0) {
		entry->state = worker_job_state(entry->fetch.job);
		r = entry->ops->open(&entry->ctx, &entry->state, answer->reason);
	}
	bool open = entry_opened(entry, r, answer->reason, now_ns);
	if (open) {
		ask(entry, now_ns, entry->ctx.source->interval_ns);
		entry_await(entry);
	} else {
		entry_rest(entry, false, now_ns);
		entry_account(entry->ctx.source, started_ns - answer->spent_ns);
	}
	return open;
}

bool entry_take_answer(struct entry *entry, uint64_t now_ns)
{
	struct fetch *fetch = &entry->fetch;
	struct worker_result answer;
	if (!fetch_take(fetch, &answer)) {
		return false;
	}
	if (fetch->tick_ns != 0 && entry->due_ns == fetch->deadline_ns) {
		entry->due_ns = fetch->tick_ns;
	}
	if (entry->probing) {
		return take_probe(entry, &answer, now_ns);
	}
	struct source *source = entry->ctx.source;
	if (fetch->late) {
		set_duration(source, answer.spent_ns);
		source->ticks++;
		return false;
	}
	char reason[SOURCE_REASON_SIZE] = "";
	uint64_t started_ns = sysops()->now_ns();
	int r = answer.result;
	r = r < 0 ? r : entry->ops->sample(&entry->ctx, entry->state, answer.finished_ns, reason);
	entry_conclude(entry, r, reason, r < 0 ? now_ns : answer.finished_ns);
	entry_account(source, started_ns - answer.spent_ns);
	return false;
}
