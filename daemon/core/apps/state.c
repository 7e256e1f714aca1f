/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c: judges the state of a run from its processes, its hangs and how its last process ended.
 * At each sample it looks through the open stages and logs hangs: once when one begins, once when
 * the stage went on. What hangs is the innermost stage; the ones around it are as late as it is.
 */
#include "daemon/core/apps/state.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/core/stages/open.h"
#include "proto/text.h"

static const uint64_t SECOND_NS = 1000000000;

enum { METRIC_HUNG, METRIC_PROCESSES, METRIC_DIED, METRICS };

_Static_assert(METRICS == sizeof(((struct app_hangs *)0)->metric) / sizeof(void *), "metrics");

/* The latest of its frames and stages. */
uint64_t app_last_event_ns(const struct app *app)
{
	uint64_t last_ns = app->frames ? pulse_last_ns(&app->frames->pulse) : 0;
	for (size_t i = 0; i < app->stages; i++) {
		uint64_t t_ns = pulse_last_ns(&app->stage[i]->pulse);
		last_ns = t_ns > last_ns ? t_ns : last_ns;
	}
	return last_ns;
}

static bool goes_on(const struct pulse *pulse, uint64_t now_ns)
{
	return pulse->count > 0 && pulse_idle_ns(pulse, now_ns) == 0;
}

/* Every stream that ever had an event is idle. */
static bool app_idle(const struct app *app, uint64_t now_ns)
{
	if ((app->frames && goes_on(&app->frames->pulse, now_ns)) || app_last_event_ns(app) == 0) {
		return false;
	}
	for (size_t i = 0; i < app->stages; i++) {
		if (goes_on(&app->stage[i]->pulse, now_ns)) {
			return false;
		}
	}
	return true;
}

enum app_state app_state(const struct app *app, uint64_t now_ns)
{
	static const enum app_state ended[] = {
		[PROCESS_ENDED] = APP_ENDED,
		[PROCESS_DIED] = APP_DIED,
		[PROCESS_KILLED] = APP_KILLED,
		[PROCESS_RELEASED] = APP_ENDED,
	};
	if (app->processes == 0) {
		return ended[app->end];
	}
	if (app->hangs.count > 0) {
		return APP_HUNG;
	}
	return app_idle(app, now_ns) ? APP_IDLE : APP_RUNNING;
}

bool app_live(const struct app *app, uint64_t now_ns)
{
	return app->processes > 0 || now_ns < app->last_seen_ns + APP_LIVE_NS;
}

bool app_has_rate(const struct app *app, const struct pulse *pulse, uint64_t now_ns,
	struct app_rate_reason *reason)
{
	uint64_t idle_ns = pulse_idle_ns(pulse, now_ns);
	if (app->processes == 0) {
		snprintf(reason->text, sizeof(reason->text), "app ended");
	} else if (idle_ns > 0) {
		snprintf(reason->text, sizeof(reason->text), "no event for %s",
			text_span(idle_ns / 1000000000).text);
	}
	return app->processes > 0 && idle_ns == 0;
}

const char *app_state_name(enum app_state state)
{
	static const char *const names[APP_STATES] = {
		[APP_RUNNING] = "running",
		[APP_IDLE] = "idle",
		[APP_HUNG] = "hung",
		[APP_ENDED] = "ended",
		[APP_DIED] = "died",
		[APP_KILLED] = "killed",
	};
	return names[state];
}

/* By the lifetime's p99: a read of the histogram is cheap, and there may be many open stages. */
static bool is_late(const struct app_hang *open, uint64_t now_ns)
{
	static const double percent = 99;
	uint64_t age_ns = now_ns > open->start_ns ? now_ns - open->start_ns : 0;
	if (age_ns < HANG_MIN_S * SECOND_NS || open->stage->count < HANG_MIN_RUNS) {
		return false;
	}
	double p99_ns;
	proto_histogram_percentiles(open->stage->all, &percent, &p99_ns, 1);
	return (double)age_ns > HANG_P99_TIMES * p99_ns; /* false for NAN */
}

