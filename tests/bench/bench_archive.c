/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the archive costs: bytes per bucket on series as boards have them (a temperature in half
 * degrees, the load of a CPU, memory in use, a latency) and on constants, a day's bytes, the loop's
 * time for a value (live history and archive together) and for a block, the worker's for a scan at
 * start and for a query. Against a plain row of floats (min, mean, max, count: 16 bytes a bucket).
 */
#include "daemon/core/archive/archive.h"
#include "daemon/util/crc32c.h"
#include "tests/bench/bench.h"
#include "tests/bench/walks.h"

#define SECOND UINT64_C(1000000000)
#define FILE_SIZE (UINT64_C(16) << 20)
#define PLAIN_BYTES 16.0

enum { SERIES = 256, HOURS = 6, POOL_SIZE = 16 * 1024 * 1024 };

static struct metric *metric[SERIES];
static double state[SERIES];
static uint8_t *image;

struct cost {
	double whole; /* bytes a bucket, of whole blocks */
	double day_mib;
	double value_ns, seal_us;
};

static struct archive_index *scan(void)
{
	struct archive_index *index = NULL;
	if (archive_index_create(FILE_SIZE, (struct archive_identity){.version = 2}, &index) < 0) {
		exit(1);
	}
	for (uint32_t page = 1; page < FILE_SIZE / ARCHIVE_PAGE;) {
		size_t at = (size_t)page * ARCHIVE_PAGE;
		int n = archive_index_scan(index, page, image + at, FILE_SIZE - at);
		page += n > 0 ? (uint32_t)n : 1;
	}
	if (archive_index_finish(index) < 0) {
		exit(1);
	}
	return index;
}

/* A value a second of each series; a block each period. varying: of 256, the others are constant.
 */
static struct cost run(unsigned varying, uint64_t bucket_s, uint64_t period_s)
{
	static const uint8_t boot[16] = "bench";
	struct archive *archive = NULL;
	struct history *history = NULL;
	enum history_found found;
	struct sources *sources = NULL;
	struct metrics *metrics = NULL;
	struct source *source = NULL;
	void *pool = calloc(1, POOL_SIZE);
	struct wallclock wall;
	uint64_t t_ns = 6000 * SECOND;
	double values_ns = 0, seals_ns = 0;
	size_t values = 0, rows = 0, blocks = 0, bytes = 0;
	memset(image, 0, FILE_SIZE);
	wallclock_init(&wall);
	wallclock_note(&wall, t_ns, INT64_C(1700000000000000000), true);
	if (!pool || sources_create(&sources) < 0 || metrics_create(&metrics) < 0 ||
		sources_add(sources, "board", SECOND, &source) < 0 ||
		history_create(pool, POOL_SIZE, boot, &history, &found) < 0 ||
		archive_create(boot, history, &archive) < 0) {
		exit(1);
	}
	history_observe(history, archive_on_row, archive);
	archive_adopt(archive, scan());
	archive_set_bucket(archive, bucket_s * SECOND, t_ns);
	for (unsigned i = 0; i < SERIES; i++) {
		const struct walk *kind = &kinds[i % KINDS];
		char name[48];
		snprintf(name, sizeof(name), "board/group%u/metric%u", i / 16, i);
		if (metrics_add(metrics, source, name, kind->unit, &metric[i]) < 0) {
			exit(1);
		}
		state[i] = kind->start;
	}
	for (uint64_t s = 1; s <= HOURS * 3600; s++) {
		for (unsigned i = 0; i < varying; i++) {
			state[i] = walk_next(&kinds[i % KINDS], state[i]);
		}
		for (unsigned i = 0; i < SERIES; i++) {
			metric_set(metric[i], state[i]);
		}
		metrics_commit(metrics, source, t_ns);
		double start = now_ns();
		history_append(history, metrics, source, t_ns);
		values_ns += now_ns() - start;
		values += SERIES;
		t_ns += SECOND;
		if (s % period_s != 0) {
			continue;
		}
		const uint8_t *block;
		uint32_t page;
		start = now_ns();
		history_flush(history, t_ns, false); /* the rows that the next value would write */
		values_ns += now_ns() - start;
		start = now_ns();
		size_t size = archive_seal(archive, t_ns, &wall, NULL, false, &block, &page);
		seals_ns += now_ns() - start;
		if (size == 0) {
			continue;
		}
		memcpy(image + (size_t)page * ARCHIVE_PAGE, block, size);
		archive_written(archive, 0);
		blocks++;
		bytes += size;
		rows += SERIES * period_s / bucket_s;
	}
	archive_destroy(archive);
	history_destroy(history);
	metrics_destroy(metrics);
	sources_destroy(sources);
	free(pool);
	return (struct cost){
		.whole = (double)bytes / (double)rows,
		.day_mib = (double)bytes / (1 << 20) * 24 / HOURS,
		.value_ns = values_ns / (double)values,
		.seal_us = seals_ns / (double)blocks / 1e3,
	};
}

