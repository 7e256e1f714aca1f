/* What the loop brings: values become buckets, buckets wait until they are written. A value costs a
 * look at its metric's slot; only a new series, or a longer queue, allocates. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/archive/private.h"
#include "daemon/util/sysops.h"

#define MINUTE_NS UINT64_C(60000000000)

int archive_create(const uint8_t boot_id[16], struct archive **ret)
{
	struct archive *archive = mem_zalloc(sizeof(*archive));
	if (!archive) {
		return -ENOMEM;
	}
	memcpy(archive->boot_id, boot_id, sizeof(archive->boot_id));
	archive->bucket_ns = archive->before_ns = archive->wanted_ns = ARCHIVE_TICK_NS;
	archive->loose.next_id = 1;
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
	for (size_t i = 0; i < sizeof(archive->chunk) / sizeof(archive->chunk[0]); i++) {
		free(archive->chunk[i]);
	}
	archive_index_destroy(archive->index);
	archive_names_finish(&archive->loose);
	free(archive->wait);
	free(archive->event);
	free(archive->block);
	free(archive->told);
	free(archive->used);
	free(archive);
}

void archive_set_bucket(struct archive *archive, uint64_t bucket_ns)
{
	if (bucket_ns == ARCHIVE_TICK_NS || bucket_ns == MINUTE_NS) {
		archive->wanted_ns = bucket_ns;
	}
}

/* The length of the bucket that t_ns falls into. */
static uint64_t length_at(struct archive *archive, uint64_t t_ns)
{
	if (archive->wanted_ns != archive->bucket_ns && t_ns >= archive->switch_ns) {
		archive->before_ns = archive->bucket_ns;
		archive->bucket_ns = archive->wanted_ns;
		archive->switch_ns = (t_ns / MINUTE_NS + (t_ns % MINUTE_NS != 0)) * MINUTE_NS;
	}
	return t_ns < archive->switch_ns ? archive->before_ns : archive->bucket_ns;
}

/* Of the oldest row. */
static void drop_row(struct archive *archive)
{
	archive_wait_at(archive, 0)->name->refs--;
	archive->wait_first = (archive->wait_first + 1) & (archive->wait_room - 1);
	archive->waiting--;
	if (archive->sealed_rows > 0) {
		archive->sealed_rows--;
		archive->lost_rows++;
	} else {
		archive->dropped++;
	}
}

/* Room for one row more. */
static bool reserve(struct archive *archive)
{
	size_t limit = archive->bound > archive->past ? archive->bound : archive->past;
	limit *= ARCHIVE_BUCKETS_KEPT;
	limit = limit > ARCHIVE_ROWS_KEPT ? limit : ARCHIVE_ROWS_KEPT;
	if (archive->waiting < archive->wait_room && archive->waiting < limit) {
		return true;
	}
	if (archive->waiting < limit) {
		uint32_t room = archive->wait_room ? 2 * archive->wait_room : ARCHIVE_ROWS_FIRST;
		struct archive_wait *more = mem_calloc(room, sizeof(*more));
		for (uint32_t i = 0; more && i < archive->waiting; i++) {
			more[i] = *archive_wait_at(archive, i);
		}
		if (more) {
			free(archive->wait);
			archive->wait = more;
			archive->wait_room = room;
			archive->wait_first = 0;
			return true;
		}
	}
	if (archive->waiting == 0) {
		archive->dropped++;
		return false;
	}
	drop_row(archive);
	return true;
}

/* A metric that was retired and came back within a bucket has two parts of it. */
static bool merge(
	struct archive *archive, const struct archive_name *name, const struct archive_row *row)
{
	for (uint32_t i = archive->waiting; i > archive->sealed_rows; i--) {
		struct archive_wait *wait = archive_wait_at(archive, i - 1);
		if (wait->name != name || wait->row.tick != row->tick) {
			continue;
		}
		struct archive_row *to = &wait->row;
		int64_t low = to->mean - to->low, high = to->mean + to->high;
		low = low < row->mean - row->low ? low : row->mean - row->low;
		high = high > row->mean + row->high ? high : row->mean + row->high;
		double count = (double)to->count + row->count;
		to->mean = llround(
			((double)to->mean * to->count + (double)row->mean * row->count) / count);
		to->count += row->count;
		to->low = to->mean > low ? to->mean - low : 0;
		to->high = high > to->mean ? high - to->mean : 0;
		return true;
	}
	return false;
}