static struct app_hang *find(struct app_hangs *hangs, const struct app_hang *open)
{
	for (size_t i = 0; i < hangs->count; i++) {
		struct app_hang *hang = &hangs->hang[i];
		if (hang->process == open->process && hang->stage == open->stage &&
			hang->start_ns == open->start_ns && hang->tid == open->tid) {
			return hang;
		}
	}
	return NULL;
}

/* A stage inside this one hangs in the same thread. */
static bool is_around_another(const struct app_hangs *hangs, const struct app_hang *open)
{
	for (size_t i = 0; open->process && i < hangs->count; i++) {
		const struct app_hang *hang = &hangs->hang[i];
		if (hang->process == open->process && hang->tid == open->tid && hang->still) {
			return true;
		}
	}
	return false;
}

static void report_hang(struct apps *apps, const struct app *app, const struct app_hang *hang,
	bool ended, uint64_t now_ns)
{
	char frame[40] = "", span[32];
	const uint64_t span_ns = now_ns - hang->start_ns;
	snprintf(span, sizeof(span), "%.1f s", (double)span_ns / 1e9);
	if (span_ns >= UINT64_C(60000000000)) {
		snprintf(span, sizeof(span), "%s", text_span(span_ns / 1000000000).text);
	}
	if (hang->frame != PROTO_NO_FRAME) {
		snprintf(frame, sizeof(frame), ", frame %" PRIu64, hang->frame);
	}
	timeline_add(apps->timeline, now_ns, TIMELINE_APP, ended ? TIMELINE_INFO : TIMELINE_WARNING,
		app->name, "%s in `%s` %s %s%s", ended ? "went on" : "hangs", hang->stage->name,
		ended ? "after" : "for", span, frame);
}

/* An open stage, as it would be noted. */
static void judge(struct apps *apps, struct app *app, const struct app_hang *open, uint64_t now_ns)
{
	struct app_hangs *hangs = &app->hangs;
	struct app_hang *hang = find(hangs, open);
	if (hang) {
		hang->still = true;
		return;
	}
	if (hangs->count == APP_HANGS_MAX || !is_late(open, now_ns)) {
		return;
	}
	bool around = is_around_another(hangs, open);
	hang = &hangs->hang[hangs->count++];
	*hang = *open;
	hang->still = true;
	hang->logged = !around && apps_may_log(apps, app->uid, TIMELINE_WARNING, now_ns);
	hangs->total += !around;
	if (hang->logged) {
		report_hang(apps, app, hang, false, now_ns);
	}
}

/* Newest first: an inner stage is judged before the one around it. */
static void judge_open_stages(
	struct apps *apps, struct app *app, const struct app_process *process, uint64_t now_ns)
{
	for (uint32_t i = process->open_count; i-- > 0;) {
		const struct app_open_stage *open = &process->open[i];
		const struct app_hang hang = {.process = process,
			.stage = process->stages[open->index],
			.start_ns = open->start_ns,
			.frame = open->frame,
			.tid = open->ns_tid};
		if (hang.stage) {
			judge(apps, app, &hang, now_ns);
		}
	}
}

/* If events were dropped after a begin, its end may be one of them. */
static void judge_open_ids(
	struct apps *apps, struct app *app, const struct stage *stage, uint64_t now_ns)
{
	const struct stage_open_id *open = stage->open ? TAILQ_FIRST(&stage->open->open) : NULL;
	for (; open; open = TAILQ_NEXT(open, link)) {
		const struct app_hang hang = {
			.stage = stage, .start_ns = open->start_ns, .frame = open->frame};
		if (open->start_ns > app->hangs.dropped_ns || find(&app->hangs, &hang)) {
			judge(apps, app, &hang, now_ns);
		}
	}
}

static void drop_ended(struct apps *apps, struct app *app, uint64_t now_ns)
{
	struct app_hangs *hangs = &app->hangs;
	size_t kept = 0;
	for (size_t i = 0; i < hangs->count; i++) {
		const struct app_hang *hang = &hangs->hang[i];
		if (hang->still) {
			hangs->hang[kept++] = *hang;
		} else if (hang->logged) {
			report_hang(apps, app, hang, true, now_ns);
		}
	}
	hangs->count = kept;
}

