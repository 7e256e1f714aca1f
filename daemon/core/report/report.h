/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h: writes an app's report as plain text: who, when, frames, stages, categories, compute
 * units, deadlines, slow frames, energy, and what to keep in mind when reading it. Made when the
 * app's last process went (G3.1) and whenever somebody asks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/apps/state.h"
#include "proto/name.h"

struct app;
struct core;

/* A report that was written when a run ended, perhaps before a restart of the daemon. */
struct past_report {
	char app[PROTO_NAME_SIZE];
	uint64_t run;
	enum app_state state;
	char last_words[160]; /* "" = none */
	int64_t since_us, until_us;
};

/* Who can find such reports. */
struct past_reports {
	/* The app's, or the newest of all (app NULL), as text and a NUL. The length, -ENOENT, or
	 * another -errno. */
	int (*read)(void *ctx, const char *app, char *text, size_t size, struct past_report *ret);
	void *ctx;
};

/* What the head of a report's text says of its run; until_us is the caller's, since_us counts from
 * it. */
void app_report_parse(const char *text, int64_t until_us, struct past_report *ret);

enum {
	APP_REPORT_SIZE = 32 * 1024, /* enough for 128 stages; what is longer is cut at a line */
	APP_REPORT_SUMMARY = 96,
	APP_REPORT_FRAMES = 100, /* fewer are reported as too few */
	APP_REPORT_SECONDS = 10, /* a shorter run is reported as too short */
	APP_REPORT_OTHERS = 25,	 /* percent of the machine that others used: reported when more */
	APP_REPORT_SLOW = 5,	 /* slow frames that are listed */
	APP_REPORT_TOP = 3,
	APP_REPORT_SORTED = 12 * 1024, /* events, about a millisecond's worth of sorting */
};

/* Writes lines of clean UTF-8 and a NUL into text (size of 1 KiB at least). now_ns counts for an
 * app that still runs; that of one that is gone is of its end. The length, or -ENOMEM. Allocates
 * what it needs and frees it. */
int app_report_write(
	const struct core *core, const struct app *app, uint64_t now_ns, char *text, size_t size);

/* True when there is anything to report: a frame, or a run of a stage. */
bool app_report_worth(const struct app *app);

/* The report in one line, as for the timeline. */
void app_report_summary(const struct app *app, uint64_t now_ns, char ret[APP_REPORT_SUMMARY]);
