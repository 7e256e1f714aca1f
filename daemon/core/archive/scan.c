/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c: decides at the start which blocks of the file can be trusted, what their series are
 * called, and what happened in previous boots. Runs on the worker; blocks come in the order of
 * pages and are sorted at the end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/archive/index.h"
#include "daemon/util/sysops.h"

enum { EVENTS_ROOM = 2 * ARCHIVE_EVENTS_KEPT };

/* Stands for a series of which only the number is known: no metric can have such a name. */
static bool is_nameless(const struct archive_name *name)
{
	return name->text[0] == '#';
}

static int use(struct archive_index *index, uint32_t id, uint64_t seq)
{
	struct archive_name *name = archive_names_by_id(&index->names, id);
	if (!name) {
		char text[16];
		int length = snprintf(text, sizeof(text), "#%u", id);
		int r = archive_names_add(&index->names, text, (size_t)length, UNIT_NONE, &name);
		if (r < 0) {
			return r == -ENOMEM ? r : 0;
		}
		archive_names_number(&index->names, name, id);
	}
	if (name->first_seq == 0 || seq < name->first_seq) {
		name->first_seq = seq;
	}
	if (seq > name->last_seq) {
		name->last_seq = seq;
	}
	return 0;
}

static int learn(struct archive_index *index, const struct archive_name_bytes *read, uint64_t seq)
{
	struct archive_name *known = archive_names_by_id(&index->names, read->id);
	if (known && !is_nameless(known)) {
		archive_names_written(&index->names, known, seq);
		return 0;
	}
	char path[PROTO_PATH_SIZE];
	memcpy(path, read->text, read->length);
	path[read->length] = 0;
	if (!proto_path_valid(path)) {
		return 0;
	}
	struct archive_name *name;
	int r = archive_names_add(&index->names, read->text, read->length, read->unit, &name);
	if (r < 0) {
		return r == -ENOMEM ? r : 0;
	}
	if (known) {
		name->first_seq = known->first_seq;
		name->last_seq = known->last_seq;
		archive_names_drop(&index->names, known);
	}
	archive_names_number(&index->names, name, read->id);
	archive_names_written(&index->names, name, seq);
	return 0;
}

static int by_age(const void *a, const void *b)
{
	const struct timeline_entry *x = a;
	const struct timeline_entry *y = b;
	if (x->boot_seq != y->boot_seq) {
		return x->boot_seq < y->boot_seq ? -1 : 1;
	}
	if (x->serial != y->serial) {
		return x->serial < y->serial ? -1 : 1;
	}
	return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

/* The newest ARCHIVE_EVENTS_KEPT in front. */
static void prune_events(struct archive_index *index)
{
	qsort(index->event, index->events, sizeof(index->event[0]), by_age);
	if (index->events > ARCHIVE_EVENTS_KEPT) {
		memmove(index->event, &index->event[index->events - ARCHIVE_EVENTS_KEPT],
			ARCHIVE_EVENTS_KEPT * sizeof(index->event[0]));
		index->events = ARCHIVE_EVENTS_KEPT;
	}
}

static int keep_event(struct archive_index *index, const struct archive_parsed *block,
	const struct timeline_entry *event)
{
	if (!index->event) {
		index->event = mem_calloc(EVENTS_ROOM, sizeof(index->event[0]));
		if (!index->event) {
			return -ENOMEM;
		}
	}
	if (index->events == EVENTS_ROOM) {
		prune_events(index);
	}
	struct timeline_entry *kept = &index->event[index->events++];
	*kept = *event;
	kept->serial = block->header.seq;
	kept->boot_seq = block->header.boot_seq;
	kept->time_us = archive_wall_us(block->clock, block->header.clocks, NULL, event->t_ns);
	return 0;
}

/* All of a block's rows are decoded once, so that a block that the index has can be read. */
static bool rows_are_sane(const struct archive_group *group, const struct archive_block *header)
{
	struct history_walk walk;
	archive_group_walk(group, header, &walk);
	while (archive_rows_next(&walk, header)) {
	}
	return !walk.bad;
}

/* Goes over the body: with index NULL only to see whether it makes sense. */
static int go_over(struct archive_index *index, const struct archive_parsed *block)
{
	struct byte_reader body = block->body;
	const struct archive_block *header = &block->header;
	int r = 0;
	for (unsigned i = 0; i < header->groups && !body.bad; i++) {
		struct archive_group group;
		if (archive_group_read(&body, &group) && !index && !rows_are_sane(&group, header)) {
			return -EBADMSG;
		}
		for (unsigned k = 0; index && !body.bad && k < group.series && r == 0; k++) {
			r = use(index, group.id[k], header->seq);
		}
	}
	for (unsigned i = 0; i < header->events && !body.bad && r == 0; i++) {
		struct timeline_entry event;
		if (archive_event_read(&body, &event) && index) {
			r = keep_event(index, block, &event);
		}
	}
	for (unsigned i = 0; i < header->names && !body.bad && r == 0; i++) {
		struct archive_name_bytes name;
		if (archive_name_read(&body, &name) && index) {
			r = learn(index, &name, header->seq);
		}
	}
	return body.bad ? -EBADMSG : r;
}

static int take_block(struct archive_index *index, const struct archive_parsed *block)
{
	const struct archive_block *header = &block->header;
	int r = archive_index_add(index, header, block->clock);
	if (r < 0) {
		return r;
	}
	if (header->next_id > index->names.next_id) {
		index->names.next_id = header->next_id;
	}
	return go_over(index, block);
}

int archive_index_scan(
	struct archive_index *index, uint32_t page, const uint8_t *bytes, size_t size)
{
	struct archive_parsed block;
	bool begins = false;
	int pages = archive_block_check(
		bytes, size, page, index->pages, index->identity, &block, &begins);
	if (pages == -EAGAIN) {
		return pages;
	}
	if (page == 0 || pages <= 0 || go_over(NULL, &block) < 0) {
		index->damaged += begins;
		return 0;
	}
	int r = take_block(index, &block);
	if (r < 0) {
		index->error = r;
	}
	return pages;
}

static int by_seq(const void *a, const void *b)
{
	const struct archive_info *x = a;
	const struct archive_info *y = b;
	if (x->seq != y->seq) {
		return x->seq < y->seq ? -1 : 1;
	}
	return (x->page < y->page) - (x->page > y->page);
}

/* A write that was said to have failed, but did not, at the end of the file; then the same block
 * once more, with more rows, at the begin: that one counts. */
static void drop_twins(struct archive_index *index)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < index->blocks; i++) {
		kept += kept == 0 || index->info[kept - 1].seq != index->info[i].seq;
		index->info[kept - 1] = index->info[i];
	}
	index->blocks = kept;
}

