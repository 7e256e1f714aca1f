/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore.c: restores a run from saved statistics, when a process attaches that an earlier life of
 * the daemon knew, or when none of its processes is left. The file is the daemon's own, yet of
 * structures that are read complete: what is used as an index is checked, and pointers only say
 * whether something followed.
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

/* Memory for what a saved pointer led to; NULL where there was nothing. */
static void *make(const void *saved, size_t bytes, bool *complete)
{
	void *made = saved ? mem_zalloc(bytes) : NULL;
	*complete = *complete && (made || !saved);
	return made;
}

/* Reads each segment but the first, which the caller has. False: one is incomplete. */
static bool read_rest(struct save_reader *reader, const struct save_object *object)
{
	bool complete = true;
	for (size_t i = 1; complete && i < object->count; i++) {
		complete = save_read(reader, object->segment[i].data, object->segment[i].bytes);
	}
	return complete;
}

/* Reads what a histogram held, into an empty one. */
static bool load_buckets(struct save_reader *reader, const struct proto_histogram *saved,
	struct proto_histogram *ret)
{
	const size_t bytes = saved->held * sizeof(*saved->buckets);
	bool complete = saved->first <= PROTO_HISTOGRAM_BUCKETS &&
			saved->held <= PROTO_HISTOGRAM_BUCKETS - saved->first &&
			saved->held % 2 == 0 && !saved->buckets == (saved->held == 0);
	if (!complete) {
		return false;
	}
	*ret = *saved;
	ret->calloc = mem_calloc;
	ret->complete = false;
	ret->buckets = make(saved->buckets, bytes, &complete);
	ret->carries = make(saved->carries, sizeof(*ret->carries), &complete);
	return complete && (!ret->buckets || save_read(reader, ret->buckets, bytes)) &&
	       (!ret->carries || (save_read(reader, ret->carries, sizeof(*ret->carries)) &&
					 ret->carries->count <= PROTO_HISTOGRAM_CARRIES));
}

/* Reads one that is there if the saved pointer says so. */
static bool load_histogram(struct save_reader *reader, const struct proto_histogram *pointer,
	struct proto_histogram **ret)
{
	struct proto_histogram saved;
	bool complete = true;
	*ret = make(pointer, sizeof(**ret), &complete);
	return complete && (!*ret || (save_read(reader, &saved, sizeof(saved)) &&
					     load_buckets(reader, &saved, *ret)));
}

/* The stage of a slot; NULL: it is of another configuration, or memory is short. */
static struct stage *load_stage(struct apps *apps, struct save_reader *reader)
{
	struct stage *stage = mem_zalloc(sizeof(*stage));
	const size_t window = apps->options.stage_window;
	if (!stage || !save_read(reader, stage, sizeof(*stage)) || stage->window != window ||
		stage->capacity > window || stage->filled > stage->capacity ||
		stage->next >= stage->capacity || stage->noted > 0 || !stage->runs || !stage->all ||
		!memchr(stage->name, '\0', sizeof(stage->name))) {
		free(stage);
		return NULL;
	}
	bool complete = true;
	const struct proto_histogram *all = stage->all, *throttled = stage->throttled;
	stage->all = stage->throttled = NULL;
	stage->runs = make(stage->runs, stage->capacity * sizeof(*stage->runs), &complete);
	stage->attributes = make(stage->attributes, sizeof(*stage->attributes), &complete);
	stage->cpu = make(stage->cpu, stage->capacity * sizeof(*stage->cpu), &complete);
	stage->open = NULL;
	stage->budget = NULL;
	stage->sampled_ahead = false;
	stage->recent_of = 0;
	stage->timely = 0;
	stage->users = 0;
	stage->energy = (struct app_energy_share){.share = 0};
	/* iterations begin again; what was outside of them stays */
	stage->loop = (struct stage_loop){.outside = stage->loop.outside};
	memset(stage->metric, 0, sizeof(stage->metric));
	stage_interval_reset(stage);
	const struct save_object object = save_stage(stage); /* but its histograms */
	if (!complete || !read_rest(reader, &object) || !load_histogram(reader, all, &stage->all) ||
		!load_histogram(reader, throttled, &stage->throttled)) {
		stage_destroy(stage);
		return NULL;
	}
	for (size_t i = 0; stage->attributes && i < STAGE_ATTRIBUTES_MAX; i++) {
		stage->attributes->attribute[i].key = 0; /* of a declaration */
	}
	return stage;
}

static bool series_fits(const struct frames_series *series, size_t window)
{
	return series->filled <= window && series->next < window && series->words;
}

