/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c: takes the buckets that live history writes and the entries of the timeline, lets them
 * wait until they are sealed, and answers what the file holds. The buckets that wait are a ring in
 * the order of their ticks; they name their series by history's number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/archive/private.h"
#include "daemon/util/sysops.h"

#define MINUTE_NS UINT64_C(60000000000)

enum {
	ROWS_FIRST = 1024,
	ROWS_KEPT = 8192, /* buckets that may wait, at least */
	BUCKETS_KEPT = 8, /* of each series, at least */
	EVENTS_RESTORED = ARCHIVE_EVENTS_WAIT * 3 / 4,
};

int archive_create(const uint8_t boot_id[16], struct history *history, struct archive **ret)
{
	struct archive *archive = mem_zalloc(sizeof(*archive));
	if (!archive) {
		return -ENOMEM;
	}
	memcpy(archive->boot_id, boot_id, sizeof(archive->boot_id));
	archive->history = history;
	archive->bucket_ns = archive->before_ns = ARCHIVE_TICK_NS;
	archive->row_bytes = 6;
	archive->fixed_bytes = sizeof(struct archive_block);
	*ret = archive;
	return 0;
}

void archive_destroy(struct archive *archive)
{
	if (!archive) {
		return;
	}
	archive_index_destroy(archive->index);
	free(archive->wait);
	free(archive->event);
	free(archive->block);
	free(archive->carried);
	free(archive->used);
	free(archive);
}

/* ---- buckets ---- */

/* The length of the buckets that are kept of this time. */
static uint64_t length_at(const struct archive *archive, uint64_t t_ns)
{
	return t_ns < archive->switch_ns ? archive->before_ns : archive->bucket_ns;
}

void archive_set_bucket(struct archive *archive, uint64_t bucket_ns, uint64_t now_ns)
{
	if ((bucket_ns == ARCHIVE_TICK_NS || bucket_ns == MINUTE_NS) &&
		bucket_ns != archive->bucket_ns && now_ns >= archive->switch_ns) {
		archive->before_ns = archive->bucket_ns;
		archive->bucket_ns = bucket_ns;
		archive->switch_ns = (now_ns / MINUTE_NS + (now_ns % MINUTE_NS != 0)) * MINUTE_NS;
	}
}

static size_t rows_kept(const struct archive *archive)
{
	size_t series = archive->history ? history_series_count(archive->history) : 0;
	size_t rows = BUCKETS_KEPT * (series < METRICS_MAX ? series : METRICS_MAX);
	return rows > ROWS_KEPT ? rows : ROWS_KEPT;
}

/* What is dropped unwritten counts, what is being written only when that fails. */
static void count_dropped(struct archive *archive, uint32_t *sealed)
{
	if (*sealed > 0) {
		--*sealed;
		archive->lost_rows++;
	} else {
		archive->dropped++;
	}
}

static void drop_oldest(struct archive *archive)
{
	archive_drop_rows(archive, 1);
	count_dropped(archive, &archive->sealed_rows);
}

static bool grow(struct archive *archive)
{
	uint32_t room = archive->wait_room ? 2 * archive->wait_room : ROWS_FIRST;
	struct archive_wait *more = mem_calloc(room, sizeof(*more));
	if (!more) {
		return false;
	}
	for (uint32_t i = 0; i < archive->waiting; i++) {
		more[i] = *archive_wait_at(archive, i);
	}
	free(archive->wait);
	archive->wait = more;
	archive->wait_room = room;
	archive->wait_first = 0;
	return true;
}

/* Room for one row more. */
static bool reserve(struct archive *archive)
{
	if (archive->waiting >= ROWS_KEPT && archive->waiting >= rows_kept(archive)) {
		drop_oldest(archive);
		return true;
	}
	if (archive->waiting < archive->wait_room || grow(archive)) {
		return true;
	}
	if (archive->waiting == 0) {
		archive->dropped++;
		return false;
	}
	drop_oldest(archive);
	return true;
}

/* Behind the rows of the same tick: late ones are few, and not far from the end. */
static void insert(struct archive *archive, const struct archive_wait *wait)
{
	uint32_t at = archive->waiting++;
	while (at > archive->sealed_rows && archive_wait_at(archive, at - 1)->tick > wait->tick) {
		*archive_wait_at(archive, at) = *archive_wait_at(archive, at - 1);
		at--;
	}
	*archive_wait_at(archive, at) = *wait;
}

static bool is_archived(const struct archive *archive, uint32_t tick)
{
	return archive->floored && tick <= archive->floor_tick;
}

