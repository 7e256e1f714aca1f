/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retire.c: removes apps and stages, when the daemon ends or when their slots are needed. Who
 * holds most gives first: a user who makes ever new names pushes out what is his own.
 */
#include "daemon/core/apps/apps_private.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/frames/trace_buffer.h"

void app_process_destroy(struct app_process *process)
{
	for (size_t i = 0; i < PROTO_DECLARATIONS; i++) {
		free(process->declaration[i]);
	}
	app_by_id_destroy(process->by_id);
	free(process->slots);
	free(process);
}

void app_finish(struct app *app)
{
	for (size_t i = 0; i < app->processes; i++) {
		app_process_destroy(app->process[i]);
	}
	for (size_t i = 0; i < app->runs; i++) {
		app_destroy(app->previous[i]);
	}
	for (size_t i = 0; i < app->stages; i++) {
		stage_destroy(app->stage[i]);
	}
	app_frames_destroy(app->frame_state);
	frames_destroy(app->frames);
	trace_log_close(app->log);
	free(app->values);
	free(app->restored);
}

void app_destroy(struct app *app)
{
	app_finish(app);
	free(app);
}

void app_retire(struct apps *apps, size_t index)
{
	struct app *app = apps->app[index];
	apps_forget_sum(apps);
	app_runs_retire(apps, app);
	app_save_forget_run(apps, app);
	app_metrics_retire_run(apps, app);
	apps->counts.stages -= app->stages;
	app_values_retire(apps, app);
	app_metrics_retire(
		apps, app->hangs.metric, sizeof(app->hangs.metric) / sizeof(app->hangs.metric[0]));
	app_marks_forget(apps, app);
	app_destroy(app);
	apps->count--;
	memmove(&apps->app[index], &apps->app[index + 1],
		(apps->count - index) * sizeof(struct app *));
}

/* What a user holds of what is shared. */
static size_t usage_of(const struct apps *apps, uid_t uid, bool stages)
{
	size_t count = 0;
	for (size_t i = 0; i < apps->count; i++) {
		if (apps->app[i]->uid == uid) {
			count += stages ? apps->app[i]->stages : 1;
		}
	}
	return count;
}

bool apps_retire_gone(struct apps *apps)
{
	size_t found = apps->count, max = 0;
	for (size_t i = 0; i < apps->count; i++) {
		const struct app *app = apps->app[i];
		size_t usage = app->processes == 0 ? usage_of(apps, app->uid, false) : 0;
		if (usage > max || (usage > 0 && usage == max &&
					   app->last_seen_ns < apps->app[found]->last_seen_ns)) {
			found = i;
			max = usage;
		}
	}
	if (found == apps->count) {
		return false;
	}
	app_retire(apps, found);
	return true;
}

bool apps_retire_stage(struct apps *apps, struct app *only)
{
	struct app *owner = NULL;
	size_t index = 0, max = 0;
	for (size_t a = 0; a < apps->count; a++) {
		struct app *app = apps->app[a];
		if (only && app != only) {
			continue;
		}
		size_t usage = usage_of(apps, app->uid, true);
		for (size_t i = 0; i < app->stages && usage >= max; i++) {
			const struct stage *stage = app->stage[i];
			if (stage->users == 0 &&
				(usage > max || stage->last_ns < owner->stage[index]->last_ns)) {
				owner = app;
				index = i;
				max = usage;
			}
		}
	}
	if (!owner) {
		return false;
	}
	apps_forget_sum(apps);
	app_save_forget(apps, owner->stage[index]);
	app_hang_forget(owner, NULL, owner->stage[index]);
	app_frames_forget(owner, owner->stage[index]);
	app_loop_forget(owner, owner->stage[index]);
	app_metrics_retire_stage(apps, owner->stage[index]);
	stage_destroy(owner->stage[index]);
	owner->stages--;
	apps->counts.stages--;
	memmove(&owner->stage[index], &owner->stage[index + 1],
		(owner->stages - index) * sizeof(struct stage *));
	return true;
}
