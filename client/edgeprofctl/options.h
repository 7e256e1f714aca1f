/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h: describes command-line options. A verb keeps a table of its options next to its code;
 * getopt, --help, completion and the manual page follow from it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/edgeprofctl/link/remote.h"
#include "client/edgeprofctl/term/style.h"

enum json_mode { JSON_OFF, JSON_PRETTY, JSON_SHORT };

/* One option. The last row of a table has no name. */
struct option_spec {
	const char *name; /* "since" for --since */
	char letter;	  /* 'n' for -n, or 0 */
	/* "TIME", or the words that are accepted: "linear|nearest"; in brackets where the argument
	 * is optional; NULL for a flag */
	const char *argument;
	const char *help;
	/* Stores the value; text is NULL without an argument. 0, or -EINVAL. */
	int (*parse)(const struct option_spec *spec, const char *text, void *value);
	size_t offset; /* of the value in struct options */
};

/* --run and --all-runs, which several verbs have. */
struct run_options {
	const char *run; /* NULL, "0", "-1", … */
	bool all_runs;
};

/* What the statistics of `stages` and `frames` are of. */
struct window_options {
	const char *span, *method, *throttle;
};

/* Of an option that may be repeated. */
enum { OPTION_LIST_MAX = 32 };
struct option_list {
	const char *items[OPTION_LIST_MAX];
	size_t count;
};

/* What exec imposes on a command; 0 or NULL: nothing. */
struct exec_options {
	const char *cpus, *nice, *perf_record;
	struct option_list env;
	double quota_percent, limit_ms;
	long rr, fifo;
};

/* The values of all options; an option that several verbs have is one member. What was not given is
 * 0; an optional argument that was not given is "" or -1. */
struct options {
	enum json_mode json;
	enum color_mode color;
	bool no_pager, utc, help, version;
	const char *socket; /* NULL: search */
	struct remote_list hosts;
	uint64_t timeout_ms;
	struct run_options runs;
	struct window_options window;
	struct exec_options exec;
	const char *app, *frame, *unit, *category, *time, *name, *note, *since, *until, *around,
		*kind, *level;
	const char *check, *by, *aggregate, *sensors, *format, *output;
	const char *watch, *unwatch, *host, *config, *key;
	const char *error, *input, *model, *warmup, *target;
	struct option_list tags; /* "name=value" */
	struct option_list patterns;
	double interval_ms, step_ms, span_ms, deadline_ms, fps;
	long lines, recent, count, port, max_points, frames;
	bool detach, all, wide, tree, slow, follow, threads, remove, publish, csv, plot, table,
		boots, card, plain, from_start, dry_run;
	/* compare and assert */
	const char *session, *baseline, *metric;
	double within_ms, threshold;
	bool create_baseline, update_baseline, thermal;
};

extern const struct option_spec common_options[];

/* Parsers for option_spec. The value is a bool, a text that belongs to argv, a long, or a double.
 */
int option_flag(const struct option_spec *spec, const char *text, void *value);
int option_text(const struct option_spec *spec, const char *text, void *value);
int option_nonempty(const struct option_spec *spec, const char *text, void *value);
/* Into a struct option_list: any text that is not empty, "NAME=VALUE". */
int option_append(const struct option_spec *spec, const char *text, void *value);
int option_pair(const struct option_spec *spec, const char *text, void *value);
/* One of the words of spec->argument; without an argument "". */
int option_word(const struct option_spec *spec, const char *text, void *value);
/* At least 1; without an argument -1. */
int option_count(const struct option_spec *spec, const char *text, void *value);
/* A span of at least 1 ms, in milliseconds. */
int option_ms(const struct option_spec *spec, const char *text, void *value);
/* "0", or "-1" to "-8": which run of an app. */
int option_run(const struct option_spec *spec, const char *text, void *value);

/* The row of that name or letter, or NULL. The table may be NULL. */
const struct option_spec *option_find(
	const struct option_spec *table, const char *name, size_t length, char letter);
bool option_needs_argument(const struct option_spec *spec);
