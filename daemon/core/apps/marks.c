/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.c: keeps the marks that apps and people make. Those of apps come as records, those of
 * people through api. The system's memory is read when a mark arrives; how long that was after its
 * moment is part of it.
 */
#include "daemon/core/apps/marks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/util/sysops.h"
#include "proto/fnv.h"

/* The pool stays where it is, order holds the slots of those kept, oldest first. */
struct app_marks {
	size_t count;
	uint16_t order[MARKS_MAX];
	struct app_mark pool[MARKS_MAX];
	uint64_t changes[APP_MARK_PARTS]; /* the first is of what stands before the pool */
};

enum { GROUP = MARKS_MAX / (APP_MARK_PARTS - 1) };

/* The mark is not what it was. */
static void note_change(struct app_marks *marks, const struct app_mark *mark)
{
	marks->changes[1 + (size_t)(mark - marks->pool) / GROUP]++;
}

void app_mark_init(struct app_mark *mark, uint64_t t_ns, const char *label)
{
	*mark = (struct app_mark){.t_ns = t_ns,
		.frame = PROTO_NO_FRAME,
		.rss_bytes = NAN,
		.vms_bytes = NAN,
		.peak_rss_bytes = NAN,
		.system_total_bytes = NAN,
		.system_available_bytes = NAN,
		.system_used_percent = NAN,
		.index = PROTO_DECLARATIONS};
	snprintf(mark->label, sizeof(mark->label), "%s", label);
}

/* Of the same app, or both of nobody, and by the same user: anyone may mark any app. Names are
 * compared only where their hashes are equal. */
static bool same_owner(const struct app_mark *a, const struct app_mark *b)
{
	return a->owner == b->owner && a->uid == b->uid && strcmp(a->app, b->app) == 0;
}

static struct app_mark *mark_at(struct app_marks *marks, size_t index)
{
	return &marks->pool[marks->order[index]];
}

static size_t count_of(struct app_marks *marks, const struct app_mark *like)
{
	size_t count = 0;
	for (size_t i = 0; i < marks->count; i++) {
		count += same_owner(mark_at(marks, i), like);
	}
	return count;
}

/* Returns a mark of the user with the most marks; with `of`, of that user's app with the most.
 * Counts in one pass, by hash, because an app can cause this with every mark. */
static const struct app_mark *mark_of_most(struct app_marks *marks, const struct app_mark *of)
{
	uint16_t first[2 * MARKS_MAX] = {0}, count[MARKS_MAX + 1] = {0}; /* index + 1; 0: none */
	size_t most = 0;
	for (size_t i = 0; i < marks->count; i++) {
		const struct app_mark *mark = mark_at(marks, i), *other;
		size_t at = of ? mark->owner : mark->uid;
		if (of && mark->uid != of->uid) {
			continue;
		}
		for (; first[at %= 2 * MARKS_MAX] > 0; at++) {
			other = mark_at(marks, first[at] - 1u);
			if (of ? same_owner(other, mark) : other->uid == mark->uid) {
				break;
			}
		}
		first[at] = first[at] > 0 ? first[at] : (uint16_t)(i + 1);
		if (++count[first[at]] > count[most]) {
			most = first[at];
		}
	}
	return mark_at(marks, most - 1);
}

/* Removes the oldest mark of the same owner; its slot is free. */
static uint16_t remove_oldest(struct app_marks *marks, const struct app_mark *like)
{
	size_t at = 0;
	while (!same_owner(mark_at(marks, at), like)) {
		at++;
	}
	uint16_t slot = marks->order[at];
	marks->count--;
	memmove(&marks->order[at], &marks->order[at + 1],
		(marks->count - at) * sizeof(marks->order[0]));
	return slot;
}

