/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive in a file of memory, filled boot by boot, and what must be found in it: every bucket
 * as it was made. On top of api_fixture.h, whose core is the last boot's.
 */
#pragma once

#include "tests/unit/varlink/api_fixture.h"

#include <sys/mman.h>

#include "daemon/core/archive/archive.h"
#include "daemon/core/archive/boots.h"
#include "daemon/persist/archive_read.h"

enum { PAST_SIZE = 4 * 1024 * 1024, PAST_POOL = 1024 * 1024, PAST_ROWS = 200000, PAST_METRICS = 4 };

/* One bucket of one series. */
struct past_row {
	uint32_t boot;
	int metric;
	int64_t time_us;
	double sum, min, max;
	uint32_t count;
};

static struct past {
	int fd;
	uint8_t *file; /* the descriptor's bytes */
	struct archive_identity identity;
	struct archive *archive;
	struct archive_readers *readers;
	struct past_row *row;
	size_t rows;
	/* of the boot that is being made, which has a live history of its own */
	struct history *history;
	void *pool;
	struct sources *sources;
	struct metrics *metrics;
	struct source *source;
	struct metric *metric[PAST_METRICS];
	struct wallclock wall;
	uint64_t seed;
} past;

static const char *const past_names[PAST_METRICS] = {
	"temperature/max", "cpu/utilization", "stage/cam/infer/rate", "stage/gone/x/rate"};

static inline uint64_t past_random(uint64_t below)
{
	past.seed = past.seed * 6364136223846793005u + 1442695040888963407u;
	return (past.seed >> 33) % below;
}

static inline int past_descriptor(void *ctx)
{
	(void)ctx;
	return past.fd;
}

static inline void past_open_file(void)
{
	past = (struct past){.seed = 12345};
	past.fd = memfd_create("archive", MFD_CLOEXEC);
	ck_assert_int_ge(past.fd, 0);
	ck_assert_int_eq(ftruncate(past.fd, PAST_SIZE), 0);
	past.file = mmap(NULL, PAST_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, past.fd, 0);
	ck_assert_ptr_ne(past.file, MAP_FAILED);
	char why[96];
	archive_header_make(PAST_SIZE, (const uint8_t[16]){1}, past.file);
	ck_assert_int_eq(
		archive_header_check(past.file, PAST_SIZE, &past.identity, why, sizeof(why)),
		ARCHIVE_OURS);
	past.row = calloc(PAST_ROWS, sizeof(*past.row));
}

/* A process of that boot starts and reads the file. */
static inline void past_adopt(uint8_t boot)
{
	uint8_t boot_id[16] = {boot};
	struct archive_index *index;
	enum history_found found;
	past.pool = calloc(1, PAST_POOL);
	ck_assert_int_eq(history_create(past.pool, PAST_POOL, boot_id, &past.history, &found), 0);
	ck_assert_int_eq(archive_create(boot_id, past.history, &past.archive), 0);
	ck_assert_int_eq(archive_index_create(PAST_SIZE, past.identity, &index), 0);
	for (uint32_t page = 1; page < PAST_SIZE / ARCHIVE_PAGE;) {
		int n = archive_index_scan(index, page, past.file + (size_t)page * ARCHIVE_PAGE,
			PAST_SIZE - (size_t)page * ARCHIVE_PAGE);
		page += n > 0 ? (uint32_t)n : 1;
	}
	ck_assert_int_eq(archive_index_finish(index), 0);
	archive_adopt(past.archive, index);
	history_observe(past.history, archive_on_row, past.archive);
}

static inline void past_write(uint64_t now_ns, const struct wallclock *wall, bool all)
{
	const uint8_t *bytes;
	uint32_t page;
	size_t size;
	while ((size = archive_seal(past.archive, now_ns, wall, NULL, all, &bytes, &page)) > 0) {
		memcpy(past.file + (size_t)page * ARCHIVE_PAGE, bytes, size);
		archive_written(past.archive, 0);
	}
}

