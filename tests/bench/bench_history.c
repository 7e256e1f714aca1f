/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What history costs beside a plain ring of floats: bytes per sample, append and scan, on series as
 * boards have them: a temperature in half degrees, the load of a CPU, memory in use, a latency.
 * Then the two questions people ask: the last hour, and a week. In turns in one run, medians of
 * rounds.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/history/history.h"
#include "tests/bench/bench.h"

#define SECOND UINT64_C(1000000000)

enum { POOL = 32 * 1024 * 1024, SAMPLES = 3600, ROUNDS = 21, COLUMNS = 16, POINTS = 16384 };
enum { WEEK = 7 * 86400 };

static const uint8_t boot[16] = "bench";
static struct history_point points[POINTS];
static float plain[COLUMNS][SAMPLES];
static uint64_t plain_ns[SAMPLES];
static double values[COLUMNS][SAMPLES];
static volatile double sink;

static double uniform(void)
{
	return (double)rand() / RAND_MAX * 2 - 1;
}

static const struct kind {
	const char *name;
	enum unit unit;
	double start;
} kinds[] = {
	{"temperature", UNIT_CELSIUS, 55},
	{"cpu", UNIT_PERCENT, 40},
	{"memory", UNIT_BYTES, 3e9},
	{"latency", UNIT_MILLISECONDS, 18},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static double next(const struct kind *kind, double value)
{
	switch (kind->unit) {
	case UNIT_CELSIUS:
		return value + 0.5 * round(uniform() * 0.8) + round((kind->start - value) / 20) / 2;
	case UNIT_PERCENT:
		return fmin(100, fmax(0, value + 4 * uniform() + (kind->start - value) / 10));
	case UNIT_BYTES:
		return value + 4096 * round(100 * uniform()) + (kind->start - value) / 50;
	default:
		return kind->start * exp(0.1 * uniform());
	}
}

struct board {
	void *pool;
	struct sources *sources;
	struct source *source;
	struct metrics *metrics;
	struct metric *metric[COLUMNS];
	struct history *history;
};

static void board_finish(struct board *board)
{
	history_destroy(board->history);
	metrics_destroy(board->metrics);
	sources_destroy(board->sources);
	free(board->pool);
}

static int board_init(struct board *board, const struct kind *kind)
{
	*board = (struct board){.pool = calloc(1, POOL)};
	if (board->pool == NULL || sources_create(&board->sources) < 0 ||
		sources_add(board->sources, "bench", SECOND, &board->source) < 0 ||
		metrics_create(&board->metrics) < 0 ||
		history_create(board->pool, POOL, boot, &board->history, NULL) < 0) {
		return -1;
	}
	for (int c = 0; c < COLUMNS; c++) {
		char name[32];
		snprintf(name, sizeof(name), "bench/%d", c);
		if (metrics_add(board->metrics, board->source, name, kind->unit,
			    &board->metric[c]) < 0) {
			return -1;
		}
	}
	return 0;
}

/* One second of all columns. */
static void board_tick(struct board *board, size_t i, uint64_t t_ns)
{
	for (int c = 0; c < COLUMNS; c++) {
		metric_set(board->metric[c], values[c][i % SAMPLES]);
	}
	metrics_commit(board->metrics, board->source, t_ns);
	history_append(board->history, board->metrics, board->source, t_ns);
}

static size_t scan(struct board *board, uint64_t from_ns, uint64_t step_ns)
{
	struct history_cursor cursor = {
		.from_ns = from_ns, .to_ns = UINT64_MAX, .step_ns = step_ns};
	size_t total = 0;
	bool done = false;
	if (history_find(board->history, "bench/3", &cursor.series) < 0) {
		return 0;
	}
	while (!done) {
		size_t count = history_read(board->history, &cursor, points, POINTS, 0, &done);
		for (size_t i = 0; i < count; i++) {
			sink = points[i].mean;
		}
		total += count;
	}
	return total;
}

static double time_plain_append(void)
{
	double start = now_ns();
	for (size_t i = 0; i < SAMPLES; i++) {
		plain_ns[i] = i * SECOND;
		for (int c = 0; c < COLUMNS; c++) {
			plain[c][i] = (float)values[c][i];
		}
		__asm__ volatile("" : : "r"(plain) : "memory");
	}
	return (now_ns() - start) / SAMPLES / COLUMNS;
}

static double time_plain_scan(void)
{
	double start = now_ns();
	for (size_t i = 0; i < SAMPLES; i++) {
		sink = plain[3][i];
	}
	return (now_ns() - start) / SAMPLES;
}

static int run_kind(const struct kind *kind)
{
	double append[ROUNDS], read[ROUNDS], plain_append[ROUNDS], plain_read[ROUNDS], bytes = NAN;
	for (int c = 0; c < COLUMNS; c++) {
		double value = kind->start;
		for (size_t i = 0; i < SAMPLES; i++) {
			values[c][i] = value = next(kind, value);
		}
	}
	for (int r = 0; r < ROUNDS; r++) {
		struct board board;
		if (board_init(&board, kind) < 0) {
			board_finish(&board);
			return -1;
		}
		double start = now_ns();
		for (size_t i = 0; i < SAMPLES; i++) {
			board_tick(&board, i, (i + 1) * SECOND);
		}
		append[r] = (now_ns() - start) / SAMPLES / COLUMNS;
		start = now_ns();
		size_t count = scan(&board, 0, 0);
		read[r] = (now_ns() - start) / (double)(count > 0 ? count : 1);
		plain_append[r] = time_plain_append();
		plain_read[r] = time_plain_scan();
		struct history_usage usage;
		history_usage(board.history, &usage);
		bytes = usage.tier[HISTORY_FULL].bytes_per_sample;
		board_finish(&board);
	}
	/* the ring has a time of 8 bytes for a row of the columns */
	double ring = sizeof(float) + (double)sizeof(plain_ns[0]) / COLUMNS;
	double a = median(append, ROUNDS), pa = median(plain_append, ROUNDS);
	double s = median(read, ROUNDS), ps = median(plain_read, ROUNDS);
	printf("history of %s: %.2f bytes a sample (float ring %.2f: ratio %.2f), append %.1f ns "
	       "with set and commit (ring %.1f: ratio %.0f), scan %.1f ns (ring %.1f: ratio "
	       "%.0f)\n",
		kind->name, bytes, ring, bytes / ring, a, pa, a / pa, s, ps, s / ps);
	return 0;
}

static double time_query(struct board *board, uint64_t from_ns, uint64_t step_ns, size_t *ret)
{
	double list[ROUNDS];
	for (int r = 0; r < ROUNDS; r++) {
		double start = now_ns();
		*ret = scan(board, from_ns, step_ns);
		list[r] = (now_ns() - start) / 1e6;
	}
	return median(list, ROUNDS);
}

static int run_queries(void)
{
	struct board board;
	size_t hour, week, coarse;
	if (board_init(&board, &kinds[1]) < 0) {
		board_finish(&board);
		return -1;
	}
	for (size_t i = 1; i <= WEEK; i++) {
		board_tick(&board, i, i * SECOND);
	}
	double hour_ms = time_query(&board, (WEEK - 3600) * SECOND, 0, &hour);
	double week_ms = time_query(&board, 0, 60 * SECOND, &week);
	double coarse_ms = time_query(&board, 0, 3600 * SECOND, &coarse);
	double plain_hour_ms = time_plain_scan() * 3600 / 1e6;
	printf("history queries of 1 series: last hour %.2f ms (%zu rows; ring %.3f ms: ratio "
	       "%.0f), 7 days by the minute %.2f ms (%zu rows: %.0f ns each), by the hour %.2f ms "
	       "(%zu rows)\n",
		hour_ms, hour, plain_hour_ms, hour_ms / plain_hour_ms, week_ms, week,
		week_ms * 1e6 / (double)(week > 0 ? week : 1), coarse_ms, coarse);
	board_finish(&board);
	return 0;
}

int main(void)
{
	srand(1);
	for (size_t k = 0; k < KINDS; k++) {
		if (run_kind(&kinds[k]) < 0) {
			return 1;
		}
	}
	return run_queries() < 0;
}
