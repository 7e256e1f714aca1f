/*
 * Which processes are watched, and what was last seen of each. ingest (apps), configuration and api
 * write wishes; the process collector observes them and fills the table; api lists it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/name.h"

enum { WATCHES_MAX = 96, PROCESS_ROWS_MAX = 256, WATCH_PATTERN_SIZE = 128 };

enum watch_kind {
	WATCH_SELF,    /* the daemon itself */
	WATCH_APP,     /* pids of an instrumented app (a row a process) */
	WATCH_PATTERN, /* glob on comm or on the command line's first word */
	WATCH_PID,
};

struct watch {
	enum watch_kind kind;
	char name[PROTO_NAME_SIZE];	  /* of the metrics: process/<name>/… */
	char pattern[WATCH_PATTERN_SIZE]; /* WATCH_PATTERN */
	pid_t pid;			  /* WATCH_PID, WATCH_APP (one watch a process) */
	uint64_t start_ticks; /* 0 = any; else another start time means another process */
};

/* One process as last sampled. NAN = not known. */
struct process_row {
	pid_t pid;
	uint64_t start_ticks;
	uid_t uid;
	char watch[PROTO_NAME_SIZE]; /* the watch's name */
	char comm[16];		     /* raw bytes, NUL-terminated; may hold anything */
	char state;		     /* R S D … */
	double cpu_percent, user_percent, system_percent; /* of one core, over the last interval */
	double rss_bytes, vms_bytes, peak_rss_bytes;
	uint32_t threads;
	uint64_t t_ns;
};

struct processes {
	size_t watches;
	struct watch watch[WATCHES_MAX];
	uint32_t serial; /* grows with each change of the watches */
	size_t rows;
	struct process_row row[PROCESS_ROWS_MAX];
	uint64_t refused; /* watches or rows beyond the limits */
};

/* Adds a watch (copied). -EEXIST for an equal one, -ENOSPC (counted). */
int processes_watch(struct processes *processes, const struct watch *watch);
/* Removes watches of the kind with this name and, unless 0, this pid. The number removed. */
int processes_unwatch(
	struct processes *processes, enum watch_kind kind, const char *name, pid_t pid);
