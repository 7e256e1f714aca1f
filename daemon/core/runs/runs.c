/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.c: ends a run and begins the next: the statistics move out of the app into a previous run,
 * and the oldest previous ones go when there are too many or memory is needed. apps_attach() calls
 * it.
 */
#include "daemon/core/runs/runs.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/util/sysops.h"

static const uint64_t SECOND_NS = 1000000000;

/* Of more, metrics go with their run: names that are new in each run leave slots to others. */
enum { HELD_STAGES = 64 };

static size_t frames_bytes(const struct frames *frames)
{
	size_t bytes = sizeof(*frames) + 3 * frames->window * sizeof(uint64_t);
	const struct frames_series *series[] = {&frames->times, &frames->latencies};
	for (size_t i = 0; i < 2; i++) {
		bytes += proto_histogram_bytes(&series[i]->all);
		bytes += series[i]->throttled ? proto_histogram_bytes(series[i]->throttled) : 0;
	}
	return bytes;
}

static size_t frame_state_bytes(const struct app_frames *frame_state)
{
	return sizeof(*frame_state) + (frame_state->table ? sizeof(*frame_state->table) : 0) +
	       (frame_state->slow ? APP_SLOW_FRAMES * sizeof(*frame_state->slow) : 0);
}

/* What belongs to a run begins again; what belongs to the app goes on. */
static void clear_run(struct app *app)
{
	memset(app->stage, 0, sizeof(app->stage));
	app->stages = 0;
	app->frames = NULL;
	app->frame_state = NULL;
	app->energy = (struct app_energy){.begun = false};
	memset(&app->loop, 0, sizeof(app->loop));
	app->past = (struct app_accounting){.sent = 0};
	app->last_words[0] = '\0';
	app->hangs.total = app->hangs.recorded = 0;
	app->marks_refused = 0;
	app->starts = 0;
	app->covers_since_ns = 0;
	app->missing = 0;
	free(app->restored);
	app->restored = NULL;
	app->end = PROCESS_ENDED;
}

static void drop(struct apps *apps, struct app *app, size_t index)
{
	struct app *run = app->previous[index];
	apps_forget_sum(apps);
	app_metrics_retire_run(apps, run);
	apps->counts.stage_budget.past -= run->bytes;
	app_destroy(run);
	app->runs--;
	memmove(&app->previous[index], &app->previous[index + 1],
		(app->runs - index) * sizeof(struct app *));
	app->previous[app->runs] = NULL;
}

static size_t stages_freeze(struct app *run)
{
	size_t bytes = 0;
	for (size_t i = 0; i < run->stages; i++) {
		run->stage[i]->users = 0;
		bytes += stage_freeze(run->stage[i]);
	}
	return bytes;
}

/* Takes the statistics out of the app. They are lost when memory is short. */
static void freeze(struct apps *apps, struct app *app)
{
	app_save_forget_run(apps, app);
	struct app *run = mem_zalloc(sizeof(*run));
	struct app lost;
	bool kept = run != NULL;
	run = kept ? run : &lost;
	*run = *app;
	run->log = NULL;
	run->values = NULL;
	run->restored = NULL;
	run->runs = 0;
	memset(run->previous, 0, sizeof(run->previous));
	memset(run->hangs.metric, 0, sizeof(run->hangs.metric));
	apps->counts.stages -= run->stages;
	run->bytes = sizeof(*run) + stages_freeze(run) +
		     (run->frames ? frames_bytes(run->frames) : 0) +
		     (run->frame_state ? frame_state_bytes(run->frame_state) : 0);
	if (run->frame_state) {
		run->frame_state->app = run;
	}
	if (!kept) {
		app_metrics_retire_run(apps, run);
		app_finish(run);
		return;
	}
	if (app->runs == APP_RUNS_KEPT) {
		drop(apps, app, app->runs - 1);
	}
	memmove(&app->previous[1], &app->previous[0], app->runs * sizeof(struct app *));
	app->previous[0] = run;
	app->runs++;
	apps->counts.stage_budget.past += run->bytes;
}

