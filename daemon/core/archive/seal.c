/* SPDX-License-Identifier: Apache-2.0 */
/* seal.c: makes a block of what waits, and notes what its way to the medium changes: names have
 * been written, rows no longer wait, the oldest blocks are gone. Nothing of that counts before the
 * write succeeded. */
#include <string.h>

#include "daemon/core/archive/private.h"
#include "daemon/util/crc32c.h"
#include "daemon/util/sysops.h"

enum { EVENTS_ROOM = ARCHIVE_BLOCK_MAX / 4 };

static bool buffers(struct archive *archive)
{
	if (!archive->block) {
		archive->block = mem_zalloc(ARCHIVE_BLOCK_MAX);
	}
	if (!archive->carried) {
		archive->carried = mem_calloc(ARCHIVE_BLOCK_NAMES, sizeof(struct archive_name *));
	}
	return archive->block && archive->carried;
}

/* The offset in force at from_ns and the ones up to now; the middle goes when they are too many. */
static size_t choose_clocks(
	const struct wallclock *wall, uint64_t from_ns, struct archive_clock ret[ARCHIVE_CLOCKS])
{
	uint32_t at = 0;
	size_t count = 0;
	while (at + 1 < wall->count && wall->entry[at + 1].t_ns <= from_ns) {
		at++;
	}
	for (; at < wall->count; at++) {
		if (count == ARCHIVE_CLOCKS) {
			memmove(&ret[1], &ret[2], (ARCHIVE_CLOCKS - 2) * sizeof(ret[0]));
			count--;
		}
		ret[count++] = (struct archive_clock){
			.t_ns = wall->entry[at].t_ns,
			.offset_ns = wall->entry[at].offset_ns,
			.synced = wall->entry[at].synced,
		};
	}
	return count;
}

static uint64_t oldest_ns(const struct archive *archive, uint32_t rows, uint64_t now_ns)
{
	uint64_t oldest = rows > 0 ? archive_wait_at(archive, 0)->tick * ARCHIVE_TICK_NS : now_ns;
	for (uint32_t i = 0; i < archive->events; i++) {
		uint64_t t_ns = archive->event[i].t_ns;
		oldest = t_ns < oldest ? t_ns : oldest;
	}
	return oldest;
}

static uint16_t put_events(const struct archive *archive, struct byte_writer *writer)
{
	struct byte_writer part = *writer;
	if (part.end - part.at > EVENTS_ROOM) {
		part.end = part.at + EVENTS_ROOM;
	}
	uint16_t count = 0;
	for (; count < archive->events; count++) {
		uint8_t *before = part.at;
		archive_event_write(&part, &archive->event[count]);
		if (part.bad) {
			part.at = before;
			break;
		}
	}
	writer->at = part.at;
	return count;
}

/* All of the block behind its header, of the first `rows` rows. The number of its bytes; 0: that
 * does not fit. */
static size_t make(struct archive *archive, uint32_t rows)
{
	struct archive_block *header = &archive->header;
	struct byte_writer writer = {
		.at = archive->block + sizeof(*header),
		.end = archive->block + ARCHIVE_BLOCK_MAX,
	};
	archive_put(&writer, archive->clock, header->clocks * sizeof(struct archive_clock));
	if (!archive_collect(archive, rows)) {
		return 0;
	}
	archive_put_groups(archive, &writer, header);
	if (writer.bad) {
		return 0;
	}
	header->events = put_events(archive, &writer);
	archive->content = (size_t)(writer.at - archive->block);
	if (!archive_put_names(archive, archive->block, &writer)) {
		return 0;
	}
	header->names = (uint16_t)archive->carried_count;
	return (size_t)(writer.at - archive->block);
}

/* Where the block goes; the blocks that were there are gone from now on. */
static void place(struct archive *archive)
{
	struct archive_block *header = &archive->header;
	struct archive_index *index = archive->index;
	if (header->pages > index->pages - index->next_page) {
		archive_index_overwrite(index, index->next_page, index->pages - index->next_page);
		index->next_page = 1;
	}
	header->page = index->next_page;
	archive_index_overwrite(index, header->page, header->pages);
}

