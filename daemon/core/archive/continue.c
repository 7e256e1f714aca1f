/* A process that was killed has lost what waited for its block, but live history has the samples,
 * and the timeline the events: the next one gathers them again, in buckets of 10 s, or of 60 s
 * where those would be more rows than may wait. */
#include <stdlib.h>
#include <string.h>

#include "daemon/core/archive/private.h"
#include "daemon/core/history/history.h"

#define MINUTE_NS UINT64_C(60000000000)

enum { POINTS = 64, EVENTS_MOST = ARCHIVE_EVENTS_WAIT * 3 / 4 };

struct range {
	uint64_t from_ns, to_ns, step_ns;
};

static void take_series(struct archive *archive, struct history *history, uint32_t series,
	struct archive_name *name, const struct range *range)
{
	struct history_cursor cursor = {.series = series,
		.from_ns = range->from_ns,
		.to_ns = range->to_ns,
		.step_ns = range->step_ns};
	bool done = false;
	while (!done) {
		struct history_point points[POINTS];
		size_t count = history_read(history, &cursor, points, POINTS, 0, &done);
		for (size_t i = 0; i < count; i++) {
			uint64_t tick = points[i].t_ns / ARCHIVE_TICK_NS;
			uint64_t end = tick + range->step_ns / ARCHIVE_TICK_NS;
			/* what came in the last one ends with the last row there is */
			uint64_t last = range->to_ns / ARCHIVE_TICK_NS + 1;
			end = end < last ? end : last;
			if (end < UINT32_MAX) {
				archive_add_bucket(
					archive, name, (uint32_t)tick, (uint32_t)end, &points[i]);
			}
		}
	}
}

/* From what no block has on, but no more than may wait. */
static bool choose(const struct history *history, size_t series, struct range *ret)
{
	struct history_usage usage;
	history_usage(history, &usage);
	size_t rows = series * ARCHIVE_BUCKETS_KEPT;
	rows = rows > ARCHIVE_ROWS_KEPT ? rows : ARCHIVE_ROWS_KEPT;
	const uint64_t buckets = rows / series;
	const uint64_t from_ns = history_archived_ns(history);
	*ret = (struct range){.from_ns = from_ns / ARCHIVE_TICK_NS * ARCHIVE_TICK_NS,
		.to_ns = usage.newest_ns,
		.step_ns = ARCHIVE_TICK_NS};
	if (usage.newest_ns == 0 || usage.newest_ns < from_ns) {
		return false;
	}
	if (ret->from_ns < usage.oldest_ns) {
		ret->from_ns = usage.oldest_ns / ARCHIVE_TICK_NS * ARCHIVE_TICK_NS;
	}
	if ((ret->to_ns - ret->from_ns) / ARCHIVE_TICK_NS + 1 > buckets) {
		ret->step_ns = MINUTE_NS;
		ret->from_ns = (ret->from_ns + MINUTE_NS - 1) / MINUTE_NS * MINUTE_NS;
	}
	if (ret->to_ns / ret->step_ns + 1 > ret->from_ns / ret->step_ns + buckets) {
		ret->from_ns = (ret->to_ns / ret->step_ns + 1 - buckets) * ret->step_ns;
	}
	return true;
}

static int by_tick(const void *a, const void *b)
{
	const struct archive_wait *x = a, *y = b;
	return (x->row.tick > y->row.tick) - (x->row.tick < y->row.tick);
}

static void take_rows(struct archive *archive, struct history *history)
{
	struct archive_names *names = archive_names_of(archive);
	struct history_usage usage;
	struct range range;
	uint32_t cursor = 0, series;
	const char *text;
	enum unit unit;
	history_usage(history, &usage);
	if (usage.series == 0 || !choose(history, usage.series, &range)) {
		return;
	}
	archive->past = usage.series;
	while (history_next_series(history, &cursor, &series, &text, &unit)) {
		size_t length = strlen(text);
		struct archive_name *name = archive_names_find(names, text, length, unit);
		if (name || archive_names_add(names, text, length, unit, &name) == 0) {
			take_series(archive, history, series, name, &range);
		}
	}
	/* Nothing was taken out: the ring begins at its first place. */
	if (archive->waiting > 0) {
		qsort(archive->wait, archive->waiting, sizeof(archive->wait[0]), by_tick);
	}
}

/* Room is left for those of now. */
static void take_events(
	struct archive *archive, const struct timeline *timeline, uint64_t archived_ns)
{
	uint64_t last = timeline_last_serial(timeline);
	const struct timeline_entry *entry =
		timeline_from(timeline, last > EVENTS_MOST ? last - EVENTS_MOST + 1 : 1);
	for (; entry; entry = timeline_from(timeline, entry->serial + 1)) {
		if (entry->boot_seq == 0 && entry->t_ns > 0 && entry->t_ns >= archived_ns) {
			archive_take_event(archive, entry);
		}
	}
}

void archive_continue(
	struct archive *archive, struct history *history, const struct timeline *timeline)
{
	take_rows(archive, history);
	take_events(archive, timeline, history_archived_ns(history));
}