/* Stages whose metrics wait for the next run of their app. */
static size_t held_stages(const struct apps *apps)
{
	size_t count = 0;
	for (size_t i = 0; i < apps->count; i++) {
		const struct app *run = apps->app[i]->previous[0];
		for (size_t k = 0; run && k < run->stages; k++) {
			count += run->stage[k]->metric[0] != NULL;
		}
	}
	return count;
}

void app_run_begin(struct apps *apps, struct app *app, uint64_t now_ns)
{
	apps_forget_sum(apps);
	if (app->runs > 0) {
		app_metrics_retire_run(apps, app->previous[0]);
	}
	if (app->stages > 0 || app->frames) {
		freeze(apps, app);
	}
	if (app->runs > 0 && held_stages(apps) > HELD_STAGES) {
		app_metrics_retire_run(apps, app->previous[0]);
	}
	clear_run(app);
	app->run++;
	app->since_ns = now_ns;
	advice_clear(&app->advice, "not judged yet", now_ns);
	apps_trim_runs(apps);
}

const struct app *app_run(const struct app *app, int run)
{
	if (run == 0) {
		return app;
	}
	return run < 0 && run >= -(int)app->runs ? app->previous[-run - 1] : NULL;
}

static size_t usage_of(const struct apps *apps, uid_t uid)
{
	size_t bytes = 0;
	for (size_t i = 0; i < apps->count; i++) {
		const struct app *app = apps->app[i];
		for (size_t k = 0; app->uid == uid && k < app->runs; k++) {
			bytes += app->previous[k]->bytes;
		}
	}
	return bytes;
}

bool apps_retire_run(struct apps *apps)
{
	struct app *found = NULL;
	size_t max = 0;
	for (size_t i = 0; i < apps->count; i++) {
		struct app *app = apps->app[i];
		size_t usage = app->runs > 0 ? usage_of(apps, app->uid) : 0;
		uint64_t ended_ns = usage > 0 ? app->previous[app->runs - 1]->last_seen_ns : 0;
		if (usage > max ||
			(usage > 0 && usage == max &&
				ended_ns < found->previous[found->runs - 1]->last_seen_ns)) {
			found = app;
			max = usage;
		}
	}
	if (found) {
		drop(apps, found, found->runs - 1);
	}
	return found != NULL;
}

void apps_trim_runs(struct apps *apps)
{
	const struct stage_budget *budget = &apps->counts.stage_budget;
	while (budget->past > 0 && budget->used + budget->past > budget->limit &&
		apps_retire_run(apps)) {
	}
}

static void hand_over(struct metric **own, size_t count, const struct metric *metric)
{
	for (size_t i = 0; i < count; i++) {
		own[i] = own[i] == metric ? NULL : own[i];
	}
}

void app_runs_hand_over(const struct app *app, const struct metric *metric)
{
	enum { OF_STAGE = sizeof(((struct stage *)0)->metric) / sizeof(struct metric *) };
	enum { OF_FRAMES = sizeof(((struct frames *)0)->metric) / sizeof(struct metric *) };
	struct app *run = app->previous[0];
	for (size_t i = 0; run && i < run->stages; i++) {
		hand_over(run->stage[i]->metric, OF_STAGE, metric);
	}
	if (run && run->frames) {
		hand_over(run->frames->metric, OF_FRAMES, metric);
	}
}

void app_runs_sample(struct apps *apps, struct app *app, uint64_t now_ns)
{
	apps_trim_runs(apps);
	struct app *run = app->previous[0];
	if (!run) {
		return;
	}
	if (now_ns > app->since_ns + APP_RUN_METRICS_S * SECOND_NS) {
		app_metrics_retire_run(apps, run);
	} else {
		app_metrics_wait(run, app->processes > 0);
	}
}

void app_runs_retire(struct apps *apps, struct app *app)
{
	while (app->runs > 0) {
		drop(apps, app, app->runs - 1);
	}
}
