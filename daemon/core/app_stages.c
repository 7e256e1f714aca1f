/*
 * The stages of an app: a declaration becomes a stage at its first event, within the limits, and a
 * complete record becomes one of its runs.
 */
#include "daemon/core/apps_private.h"

#include <errno.h>
#include <string.h>

#include "daemon/util/seam.h"

/* Labels are words for people: printable ASCII of the client's text. */
static void label_copy(char ret[PROTO_LABEL_SIZE], const char text[PROTO_LABEL_SIZE])
{
	size_t length = strnlen(text, PROTO_LABEL_SIZE - 1);
	for (size_t i = 0; i < length; i++) {
		ret[i] = text[i] > ' ' && text[i] < 0x7f ? text[i] : '_';
	}
	ret[length] = '\0';
}

static void stage_describe(struct stage *stage, const struct proto_declaration *declaration)
{
	if (declaration->category[0]) {
		label_copy(stage->category, declaration->category);
	}
	if (declaration->unit[0]) {
		label_copy(stage->unit, declaration->unit);
	}
	if (declaration->deadline_ns) {
		stage->deadline_ns = declaration->deadline_ns;
	}
}

/* A name is taken when another declaration of the same process has its stage. */
static bool taken_in_process(void *ctx, const char *name)
{
	const struct app_process *process = ctx;
	for (size_t i = 0; i < PROTO_DECLARATIONS; i++) {
		if (process->stages[i] && strcmp(process->stages[i]->name, name) == 0) {
			return true;
		}
	}
	return false;
}

static struct stage *stage_find(const struct app *app, const char *name)
{
	for (size_t i = 0; i < app->stages; i++) {
		if (strcmp(app->stage[i]->name, name) == 0) {
			return app->stage[i];
		}
	}
	return NULL;
}

static struct stage *stage_add(struct apps *apps, struct app *app, const char *name)
{
	struct stage *stage;
	if (app->stages == APP_STAGES_MAX ||
		stage_create(name, apps->options.stage_window, &stage) < 0) {
		return NULL;
	}
	app->stage[app->stages++] = stage;
	apps->stages++;
	app_metrics_add_stage(apps, app, stage);
	return stage;
}

/* One place of an app is kept for APP_STAGE_OTHER, which is over no limit but the table's. */
static bool stage_fits(struct apps *apps, struct app *app)
{
	if (app->stages >= APP_STAGES_MAX - 1 && !apps_retire_stage(apps, app)) {
		return false;
	}
	/* a loop: places taken by APP_STAGE_OTHER beyond the limit come back here */
	while (apps->stages >= STAGES_MAX && apps_retire_stage(apps, NULL)) {
	}
	return apps->stages < STAGES_MAX;
}

struct stage *app_stage_of(struct apps *apps, struct app_process *process, uint32_t index)
{
	if (process->stages[index]) {
		return process->stages[index];
	}
	const struct proto_declaration *declaration = process->declaration[index];
	char name[PROTO_NAME_SIZE];
	if (proto_name_unique(declaration->name, strnlen(declaration->name, PROTO_NAME_MAX),
		    taken_in_process, process, name) < 0) {
		return NULL;
	}
	struct app *app = process->app;
	struct stage *stage = stage_find(app, name);
	if (!stage && stage_fits(apps, app)) {
		stage = stage_add(apps, app, name);
		if (!stage) {
			return NULL;
		}
	}
	if (stage) {
		stage_describe(stage, declaration);
	} else {
		stage = stage_find(app, APP_STAGE_OTHER);
		if (!stage) {
			stage = stage_add(apps, app, APP_STAGE_OTHER);
		}
		if (!stage) {
			return NULL;
		}
		process->other[index] = true;
		apps->stages_refused++;
	}
	process->stages[index] = stage;
	stage->users++;
	return stage;
}

bool app_take_complete(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	(void)slot;
	struct stage *stage = app_stage_of(apps, process, record->stage);
	if (!stage) {
		return false;
	}
	struct stage_run run =
		stage_run_of(record->start_ns + record->value, record->value, record->frame);
	run.cpu_us = record->cpu_us;
	stage_event(stage, &run);
	return true;
}