/* end_ns: what the bucket covers ends there, where it is not complete. */
static void add(struct archive *archive, const struct history_bucket_row *row, uint64_t end_ns)
{
	uint64_t tick = row->t_ns / ARCHIVE_TICK_NS;
	uint64_t whole_ns = row->t_ns + history_tier_step_ns(row->tier);
	uint64_t end = (end_ns < whole_ns ? end_ns : whole_ns) / ARCHIVE_TICK_NS;
	if (history_tier_step_ns(row->tier) != length_at(archive, row->t_ns) || end >= UINT32_MAX ||
		is_archived(archive, (uint32_t)tick) || !reserve(archive)) {
		return;
	}
	const struct archive_wait wait = {.series = row->series,
		.tick = (uint32_t)tick,
		.end = end > tick ? (uint32_t)end : (uint32_t)tick + 1,
		.value = row->value};
	insert(archive, &wait);
}

void archive_on_row(void *ctx, const struct history_bucket_row *row)
{
	struct archive *archive = ctx;
	if (row->t_ns >= archive->closed_ns) {
		add(archive, row, UINT64_MAX);
	}
}

static void on_open_bucket(void *ctx, const struct history_bucket_row *row)
{
	struct archive *archive = ctx;
	if (row->t_ns >= archive->closed_ns) {
		add(archive, row, archive->open_end_ns);
	}
}

void archive_flush(struct archive *archive, uint64_t now_ns, bool all)
{
	if (!archive->history) {
		return;
	}
	history_flush(archive->history, now_ns, all);
	if (all) {
		archive->open_end_ns = now_ns + ARCHIVE_TICK_NS - 1;
		history_open_buckets(archive->history, on_open_bucket, archive);
		archive->closed_ns = now_ns + 1;
	}
}

uint64_t archive_mark_ns(const struct archive *archive, uint64_t now_ns)
{
	uint64_t mark_ns = now_ns - now_ns % length_at(archive, now_ns);
	if (archive->waiting > 0) {
		uint64_t t_ns = archive_wait_at(archive, 0)->tick * ARCHIVE_TICK_NS;
		mark_ns = t_ns < mark_ns ? t_ns : mark_ns;
	}
	for (uint32_t i = 0; i < archive->events; i++) {
		uint64_t t_ns = archive->event[i].t_ns;
		mark_ns = t_ns < mark_ns ? t_ns : mark_ns;
	}
	return mark_ns > 0 ? mark_ns : 1;
}

void archive_pending(const struct archive *archive, struct archive_pending *ret)
{
	*ret = (struct archive_pending){
		.rows = archive->waiting - archive->sealed_rows,
		.dropped = archive->dropped,
	};
	if (ret->rows > 0 || archive->events > archive->sealed_events) {
		ret->bytes =
			(size_t)(archive->fixed_bytes + (double)ret->rows * archive->row_bytes);
	}
}

/* ---- events ---- */

void archive_on_event(void *ctx, const struct timeline_entry *entry)
{
	struct archive *archive = ctx;
	if (!archive->event) {
		archive->event = mem_calloc(ARCHIVE_EVENTS_WAIT, sizeof(archive->event[0]));
		if (!archive->event) {
			archive->dropped++;
			return;
		}
	}
	if (archive->events == ARCHIVE_EVENTS_WAIT) {
		archive_drop_events(archive, 1);
		count_dropped(archive, &archive->sealed_events);
	}
	archive->event[archive->events++] = *entry;
}

/* ---- going on from an earlier process of this boot ---- */

/* Buckets of a minute further back than half of what may wait, so that they reach far. */
static void restore_rows(struct archive *archive, uint64_t archived_ns)
{
	struct history *history = archive->history;
	struct history_usage usage;
	history_usage(history, &usage);
	if (usage.series == 0 || usage.newest_ns < archived_ns) {
		return;
	}
	uint64_t half = rows_kept(archive) / usage.series / 2;
	uint64_t from_ns = archived_ns - archived_ns % ARCHIVE_TICK_NS;
	uint64_t fine_ns = usage.newest_ns > half * ARCHIVE_TICK_NS
				   ? usage.newest_ns - half * ARCHIVE_TICK_NS
				   : 0;
	fine_ns -= fine_ns % MINUTE_NS;
	if (from_ns < fine_ns) {
		uint64_t far_ns = fine_ns > half * MINUTE_NS ? fine_ns - half * MINUTE_NS : 0;
		from_ns = (from_ns + MINUTE_NS - 1) / MINUTE_NS * MINUTE_NS;
		from_ns = from_ns > far_ns ? from_ns : far_ns;
		archive->before_ns = MINUTE_NS;
		archive->switch_ns = fine_ns;
		(void)history_replay(
			history, HISTORY_MINUTES, from_ns, fine_ns, archive_on_row, archive);
		from_ns = fine_ns;
	}
	(void)history_replay(history, HISTORY_TENS, from_ns, UINT64_MAX, archive_on_row, archive);
	archive->before_ns = ARCHIVE_TICK_NS;
	archive->switch_ns = 0;
}