static uint16_t slot_for(struct app_marks *marks, const struct app_mark *mark)
{
	if (count_of(marks, mark) >= APP_MARKS_KEPT) {
		return remove_oldest(marks, mark);
	}
	if (marks->count == MARKS_MAX) {
		return remove_oldest(marks, mark_of_most(marks, mark_of_most(marks, NULL)));
	}
	/* the slot that no mark has: few are made, so a linear search is fine */
	bool used[MARKS_MAX] = {false};
	for (size_t i = 0; i < marks->count; i++) {
		used[marks->order[i]] = true;
	}
	uint16_t slot = 0;
	while (used[slot]) {
		slot++;
	}
	return slot;
}

void apps_set_memory_reader(struct apps *apps, system_memory_reader *reader, void *ctx)
{
	apps->memory_reader = reader;
	apps->memory_reader_ctx = ctx;
}

static void read_system_memory(const struct apps *apps, struct app_mark *mark)
{
	struct system_memory memory;
	if (!apps->memory_reader || !apps->memory_reader(apps->memory_reader_ctx, &memory)) {
		return;
	}
	mark->system_total_bytes = memory.total_bytes;
	mark->system_available_bytes = memory.available_bytes;
	mark->system_used_percent =
		(memory.total_bytes - memory.available_bytes) / memory.total_bytes * 100;
	mark->system_delay_ns = memory.t_ns > mark->t_ns ? memory.t_ns - mark->t_ns : 0;
}

static struct app_mark *mark_add(struct apps *apps, const struct app_mark *mark)
{
	if (!app_marks_make(apps)) {
		return NULL; /* it is on the timeline all the same */
	}
	struct app_marks *marks = apps->marks;
	struct app_mark new = *mark;
	new.owner = fnv32(FNV32_BASIS, new.app, strlen(new.app));
	uint16_t slot = slot_for(marks, &new);
	struct app_mark *kept = &marks->pool[slot];
	marks->order[marks->count++] = slot;
	*kept = new;
	note_change(marks, kept);
	marks->changes[0]++;
	read_system_memory(apps, kept);
	return kept;
}

uint64_t apps_mark(struct apps *apps, const struct app_mark *mark)
{
	if (!mark->unlogged) {
		timeline_add(apps->timeline, mark->t_ns, TIMELINE_MARK, TIMELINE_INFO, mark->app,
			"%s", mark->label);
	}
	uint64_t serial = timeline_last_serial(apps->timeline);
	struct app_mark *kept = mark_add(apps, mark);
	if (kept) {
		kept->serial = serial;
	}
	return serial;
}

const struct app_mark *apps_mark_at(const struct apps *apps, size_t index)
{
	return apps->marks && index < apps->marks->count ? mark_at(apps->marks, index) : NULL;
}

const struct app_mark *apps_mark_before(const struct apps *apps, size_t index)
{
	const struct app_mark *mark = apps_mark_at(apps, index);
	while (mark && index-- > 0) {
		const struct app_mark *before = mark_at(apps->marks, index);
		if (before->process == mark->process && same_owner(before, mark)) {
			return before;
		}
	}
	return NULL;
}

void app_marks_forget(struct apps *apps, const struct app *app)
{
	struct app_marks *marks = apps->marks;
	size_t kept = 0;
	for (size_t i = 0; marks && i < marks->count; i++) {
		if (strcmp(mark_at(marks, i)->app, app->name) != 0) {
			marks->order[kept++] = marks->order[i];
		}
	}
	if (marks) {
		marks->changes[0] += marks->count != kept;
		marks->count = kept;
	}
}

uint64_t app_process_key(const struct app_process *process)
{
	return process->id_key + 1;
}

bool app_on_mark(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	(void)slot;
	if (process->marks >= APP_MARKS_MAX) {
		process->marks_refused++;
		return true;
	}
	process->marks++;
	process->marked[record->stage] = true;
	struct app_mark mark;
	app_mark_init(&mark, record->start_ns, process->declaration[record->stage]->name);
	memcpy(mark.app, process->app->name, sizeof(mark.app));
	mark.uid = process->app->uid;
	mark.process = app_process_key(process);
	mark.frame = record->frame;
	mark.index = record->stage;
	mark.unlogged =
		!entry_quota_allows(apps, mark.uid, ENTRY_QUOTA_MARK, process->frame_state.pass_ns);
	if (record->value > 0) {
		mark.rss_bytes = (double)record->value;
		mark.memory_source = "app";
	} else {
		mark.memory_reason = "the app did not measure it";
	}
	apps_mark(apps, &mark);
	return true;
}

