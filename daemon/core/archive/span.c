/* What the archive has, for status and listings. */
#include <string.h>

#include "daemon/core/archive/private.h"

void archive_span(const struct archive *archive, struct archive_span *ret)
{
	const struct archive_index *index = archive->index;
	*ret = (struct archive_span){0};
	if (!index) {
		return;
	}
	ret->blocks = index->blocks;
	ret->pages = index->pages - 1;
	ret->damaged = index->damaged;
	for (uint32_t i = 0; i < index->blocks; i++) {
		const struct archive_info *info = archive_index_at(index, i);
		int64_t first_us, last_us;
		bool synced;
		ret->pages_used += info->pages;
		ret->boots += i == 0 || info->boot != archive_index_at(index, i - 1)->boot;
		if (info->ticks == 0) {
			continue;
		}
		archive_index_times(index, info, &first_us, &last_us, &synced);
		if (ret->oldest_us == 0 || first_us < ret->oldest_us) {
			ret->oldest_us = first_us;
		}
		ret->newest_us = last_us > ret->newest_us ? last_us : ret->newest_us;
	}
	for (const struct archive_name *name = archive_names_next(&index->names, NULL); name;
		name = archive_names_next(&index->names, name)) {
		ret->series += name->last_seq >= archive_index_oldest(index);
	}
}

/* The first block of the boot, or of a later one. */
static uint32_t first_block(const struct archive_index *index, uint32_t boot_seq)
{
	uint32_t low = 0, high = index->blocks;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (archive_index_at(index, middle)->boot < boot_seq) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

static void boot_times(const struct archive_index *index, struct archive_boot *boot)
{
	for (uint32_t i = first_block(index, boot->seq); i < index->blocks; i++) {
		const struct archive_info *info = archive_index_at(index, i);
		int64_t first_us, last_us;
		bool synced;
		if (info->boot != boot->seq) {
			break;
		}
		if (info->ticks == 0) {
			continue;
		}
		archive_index_times(index, info, &first_us, &last_us, &synced);
		boot->first_us = boot->first_us == 0 ? first_us : boot->first_us;
		boot->last_us = last_us;
		boot->synced = synced;
	}
}

bool archive_boot_at(const struct archive *archive, size_t index, struct archive_boot *ret)
{
	const struct archive_index *file = archive->index;
	if (!file) {
		return false;
	}
	size_t known = file->boots;
	bool this_boot = known > 0 && file->boot[known - 1].seq == archive->boot_seq;
	if (index >= known + !this_boot) {
		return false;
	}
	*ret = (struct archive_boot){
		.seq = index < known ? file->boot[index].seq : archive->boot_seq};
	boot_times(file, ret);
	return true;
}

size_t archive_events(const struct archive *archive, const struct archive_event **ret)
{
	if (!archive->index || !archive->index->event) {
		return 0;
	}
	*ret = archive->index->event;
	return archive->index->events;
}

void archive_account_found(const struct archive *archive, struct archive_account_memory *ret)
{
	if (archive->index) {
		*ret = archive->index->day;
	} else {
		memset(ret, 0, sizeof(*ret));
	}
}

bool archive_has(const struct archive *archive, const char *name)
{
	for (int unit = 0; archive->index && unit < UNIT_COUNT_OF_UNITS; unit++) {
		const struct archive_name *found = archive_names_find(
			&archive->index->names, name, strlen(name), (enum unit)unit);
		if (found && found->last_seq >= archive_index_oldest(archive->index)) {
			return true;
		}
	}
	return false;
}