static struct frames *load_frames(struct apps *apps, struct save_reader *reader)
{
	struct frames *frames = mem_zalloc(sizeof(*frames));
	const size_t window = apps->options.frame_window, bytes = window * sizeof(uint64_t);
	if (!frames || !save_read(reader, frames, sizeof(*frames)) || frames->window != window ||
		!series_fits(&frames->times, window) || !series_fits(&frames->latencies, window) ||
		!frames->sums_ns || frames->ticks_filled > FRAMES_FPS_TICKS ||
		frames->ticks_next >= FRAMES_FPS_TICKS || frames->second.next >= FRAMES_SECONDS) {
		free(frames);
		return NULL;
	}
	bool complete = true;
	struct frames_series *series[] = {&frames->times, &frames->latencies};
	struct frames_series saved[] = {frames->times, frames->latencies};
	for (size_t i = 0; i < 2; i++) {
		series[i]->words = make(series[i]->words, bytes, &complete);
		series[i]->throttled = NULL;
		proto_histogram_init(&series[i]->all, mem_calloc);
	}
	frames->sums_ns = make(frames->sums_ns, bytes, &complete);
	memset(frames->metric, 0, sizeof(frames->metric));
	frames->sampled_ahead = false;
	frames_interval_reset(frames);
	const struct save_object object = save_frames(frames); /* but its histograms */
	complete = complete && read_rest(reader, &object);
	for (size_t i = 0; i < 2; i++) {
		complete = complete && load_buckets(reader, &saved[i].all, &series[i]->all) &&
			   load_histogram(reader, saved[i].throttled, &series[i]->throttled);
	}
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

static bool load_values(struct apps *apps, struct app *app, struct save_slot *slot)
{
	struct save_reader reader;
	struct app_values *values = mem_zalloc(sizeof(*values));
	save_slot_read(&apps->save->slots, slot, &reader);
	if (!values || !save_read(&reader, values, sizeof(*values))) {
		free(values);
		return false;
	}
	app->values = values;
	slot->owner = values;
	slot->mark = save_values(values).mark;
	return app_values_restored(apps, app);
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
				slot->mark = save_stage(stage).mark;
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
				slot->mark = save_frames(frames).mark;
			}
			complete = complete && frames;
		} else if (slot->kind == SAVE_VALUES && !app->values) {
			complete = load_values(apps, app, slot) && complete;
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

/* False: one of them may attach again, or nothing valid is there. */
static bool read_gone(struct save_reader *reader, bool (*is_gone)(pid_t pid, uint64_t start_ticks),
	struct saved_app *ret)
{
	bool gone = save_read(reader, ret, sizeof(*ret)) && ret->processes > 0 &&
		    ret->processes <= APP_PROCESSES_MAX &&
		    memchr(ret->name, '\0', sizeof(ret->name));
	for (size_t i = 0; gone && i < ret->processes; i++) {
		gone = is_gone((pid_t)ret->process[i].pid, ret->process[i].start_ticks);
	}
	return gone;
}

/* Restores the run as its first process, and ends it. */
static void end_saved(struct apps *apps, const struct saved_app *saved, uint64_t now_ns)
{
	const struct saved_process *first = &saved->process[0];
	struct app_process *process;
	if (apps_find(apps, saved->name) ||
		apps_attach(apps, saved->name, (uid_t)saved->uid, (pid_t)first->pid,
			first->start_ticks, 0, now_ns, &process) < 0) {
		return;
	}
	for (size_t i = 0; i < saved->processes; i++) {
		process->accounting.received += saved->process[i].received;
	}
	process->accounting.sent = process->accounting.received;
	process->away = true;
	apps_detach(apps, process, PROCESS_ENDED, now_ns);
}

void apps_end_saved(struct apps *apps, size_t n, bool (*is_gone)(pid_t pid, uint64_t start_ticks),
	uint64_t now_ns)
{
	struct app_save *save = apps->save;
	struct saved_app *saved = NULL;
	for (size_t i = 0; save && n > 0 && i < SAVE_SLOTS; i++) {
		struct save_slot *slot = &save->slots.slot[save->ending++ % SAVE_SLOTS];
		struct save_reader reader;
		if (slot->owner || slot->kind != SAVE_APP) {
			continue;
		}
		saved = saved ? saved : mem_zalloc(sizeof(*saved));
		if (!saved) {
			return;
		}
		save_slot_read(&save->slots, slot, &reader);
		if (read_gone(&reader, is_gone, saved)) {
			end_saved(apps, saved, now_ns);
		}
		n--;
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

bool app_awaits_processes(const struct app *app)
{
	const struct saved_app *saved = app->frames ? app->restored : NULL;
	uint64_t back = 0;
	for (size_t i = 0; saved && i < app->processes; i++) {
		const struct app_process *process = app->process[i];
		back += find_process(saved, process->pid, process->start_ticks) != NULL;
	}
	return saved && back < saved->processes;
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
