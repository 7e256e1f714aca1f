/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore.c: restores a run from saved statistics, when a process attaches that an earlier life of
 * the daemon knew. The file is the daemon's own, yet of structures that are read complete: what is
 * used as an index is checked, and pointers only say whether something followed.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/core/runs/save_private.h"
#include "daemon/util/sysops.h"

static const struct saved_process *find_process(
	const struct saved_app *app, pid_t pid, uint64_t start_ticks)
{
	for (size_t i = 0; i < app->processes; i++) {
		if (app->process[i].pid == (uint64_t)pid &&
			app->process[i].start_ticks == start_ticks) {
			return &app->process[i];
		}
	}
	return NULL;
}

/* Reads each segment but the first, which the caller has. False: one is incomplete. */
static bool read_rest(struct save_reader *reader, const struct save_segment *segments, size_t count)
{
	bool complete = true;
	for (size_t i = 1; complete && i < count; i++) {
		complete = save_read(reader, segments[i].data, segments[i].bytes);
	}
	return complete;
}

/* The stage of a slot; NULL: it is of another configuration, or memory is short. */
static struct stage *load_stage(struct apps *apps, struct save_reader *reader)
{
	struct stage saved, *stage = NULL;
	if (!save_read(reader, &saved, sizeof(saved)) ||
		saved.window != apps->options.stage_window || saved.filled > saved.window ||
		saved.next >= saved.window || !memchr(saved.name, '\0', sizeof(saved.name)) ||
		stage_create(saved.name, saved.window, &stage) < 0) {
		return NULL;
	}
	uint64_t *runs = stage->runs;
	struct proto_histogram *all = stage->all;
	const bool has_throttled = saved.throttled, has_attributes = saved.attributes,
		   has_cpu = saved.cpu;
	*stage = saved;
	stage->runs = runs;
	stage->all = all;
	stage->throttled = has_throttled ? mem_zalloc(sizeof(*stage->throttled)) : NULL;
	stage->attributes = has_attributes ? mem_zalloc(sizeof(*stage->attributes)) : NULL;
	stage->cpu = has_cpu ? mem_calloc(saved.window, sizeof(*stage->cpu)) : NULL;
	stage->open = NULL;
	stage->budget = NULL;
	stage->sampled_ahead = false;
	stage->users = 0;
	stage->energy = (struct app_energy_share){.share = 0};
	/* iterations begin again; what was outside of them stays */
	stage->loop = (struct stage_loop){.outside = saved.loop.outside};
	memset(stage->metric, 0, sizeof(stage->metric));
	stage_interval_reset(stage);
	struct save_segment segments[SAVE_SEGMENTS];
	size_t count = save_stage_segments(stage, segments);
	bool complete = has_throttled == (stage->throttled != NULL) &&
			has_attributes == (stage->attributes != NULL) &&
			has_cpu == (stage->cpu != NULL);
	complete = complete && read_rest(reader, segments, count);
	for (size_t i = 0; stage->attributes && i < STAGE_ATTRIBUTES_MAX; i++) {
		stage->attributes->attribute[i].key = 0; /* of a declaration */
	}
	if (!complete) {
		stage_destroy(stage);
		return NULL;
	}
	return stage;
}

static struct frames *load_frames(struct apps *apps, struct save_reader *reader)
{
	struct frames *frames = NULL, *saved = mem_zalloc(sizeof(*saved));
	bool complete =
		saved && save_read(reader, saved, sizeof(*saved)) &&
		saved->window == apps->options.frame_window &&
		saved->times.filled <= saved->window && saved->times.next < saved->window &&
		saved->latencies.filled <= saved->window && saved->latencies.next < saved->window &&
		saved->ticks_filled <= FRAMES_FPS_TICKS && saved->ticks_next < FRAMES_FPS_TICKS &&
		saved->second.next < FRAMES_SECONDS && frames_create(saved->window, &frames) == 0;
	if (complete) {
		const struct frames made = *frames;
		const bool has_times = saved->times.throttled,
			   has_latencies = saved->latencies.throttled;
		*frames = *saved;
		frames->times.words = made.times.words;
		frames->latencies.words = made.latencies.words;
		frames->sums_ns = made.sums_ns;
		frames->times.throttled = has_times ? mem_zalloc(sizeof(made.times.all)) : NULL;
		frames->latencies.throttled =
			has_latencies ? mem_zalloc(sizeof(made.times.all)) : NULL;
		memset(frames->metric, 0, sizeof(frames->metric));
		frames_interval_reset(frames);
		complete = has_times == (frames->times.throttled != NULL) &&
			   has_latencies == (frames->latencies.throttled != NULL);
		struct save_segment segments[SAVE_SEGMENTS];
		size_t count = save_frames_segments(frames, segments);
		complete = complete && read_rest(reader, segments, count);
	}
	free(saved);
	if (!complete) {
		frames_destroy(frames);
		return NULL;
	}
	return frames;
}

