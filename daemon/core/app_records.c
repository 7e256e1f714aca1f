/*
 * From a record to a number: what a process declares and sends is judged here and handed to its
 * stages and frames. Records are private copies of hostile memory; nothing in them is believed.
 */
#include "daemon/core/apps_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/seam.h"

static const uint64_t DAY_NS = 86400ull * 1000000000;
/* now_ns was read before the drain; the writer goes on meanwhile */
static const uint64_t FUTURE_NS = 1000000000;

void apps_declare(struct apps *apps, struct app_process *process, uint32_t index,
	const struct proto_declaration *copy)
{
	(void)apps;
	if (index >= PROTO_DECLARATIONS || process->declaration[index]) {
		return;
	}
	struct proto_declaration *own = mem_zalloc(sizeof(*own));
	if (!own) { /* its events count as invalid */
		return;
	}
	*own = *copy;
	own->name[PROTO_NAME_SIZE - 1] = '\0';
	process->declaration[index] = own;
	process->declared++;
}

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

static bool believable_time(
	const struct app_process *process, uint64_t start_ns, uint64_t duration_ns, uint64_t now_ns)
{
	/* written so that no sum of a peer's numbers can wrap */
	if (duration_ns > DAY_NS || start_ns > now_ns + FUTURE_NS) {
		return false;
	}
	uint64_t end_ns = start_ns + duration_ns;
	return end_ns <= now_ns + FUTURE_NS && end_ns + DAY_NS >= process->attached_ns;
}

static bool record_frame(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	struct app *app = process->app;
	if (!app->frames) {
		if (frames_create(apps->options.frame_window, &app->frames) < 0) {
			return false;
		}
		app_metrics_add_frames(apps, app);
	}
	const struct app_tick tick = {.t_ns = record->start_ns + record->value,
		.id = record->frame,
		.latency_ns = record->value};
	if (!process->ticks && (process->frame_slot == 0 || process->frame_slot == slot + 1)) {
		process->frame_slot = slot + 1; /* one thread's are in order already */
		frames_tick(app->frames, tick.t_ns, tick.id, tick.latency_ns);
		return true;
	}
	return app_ticks_add(process, &tick) == 0;
}

static void record_mark(
	struct apps *apps, struct app_process *process, const struct proto_record *record)
{
	if (process->marks >= APP_MARKS_MAX) {
		process->marks_refused++;
		return;
	}
	process->marks++;
	timeline_add(apps->timeline, record->start_ns, TIMELINE_MARK, TIMELINE_INFO,
		process->app->name, "%s", process->declaration[record->stage]->name);
}

static bool record_by_id(
	struct apps *apps, struct app_process *process, const struct proto_record *record, bool end)
{
	const struct app_by_id_event event = {
		.id = record->value + process->id_key,
		.t_ns = record->start_ns,
		.frame = record->frame,
		.cpu_us = record->cpu_us,
		.stage = record->stage,
		.end = end,
	};
	return app_stage_of(apps, process, record->stage) &&
	       app_by_id_add(apps, process, &event) == 0;
}

static bool record_complete(
	struct apps *apps, struct app_process *process, const struct proto_record *record)
{
	struct stage *stage = app_stage_of(apps, process, record->stage);
	if (!stage) {
		return false;
	}
	stage_event(stage, record->start_ns + record->value, record->value, record->frame,
		record->cpu_us);
	return true;
}

/* True when the record was of use. */
static bool record_take(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, uint64_t now_ns)
{
	bool declared =
		record->stage < PROTO_DECLARATIONS && process->declaration[record->stage] != NULL;
	switch ((enum proto_kind)record->kind) {
	case PROTO_KIND_COMPLETE:
		return declared &&
		       believable_time(process, record->start_ns, record->value, now_ns) &&
		       record_complete(apps, process, record);
	case PROTO_KIND_BEGIN:
	case PROTO_KIND_END:
		return declared && believable_time(process, record->start_ns, 0, now_ns) &&
		       record_by_id(apps, process, record, record->kind == PROTO_KIND_END);
	case PROTO_KIND_FRAME:
		return believable_time(process, record->start_ns, record->value, now_ns) &&
		       record_frame(apps, process, slot, record);
	case PROTO_KIND_MARK:
		if (!declared || !believable_time(process, record->start_ns, 0, now_ns)) {
			return false;
		}
		record_mark(apps, process, record);
		return true;
	case PROTO_KIND_GAUGE:
	case PROTO_KIND_COUNTER:
	case PROTO_KIND_CONTEXT:
		/* no writer of this major version sends them; an early one does no harm */
		return believable_time(process, record->start_ns, 0, now_ns);
	case PROTO_KIND_NONE:
	case PROTO_KIND_COUNT:
		return false;
	}
	return false;
}

void apps_record(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record, uint64_t now_ns)
{
	if (!record_take(apps, process, slot, record, now_ns)) {
		process->accounting.invalid++;
	}
}

void apps_open_clear(struct app_process *process)
{
	process->open_count = 0;
}

void apps_open_add(struct app_process *process, const struct proto_open_stage *copy, uint32_t tid)
{
	enum { MAX = sizeof(process->open) / sizeof(process->open[0]) };
	if (copy->stage >= PROTO_DECLARATIONS || !process->declaration[copy->stage]) {
		return;
	}
	if (process->open_count == MAX) {
		memmove(&process->open[0], &process->open[1], (MAX - 1) * sizeof(process->open[0]));
		process->open_count--;
	}
	struct app_open_stage *open = &process->open[process->open_count++];
	const char *name = process->declaration[copy->stage]->name;
	proto_name_clean(name, strnlen(name, PROTO_NAME_MAX), open->stage);
	open->frame = copy->frame;
	open->start_ns = copy->start_ns;
	open->tid = tid;
}