static void push(struct archive *archive, struct archive_name *name, const struct archive_row *row,
	uint32_t end)
{
	if (archive->floored && row->tick <= archive->floor_tick) {
		return;
	}
	if (name->last_tick != 0 && row->tick + 1 <= name->last_tick) {
		merge(archive, name, row);
		return;
	}
	if (!reserve(archive)) {
		return;
	}
	*archive_wait_at(archive, archive->waiting++) =
		(struct archive_wait){.name = name, .row = *row, .end = end};
	name->refs++;
	name->last_tick = row->tick + 1;
}

void archive_add_bucket(struct archive *archive, struct archive_name *name, uint32_t tick,
	uint32_t end, const struct history_point *point)
{
	int64_t mean, min, max;
	enum unit unit = (enum unit)name->unit;
	if (!history_quantise(unit, point->mean, &mean) ||
		!history_quantise(unit, point->min, &min) ||
		!history_quantise(unit, point->max, &max)) {
		return;
	}
	struct archive_row row = {
		.tick = tick,
		.count = point->count,
		.mean = mean,
		.low = mean > min ? mean - min : 0,
		.high = max > mean ? max - mean : 0,
	};
	if (row.low <= INT64_C(1) << 52 && row.high <= INT64_C(1) << 52) {
		push(archive, name, &row, end);
	}
}

/* The bucket is over, at the latest at end_ns. */
static void close_bucket(struct archive *archive, struct archive_slot *slot, uint64_t end_ns)
{
	uint64_t end = (end_ns < slot->end_ns ? end_ns : slot->end_ns) / ARCHIVE_TICK_NS;
	if (slot->count > 0 && end < UINT32_MAX) {
		const struct history_point point = {
			slot->begin_ns, slot->min, slot->sum / slot->count, slot->max, slot->count};
		uint32_t tick = (uint32_t)(slot->begin_ns / ARCHIVE_TICK_NS);
		archive_add_bucket(
			archive, slot->name, tick, end > tick ? (uint32_t)end : tick + 1, &point);
	}
	slot->count = 0;
	slot->begin_ns = slot->end_ns;
}

void archive_close_buckets(struct archive *archive, uint64_t now_ns, bool all)
{
	for (size_t i = 0; i < METRICS_MAX / ARCHIVE_SLOTS; i++) {
		for (size_t k = 0; archive->chunk[i] && k < ARCHIVE_SLOTS; k++) {
			struct archive_slot *slot = &archive->chunk[i][k];
			if (slot->count > 0 && (all || slot->end_ns <= now_ns)) {
				close_bucket(archive, slot, now_ns + ARCHIVE_TICK_NS - 1);
			}
		}
	}
}

static void unbind(struct archive *archive, struct archive_slot *slot)
{
	if (slot->mark == 0) {
		return;
	}
	if (slot->count > 0) {
		close_bucket(archive, slot, UINT64_MAX);
	}
	slot->name->refs--;
	archive->bound--;
	*slot = (struct archive_slot){0};
}

static struct archive_slot *slot_of(const struct archive *archive, const struct metric *metric)
{
	struct archive_slot *chunk = archive->chunk[metric->id / ARCHIVE_SLOTS];
	return chunk ? &chunk[metric->id % ARCHIVE_SLOTS] : NULL;
}

/* NULL: no memory, or too many series. */
static struct archive_slot *bind(struct archive *archive, const struct metric *metric)
{
	struct archive_slot **chunk = &archive->chunk[metric->id / ARCHIVE_SLOTS];
	if (!*chunk) {
		*chunk = mem_calloc(ARCHIVE_SLOTS, sizeof(**chunk));
		if (!*chunk) {
			return NULL;
		}
	}
	struct archive_slot *slot = slot_of(archive, metric);
	unbind(archive, slot);
	struct archive_names *names = archive_names_of(archive);
	size_t length = strlen(metric->name);
	struct archive_name *name = archive_names_find(names, metric->name, length, metric->unit);
	if (!name && archive_names_add(names, metric->name, length, metric->unit, &name) < 0) {
		archive->dropped++;
		return NULL;
	}
	name->refs++;
	archive->bound++;
	*slot = (struct archive_slot){.mark = metric->serial + 1, .name = name};
	return slot;
}

