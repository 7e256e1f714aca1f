/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save.c: decides which statistics are written when: of the apps in turn each stage and stream
 * that changed, then the app itself. ingest calls at its ticks; save_slots.c knows what a copy
 * looks like.
 */
#include "daemon/core/runs/save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/core/runs/save_private.h"
#include "daemon/util/sysops.h"
#include "proto/fnv.h"

_Static_assert(sizeof(struct saved_app) % 8 == 0 && sizeof(struct stage) % 8 == 0 &&
		       sizeof(struct frames) % 8 == 0 && sizeof(struct proto_histogram) % 8 == 0 &&
		       sizeof(struct proto_histogram_carries) % 8 == 0 &&
		       sizeof(struct stage_cpu) % 8 == 0 &&
		       sizeof(struct app_attributes) % 8 == 0 && sizeof(struct app_values) % 8 == 0,
	"segments are whole words");

_Static_assert(MARKS_MAX / (APP_MARK_PARTS - 1) * sizeof(struct app_mark) + 1024 <= SAVE_COPY,
	"a part of the marks fits into a copy");

int apps_save_into(
	struct apps *apps, const struct app_save_memory *memory, const uint8_t boot_id[16])
{
	struct app_save *save = mem_zalloc(sizeof(*save));
	if (!save) {
		return -ENOMEM;
	}
	int r = save_slots_init(&save->slots, memory, boot_id);
	if (r < 0) {
		free(save);
		return r;
	}
	apps->save = save;
	save_restore_marks(apps);
	return 0;
}

/* The run's; never 0. */
static uint64_t key_of(const char *name, uint64_t uid, uint64_t since_ns)
{
	return fnv64_text(FNV64_BASIS ^ since_ns ^ uid << 32, name) | 1;
}

static uint64_t mark_of_stage(const struct stage *stage)
{
	uint64_t mark =
		stage->count + stage->warmup_skipped + stage->orphan_ends + stage->abandoned;
	for (size_t i = 0; stage->attributes && i < stage->attributes->count; i++) {
		mark += stage->attributes->attribute[i].count;
	}
	return mark;
}

static uint64_t mark_of_frames(const struct frames *frames)
{
	return frames->count + frames->warmup_skipped + frames->judged +
	       frames->latencies.all.count;
}

/* Adds a segment that is there. */
static void add(struct save_object *object, const void *data, size_t bytes)
{
	if (data) {
		object->segment[object->count++] =
			(struct save_segment){(void *)(uintptr_t)data, bytes};
	}
}

static void add_buckets(struct save_object *object, const struct proto_histogram *histogram)
{
	add(object, histogram->buckets, histogram->held * sizeof(*histogram->buckets));
	add(object, histogram->carries, sizeof(*histogram->carries));
}

static void add_histogram(struct save_object *object, const struct proto_histogram *histogram)
{
	if (histogram) {
		add(object, histogram, sizeof(*histogram));
		add_buckets(object, histogram);
	}
}

struct save_object save_stage(const struct stage *stage)
{
	struct save_object object = {
		.owner = stage, .kind = SAVE_STAGE, .mark = mark_of_stage(stage)};
	add(&object, stage, sizeof(*stage));
	add(&object, stage->runs, stage->capacity * sizeof(*stage->runs));
	add(&object, stage->attributes, sizeof(*stage->attributes));
	add(&object, stage->cpu, stage->capacity * sizeof(*stage->cpu));
	add_histogram(&object, stage->all);
	add_histogram(&object, stage->throttled);
	return object;
}

struct save_object save_frames(const struct frames *frames)
{
	const size_t window = frames->window * sizeof(uint64_t);
	struct save_object object = {
		.owner = frames, .kind = SAVE_FRAMES, .mark = mark_of_frames(frames)};
	add(&object, frames, sizeof(*frames));
	add(&object, frames->times.words, window);
	add(&object, frames->latencies.words, window);
	add(&object, frames->sums_ns, window);
	add_buckets(&object, &frames->times.all);
	add_histogram(&object, frames->times.throttled);
	add_buckets(&object, &frames->latencies.all);
	add_histogram(&object, frames->latencies.throttled);
	return object;
}

struct save_object save_values(const struct app_values *values)
{
	struct save_object object = {
		.owner = values, .kind = SAVE_VALUES, .mark = values->changes + values->refused};
	add(&object, values, sizeof(*values));
	return object;
}

/* True when it changed: it was written, if there was room. */
static bool write_item(struct app_save *save, uint64_t run, const struct save_object *object)
{
	struct save_slot *slot = save_slot_of(&save->slots, object->owner, object->kind);
	save->failed = save->failed || !slot;
	if (!slot || (slot->mark == object->mark && slot->run == run)) {
		return false;
	}
	slot->run = run;
	if (save_slot_write(&save->slots, slot, object)) {
		slot->mark = object->mark;
	} else {
		save->failed = true;
	}
	return true;
}

uint64_t save_events_of(const struct app *app)
{
	uint64_t events = app->frames ? mark_of_frames(app->frames) : 0;
	for (size_t i = 0; i < app->stages; i++) {
		events += mark_of_stage(app->stage[i]);
	}
	return events;
}

