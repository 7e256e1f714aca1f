/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c: makes groups of series of the buckets that wait. Rows, in the order of time, become
 * groups of series. Series that behave alike share a group: those that never changed cost a byte a
 * row together. */
#include "daemon/core/archive/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

/* How a series behaved, best neighbours together. */
enum class { CLASS_CONSTANT, CLASS_FLAT, CLASS_VARYING };

/* form, series, rows, size, numbers */
enum { GROUP_HEADER_MAX = 1 + 1 + 5 + 5 + 5 * ARCHIVE_FLAT_SERIES };

#define NO_ROW UINT32_MAX

static void classify(struct archive *archive, struct archive_name *name,
	const struct history_quanta *value, bool first)
{
	const struct history_quanta *before = &archive_wait_at(archive, name->row_last)->value;
	unsigned class = CLASS_CONSTANT;
	if (value->low != 0 || value->high != 0) {
		class = CLASS_VARYING;
	} else if (!first && (value->mean != before->mean || value->count != before->count)) {
		class = CLASS_FLAT;
	}
	name->class = first || class > name->class ? (uint8_t) class : name->class;
}

static int by_id(const void *a, const void *b)
{
	const struct archive_name *x = *(struct archive_name *const *)a;
	const struct archive_name *y = *(struct archive_name *const *)b;
	return (x->id > y->id) - (x->id < y->id);
}

static int by_class(const void *a, const void *b)
{
	const struct archive_name *x = *(struct archive_name *const *)a;
	const struct archive_name *y = *(struct archive_name *const *)b;
	if (x->class != y->class) {
		return x->class < y->class ? -1 : 1;
	}
	if (x->rows != y->rows) {
		return x->rows > y->rows ? -1 : 1;
	}
	return by_id(a, b);
}

/* *ret NULL: history or the file has no room for the series. -ENOMEM. */
static int name_of(struct archive *archive, uint32_t series, struct archive_name **ret)
{
	struct archive_known *known = &archive->known[series % ARCHIVE_KNOWN];
	*ret = known->name;
	if (known->series == series && known->stamp == archive->known_stamp) {
		return 0;
	}
	struct archive_names *names = &archive->index->names;
	const char *text;
	enum unit unit;
	*ret = NULL;
	if (!archive->history || !history_series(archive->history, series, &text, &unit)) {
		return 0;
	}
	size_t length = strlen(text);
	*ret = archive_names_find(names, text, length, unit);
	int r = *ret ? 0 : archive_names_add(names, text, length, unit, ret);
	if (r == 0) {
		*known = (struct archive_known){archive->known_stamp, series, *ret};
	}
	return r == -ENOMEM ? r : 0;
}

/* The series' first row in this block. */
static bool begin_series(struct archive *archive, struct archive_name *name, uint32_t row)
{
	struct archive_name **more =
		mem_grown(archive->used, archive->used_count, &archive->used_room, sizeof(*more));
	if (!more) {
		return false;
	}
	archive->used = more;
	archive->used[archive->used_count++] = name;
	name->used_stamp = archive->stamp;
	name->row_first = name->row_last = row;
	name->rows = 0;
	if (name->id == 0) {
		archive_names_number(&archive->index->names, name, archive->index->names.next_id);
	}
	return true;
}

bool archive_collect(struct archive *archive, uint32_t count)
{
	archive->stamp++;
	archive->used_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct archive_wait *wait = archive_wait_at(archive, i);
		struct archive_name *name;
		if (name_of(archive, wait->series, &name) < 0) {
			return false;
		}
		bool first = name && name->used_stamp != archive->stamp;
		/* A name that went from one source to another may have a bucket twice. */
		if (!name || wait->tick < (first ? name->last_tick : name->made_tick)) {
			archive->dropped += !name;
			continue;
		}
		if (first && !begin_series(archive, name, i)) {
			return false;
		}
		classify(archive, name, &wait->value, first);
		wait->next = NO_ROW;
		if (!first) {
			archive_wait_at(archive, name->row_last)->next = i;
		}
		name->row_last = i;
		name->made_tick = wait->tick + 1;
		name->rows++;
	}
	if (archive->used_count > 0) {
		qsort(archive->used, archive->used_count, sizeof(archive->used[0]), by_class);
	}
	return true;
}