/* Room is left for those of now. */
static void restore_events(
	struct archive *archive, const struct timeline *timeline, uint64_t archived_ns)
{
	uint64_t last = timeline_last_serial(timeline);
	const struct timeline_entry *entry =
		timeline_from(timeline, last > EVENTS_RESTORED ? last - EVENTS_RESTORED + 1 : 1);
	for (; entry; entry = timeline_from(timeline, entry->serial + 1)) {
		if (entry->boot_seq == 0 && entry->t_ns > 0 && entry->t_ns >= archived_ns) {
			archive_on_event(archive, entry);
		}
	}
}

void archive_continue(struct archive *archive, const struct timeline *timeline)
{
	uint64_t archived_ns = history_archived_ns(archive->history);
	restore_rows(archive, archived_ns);
	restore_events(archive, timeline, archived_ns);
}

/* ---- the file comes and goes ---- */

/* What the file has of this boot: nothing up to there is written again. */
static void find_floor(struct archive *archive)
{
	const struct archive_index *index = archive->index;
	archive->floored = false;
	for (uint32_t i = index->blocks; i > 0; i--) {
		const struct archive_info *info = &index->info[i - 1];
		if (info->boot != archive->boot_seq) {
			break;
		}
		if (info->ticks > 0 &&
			(!archive->floored || info->last_tick > archive->floor_tick)) {
			archive->floor_tick = info->last_tick;
			archive->floored = true;
		}
	}
	uint32_t known = 0;
	while (known < archive->waiting &&
		is_archived(archive, archive_wait_at(archive, known)->tick)) {
		known++;
	}
	archive_drop_rows(archive, known);
}

static bool has_event(const struct archive *archive, const struct timeline_entry *entry)
{
	const struct archive_index *index = archive->index;
	for (size_t i = index->events; i > 0; i--) {
		const struct timeline_entry *event = &index->event[i - 1];
		if (event->boot_seq == archive->boot_seq && event->t_ns == entry->t_ns &&
			event->kind == entry->kind && strcmp(event->text, entry->text) == 0 &&
			strcmp(event->subject, entry->subject) == 0) {
			return true;
		}
	}
	return false;
}

/* Those of an earlier process, whose block came to the medium. */
static void drop_known_events(struct archive *archive)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < archive->events; i++) {
		if (!has_event(archive, &archive->event[i])) {
			archive->event[kept++] = archive->event[i];
		}
	}
	archive->events = kept;
}

void archive_adopt(struct archive *archive, struct archive_index *index)
{
	archive_release(archive);
	archive->boot_seq = 1;
	if (index->blocks > 0) {
		uint32_t newest = index->info[index->blocks - 1].boot;
		const struct archive_boot_info *boot = archive_index_find_boot(index, newest);
		bool same = boot && memcmp(boot->id, archive->boot_id, sizeof(boot->id)) == 0;
		archive->boot_seq = same ? newest : newest + 1;
	}
	archive->index = index;
	find_floor(archive);
	drop_known_events(archive);
}

void archive_release(struct archive *archive)
{
	archive_index_destroy(archive->index);
	archive->index = NULL;
	archive->known_stamp++;
	archive->boot_seq = 0;
	archive->floored = false;
}

/* ---- asking ---- */

uint32_t archive_boot_seq(const struct archive *archive)
{
	return archive->boot_seq;
}

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
		const struct archive_info *info = &index->info[i];
		int64_t first_us, last_us;
		ret->pages_used += info->pages;
		ret->boots += i == 0 || info->boot != index->info[i - 1].boot;
		if (info->ticks == 0) {
			continue;
		}
		archive_index_times(index, info, &first_us, &last_us);
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
		if (index->info[middle].boot < boot_seq) {
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
		const struct archive_info *info = &index->info[i];
		int64_t first_us, last_us;
		if (info->boot != boot->seq) {
			break;
		}
		if (info->ticks == 0) {
			continue;
		}
		boot->synced = archive_index_times(index, info, &first_us, &last_us);
		boot->first_us = boot->first_us == 0 ? first_us : boot->first_us;
		boot->last_us = last_us;
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

size_t archive_events(const struct archive *archive, const struct timeline_entry **ret)
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
