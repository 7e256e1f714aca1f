/* SPDX-License-Identifier: Apache-2.0 */
/* block.c: reads and checks the bytes of one block, and of the header page. A block's checksum was
 * right by the time it is read, so nonsense behind that is a fault of ours or a collision; still
 * nothing is read past its end, and nothing is trusted to be in range. */
#include "daemon/core/archive/block.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/util/crc32c.h"

/* More can follow a number that is read, in this file and for ever. */
#define ID_MAX (UINT32_MAX / 2)

uint32_t archive_quanta(void)
{
	uint32_t crc = 0;
	for (int unit = 0; unit < UNIT_COUNT_OF_UNITS; unit++) {
		double quantum = unit_quantum((enum unit)unit);
		crc = crc32c(crc, &quantum, sizeof(quantum));
	}
	return crc;
}

/* Of the bytes as they are: a copied struct need not have the same padding. */
static bool sum_is_right(const struct archive_block *header, const uint8_t *bytes, uint32_t seed)
{
	static const uint8_t zeros[sizeof(header->crc)];
	const size_t before = offsetof(struct archive_block, crc);
	const size_t after = before + sizeof(zeros);
	uint32_t crc = crc32c(seed, bytes, before);
	crc = crc32c(crc, zeros, sizeof(zeros));
	crc = crc32c(crc, bytes + after, (size_t)header->pages * ARCHIVE_PAGE - after);
	return crc == header->crc;
}

static bool header_is_sane(
	const struct archive_block *header, uint32_t version, uint32_t page, uint32_t file_pages)
{
	return header->magic == ARCHIVE_BLOCK_MAGIC && header->version == version &&
	       header->byte_order == ARCHIVE_BYTE_ORDER && header->page == page &&
	       header->pages > 0 && header->pages <= ARCHIVE_BLOCK_MAX / ARCHIVE_PAGE &&
	       page < file_pages && header->pages <= file_pages - page && header->seq > 0 &&
	       header->seq < UINT64_MAX / 2 && header->boot_seq > 0 &&
	       header->boot_seq < UINT32_MAX / 2 && header->next_id > 0 &&
	       header->next_id <= ID_MAX && header->clocks <= ARCHIVE_CLOCKS;
}

int archive_block_check(const uint8_t *bytes, size_t size, uint32_t page, uint32_t file_pages,
	struct archive_identity identity, struct archive_parsed *ret, bool *begins)
{
	struct archive_block *header = &ret->header;
	*begins = false;
	if (size < ARCHIVE_PAGE) {
		return page < file_pages ? -EAGAIN : 0;
	}
	memcpy(header, bytes, sizeof(*header));
	*begins = header->magic == ARCHIVE_BLOCK_MAGIC;
	if (!header_is_sane(header, identity.version, page, file_pages)) {
		return 0;
	}
	if (size < (size_t)header->pages * ARCHIVE_PAGE) {
		return -EAGAIN;
	}
	if (!sum_is_right(header, bytes, identity.seed) || header->quanta != archive_quanta()) {
		return 0;
	}
	memcpy(ret->clock, bytes + sizeof(*header), header->clocks * sizeof(ret->clock[0]));
	ret->body = (struct byte_reader){
		.at = bytes + sizeof(*header) + header->clocks * sizeof(ret->clock[0]),
		.end = bytes + (size_t)header->pages * ARCHIVE_PAGE,
	};
	return (int)header->pages;
}

static bool read_ids(struct byte_reader *body, struct archive_group *ret, bool consecutive)
{
	uint64_t id = 0;
	for (unsigned i = 0; i < ret->series; i++) {
		uint64_t step = i > 0 && consecutive ? 1 : archive_get_varint(body);
		id += step;
		if (step == 0 || step > ID_MAX || id > ID_MAX) {
			body->bad = true;
			return false;
		}
		ret->id[i] = (uint32_t)id;
	}
	return !body->bad;
}