static void finish_block(struct archive *archive, size_t size)
{
	struct archive_block *header = &archive->header;
	header->pages = (uint32_t)((size + ARCHIVE_PAGE - 1) / ARCHIVE_PAGE);
	size_t whole = (size_t)header->pages * ARCHIVE_PAGE;
	place(archive);
	header->next_id = archive->index->names.next_id;
	memset(archive->block + size, 0, whole - size);
	memcpy(archive->block, header, sizeof(*header));
	uint32_t crc = crc32c(archive->index->identity.seed, archive->block, whole);
	memcpy(archive->block + offsetof(struct archive_block, crc), &crc, sizeof(crc));
}

size_t archive_seal(struct archive *archive, uint64_t now_ns, const struct wallclock *wall,
	const struct archive_account_memory *day, bool all, const uint8_t **bytes, uint32_t *page)
{
	if (!archive->index || archive->sealed) {
		return 0;
	}
	archive_flush(archive, now_ns, all);
	if ((archive->waiting == 0 && archive->events == 0) || !buffers(archive)) {
		return 0;
	}
	struct archive_block *header = &archive->header;
	*header = (struct archive_block){
		.magic = ARCHIVE_BLOCK_MAGIC,
		.version = archive->index->identity.version,
		.byte_order = ARCHIVE_BYTE_ORDER,
		.quanta = archive_quanta(),
		.seq = archive->index->next_seq,
		.boot_seq = archive->boot_seq,
	};
	memcpy(header->boot_id, archive->boot_id, sizeof(header->boot_id));
	if (day) {
		header->day = *day;
	}
	uint32_t rows = archive->waiting;
	header->clocks =
		(uint16_t)choose_clocks(wall, oldest_ns(archive, rows, now_ns), archive->clock);
	size_t size = make(archive, rows);
	while (size == 0 && rows > 1) {
		rows = rows / 4 * 3 + rows % 4 / 2;
		size = make(archive, rows);
	}
	if (size == 0) {
		return 0;
	}
	finish_block(archive, size);
	archive->sealed = true;
	archive->sealed_rows = rows;
	archive->sealed_events = header->events;
	archive->lost_rows = 0;
	*bytes = archive->block;
	*page = header->page;
	return (size_t)header->pages * ARCHIVE_PAGE;
}

static void estimate(struct archive *archive)
{
	if (archive->sealed_rows > 0 && archive->content > sizeof(struct archive_block)) {
		double row = (double)(archive->content - sizeof(struct archive_block)) /
			     archive->sealed_rows;
		archive->row_bytes += (row - archive->row_bytes) / 8;
	}
}

void archive_written(struct archive *archive, int result)
{
	if (!archive->sealed) {
		return;
	}
	struct archive_index *index = archive->index;
	const struct archive_block *header = &archive->header;
	archive->sealed = false;
	if (result < 0) {
		archive->dropped += archive->lost_rows;
		archive->sealed_rows = archive->sealed_events = 0;
		return;
	}
	estimate(archive);
	archive_drop_rows(archive, archive->sealed_rows);
	archive_drop_events(archive, archive->sealed_events);
	archive->sealed_rows = archive->sealed_events = 0;
	/* Without memory the block is found again at the next start. */
	(void)archive_index_add(index, header, archive->clock);
	for (size_t i = 0; i < archive->carried_count; i++) {
		archive_names_written(&index->names, archive->carried[i], header->seq);
	}
	for (size_t i = 0; i < archive->used_count; i++) {
		struct archive_name *name = archive->used[i];
		name->first_seq = name->first_seq ? name->first_seq : header->seq;
		name->last_seq = header->seq;
		name->last_tick = name->made_tick;
	}
	size_t names = index->names.count;
	archive_names_evict(&index->names, archive_index_oldest(index));
	archive->known_stamp += index->names.count != names;
}
