/* Between entry_fetch.c and worker.c: the circuit breaker. One job a source, so that a file that
 * hangs holds one thread, however often its source comes due, is closed or is opened again. */
#include "daemon/collect/sched/fetch.h"

int fetch_open(struct fetch *fetch, struct workers *workers, const struct collector_ops *ops,
	const struct source_options *options, void *state)
{
	fetch->late = false;
	return worker_job_create(workers, ops, options, state, &fetch->job);
}

void fetch_close(struct fetch *fetch)
{
	if (worker_job_leave(fetch->job)) {
		worker_job_release(fetch->job);
	} else {
		fetch->left = fetch->job;
		fetch->left_late_ns = fetch->late ? 1 : 0;
	}
	fetch->job = NULL;
}

void fetch_finish(struct fetch *fetch)
{
	worker_job_release(fetch->left);
	fetch->left = NULL;
}

enum fetch_look fetch_left(struct fetch *fetch, uint64_t now_ns)
{
	if (fetch->left && worker_job_phase(fetch->left) == WORKER_GONE) {
		fetch_finish(fetch);
	}
	if (!fetch->left) {
		return FETCH_NOTHING;
	}
	if (fetch->left_late_ns == 0) {
		fetch->left_late_ns = now_ns + FETCH_LATE_MAX_NS;
	}
	return now_ns < fetch->left_late_ns ? FETCH_PENDING : FETCH_LATE;
}

void fetch_ask(struct fetch *fetch, uint64_t now_ns, uint64_t deadline_ns, uint64_t limit_ns)
{
	fetch->asked_ns = now_ns;
	fetch->deadline_ns = deadline_ns;
	fetch->limit_ns = limit_ns;
	fetch->tick_ns = 0;
	fetch->late = false;
	worker_job_start(fetch->job);
}

enum fetch_look fetch_look(struct fetch *fetch, uint64_t now_ns)
{
	enum worker_phase phase = worker_job_phase(fetch->job);
	if (phase == WORKER_IDLE) {
		return FETCH_NOTHING;
	}
	if (phase == WORKER_DONE || now_ns < fetch->deadline_ns) {
		return FETCH_PENDING;
	}
	return phase == WORKER_QUEUED ? FETCH_NO_WORKER : FETCH_LATE;
}

bool fetch_take(struct fetch *fetch, struct worker_result *ret)
{
	if (!fetch->job || worker_job_phase(fetch->job) != WORKER_DONE) {
		return false;
	}
	worker_job_take(fetch->job, ret);
	return true;
}