bool archive_group_read(struct byte_reader *body, struct archive_group *ret)
{
	unsigned form = archive_get_u8(body);
	bool consecutive = form & ARCHIVE_CONSECUTIVE;
	form &= ~(unsigned)ARCHIVE_CONSECUTIVE;
	ret->series = archive_get_u8(body);
	uint64_t rows = archive_get_varint(body);
	uint64_t size = archive_get_varint(body);
	unsigned most = form == ARCHIVE_FULL ? ARCHIVE_FULL_SERIES : ARCHIVE_FLAT_SERIES;
	if (body->bad || form >= ARCHIVE_FORMS || ret->series == 0 || ret->series > most ||
		rows > ARCHIVE_BLOCK_MAX || size > ARCHIVE_BLOCK_MAX) {
		body->bad = true;
		return false;
	}
	ret->width = form == ARCHIVE_FULL ? HISTORY_WIDTH_BUCKET : HISTORY_WIDTH_FLAT;
	ret->rows = (uint32_t)rows;
	if (!read_ids(body, ret, consecutive)) {
		return false;
	}
	const uint8_t *at = archive_get(body, size);
	ret->bytes = (struct byte_reader){.at = at, .end = at ? at + size : at};
	return at != NULL;
}

void archive_group_walk(const struct archive_group *group, const struct archive_block *header,
	struct history_walk *walk)
{
	history_walk_start(walk, group->bytes.at, (size_t)(group->bytes.end - group->bytes.at),
		group->rows, header->first_tick, group->series * group->width);
}

bool archive_rows_next(struct history_walk *walk, const struct archive_block *header)
{
	if (history_walk_next(walk)) {
		walk->bad = walk->state.last.t_ns > header->last_tick;
		return !walk->bad;
	}
	return false;
}

/* A text of that length; one that does not fit into size bytes with its end is bad. */
static void read_text(struct byte_reader *body, uint64_t length, char *ret, size_t size)
{
	const uint8_t *text = archive_get(body, length);
	body->bad = body->bad || length >= size;
	if (!body->bad) {
		memcpy(ret, text, length);
	}
}

bool archive_event_read(struct byte_reader *body, struct timeline_entry *ret)
{
	memset(ret, 0, sizeof(*ret));
	unsigned kind = archive_get_u8(body);
	unsigned level = archive_get_u8(body);
	ret->t_ns = archive_get_varint(body);
	read_text(body, archive_get_u8(body), ret->subject, sizeof(ret->subject));
	read_text(body, archive_get_varint(body), ret->text, sizeof(ret->text));
	body->bad = body->bad || kind >= TIMELINE_KIND_COUNT || level > TIMELINE_CRITICAL ||
		    ret->t_ns > INT64_MAX;
	ret->kind = (enum timeline_kind)kind;
	ret->level = (enum timeline_level)level;
	return !body->bad;
}

void archive_event_write(struct byte_writer *writer, const struct timeline_entry *entry)
{
	size_t subject = strnlen(entry->subject, sizeof(entry->subject) - 1);
	size_t text = strnlen(entry->text, sizeof(entry->text) - 1);
	archive_put_u8(writer, entry->kind);
	archive_put_u8(writer, entry->level);
	archive_put_varint(writer, entry->t_ns);
	archive_put_u8(writer, (unsigned)subject);
	archive_put(writer, entry->subject, subject);
	archive_put_varint(writer, text);
	archive_put(writer, entry->text, text);
}

bool archive_name_read(struct byte_reader *body, struct archive_name_bytes *ret)
{
	uint64_t id = archive_get_varint(body);
	unsigned unit = archive_get_u8(body);
	ret->length = archive_get_u8(body);
	ret->text = (const char *)archive_get(body, ret->length);
	if (body->bad || id == 0 || id > ID_MAX || unit >= UNIT_COUNT_OF_UNITS ||
		ret->length == 0 || ret->length >= PROTO_PATH_SIZE ||
		memchr(ret->text, 0, ret->length)) {
		body->bad = true;
		return false;
	}
	ret->id = (uint32_t)id;
	ret->unit = (enum unit)unit;
	return true;
}

