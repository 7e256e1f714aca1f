/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c: turns the statistics of apps into metrics once an interval, and advises and diagnoses
 * them once a second. A sample is due at whole multiples of both, as the sources are, and waits a
 * moment for them to wake the loop: they share one wake-up. It goes on over several iterations when
 * there is much to do: each ends with the part in which its time is over, or that has more to do.
 * One part commits all metrics, as of one moment.
 */
#include "daemon/core/alerts/alerts.h"
#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/core/history/history.h"
#include "daemon/ingest/ingest_private.h"
#include "daemon/util/sysops.h"

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t SHARE_NS = 50 * 1000000; /* how long a sample waits for a wake-up */
static const uint64_t ITERATION_NS = 250000;   /* into an iteration the last part may begin */

enum {
	WAITS = 12, /* iterations that others have filled before a part begins in one of them */
	PASSES = 8, /* over what is to be drained first */
	SAVES = 8,  /* iterations between two samples that save for a restart */
	STAGES = 8, /* that are sampled between two looks at the time */
};

static void close_silent(struct ingest *ingest, uint64_t now_ns)
{
	struct connection *next;
	for (struct connection *c = LIST_FIRST(&ingest->connections); c; c = next) {
		next = LIST_NEXT(c, link);
		if (!c->attachment && now_ns - c->accepted_ns > HELLO_TIMEOUT_S * 1000000000ull) {
			ingest_refuse(ingest, &c->peer, NULL, "no hello within 5 s");
			ingest_disconnect(c);
		}
	}
}

/* What there is at its first pass, as far as its passes reach. True when there will be another. */
static bool drain(struct ingest *ingest, uint64_t now_ns)
{
	if (ingest->passes++ > 0) {
		return !ingest_drain_due(ingest) && ingest->passes < PASSES;
	}
	close_silent(ingest, now_ns);
	if (ingest->listen_paused) {
		ingest_listen(ingest);
	}
	const bool all = ingest_drain(ingest);
	ingest_resume_connections(ingest);
	return !all;
}

static void commit(struct ingest *ingest, uint64_t now_ns)
{
	struct attachment *a;
	LIST_FOREACH(a, &ingest->attachments, link)
	{
		attachment_sample(a, now_ns);
	}
	ingest_end_saved(ingest, 1, now_ns);
	if (ingest->metrics_due) {
		apps_sample(ingest->core->apps, now_ns);
	}
	ingest->saves = SAVES;
}

static void advise_apps(struct ingest *ingest, uint64_t now_ns)
{
	struct attachment *a;
	apps_advise(ingest->core->apps, now_ns);
	LIST_FOREACH(a, &ingest->attachments, link)
	{
		attachment_advise(a, now_ns);
	}
}

/* With what the commits of this second, of any source, had no time for. */
static bool catch_up(const struct core *core, uint64_t now_ns)
{
	return (core->history && history_catch_up(core->history, core->metrics)) ||
	       (core->alerts && alerts_catch_up(core->alerts, now_ns));
}

/* Does the next part, or some of it. */
static void run_part(struct ingest *ingest, uint64_t now_ns)
{
	bool more = false;
	switch (ingest->part) {
	case SAMPLE_DRAIN:
		more = drain(ingest, now_ns);
		ingest->metrics_due = now_ns >= ingest->metrics_ns;
		break;
	case SAMPLE_AHEAD:
		more = ingest->metrics_due && apps_sample_ahead(ingest->core->apps, STAGES);
		break;
	case SAMPLE_COMMIT:
		commit(ingest, now_ns);
		break;
	case SAMPLE_ADVISE:
		advise_apps(ingest, now_ns);
		break;
	case SAMPLE_JUDGE:
		if (ingest->core->diagnoses && now_ns >= ingest->judged_ns + SECOND_NS / 2) {
			more = diagnoses_tick(ingest->core->diagnoses, now_ns);
			ingest->judged_ns = more ? ingest->judged_ns : now_ns;
		}
		break;
	case SAMPLE_CATCH_UP:
		more = catch_up(ingest->core, now_ns);
		break;
	case SAMPLE_PARTS:
		break;
	}
	ingest->part += !more;
}

static void on_sample(uv_timer_t *timer)
{
	struct ingest *ingest = timer->data;
	uint64_t now_ns = sysops()->now_ns();
	uint64_t from_ns = ingest->waits == WAITS ? now_ns : ingest->waited_ns;
	/* Without apps it is next to nothing, and not worth another wake-up. */
	const uint64_t most_ns = apps_at(ingest->core->apps, 0) ? ITERATION_NS : UINT64_MAX;
	bool free = now_ns - from_ns < most_ns;
	ingest->waits = free ? 0 : ingest->waits + 1;
	while (free && ingest->part < SAMPLE_PARTS) {
		const enum sample_part part = ingest->part;
		run_part(ingest, now_ns);
		now_ns = sysops()->now_ns();
		/* those of SAMPLE_AHEAD are short */
		free = now_ns - from_ns < most_ns && (ingest->part != part || part == SAMPLE_AHEAD);
	}
	if (ingest->part < SAMPLE_PARTS) {
		ingest->sample_ns = UINT64_MAX;
		uv_timer_start(timer, on_sample, 1, 0);
	} else {
		ingest_await_sample(ingest, now_ns);
	}
}

/* The next multiple of the interval that is half of one away at least. */
static uint64_t next_ns(uint64_t now_ns, uint64_t every_ns)
{
	return ((now_ns + every_ns / 2) / every_ns + 1) * every_ns;
}

/* And a little later, within which others are likely to wake the loop. */
void ingest_await_sample(struct ingest *ingest, uint64_t now_ns)
{
	const uint64_t interval_ns = ingest->options.sample_interval_ns;
	const uint64_t every_ns = interval_ns < SECOND_NS ? interval_ns : SECOND_NS;
	const uint64_t share_ns = every_ns / 4 < SHARE_NS ? every_ns / 4 : SHARE_NS;
	ingest->part = SAMPLE_DRAIN;
	ingest->passes = 0;
	ingest->sample_ns = next_ns(now_ns, every_ns);
	if (ingest->metrics_due) {
		ingest->metrics_ns = next_ns(now_ns, interval_ns);
	}
	if (ingest->metrics_ns > now_ns && ingest->metrics_ns < ingest->sample_ns) {
		ingest->sample_ns = ingest->metrics_ns;
	}
	uv_timer_start(&ingest->sample, on_sample, ingest_ms(ingest->sample_ns + share_ns - now_ns),
		ingest_ms(every_ns));
}

void ingest_configure(struct ingest *ingest, uint64_t sample_interval_ns)
{
	ingest->options.sample_interval_ns = sample_interval_ns;
	ingest->metrics_ns = 0;
}

void ingest_sample_now(struct ingest *ingest)
{
	ingest->sample_ns = UINT64_MAX;
	uv_timer_start(&ingest->sample, on_sample, 0, 0);
}
