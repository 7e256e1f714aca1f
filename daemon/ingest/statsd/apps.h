/*
 * Apps that send datagrams: one pseudo process for each app tag (without it: "statsd") of a user.
 * The tag is only a claim; who sends is what the kernel says.
 */
#pragma once

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "proto/statsd/statsd.h"

enum {
	STATSD_APPS_MAX = 16,
	STATSD_NAMES_MAX = 128, /* of one app: as many as a process may declare */
	STATSD_SILENCE_S = 60,	/* then the app has ended */
	STATSD_REFUSED_MAX = 16,
};

struct statsd_sender {
	uid_t uid;
	pid_t pid; /* 0 = not known */
	bool trusted;
};

struct statsd_app;

/* A refused claim: not tried again for a second. */
struct statsd_claim {
	char name[PROTO_NAME_SIZE];
	uid_t uid;
	uint64_t until_ns;
};

struct statsd_apps {
	struct core *core;
	size_t count;
	struct statsd_app *app[STATSD_APPS_MAX];
	/* The app of the line before: most lines have the same. */
	struct statsd_app *last;
	char last_tag[PROTO_NAME_SIZE];
	size_t last_length;
	uid_t last_uid;
	struct statsd_claim refused[STATSD_REFUSED_MAX];
	size_t refused_next;
};

/* -ENOSPC. The structure stays where it is until statsd_apps_finish. */
int statsd_apps_init(struct statsd_apps *apps, struct core *core);

/* All values of a line, as records of its app; how many. What the limits leave out is counted. */
size_t statsd_apps_take(struct statsd_apps *apps, const struct statsd_sender *sender,
	struct statsd_line *line, uint64_t now_ns);

/* The lines that had come in are taken: for core/apps the end of a drain. */
void statsd_apps_drained(struct statsd_apps *apps);
/* Takes frames for done whose time is over. True: some still wait. */
bool statsd_apps_settle(struct statsd_apps *apps, uint64_t now_ns);

/* Ends the apps that were silent; how many are left. */
size_t statsd_apps_sweep(struct statsd_apps *apps, uint64_t now_ns);

void statsd_apps_finish(struct statsd_apps *apps, enum process_end how, uint64_t now_ns);
