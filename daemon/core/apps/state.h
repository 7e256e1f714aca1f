/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h: defines the state of an app's current or latest run, as every query and the reports
 * name it. A run is one process from attach to end, or several processes of the app that overlap
 * in time.
 *
 * A stage hangs when it is open for over ten times its lifetime's p99, a second at least, and 30
 * runs of it have been seen. Hangs are judged at each sample from the open stages, so that a
 * stopped or deadlocked process is reported although it sends nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct app;
struct app_process;
struct pulse;
struct stage;

enum {
	APP_HANGS_MAX = 16, /* at one time, of one app; further ones are reported when one ended */
	HANG_P99_TIMES = 10,
	HANG_MIN_S = 1,
	HANG_MIN_RUNS = 30,
};

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
	uint64_t total;	   /* of the run */
	uint64_t recorded; /* of them, that the flight recorder has seen; by recorder */
	struct app_hang hang[APP_HANGS_MAX];
	uint64_t dropped, dropped_ns; /* events of the app, and the sample that saw more of them */
	/* app/<app>/hung, app/<app>/processes, app/<app>/died */
	struct metric *metric[3];
};

enum app_state {
	APP_RUNNING,
	APP_IDLE,   /* a process is attached; no stream had an event for its idle limit (pulse.h) */
	APP_HUNG,   /* a stage is open far longer than usual */
	APP_ENDED,  /* on purpose: bye, exit 0, SIGTERM, SIGINT, SIGHUP */
	APP_DIED,   /* a crash signal, or an unexplained end */
	APP_KILLED, /* SIGKILL */
	APP_STATES
};

enum app_state app_state(const struct app *app, uint64_t now_ns);

/* When the latest event of its frames or stages was; 0 = there was none. */
uint64_t app_last_event_ns(const struct app *app);

/* An app that ended leaves the views of what is going on after this time. */
#define APP_LIVE_NS UINT64_C(10000000000)
bool app_live(const struct app *app, uint64_t now_ns);

struct app_rate_reason {
	char text[48];
};

/* Whether the rate of one of the app's streams is of now; if not, why: "app ended", "no event for
 * 8 s". */
bool app_has_rate(const struct app *app, const struct pulse *pulse, uint64_t now_ns,
	struct app_rate_reason *reason);

/* "running", "idle", "hung", "ended", "died", "killed". */
const char *app_state_name(enum app_state state);