/* Going back from the newest block, older ones lie before it, round the end, within one turn. What
 * does not is left over from an earlier turn, and its time is long gone. */
static void keep_one_turn(struct archive_index *index)
{
	uint32_t ring = index->pages - 1;
	uint32_t kept = index->blocks;
	uint32_t covered = 0;
	while (kept > 0) {
		const struct archive_info *info = &index->info[kept - 1];
		uint32_t back = (index->next_page + ring - info->page) % ring;
		back = back == 0 ? ring : back;
		if (back < covered + info->pages) {
			break;
		}
		covered = back;
		kept--;
	}
	archive_index_drop(index, kept);
}

/* Now that the first synchronised offsets of their boots are known. */
static int finish_events(struct archive_index *index)
{
	struct timeline_entry *exact = NULL;
	if (index->events > 0) {
		prune_events(index);
		exact = mem_calloc(index->events, sizeof(*exact));
		if (!exact) {
			return -ENOMEM;
		}
		memcpy(exact, index->event, index->events * sizeof(*exact));
	}
	free(index->event);
	index->event = exact;
	for (size_t i = 0; i < index->events; i++) {
		const struct archive_boot_info *boot =
			archive_index_find_boot(index, exact[i].boot_seq);
		if (boot && boot->synced &&
			(exact[i].time_us == 0 || exact[i].t_ns <= boot->first_synced.t_ns)) {
			exact[i].time_us =
				archive_wall_us(NULL, 0, &boot->first_synced, exact[i].t_ns);
		}
	}
	return 0;
}

int archive_index_finish(struct archive_index *index)
{
	if (index->error < 0) {
		return index->error;
	}
	if (index->blocks > 0) {
		qsort(index->info, index->blocks, sizeof(index->info[0]), by_seq);
		drop_twins(index);
		keep_one_turn(index);
	}
	struct archive_name *next = archive_names_next(&index->names, NULL);
	while (next) {
		struct archive_name *name = next;
		next = archive_names_next(&index->names, name);
		if (is_nameless(name)) {
			archive_names_drop(&index->names, name);
		}
	}
	archive_names_evict(&index->names, archive_index_oldest(index));
	archive_index_forget_boots(index);
	return finish_events(index);
}