static void print_cost(const char *what, unsigned varying, uint64_t bucket_s, uint64_t period_s)
{
	struct cost cost = run(varying, bucket_s, period_s);
	printf("archive, %d metrics, %s, buckets of %d s, a block every %d s: %.2f bytes a bucket "
	       "with names and whole pages (floats %.0f: ratio %.2f); %.2f MiB a day; a value %.1f "
	       "ns, a block %.0f us\n",
		SERIES, what, (int)bucket_s, (int)period_s, cost.whole, PLAIN_BYTES,
		cost.whole / PLAIN_BYTES, cost.day_mib, cost.value_ns, cost.seal_us);
}

static void time_reading(void)
{
	static const uint8_t boot[16] = "later";
	struct wallclock wall;
	double start = now_ns();
	struct archive_index *index = scan();
	double scan_ns = now_ns() - start;
	start = now_ns();
	volatile uint32_t crc = crc32c(0, image, FILE_SIZE);
	double crc_ns = now_ns() - start;
	(void)crc;
	struct archive *archive = NULL;
	struct archive_plan *plan = NULL;
	wallclock_init(&wall);
	wallclock_note(&wall, SECOND, INT64_C(1700000000000000000), true);
	if (archive_create(boot, NULL, &archive) < 0) {
		exit(1);
	}
	archive_adopt(archive, index);
	struct archive_span span;
	archive_span(archive, &span);
	start = now_ns();
	if (archive_plan_make(archive, "board/group3/*", INT64_MIN, INT64_MAX, 60 * SECOND, 100000,
		    &wall, &plan) < 0) {
		exit(1);
	}
	double make_ns = now_ns() - start;
	start = now_ns();
	for (size_t i = 0; i < archive_plan_blocks(plan); i++) {
		uint32_t page, pages;
		archive_plan_block(plan, i, &page, &pages);
		archive_plan_read(plan, i, image + (size_t)page * ARCHIVE_PAGE);
	}
	archive_plan_finish(plan);
	double read_ns = now_ns() - start;
	double used = (double)span.pages_used * ARCHIVE_PAGE;
	printf("archive scan: %.0f MB/s of blocks (checksum alone %.0f: ratio %.2f); a query of 16 "
	       "of %d series over %u blocks: %.0f us on the loop, %.1f ms on the worker\n",
		used / scan_ns * 1e3, (double)FILE_SIZE / crc_ns * 1e3,
		scan_ns / used / (crc_ns / (double)FILE_SIZE), SERIES, span.blocks, make_ns / 1e3,
		read_ns / 1e6);
	archive_plan_destroy(plan);
	archive_destroy(archive);
}

int main(void)
{
	srand(1);
	image = malloc(FILE_SIZE);
	if (!image) {
		return 1;
	}
	print_cost("all varying", SERIES, 10, 50);
	time_reading();
	print_cost("a quarter varying", SERIES / 4, 10, 50);
	print_cost("all constant", 0, 10, 50);
	print_cost("all varying", SERIES, 60, 60);
	print_cost("all varying", SERIES, 60, 300);
	free(image);
	return 0;
}
