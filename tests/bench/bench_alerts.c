/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What alerts cost a commit: a board of 256 metrics in 16 sources (4 of them processes, 8 stages of
 * an app with deadlines) under the built-in rules, all of it fine, against the same commits without
 * any rule (the floor) and against 100 rules more over stage metrics. In turns in the same run,
 * medians.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config.h"
#include "tests/bench/bench.h"

enum { SOURCES = 16, OF_EACH = 16, ROUNDS = 301, SECONDS = 60, MORE = 100 };

struct board {
	struct sources *sources;
	struct metrics *metrics;
	struct timeline *timeline;
	struct alerts *alerts;
	struct source *source[SOURCES];
	uint64_t now_ns;
};

static struct config config;

static const char *const named[] = {"temperature/max", "memory/used_percent", "cpu/utilization",
	"throttle/active", "throttle/under_voltage", "budget/power", "self/events_dropped_rate",
	"self/history_degraded", "self/broker_away", "app/cam/hung", "app/cam/died",
	"frame/cam/miss_percent", "frame/cam/target_percent", "process/a/rss", "process/b/rss",
	"process/c/rss", "process/d/rss"};

static void name_of(size_t source, size_t i, char *ret, size_t size)
{
	const size_t all = source * OF_EACH + i;
	if (all < sizeof(named) / sizeof(named[0])) {
		snprintf(ret, size, "%s", named[all]);
	} else if (source < 6 && i % 2) {
		snprintf(
			ret, size, "stage/cam/s%zu/%s", source, i == 1 ? "miss_percent" : "p95_ms");
	} else if (source >= 12 && i == 0) {
		snprintf(ret, size, "collector/c%zu/stale", source);
	} else {
		snprintf(ret, size, "other/o%zu/m%zu", source, i);
	}
}

static void make(struct board *board, size_t rules)
{
	if (sources_create(&board->sources) < 0 || metrics_create(&board->metrics) < 0 ||
		timeline_create(64, &board->timeline) < 0 ||
		alerts_create(board->metrics, board->timeline, &board->alerts) < 0 ||
		alerts_set_rules(board->alerts, config.alert, rules, 1) < 0) {
		exit(1);
	}
	for (size_t s = 0; s < SOURCES; s++) {
		char name[PROTO_PATH_SIZE];
		struct metric *metric;
		snprintf(name, sizeof(name), "s%zu", s);
		if (sources_add(board->sources, name, 1000000000, &board->source[s]) < 0) {
			exit(1);
		}
		for (size_t i = 0; i < OF_EACH; i++) {
			name_of(s, i, name, sizeof(name));
			if (metrics_add(board->metrics, board->source[s], name, UNIT_PERCENT,
				    &metric) == 0) {
				metric->value = name[0] == 'f' ? 100 : 0;
			}
		}
	}
	board->now_ns = 1000000000000;
}

/* Seconds of all sources; ns a second. */
static double run(struct board *board)
{
	const double from = now_ns();
	for (int i = 0; i < SECONDS; i++) {
		board->now_ns += 1000000000;
		for (size_t s = 0; s < SOURCES; s++) {
			alerts_commit(board->alerts, board->source[s], board->now_ns);
		}
	}
	return (now_ns() - from) / SECONDS;
}

int main(void)
{
	static const char *const what[] = {"no rules", "the built-in rules", "and 100 more"};
	static struct board board[3];
	static double took[3][ROUNDS];
	config_defaults(&config);
	const size_t built_in = config.alerts;
	for (size_t i = 0; i < MORE; i++) {
		struct alert_rule *rule = &config.alert[config.alerts++];
		*rule = config.alert[2];
		snprintf(rule->name, sizeof(rule->name), "more%zu", i);
		snprintf(rule->metric, sizeof(rule->metric), "stage/*/s%zu/p95_ms", i % 6);
	}
	const size_t rules[] = {0, built_in, config.alerts};
	for (size_t b = 0; b < 3; b++) {
		make(&board[b], rules[b]);
	}
	for (size_t i = 0; i < ROUNDS; i++) {
		for (size_t b = 0; b < 3; b++) {
			took[b][i] = run(&board[b]);
		}
	}
	for (size_t b = 0; b < 3; b++) {
		size_t instances = 0;
		while (alerts_at(board[b].alerts, instances)) {
			instances++;
		}
		qsort(took[b], ROUNDS, sizeof(double), by_value);
		const double median = took[b][ROUNDS / 2];
		printf("%-20s %3zu rules %3zu instances: %7.0f ns a second of %d sources, %5.0f ns "
		       "a "
		       "commit\n",
			what[b], rules[b], instances, median, SOURCES, median / SOURCES);
		alerts_destroy(board[b].alerts);
		timeline_destroy(board[b].timeline);
		metrics_destroy(board[b].metrics);
		sources_destroy(board[b].sources);
	}
	return 0;
}