/* The next row of a group: the oldest bucket that one of its series still has. False at the end. */
static bool next_row(const struct archive *archive, uint32_t *cursor, unsigned series,
	unsigned width, struct history_row *ret)
{
	uint32_t tick = UINT32_MAX;
	for (unsigned i = 0; i < series; i++) {
		if (cursor[i] != NO_ROW && archive_wait_at(archive, cursor[i])->tick < tick) {
			tick = archive_wait_at(archive, cursor[i])->tick;
		}
	}
	ret->t_ns = tick;
	ret->nulls = UINT64_MAX;
	for (unsigned i = 0; i < series; i++) {
		const struct archive_wait *wait =
			cursor[i] != NO_ROW ? archive_wait_at(archive, cursor[i]) : NULL;
		if (wait && wait->tick == tick) {
			cursor[i] = wait->next;
			history_row_put(ret, series, i, width, &wait->value);
		}
	}
	return tick != UINT32_MAX;
}

static uint32_t put_rows(const struct archive *archive, struct archive_name *const *name,
	unsigned series, unsigned width, uint32_t first_tick, struct byte_writer *writer)
{
	uint32_t cursor[ARCHIVE_FLAT_SERIES];
	for (unsigned i = 0; i < series; i++) {
		cursor[i] = name[i]->row_first;
	}
	struct history_row_state state;
	struct history_row row;
	uint32_t rows = 0;
	history_row_start(&state, first_tick, series * width);
	while (!writer->bad && next_row(archive, cursor, series, width, &row)) {
		uint8_t bytes[HISTORY_ROW_MAX];
		archive_put(writer, bytes, history_row_encode(&state, &row, bytes));
		history_row_accept(&state, &row);
		rows++;
	}
	return rows;
}

/* The size of the rows stands before them: they are made a header's length further, then moved. */
static void put_group(const struct archive *archive, struct archive_name **name, unsigned series,
	uint32_t first_tick, struct byte_writer *writer)
{
	if ((size_t)(writer->end - writer->at) < GROUP_HEADER_MAX) {
		writer->bad = true;
		return;
	}
	bool full = name[0]->class == CLASS_VARYING;
	qsort(name, series, sizeof(name[0]), by_id);
	struct byte_writer body = {.at = writer->at + GROUP_HEADER_MAX, .end = writer->end};
	uint32_t rows = put_rows(archive, name, series,
		full ? HISTORY_WIDTH_BUCKET : HISTORY_WIDTH_FLAT, first_tick, &body);
	size_t size = (size_t)(body.at - writer->at) - GROUP_HEADER_MAX;
	const uint8_t *made = writer->at + GROUP_HEADER_MAX;
	writer->bad = writer->bad || body.bad;
	/* Numbers differ and grow. */
	bool consecutive = name[series - 1]->id - name[0]->id == series - 1;
	archive_put_u8(writer,
		(full ? ARCHIVE_FULL : ARCHIVE_FLAT) | (consecutive ? ARCHIVE_CONSECUTIVE : 0));
	archive_put_u8(writer, series);
	archive_put_varint(writer, rows);
	archive_put_varint(writer, size);
	for (unsigned i = 0; i < (consecutive ? 1 : series); i++) {
		archive_put_varint(writer, name[i]->id - (i > 0 ? name[i - 1]->id : 0));
	}
	if (!writer->bad) {
		memmove(writer->at, made, size);
		writer->at += size;
	}
}

