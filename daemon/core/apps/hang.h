/*
 * hang.h: detects hangs: a stage that is open for over ten times its lifetime's p99, a second at
 * least, when 30 runs of it have been seen. Judged at each sample from the open stages, so that a
 * stopped or deadlocked process is reported although it sends nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	APP_HANGS_MAX = 16, /* at one time, of one app; further ones are reported when one ended */
	HANG_P99_TIMES = 10,
	HANG_MIN_S = 1,
	HANG_MIN_RUNS = 30,
};

struct stage;
struct app_process;

struct app_hang {
	const struct app_process *process; /* NULL: opened by id */
	const struct stage *stage;
	uint64_t start_ns, frame;
	uint32_t tid;
	bool logged; /* on the timeline: not around an inner one that was */
	bool still;  /* seen at this sample */
};

struct app_hangs {
	size_t count;
	uint64_t total; /* counted since the app is known */
	struct app_hang hang[APP_HANGS_MAX];
	/* app/<app>/hung, app/<app>/processes, app/<app>/died */
	struct metric *metric[3];
};

/* How many stages hang now (an outer stage counts with its inner one). */
size_t app_hung(const struct app_hangs *hangs);
