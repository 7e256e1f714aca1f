/* A file comes, or goes. What was gathered without one keeps waiting; its series get the numbers
 * that the file has for them. */
#include <stdlib.h>
#include <string.h>

#include "daemon/core/archive/private.h"

static void redirect(struct archive *archive)
{
	for (size_t i = 0; i < METRICS_MAX / ARCHIVE_SLOTS; i++) {
		for (size_t k = 0; archive->chunk[i] && k < ARCHIVE_SLOTS; k++) {
			struct archive_slot *slot = &archive->chunk[i][k];
			if (slot->name && slot->name->forward) {
				slot->name = slot->name->forward;
			}
		}
	}
	for (uint32_t i = 0; i < archive->waiting; i++) {
		struct archive_wait *wait = archive_wait_at(archive, i);
		if (wait->name->forward) {
			wait->name = wait->name->forward;
		}
	}
}

static void take_names(struct archive *archive, struct archive_names *names)
{
	struct archive_name *next = archive_names_next(&archive->loose, NULL);
	while (next) {
		struct archive_name *name = next;
		next = archive_names_next(&archive->loose, name);
		struct archive_name *known =
			archive_names_find(names, name->text, name->length, (enum unit)name->unit);
		if (known) {
			known->refs = name->refs;
			known->last_tick = name->last_tick;
			name->forward = known;
		} else {
			archive_names_move(&archive->loose, names, name);
		}
	}
	redirect(archive);
	archive_names_finish(&archive->loose);
}

/* What the file has of this boot: nothing up to there is written again. */
static void find_floor(struct archive *archive)
{
	const struct archive_index *index = archive->index;
	archive->floored = false;
	for (uint32_t i = index->blocks; i > 0; i--) {
		const struct archive_info *info = archive_index_at(index, i - 1);
		if (info->boot != archive->boot_seq) {
			break;
		}
		if (info->ticks > 0 &&
			(!archive->floored || info->last_tick > archive->floor_tick)) {
			archive->floor_tick = info->last_tick;
			archive->floored = true;
		}
	}
	uint32_t kept = 0;
	for (uint32_t i = 0; i < archive->waiting; i++) {
		struct archive_wait wait = *archive_wait_at(archive, i);
		if (archive->floored && wait.row.tick <= archive->floor_tick) {
			wait.name->refs--;
			continue;
		}
		*archive_wait_at(archive, kept++) = wait;
	}
	archive->waiting = kept;
}

static bool has_event(const struct archive *archive, const struct timeline_entry *entry)
{
	const struct archive_index *index = archive->index;
	for (size_t i = index->events; i > 0; i--) {
		const struct archive_event *event = &index->event[i - 1];
		if (event->boot_seq == archive->boot_seq && event->t_ns == entry->t_ns &&
			event->kind == entry->kind && strcmp(event->text, entry->text) == 0 &&
			strcmp(event->subject, entry->subject) == 0) {
			return true;
		}
	}
	return false;
}

/* Those of an earlier process, whose block came to the medium. */
static void drop_events(struct archive *archive)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < archive->events; i++) {
		const struct timeline_entry entry =
			archive->event[(archive->event_first + i) % ARCHIVE_EVENTS_WAIT];
		if (!has_event(archive, &entry)) {
			archive->event[(archive->event_first + kept++) % ARCHIVE_EVENTS_WAIT] =
				entry;
		}
	}
	archive->events = kept;
}

void archive_adopt(struct archive *archive, struct archive_index *index)
{
	archive_release(archive);
	archive->boot_seq = 1;
	if (index->blocks > 0) {
		uint32_t newest = archive_index_at(index, index->blocks - 1)->boot;
		const struct archive_boot_info *boot = archive_index_find_boot(index, newest);
		bool same = boot && memcmp(boot->id, archive->boot_id, sizeof(boot->id)) == 0;
		archive->boot_seq = same ? newest : newest + 1;
	}
	take_names(archive, &index->names);
	archive->index = index;
	find_floor(archive);
	drop_events(archive);
}

void archive_release(struct archive *archive)
{
	struct archive_index *index = archive->index;
	if (!index) {
		return;
	}
	archive_names_evict(&index->names, UINT64_MAX);
	struct archive_name *name;
	while ((name = archive_names_next(&index->names, NULL))) {
		archive_names_move(&index->names, &archive->loose, name);
	}
	archive->loose.next_id = 1;
	archive->index = NULL;
	archive->boot_seq = 0;
	archive->floored = false;
	archive_index_destroy(index);
}

uint32_t archive_boot_seq(const struct archive *archive)
{
	return archive->boot_seq;
}
