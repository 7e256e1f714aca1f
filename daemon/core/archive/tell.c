/* Which names a block tells: the new ones, those that were new in the block before, those whose
 * newest telling is a third of the file ago, and as many of the others as the last page has room
 * for. So each name of a block stands in several others, too, and none is overwritten before it was
 * told again. */
#include "daemon/core/archive/encode.h"

#include <string.h>

static bool put_name(
	struct archive *archive, struct archive_name *name, struct archive_writer *writer)
{
	if (name->told_stamp == archive->stamp) {
		return true;
	}
	if (archive->told_count == ARCHIVE_TOLD_MAX ||
		archive_name_size(name) > (size_t)(writer->end - writer->at)) {
		return false;
	}
	archive_put_varint(writer, name->id);
	archive_put_u8(writer, name->unit);
	archive_put_u8(writer, name->length);
	archive_put(writer, name->text, name->length);
	name->told_stamp = archive->stamp;
	archive->told[archive->told_count++] = name;
	return true;
}

/* Blocks up to this one lie more than two thirds of a turn before the next; or will soon. */
static uint64_t stale_seq(const struct archive_index *index)
{
	uint32_t pages = 0;
	for (uint32_t i = index->blocks; i > 0; i--) {
		const struct archive_info *info = archive_index_at(index, i - 1);
		pages += info->pages;
		if (pages > index->pages / 3) {
			return info->seq;
		}
	}
	return 0;
}

bool archive_put_names(struct archive *archive, const uint8_t *block, struct archive_writer *writer)
{
	const struct archive_index *index = archive->index;
	archive->told_count = 0;
	for (size_t i = 0; i < archive->used_count; i++) {
		if (archive->used[i]->told == 0 && !put_name(archive, archive->used[i], writer)) {
			return false;
		}
	}
	for (struct archive_name *name = index->names.newest;
		name && name->told_seq + 1 >= index->next_seq; name = name->older) {
		if (name->told == 1 && !put_name(archive, name, writer)) {
			return true;
		}
	}
	uint64_t stale = stale_seq(index);
	struct archive_name *name = index->names.oldest;
	for (; name && name->told_seq <= stale; name = name->newer) {
		if (!put_name(archive, name, writer)) {
			return true;
		}
	}
	size_t used = (size_t)(writer->at - block);
	size_t room = (ARCHIVE_PAGE - used % ARCHIVE_PAGE) % ARCHIVE_PAGE;
	struct archive_writer padding = {.at = writer->at, .end = writer->at + room};
	while (name && put_name(archive, name, &padding)) {
		name = name->newer;
	}
	writer->at = padding.at;
	return true;
}