static void judge_hangs(struct apps *apps, struct app *app, uint64_t now_ns)
{
	struct app_hangs *hangs = &app->hangs;
	struct app_accounting events;
	app_accounting(app, &events);
	if (events.dropped != hangs->dropped) {
		hangs->dropped = events.dropped;
		hangs->dropped_ns = now_ns;
	}
	for (size_t i = 0; i < hangs->count; i++) {
		hangs->hang[i].still = false;
	}
	for (size_t i = 0; i < app->processes; i++) {
		judge_open_stages(apps, app, app->process[i], now_ns);
	}
	for (size_t i = 0; app->processes > 0 && i < app->stages; i++) {
		judge_open_ids(apps, app, app->stage[i], now_ns);
	}
	drop_ended(apps, app, now_ns);
}

void app_hang_forget(struct app *app, const struct app_process *process, const struct stage *stage)
{
	struct app_hangs *hangs = &app->hangs;
	size_t kept = 0;
	for (size_t i = 0; i < hangs->count; i++) {
		const struct app_hang *hang = &hangs->hang[i];
		if ((!process || hang->process != process) && (!stage || hang->stage != stage)) {
			hangs->hang[kept++] = *hang;
		}
	}
	hangs->count = kept;
}

/* The last process's death leaves nobody to work, and nobody came back in time. */
static bool is_gone(const struct apps *apps, const struct app *app, uint64_t now_ns)
{
	enum app_state state = app_state(app, now_ns);
	const struct app_rules rules = app_settings_of_app(apps->config.settings, app->name);
	uint64_t within_ns =
		rules.has_restart_within ? rules.restart_within_ns : APP_RESTART_WITHIN_NS;
	return (state == APP_DIED || state == APP_KILLED) &&
	       now_ns >= app->last_seen_ns + within_ns;
}

static bool is_innermost(const struct app_process *process, uint32_t at)
{
	for (uint32_t i = at + 1; i < process->open_count; i++) {
		if (process->open[i].ns_tid == process->open[at].ns_tid) {
			return false;
		}
	}
	return true;
}

/* A thread is in a stage that it entered long before the daemon saw it (which was started again),
 * and how long such runs take is not known yet: it may hang. */
static bool may_hang(const struct app *app)
{
	for (size_t p = 0; p < app->processes; p++) {
		const struct app_process *process = app->process[p];
		for (uint32_t i = 0; i < process->open_count; i++) {
			const struct app_open_stage *open = &process->open[i];
			const struct stage *stage = process->stages[open->index];
			if ((!stage || stage->count < HANG_MIN_RUNS) &&
				open->start_ns + HANG_MIN_S * SECOND_NS < process->attached_ns &&
				is_innermost(process, i)) {
				return true;
			}
		}
	}
	return false;
}

void app_hang_sample(struct apps *apps, struct app *app, uint64_t now_ns)
{
	static const char *const names[METRICS] = {"hung", "processes", "died"};
	static const enum unit units[METRICS] = {UNIT_BOOL, UNIT_COUNT, UNIT_BOOL};
	struct metric **metric = app->hangs.metric;
	judge_hangs(apps, app, now_ns);
	for (size_t i = 0; i < METRICS; i++) {
		char path[PROTO_PATH_SIZE];
		snprintf(path, sizeof(path), "app/%s/%s", app->name, names[i]);
		metric[i] = metric[i] ? metric[i] : app_metric_add(apps, app, path, units[i]);
		if (!metric[i]) {
			return; /* counted by metrics; tried again */
		}
	}
	metric_set(metric[METRIC_PROCESSES], (double)app->processes);
	metric_set(metric[METRIC_DIED], is_gone(apps, app, now_ns));
	if (app->hangs.count == 0 && may_hang(app)) {
		metric_set_null(metric[METRIC_HUNG], "open since before the daemon started");
	} else if (app->processes > 0) {
		metric_set(metric[METRIC_HUNG], app->hangs.count > 0);
	} else {
		metric_set_ended(metric[METRIC_HUNG], "app ended");
	}
}
