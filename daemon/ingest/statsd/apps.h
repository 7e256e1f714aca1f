/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apps.h: keeps a pseudo process for each app tag (without it: "statsd") that a user sends. The tag
 * is only a claim; the user is what the kernel reports.
 */
#pragma once

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "proto/statsd/statsd.h"

enum {
	STATSD_NAMES_MAX = PROTO_DECLARATIONS, /* of one app */
	STATSD_SILENCE_S = 60,		       /* then the app has ended */
	STATSD_REFUSED_MAX = 16,
	STATSD_RECORDS = 64,	   /* that reach core at once */
	STATSD_FRAME_RECORDS = 16, /* that one frame usually has at most */
};

struct statsd_sender {
	uid_t uid;
	pid_t pid; /* 0 = unknown */
	bool trusted;
};

struct statsd_app;
struct statsd_names;

/* A refused claim: not tried again for a second. */
struct statsd_claim {
	char name[PROTO_NAME_SIZE];
	uid_t uid;
	uint64_t until_ns;
};

struct statsd_apps {
	struct core *core;
	size_t count;
	struct statsd_app *app[APPS_MAX];
	uint32_t hash[APPS_MAX]; /* of their names */
	uint64_t made;		 /* apps and names, ever: what costs more than a line */
	/* The app of the previous line: most lines have the same. */
	struct statsd_app *last;
	char last_tag[PROTO_NAME_SIZE];
	size_t last_length;
	uid_t last_uid;
	/* Records of one app that wait for statsd_apps_flush(). */
	struct app_process *filled;
	size_t waiting;
	uint64_t waiting_ns; /* when they were received */
	struct proto_record record[STATSD_RECORDS];
	const struct statsd_names *filled_names;
	uint64_t laid_frame; /* whose lines follow each other; STATSD_NO_FRAME = none */
	size_t laid_from;    /* the first of its records */
	struct statsd_claim refused[STATSD_REFUSED_MAX];
	size_t refused_next;
};

/* -ENOSPC: too many observers. The structure must not move until statsd_apps_finish. */
int statsd_apps_init(struct statsd_apps *apps, struct core *core);

/* Appends all values of a line as records of its app, which core sees at the next flush; their
 * number. Lines over a limit are counted. */
size_t statsd_apps_append(struct statsd_apps *apps, const struct statsd_sender *sender,
	struct statsd_line *line, uint64_t now_ns);

/* Call at the end of a datagram. Stages of one frame whose lines follow each other in it are taken
 * to have run one after the other: only the last one ended when it came. */
void statsd_apps_lay(struct statsd_apps *apps);

/* Hands over what waits. Call before control goes back to the loop. */
void statsd_apps_flush(struct statsd_apps *apps);

/* Call when all lines that had come in are processed: for core/apps the end of a drain. */
void statsd_apps_drained(struct statsd_apps *apps);
/* Completes the frames whose time is over. True: some are still open. */
bool statsd_apps_expire_frames(struct statsd_apps *apps, uint64_t now_ns);

/* Ends the apps that were silent; the number of the others. */
size_t statsd_apps_sweep(struct statsd_apps *apps, uint64_t now_ns);

void statsd_apps_finish(struct statsd_apps *apps, enum process_end how, uint64_t now_ns);