/* Opens the bucket of t_ns. False when it is over. */
static bool turn(struct archive *archive, struct archive_slot *slot, uint64_t t_ns)
{
	if (t_ns < slot->end_ns) {
		return false;
	}
	if (slot->count > 0) {
		close_bucket(archive, slot, UINT64_MAX);
	}
	uint64_t length = length_at(archive, t_ns);
	slot->begin_ns = t_ns / length * length;
	slot->end_ns = slot->begin_ns + length;
	return true;
}

void archive_take_value(struct archive *archive, const struct metric *metric, uint64_t t_ns)
{
	double value = metric->value;
	if (isnan(value)) {
		return;
	}
	struct archive_slot *slot = slot_of(archive, metric);
	if (!slot || slot->mark != metric->serial + 1) {
		slot = bind(archive, metric);
	}
	if (!slot ||
		((t_ns >= slot->end_ns || t_ns < slot->begin_ns) && !turn(archive, slot, t_ns))) {
		return;
	}
	if (slot->count == 0) {
		slot->min = slot->max = value;
		slot->sum = 0;
	}
	slot->min = value < slot->min ? value : slot->min;
	slot->max = value > slot->max ? value : slot->max;
	slot->sum += value;
	slot->count++;
}

void archive_retire(struct archive *archive, const struct metric *metric)
{
	struct archive_slot *slot = slot_of(archive, metric);
	if (slot && slot->mark == metric->serial + 1) {
		unbind(archive, slot);
	}
}

void archive_take_event(struct archive *archive, const struct timeline_entry *entry)
{
	if (!archive->event) {
		archive->event = mem_calloc(ARCHIVE_EVENTS_WAIT, sizeof(archive->event[0]));
		if (!archive->event) {
			archive->dropped++;
			return;
		}
	}
	if (archive->events == ARCHIVE_EVENTS_WAIT) {
		archive->event_first = (archive->event_first + 1) % ARCHIVE_EVENTS_WAIT;
		archive->events--;
		if (archive->sealed_events > 0) {
			archive->sealed_events--;
			archive->lost_rows++;
		} else {
			archive->dropped++;
		}
	}
	archive->event[(archive->event_first + archive->events++) % ARCHIVE_EVENTS_WAIT] = *entry;
}

static void older(uint64_t t_ns, uint64_t *oldest_ns)
{
	if (*oldest_ns == 0 || t_ns < *oldest_ns) {
		*oldest_ns = t_ns > 0 ? t_ns : 1;
	}
}

void archive_pending(const struct archive *archive, struct archive_pending *ret)
{
	*ret = (struct archive_pending){
		.rows = archive->waiting - archive->sealed_rows,
		.dropped = archive->dropped,
	};
	for (uint32_t i = 0; i < archive->waiting; i++) {
		older(archive_wait_at(archive, i)->row.tick * ARCHIVE_TICK_NS, &ret->oldest_ns);
	}
	for (uint32_t i = 0; i < archive->events; i++) {
		older(archive->event[(archive->event_first + i) % ARCHIVE_EVENTS_WAIT].t_ns,
			&ret->oldest_ns);
	}
	for (size_t i = 0; i < METRICS_MAX / ARCHIVE_SLOTS; i++) {
		for (size_t k = 0; archive->chunk[i] && k < ARCHIVE_SLOTS; k++) {
			if (archive->chunk[i][k].count > 0) {
				older(archive->chunk[i][k].begin_ns, &ret->oldest_ns);
			}
		}
	}
	if (ret->rows > 0 || archive->events > archive->sealed_events) {
		ret->bytes =
			(size_t)(archive->fixed_bytes + (double)ret->rows * archive->row_bytes);
	}
}
