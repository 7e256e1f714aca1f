/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What history costs beside a plain ring of floats: bytes per sample, append and scan, on series as
 * boards have them: a temperature in half degrees, the load of a CPU, memory in use, a latency.
 * In turns in one run, medians of rounds.
 *
 * bench_history fill DIR: fills DIR/history, 16 MiB, with 256 metrics from this boot's start until
 * now, as a daemon of it would have left it.
 */
#include <ctype.h>

#include "daemon/core/history/history.h"
#include "daemon/util/runfile.h"
#include "tests/bench/bench.h"
#include "tests/bench/walks.h"

#define SECOND UINT64_C(1000000000)

enum { POOL = 32 * 1024 * 1024, SAMPLES = 3600, ROUNDS_MAX = 5, COLUMNS = 16, POINTS = 16384 };
enum { FILE_SIZE = 16 * 1024 * 1024, GROUPS = 16, FILL_ROWS = 60000 };

static uint8_t boot[16] = "bench";
static struct history_point points[POINTS];
static float plain[COLUMNS][SAMPLES];
static double values[COLUMNS][SAMPLES];
static volatile double sink;

struct board {
	struct sources *sources;
	struct metrics *metrics;
	struct source *source[GROUPS];
	struct metric *metric[GROUPS][COLUMNS];
	size_t groups;
};

static void board_finish(struct board *board)
{
	metrics_destroy(board->metrics);
	sources_destroy(board->sources);
}

static int board_init(struct board *board, size_t groups, const struct walk *kind)
{
	*board = (struct board){.groups = groups};
	if (sources_create(&board->sources) < 0 || metrics_create(&board->metrics) < 0) {
		return -1;
	}
	for (size_t i = 0; i < groups * COLUMNS; i++) {
		char group[28], name[52];
		size_t g = i / COLUMNS;
		snprintf(group, sizeof(group), "bench%zu", g);
		snprintf(name, sizeof(name), "%s/%zu", group, i % COLUMNS);
		if ((i % COLUMNS == 0 &&
			    sources_add(board->sources, group, SECOND, &board->source[g]) < 0) ||
			metrics_add(board->metrics, board->source[g], name, kind->unit,
				&board->metric[g][i % COLUMNS]) < 0) {
			return -1;
		}
	}
	return 0;
}

/* One row of all groups. */
static void board_tick(struct board *board, struct history *history, size_t i, uint64_t t_ns)
{
	for (size_t g = 0; g < board->groups; g++) {
		for (int c = 0; c < COLUMNS; c++) {
			metric_set(board->metric[g][c], values[c][i % SAMPLES]);
		}
		metrics_commit(board->metrics, board->source[g], t_ns);
		history_append(history, board->metrics, board->source[g], t_ns);
	}
}

static size_t scan(struct history *history)
{
	struct history_cursor cursor = {.to_ns = UINT64_MAX};
	size_t total = 0;
	bool done = false;
	if (history_find(history, "bench0/3", &cursor.series) < 0) {
		return 0;
	}
	while (!done) {
		size_t count = history_read(history, &cursor, points, POINTS, 0, &done);
		for (size_t i = 0; i < count; i++) {
			sink = points[i].mean;
		}
		total += count;
	}
	return total;
}

static double time_plain_scan(void)
{
	double start = now_ns();
	for (size_t i = 0; i < SAMPLES; i++) {
		sink = plain[3][i];
	}
	return (now_ns() - start) / SAMPLES;
}

static void walk(const struct walk *kind)
{
	for (int c = 0; c < COLUMNS; c++) {
		double value = kind->start;
		for (size_t i = 0; i < SAMPLES; i++) {
			values[c][i] = value = walk_next(kind, value);
		}
	}
}

struct cost {
	double bytes, read_ns, plain_ns;
};

static int run_kind(const struct walk *kind, size_t rounds, struct cost *ret)
{
	double read[ROUNDS_MAX], plain_read[ROUNDS_MAX];
	walk(kind);
	for (size_t r = 0; r < rounds; r++) {
		struct board board;
		struct history *history = NULL;
		struct history_usage usage;
		void *pool = calloc(1, POOL);
		if (!pool || board_init(&board, 1, kind) < 0 ||
			history_create(pool, POOL, boot, &history, NULL) < 0) {
			return -1;
		}
		for (size_t i = 0; i < SAMPLES; i++) {
			board_tick(&board, history, i, (i + 1) * SECOND);
		}
		double start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		size_t count = scan(history);
		read[r] = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) /
			  (double)(count > 0 ? count : 1);
		plain_read[r] = time_plain_scan();
		history_usage(history, &usage);
		ret->bytes = usage.tier[HISTORY_FULL].bytes_per_sample;
		history_destroy(history);
		board_finish(&board);
		free(pool);
	}
	ret->read_ns = median(read, rounds);
	ret->plain_ns = median(plain_read, rounds);
	return 0;
}

static int read_boot_id(void)
{
	char text[64] = "";
	size_t digits = 0;
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!file || !fgets(text, sizeof(text), file)) {
		return -1;
	}
	fclose(file);
	memset(boot, 0, sizeof(boot));
	for (const char *c = text; *c && digits < 32; c++) {
		if (isxdigit((unsigned char)*c)) {
			int value = isdigit((unsigned char)*c) ? *c - '0' : *c - 'a' + 10;
			boot[digits / 2] = (uint8_t)(boot[digits / 2] << 4 | value);
			digits++;
		}
	}
	return digits == 32 ? 0 : -1;
}

/* 16 sources of 16 metrics: 256 as on a board. False: not full. */
static bool fill(const char *dir)
{
	struct board board;
	struct runfile file;
	struct history *history = NULL;
	struct history_usage usage;
	if (read_boot_id() < 0 || runfile_open(dir, "history", FILE_SIZE, &file) < 0 ||
		history_create(file.data, file.size, boot, &history, NULL) < 0 ||
		board_init(&board, GROUPS, &kinds[1]) < 0) {
		return false;
	}
	uint64_t step_ns = (uint64_t)now_ns() / (FILL_ROWS + 1);
	walk(&kinds[1]);
	for (size_t i = 0; i < FILL_ROWS; i++) {
		board_tick(&board, history, i, (i + 1) * step_ns);
	}
	history_usage(history, &usage);
	history_destroy(history);
	board_finish(&board);
	runfile_close(&file);
	return usage.evicted_blocks > 0;
}

int main(int argc, char **argv)
{
	size_t rounds = is_short(argc, argv) ? 1 : ROUNDS_MAX;
	double bytes = 0, read_ns = 0, plain_ns = 0;
	srand(1);
	if (argc == 3 && strcmp(argv[1], "fill") == 0) {
		return fill(argv[2]) ? 0 : 1;
	}
	for (size_t k = 0; k < KINDS; k++) {
		char key[48];
		struct cost cost;
		if (run_kind(&kinds[k], rounds, &cost) < 0) {
			return 1;
		}
		snprintf(key, sizeof(key), "history.bytes.%s", kinds[k].name);
		result(key, cost.bytes);
		bytes += cost.bytes / KINDS;
		read_ns += cost.read_ns / KINDS;
		plain_ns += cost.plain_ns / KINDS;
	}
	result("history.bytes", bytes);
	/* a float ring has a time of 8 bytes for a row of its columns */
	result("history.bytes.floor", sizeof(float) + (double)sizeof(uint64_t) / COLUMNS);
	result("history.read", read_ns);
	result("history.read.floor", plain_ns);
	return 0;
}