/* The process's newest mark of this label and moment. */
static struct app_mark *mark_of(
	struct apps *apps, const struct app_process *process, uint32_t index, uint64_t t_ns)
{
	size_t i = apps->marks ? apps->marks->count : 0;
	uint64_t key = app_process_key(process);
	while (i-- > 0) {
		struct app_mark *mark = mark_at(apps->marks, i);
		if (mark->t_ns == t_ns && mark->index == index && mark->process == key &&
			strcmp(mark->app, process->app->name) == 0) {
			return mark;
		}
	}
	return NULL;
}

bool app_on_mark_memory(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	(void)slot;
	struct app_mark *mark = mark_of(apps, process, record->stage, record->start_ns);
	if (!mark) { /* of one that was refused: neither good nor bad */
		return true;
	}
	if (record->value > 0) {
		mark->vms_bytes = (double)record->value;
	}
	if (record->frame > 0 && record->frame != PROTO_NO_FRAME) {
		mark->peak_rss_bytes = (double)record->frame;
	}
	note_change(apps->marks, mark);
	return true;
}

bool app_mark_attribute(struct apps *apps, const struct app_process *process, uint32_t index,
	const struct proto_record *record, double value)
{
	struct app_mark *mark = mark_of(apps, process, index, record->start_ns);
	if (!mark) {
		return false;
	}
	note_change(apps->marks, mark);
	if (mark->attributes == MARK_ATTRIBUTES_MAX) {
		mark->attributes_refused++;
		return true;
	}
	struct mark_attribute *attribute = &mark->attribute[mark->attributes++];
	const char *name = process->declaration[record->stage]->name;
	proto_name_clean(name, strnlen(name, PROTO_NAME_SIZE), attribute->name);
	attribute->value = value;
	return true;
}

bool app_marks_make(struct apps *apps)
{
	if (!apps->marks) {
		apps->marks = mem_zalloc(sizeof(*apps->marks));
	}
	return apps->marks != NULL;
}

void *app_marks_part(struct apps *apps, size_t part, size_t *bytes, uint64_t *changes)
{
	struct app_marks *marks = apps->marks;
	if (!marks) {
		return NULL;
	}
	*bytes = part == 0 ? offsetof(struct app_marks, pool) : GROUP * sizeof(marks->pool[0]);
	*changes = marks->changes[part];
	return part == 0 ? (void *)marks : &marks->pool[(part - 1) * GROUP];
}

static bool is_complete(const struct app_mark *mark)
{
	return mark->t_ns > 0 && memchr(mark->app, '\0', sizeof(mark->app)) &&
	       memchr(mark->label, '\0', sizeof(mark->label)) &&
	       mark->attributes <= MARK_ATTRIBUTES_MAX;
}

void app_marks_restored(struct apps *apps)
{
	struct app_marks *marks = apps->marks;
	bool used[MARKS_MAX] = {false};
	size_t kept = 0;
	for (size_t i = 0; i < marks->count && i < MARKS_MAX; i++) {
		const uint16_t slot = marks->order[i];
		if (slot >= MARKS_MAX || used[slot] || !is_complete(&marks->pool[slot])) {
			continue;
		}
		struct app_mark *mark = &marks->pool[slot];
		mark->memory_source = isnan(mark->rss_bytes)	? NULL
				      : mark->memory_age_ns > 0 ? "sample"
								: "app";
		mark->memory_reason = !isnan(mark->rss_bytes) ? NULL
				      : mark->app[0]	      ? "it was not measured"
							      : "the mark is of no app";
		used[slot] = true;
		marks->order[kept++] = slot;
	}
	marks->count = kept;
}