static void describe_rows(const struct archive *archive, struct archive_block *header)
{
	header->first_tick = UINT32_MAX;
	header->last_tick = header->ticks = header->rows = header->groups = 0;
	for (size_t i = 0; i < archive->used_count; i++) {
		const struct archive_name *name = archive->used[i];
		uint32_t first = archive_wait_at(archive, name->row_first)->tick;
		uint32_t last = archive_wait_at(archive, name->row_last)->end - 1;
		header->first_tick = first < header->first_tick ? first : header->first_tick;
		header->last_tick = last > header->last_tick ? last : header->last_tick;
		header->ticks = name->rows > header->ticks ? name->rows : header->ticks;
		header->rows += name->rows;
	}
}

void archive_put_groups(
	struct archive *archive, struct byte_writer *writer, struct archive_block *header)
{
	describe_rows(archive, header);
	for (size_t i = 0; i < archive->used_count && !writer->bad;) {
		bool full = archive->used[i]->class == CLASS_VARYING;
		unsigned most = full ? ARCHIVE_FULL_SERIES : ARCHIVE_FLAT_SERIES;
		unsigned series = 0;
		while (series < most && i + series < archive->used_count &&
			(archive->used[i + series]->class == CLASS_VARYING) == full) {
			series++;
		}
		put_group(archive, &archive->used[i], series, header->first_tick, writer);
		header->groups++;
		i += series;
	}
}

/* ---- names ---- */

/* Which names a block carries: the new ones, those that were new in the block before, those that
 * were written last a third of the file ago, and as many of the others as the last page has room
 * for. So each name of a block stands in several others, too, and none is overwritten before it was
 * written again. */
static bool put_name(struct archive *archive, struct archive_name *name, struct byte_writer *writer)
{
	if (name->carried_stamp == archive->stamp) {
		return true;
	}
	if (archive->carried_count == ARCHIVE_BLOCK_NAMES ||
		archive_name_size(name) > (size_t)(writer->end - writer->at)) {
		return false;
	}
	archive_put_varint(writer, name->id);
	archive_put_u8(writer, name->unit);
	archive_put_u8(writer, name->length);
	archive_put(writer, name->text, name->length);
	name->carried_stamp = archive->stamp;
	archive->carried[archive->carried_count++] = name;
	return true;
}

/* Blocks up to this one lie more than two thirds of a turn before the next; or will soon. */
static uint64_t stale_seq(const struct archive_index *index)
{
	uint32_t pages = 0;
	for (uint32_t i = index->blocks; i > 0; i--) {
		const struct archive_info *info = &index->info[i - 1];
		pages += info->pages;
		if (pages > index->pages / 3) {
			return info->seq;
		}
	}
	return 0;
}

bool archive_put_names(struct archive *archive, const uint8_t *block, struct byte_writer *writer)
{
	const struct archive_index *index = archive->index;
	archive->carried_count = 0;
	for (size_t i = 0; i < archive->used_count; i++) {
		if (archive->used[i]->copies == 0 && !put_name(archive, archive->used[i], writer)) {
			return false;
		}
	}
	for (struct archive_name *name = index->names.newest;
		name && name->written_seq + 1 >= index->next_seq; name = name->older) {
		if (name->copies == 1 && !put_name(archive, name, writer)) {
			return true;
		}
	}
	uint64_t stale = stale_seq(index);
	struct archive_name *name = index->names.oldest;
	for (; name && name->written_seq <= stale; name = name->newer) {
		if (!put_name(archive, name, writer)) {
			return true;
		}
	}
	size_t used = (size_t)(writer->at - block);
	size_t room = (ARCHIVE_PAGE - used % ARCHIVE_PAGE) % ARCHIVE_PAGE;
	struct byte_writer padding = {.at = writer->at, .end = writer->at + room};
	while (name && put_name(archive, name, &padding)) {
		name = name->newer;
	}
	writer->at = padding.at;
	return true;
}