/* Parents are named by serials of the life before. */
static void translate_parents(const struct app *app, const uint32_t *before)
{
	for (size_t i = 0; i < app->stages; i++) {
		struct stage *stage = app->stage[i];
		for (size_t k = 0; k < stage->parents && k < STAGE_PARENTS; k++) {
			size_t at = 0;
			while (at < app->stages && before[at] != stage->parent[k].serial) {
				at++;
			}
			stage->parent[k].serial = at < app->stages ? app->stage[at]->serial : 0;
		}
	}
}

/* False: some of it is lost. */
static bool load_run(struct apps *apps, struct app *app, uint64_t run)
{
	bool complete = true;
	uint32_t before[APP_STAGES_MAX];
	struct save_slots *slots = &apps->save->slots;
	for (size_t i = 0; i < SAVE_SLOTS; i++) {
		struct save_slot *slot = &slots->slot[i];
		struct save_reader reader;
		if (slot->owner || slot->run != run) {
			continue;
		}
		if (slot->kind == SAVE_STAGE && app->stages < APP_STAGES_MAX) {
			save_slot_read(slots, slot, &reader);
			struct stage *stage = load_stage(apps, &reader);
			if (stage) {
				before[app->stages] = stage->serial;
				app_stage_restore(apps, app, stage);
				slot->owner = stage;
				slot->mark = save_mark_of_stage(stage);
			}
			complete = complete && stage;
		} else if (slot->kind == SAVE_FRAMES && !app->frames) {
			save_slot_read(slots, slot, &reader);
			struct frames *frames = load_frames(apps, &reader);
			if (frames) {
				app->frames = frames;
				app_configure_frames(apps, app);
				app_metrics_add_frames(apps, app);
				slot->owner = frames;
				slot->mark = save_mark_of_frames(frames);
			}
			complete = complete && frames;
		}
	}
	translate_parents(app, before);
	return complete;
}

void app_restore(
	struct apps *apps, struct app *app, pid_t pid, uint64_t start_ticks, uint64_t now_ns)
{
	struct save_slots *slots = apps->save ? &apps->save->slots : NULL;
	struct saved_app *saved = slots && start_ticks > 0 ? mem_zalloc(sizeof(*saved)) : NULL;
	for (size_t i = 0; saved && i < SAVE_SLOTS; i++) {
		struct save_slot *slot = &slots->slot[i];
		struct save_reader reader;
		if (slot->owner || slot->kind != SAVE_APP) {
			continue;
		}
		save_slot_read(slots, slot, &reader);
		if (!save_read(&reader, saved, sizeof(*saved)) || saved->uid != app->uid ||
			saved->processes > APP_PROCESSES_MAX ||
			strncmp(saved->name, app->name, sizeof(app->name)) != 0 ||
			!find_process(saved, pid, start_ticks)) {
			continue;
		}
		slot->owner = app;
		slot->mark = UINT64_MAX;
		app->run = saved->run;
		app->known_ns = saved->known_ns;
		app->since_ns = saved->since_ns;
		app->covers_since_ns = saved->covers_since_ns;
		app->missing = saved->missing;
		app->starts = saved->starts - 1; /* the one that attaches was counted */
		app->restarts = saved->restarts;
		app->marks_refused = saved->marks_refused;
		app->hangs.total = saved->hangs;
		app->past = saved->past;
		app->restored = saved;
		if (!load_run(apps, app, slot->run) && app->covers_since_ns == 0) {
			app->covers_since_ns = now_ns;
		}
		uint64_t events =
			save_events_of(app); /* fewer: an older copy stood in for a bad one */
		app->missing += events < saved->events ? saved->events - events : 0;
		return;
	}
	free(saved);
}

void apps_note_received(struct app_process *process, uint64_t received)
{
	struct app *app = process->app;
	const struct saved_process *saved =
		app->restored ? find_process(app->restored, process->pid, process->start_ticks)
			      : NULL;
	if (saved && received <= saved->received) {
		process->frame_state.begun =
			app->frames != NULL; /* no frame is missing in between */
		return;
	}
	if (received == 0) {
		return;
	}
	if (app->restored) {
		app->missing += received - (saved ? saved->received : 0);
		if (app->frames) {
			frames_gap(app->frames, app->frames->last_tick_ns + 1);
			process->frame_state.begun = true;
		}
	} else if (app->covers_since_ns == 0) {
		app->covers_since_ns = process->attached_ns;
	}
}

void save_restore_marks(struct apps *apps)
{
	struct save_slots *slots = &apps->save->slots;
	bool any = false;
	for (size_t i = 0; i < SAVE_SLOTS; i++) {
		struct save_slot *slot = &slots->slot[i];
		struct save_reader reader;
		size_t bytes;
		if (slot->kind != SAVE_MARKS || slot->run < 1 || slot->run > APP_MARK_PARTS ||
			!app_marks_make(apps)) {
			continue;
		}
		slot->owner = app_marks_part(apps, slot->run - 1, &bytes, &slot->mark);
		save_slot_read(slots, slot, &reader);
		if (!save_read(&reader, (void *)(uintptr_t)slot->owner, bytes)) {
			memset((void *)(uintptr_t)slot->owner, 0, bytes);
		}
		any = true;
	}
	if (any) {
		app_marks_restored(apps);
	}
}