static int64_t add_us(uint64_t t_ns, int64_t offset_ns)
{
	int64_t ns;
	if (t_ns > INT64_MAX || __builtin_add_overflow((int64_t)t_ns, offset_ns, &ns)) {
		return INT64_MAX / 1000;
	}
	return ns / 1000 - (ns % 1000 < 0);
}

const struct archive_clock *archive_clock_at(
	const struct archive_clock *clock, size_t clocks, uint64_t t_ns)
{
	size_t at = 0;
	while (at + 1 < clocks && clock[at + 1].t_ns <= t_ns) {
		at++;
	}
	return &clock[at];
}

int64_t archive_wall_us(const struct archive_clock *clock, size_t clocks,
	const struct archive_clock *first_synced, uint64_t t_ns)
{
	if (first_synced && (t_ns <= first_synced->t_ns || clocks == 0)) {
		return add_us(t_ns, first_synced->offset_ns);
	}
	return clocks > 0 ? add_us(t_ns, archive_clock_at(clock, clocks, t_ns)->offset_ns) : 0;
}

/* ---- the file's first page: enough to say whether the rest can be understood ---- */

#define FILE_MAGIC "edgeprof archive"

struct file_header {
	char magic[16];
	uint32_t byte_order;
	uint32_t version;
	uint32_t page_size; /* of the format, not of the machine */
	uint32_t quanta;
	uint64_t size;
	uint32_t crc; /* of all before and, from version 2 on, of the id */
	uint32_t reserved;
	uint8_t id[16]; /* random, see archive_identity; version 1 has zeros */
};

static uint32_t sum_of(const struct file_header *header)
{
	uint32_t crc = crc32c(0, header, offsetof(struct file_header, crc));
	return header->version == 1 ? crc : crc32c(crc, header->id, sizeof(header->id));
}

void archive_header_make(uint64_t size, const uint8_t id[16], uint8_t page[ARCHIVE_PAGE])
{
	struct file_header header = {
		.byte_order = ARCHIVE_BYTE_ORDER,
		.version = ARCHIVE_VERSION,
		.page_size = ARCHIVE_PAGE,
		.quanta = archive_quanta(),
		.size = size,
	};
	memcpy(header.magic, FILE_MAGIC, sizeof(header.magic));
	memcpy(header.id, id, sizeof(header.id));
	header.crc = sum_of(&header);
	memset(page, 0, ARCHIVE_PAGE);
	memcpy(page, &header, sizeof(header));
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

enum archive_found archive_header_check(const uint8_t page[ARCHIVE_PAGE], uint64_t size,
	struct archive_identity *ret, char *why, size_t why_size)
{
	struct file_header header;
	memcpy(&header, page, sizeof(header));
	snprintf(why, why_size, "%s", "");
	if (is_zero(page, ARCHIVE_PAGE)) {
		return ARCHIVE_EMPTY;
	}
	if (memcmp(header.magic, FILE_MAGIC, sizeof(header.magic)) != 0) {
		snprintf(why, why_size, "not an archive");
		return ARCHIVE_FOREIGN;
	}
	if (header.byte_order != ARCHIVE_BYTE_ORDER) {
		snprintf(why, why_size, "written on a machine of another byte order");
	} else if (header.version == 0 || header.version > ARCHIVE_VERSION) {
		snprintf(why, why_size, "of format version %u, this is %d", header.version,
			ARCHIVE_VERSION);
	} else if (header.crc != sum_of(&header)) {
		snprintf(why, why_size, "its header is damaged");
	} else if (header.page_size != ARCHIVE_PAGE) {
		snprintf(why, why_size, "of pages of %u bytes, this has %d", header.page_size,
			ARCHIVE_PAGE);
	} else if (header.quanta != archive_quanta()) {
		snprintf(why, why_size, "of other units");
	} else if (header.size != size) {
		snprintf(why, why_size, "made for %llu bytes, not %llu",
			(unsigned long long)header.size, (unsigned long long)size);
	} else {
		*ret = (struct archive_identity){.version = header.version};
		ret->seed = header.version == 1 ? 0 : crc32c(0, header.id, sizeof(header.id));
		return ARCHIVE_OURS;
	}
	return ARCHIVE_OTHER;
}