static void note_app(const struct app *app, struct saved_app *ret)
{
	*ret = (struct saved_app){.uid = app->uid,
		.known_ns = app->known_ns,
		.run = app->run,
		.since_ns = app->since_ns,
		.covers_since_ns = app->covers_since_ns,
		.missing = app->missing,
		.starts = app->starts,
		.restarts = app->restarts,
		.marks_refused = app->marks_refused,
		.hangs = app->hangs.total,
		.past = app->past};
	memcpy(ret->name, app->name, sizeof(app->name));
	ret->events = save_events_of(app);
	for (size_t i = 0; i < app->processes; i++) {
		const struct app_process *process = app->process[i];
		if (process->pid > 0 && process->start_ticks > 0) {
			ret->process[ret->processes++] =
				(struct saved_process){.pid = (uint64_t)process->pid,
					.start_ticks = process->start_ticks,
					.received = process->accounting.received};
		}
	}
}

static uint64_t mark_of_app(const struct saved_app *app)
{
	uint64_t mark = app->starts + app->processes + app->past.received + app->missing;
	for (size_t i = 0; i < app->processes; i++) {
		mark += app->process[i].received;
	}
	return mark;
}

/* The next item of the app: its stages, frames, values, itself. True when one was written; *done:
 * it was the last. */
static bool save_next(struct app_save *save, const struct app *app, bool *done)
{
	struct save_object object;
	size_t item = save->item++;
	*done = item > app->stages + 1;
	if ((item == app->stages && !app->frames) || (item == app->stages + 1 && !app->values)) {
		return false;
	}
	if (item < app->stages) {
		object = save_stage(app->stage[item]);
	} else if (item == app->stages) {
		object = save_frames(app->frames);
	} else if (!*done) {
		object = save_values(app->values);
	} else if (!save->failed) {
		object = (struct save_object){
			.owner = app, .kind = SAVE_APP, .mark = mark_of_app(&save->now)};
		add(&object, &save->now, sizeof(save->now));
	} else { /* what is incomplete is not restored */
		return false;
	}
	return write_item(save, key_of(app->name, app->uid, app->since_ns), &object);
}

/* The marks that changed, and last what order they are in. */
static void save_marks(struct apps *apps)
{
	for (size_t part = APP_MARK_PARTS; part-- > 0;) {
		struct save_object object = {.kind = SAVE_MARKS, .count = 1};
		struct save_segment *segment = &object.segment[0];
		object.owner = segment->data =
			app_marks_part(apps, part, &segment->bytes, &object.mark);
		if (segment->data) {
			write_item(apps->save, part + 1, &object);
		}
	}
}

void apps_save_marks(struct apps *apps)
{
	uint64_t sum = 0;
	for (size_t part = 0; apps->save && part < APP_MARK_PARTS; part++) {
		uint64_t changes = 0;
		size_t bytes;
		app_marks_part(apps, part, &bytes, &changes);
		sum += changes;
	}
	if (apps->save && sum != apps->save->marks_saved) {
		apps->save->marks_saved = sum;
		save_marks(apps);
	}
}

void apps_save_some(struct apps *apps, size_t n)
{
	struct app_save *save = apps->save;
	size_t rounds = apps->count;
	while (save && n > 0 && rounds > 0) {
		const struct app *app = apps_at(apps, save->app);
		bool done = true;
		if (app && save->item == 0) {
			note_app(app, &save->now);
			save->failed = false;
		}
		if (app && save->now.processes > 0 &&
			(app->stages > 0 || app->frames || app->values)) {
			n -= save_next(save, app, &done);
		}
		if (done) {
			save->item = 0;
			save->app = save->app + 1 < apps->count ? save->app + 1 : 0;
			rounds--;
		}
	}
	if (save) {
		save_marks(apps);
	}
}

void apps_save_all(struct apps *apps)
{
	if (apps->save) {
		for (size_t i = 0; i < apps->count; i++) {
			for (size_t k = 0; k < apps->app[i]->processes; k++) {
				app_frames_gone(apps->app[i]->process[k]);
			}
		}
		apps->save->app = apps->save->item = 0;
		apps_save_some(apps, SIZE_MAX);
	}
}

void app_save_forget(struct apps *apps, const void *owner)
{
	for (size_t i = 0; apps->save && owner && i < SAVE_SLOTS; i++) {
		struct save_slot *slot = &apps->save->slots.slot[i];
		if (slot->owner == owner) {
			save_slot_free(&apps->save->slots, slot);
			return;
		}
	}
}

void app_save_forget_run(struct apps *apps, const struct app *app)
{
	app_save_forget(apps, app);
	for (size_t i = 0; i < app->stages; i++) {
		app_save_forget(apps, app->stage[i]);
	}
	app_save_forget(apps, app->frames);
	app_save_forget(apps, app->values);
	if (apps->save) {
		apps->save->item = 0;
	}
}

void app_save_destroy(struct apps *apps)
{
	free(apps->save);
	apps->save = NULL;
}
