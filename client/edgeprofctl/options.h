/* The command line, taken apart: global options, options of verbs, and what remains. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/edgeprofctl/style.h"

enum shape { SHAPE_LINES, SHAPE_CSV, SHAPE_PLOT, SHAPE_TABLE };

enum json_mode { JSON_OFF, JSON_PRETTY, JSON_SHORT };

/* Options that only some verbs know: bits of a mask. */
enum {
	OPTION_SINCE = 1 << 0,
	OPTION_UNTIL = 1 << 1,
	OPTION_STEP = 1 << 2,
	OPTION_MAX_POINTS = 1 << 3,
	OPTION_SHAPE = 1 << 4, /* --csv, --plot or --table */
	OPTION_ALL = 1 << 5,
	OPTION_CHECK = 1 << 6,
	OPTION_FOLLOW = 1 << 7,
	OPTION_LINES = 1 << 8,
	OPTION_INTERVAL = 1 << 9,
	OPTION_COUNT = 1 << 10,
	OPTION_APP = 1 << 11,
	OPTION_WATCH = 1 << 12,
	OPTION_UNWATCH = 1 << 13,
	OPTION_NAME = 1 << 14,
	OPTION_THREADS = 1 << 15,
	OPTION_TREE = 1 << 16,
	OPTION_BY = 1 << 17,
	OPTION_SPAN = 1 << 18,
	OPTION_METHOD = 1 << 19,
	OPTION_THROTTLE = 1 << 20,
	OPTION_WIDE = 1 << 21,
	OPTION_SLOW = 1 << 22,
	OPTION_RECENT = 1 << 23,
	OPTION_FRAME = 1 << 24,
	OPTION_UNIT = 1 << 25,
	OPTION_TIME = 1 << 26,
	OPTION_OUTPUT = 1 << 27,
	OPTION_FORMAT = 1 << 28,
	OPTION_SENSORS = 1 << 29,
	OPTION_AROUND = 1 << 30,
	OPTION_LAST = OPTION_AROUND,
};

struct options {
	enum json_mode json;
	enum color_mode color;
	bool no_pager, help, version;
	const char *socket; /* NULL: search */
	uint64_t timeout_ms;
	unsigned given; /* OPTION_ bits */
	enum shape shape;
	const char *since, *until, *around, *app, *watch, *unwatch, *name;
	const char *by, *span, *method, *throttle; /* words of stages; checked */
	const char *unit, *timed;		   /* of emit */
	const char *output, *format, *sensors;	   /* of trace; format is checked */
	uint64_t frame;
	double step_ms, interval_ms, window_ms; /* 0 = not given; window: --span as a time */
	long max_points, lines, count, recent;
	char **words; /* the verb and its arguments */
	int word_count;
};

/* Options may stand before or behind the verb. 0, or -EINVAL after one line about it on stderr.
 * The texts belong to argv, which is permuted. */
int options_parse(int argc, char **argv, struct options *ret);

/* "--since" for OPTION_SINCE. */
const char *options_name(unsigned option);

/* " TIME" for OPTION_SINCE, "" for a flag. */
const char *options_argument(unsigned option);

/* The lines about the options that every verb knows. */
void options_usage(FILE *out);