static inline void past_note(
	int metric, const struct wallclock *wall, uint64_t t_ns, double value, bool fresh)
{
	int64_t time_us = wallclock_us(wall, t_ns - t_ns % 10000000000u);
	for (size_t back = 1; !fresh && back <= PAST_METRICS && back <= (size_t)past.rows; back++) {
		struct past_row *row = &past.row[(size_t)past.rows - back];
		if (row->metric == metric && row->time_us == time_us) {
			row->sum += value;
			row->min = fmin(row->min, value);
			row->max = fmax(row->max, value);
			row->count++;
			return;
		}
	}
	ck_assert_uint_lt(past.rows, PAST_ROWS);
	past.row[past.rows++] = (struct past_row){
		archive_boot_seq(past.archive), metric, time_us, value, value, value, 1};
}

/* Samples each second from from_s to to_s on that boot's clock, all metrics below `metrics`. */
static inline void past_sample(
	const struct wallclock *wall, uint64_t from_s, uint64_t to_s, int metrics)
{
	for (uint64_t s = from_s; s < to_s; s++) {
		for (int i = 0; i < metrics; i++) {
			double value = 20 + 10 * i + (double)past_random(10);
			metric_set(past.metric[i], value);
			past_note(i, wall, s * FIXTURE_SECOND, value, false);
		}
		metrics_commit(past.metrics, past.source, s * FIXTURE_SECOND);
		history_append(past.history, past.metrics, past.source, s * FIXTURE_SECOND);
		if (s % 600 == 0) {
			past_write(s * FIXTURE_SECOND, wall, false);
		}
	}
}

static inline void past_begin_boot(uint8_t boot)
{
	past_adopt(boot);
	ck_assert_int_eq(sources_create(&past.sources), 0);
	ck_assert_int_eq(metrics_create(&past.metrics), 0);
	ck_assert_int_eq(sources_add(past.sources, "s", FIXTURE_SECOND, &past.source), 0);
	for (int i = 0; i < PAST_METRICS; i++) {
		ck_assert_int_eq(metrics_add(past.metrics, past.source, past_names[i],
					 i == 0 ? UNIT_CELSIUS : UNIT_NONE, &past.metric[i]),
			0);
	}
}

static inline void past_end_metrics(void)
{
	history_destroy(past.history);
	free(past.pool);
	metrics_destroy(past.metrics);
	sources_destroy(past.sources);
}

static inline void past_event(
	uint64_t t_s, enum timeline_kind kind, const char *subject, const char *text)
{
	struct timeline_entry entry = {.serial = 1, .t_ns = t_s * FIXTURE_SECOND, .kind = kind};
	snprintf(entry.subject, sizeof(entry.subject), "%s", subject);
	snprintf(entry.text, sizeof(entry.text), "%s", text);
	archive_on_event(past.archive, &entry);
}

/* A whole boot: its first sample at from_s after its start, which was at wall_s. */
static inline void past_boot(
	uint8_t boot, int64_t wall_s, uint64_t from_s, uint64_t to_s, int metrics, bool stopped)
{
	struct wallclock wall;
	past_begin_boot(boot);
	wallclock_init(&wall);
	wallclock_note(&wall, 0, wall_s * 1000000000, true);
	past_event(from_s, TIMELINE_DAEMON, "edgeprofd", "started, version 0.1.0");
	past_sample(&wall, from_s, to_s, metrics);
	past_event(to_s, TIMELINE_MARK, "cam", "the last word");
	if (stopped) {
		past_event(to_s, TIMELINE_DAEMON, "edgeprofd", TIMELINE_STOPPED);
	}
	past_write(to_s * FIXTURE_SECOND, &wall, true);
	archive_destroy(past.archive);
	past_end_metrics();
}

/* The core of api_fixture.h is the boot that runs. */
static inline void past_serve(uint8_t boot)
{
	past_begin_boot(boot);
	f.core.archive = past.archive;
	ck_assert_int_eq(archive_readers_open(&f.loop, past_descriptor, NULL, &past.readers), 0);
	f.core.archive_reader = archive_readers_ops(past.readers);
}

static inline void past_close_file(void)
{
	archive_readers_close(past.readers);
	past_end_metrics();
	munmap(past.file, PAST_SIZE);
	close(past.fd);
	free(past.row);
}
