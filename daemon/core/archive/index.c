/* SPDX-License-Identifier: Apache-2.0 */
/* index.c: keeps the blocks of the file in order, and the boots they are of. */
#include "daemon/core/archive/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

int archive_index_create(
	uint64_t size, struct archive_identity identity, struct archive_index **ret)
{
	if (size < ARCHIVE_SIZE_MIN || size / ARCHIVE_PAGE > UINT32_MAX / 2) {
		return -EINVAL;
	}
	struct archive_index *index = mem_zalloc(sizeof(*index));
	if (!index) {
		return -ENOMEM;
	}
	index->size = size;
	index->identity = identity;
	index->pages = (uint32_t)(size / ARCHIVE_PAGE);
	index->next_page = 1;
	index->next_seq = 1;
	index->names.next_id = 1;
	*ret = index;
	return 0;
}

void archive_index_destroy(struct archive_index *index)
{
	if (!index) {
		return;
	}
	archive_names_finish(&index->names);
	free(index->info);
	free(index->boot);
	free(index->event);
	free(index);
}

/* Where the boot's entry is, or belongs. */
static size_t boot_place(const struct archive_index *index, uint32_t boot_seq)
{
	size_t low = 0, high = index->boots;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (index->boot[middle].seq < boot_seq) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

const struct archive_boot_info *archive_index_find_boot(
	const struct archive_index *index, uint32_t boot_seq)
{
	size_t at = boot_place(index, boot_seq);
	return at < index->boots && index->boot[at].seq == boot_seq ? &index->boot[at] : NULL;
}

static struct archive_boot_info *boot_of(struct archive_index *index, uint32_t boot_seq)
{
	size_t at = boot_place(index, boot_seq);
	if (at < index->boots && index->boot[at].seq == boot_seq) {
		return &index->boot[at];
	}
	struct archive_boot_info *more =
		mem_grown(index->boot, index->boots, &index->boot_room, sizeof(*more));
	if (!more) {
		return NULL;
	}
	index->boot = more;
	memmove(&index->boot[at + 1], &index->boot[at],
		(index->boots - at) * sizeof(index->boot[0]));
	index->boots++;
	index->boot[at] = (struct archive_boot_info){.seq = boot_seq};
	return &index->boot[at];
}

int archive_index_add(struct archive_index *index, const struct archive_block *header,
	const struct archive_clock *clock)
{
	struct archive_info *more =
		mem_grown(index->info, index->blocks, &index->info_room, sizeof(*more));
	struct archive_boot_info *boot = boot_of(index, header->boot_seq);
	index->info = more ? more : index->info;
	if (header->seq >= index->next_seq) {
		index->next_seq = header->seq + 1;
		index->next_page = header->page + header->pages;
		index->day = header->day;
	}
	if (!more || !boot) {
		return -ENOMEM;
	}
	memcpy(boot->id, header->boot_id, sizeof(boot->id));
	for (size_t i = 0; i < header->clocks; i++) {
		if (clock[i].synced == 1 &&
			(!boot->synced || clock[i].t_ns < boot->first_synced.t_ns)) {
			boot->first_synced = clock[i];
			boot->synced = true;
		}
	}
	struct archive_info *info = &index->info[index->blocks++];
	*info = (struct archive_info){
		.seq = header->seq,
		.page = header->page,
		.pages = header->pages,
		.boot = header->boot_seq,
		.first_tick = header->first_tick,
		.last_tick = header->last_tick,
		.ticks = header->ticks,
		.clocked = header->clocks > 0,
	};
	if (info->clocked) {
		info->first = *archive_clock_at(
			clock, header->clocks, header->first_tick * ARCHIVE_TICK_NS);
		info->last = *archive_clock_at(
			clock, header->clocks, header->last_tick * ARCHIVE_TICK_NS);
	}
	return 0;
}

bool archive_index_times(const struct archive_index *index, const struct archive_info *info,
	int64_t *first_us, int64_t *last_us)
{
	const struct archive_boot_info *boot = archive_index_find_boot(index, info->boot);
	const struct archive_clock *first_synced =
		boot && boot->synced ? &boot->first_synced : NULL;
	*first_us = archive_wall_us(
		&info->first, info->clocked, first_synced, info->first_tick * ARCHIVE_TICK_NS);
	*last_us = archive_wall_us(
		&info->last, info->clocked, first_synced, info->last_tick * ARCHIVE_TICK_NS);
	return first_synced != NULL;
}

uint64_t archive_index_oldest(const struct archive_index *index)
{
	return index->blocks > 0 ? index->info[0].seq : index->next_seq;
}

void archive_index_forget_boots(struct archive_index *index)
{
	uint32_t oldest = index->blocks > 0 ? index->info[0].boot : UINT32_MAX;
	size_t gone = 0;
	while (gone < index->boots && index->boot[gone].seq < oldest) {
		gone++;
	}
	if (gone > 0) {
		memmove(index->boot, &index->boot[gone],
			(index->boots - gone) * sizeof(index->boot[0]));
		index->boots -= gone;
	}
}

void archive_index_drop(struct archive_index *index, uint32_t count)
{
	if (count > 0) {
		index->blocks -= count;
		memmove(index->info, &index->info[count], index->blocks * sizeof(index->info[0]));
	}
}

void archive_index_overwrite(struct archive_index *index, uint32_t page, uint32_t pages)
{
	uint32_t gone = 0;
	while (gone < index->blocks && index->info[gone].page < page + pages &&
		index->info[gone].page + index->info[gone].pages > page) {
		gone++;
	}
	archive_index_drop(index, gone);
	if (gone > 0) {
		archive_index_forget_boots(index);
	}
}
