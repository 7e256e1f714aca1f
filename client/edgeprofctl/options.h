/* The command line, taken apart: global options, options of verbs, and what remains. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/edgeprofctl/term/style.h"

enum shape { SHAPE_LINES, SHAPE_CSV, SHAPE_PLOT, SHAPE_TABLE };

enum json_mode { JSON_OFF, JSON_PRETTY, JSON_SHORT };

/* Options that only some verbs know: bits of a mask of 64. options_names.c has their names. */
#define OPTION_BIT(number) (UINT64_C(1) << (number))
#define OPTION_SINCE OPTION_BIT(0)
#define OPTION_UNTIL OPTION_BIT(1)
#define OPTION_STEP OPTION_BIT(2)
#define OPTION_MAX_POINTS OPTION_BIT(3)
#define OPTION_SHAPE OPTION_BIT(4) /* --csv, --plot or --table */
#define OPTION_ALL OPTION_BIT(5)
#define OPTION_CHECK OPTION_BIT(6)
#define OPTION_FOLLOW OPTION_BIT(7)
#define OPTION_LINES OPTION_BIT(8)
#define OPTION_INTERVAL OPTION_BIT(9)
#define OPTION_COUNT OPTION_BIT(10)
#define OPTION_APP OPTION_BIT(11)
#define OPTION_WATCH OPTION_BIT(12)
#define OPTION_UNWATCH OPTION_BIT(13)
#define OPTION_NAME OPTION_BIT(14)
#define OPTION_THREADS OPTION_BIT(15)
#define OPTION_TREE OPTION_BIT(16)
#define OPTION_BY OPTION_BIT(17)
#define OPTION_SPAN OPTION_BIT(18)
#define OPTION_METHOD OPTION_BIT(19)
#define OPTION_THROTTLE OPTION_BIT(20)
#define OPTION_WIDE OPTION_BIT(21)
#define OPTION_SLOW OPTION_BIT(22)
#define OPTION_RECENT OPTION_BIT(23)
#define OPTION_FRAME OPTION_BIT(24)
#define OPTION_UNIT OPTION_BIT(25)
#define OPTION_TIME OPTION_BIT(26)
#define OPTION_OUTPUT OPTION_BIT(27)
#define OPTION_FORMAT OPTION_BIT(28)
#define OPTION_SENSORS OPTION_BIT(29)
#define OPTION_AROUND OPTION_BIT(30)
#define OPTION_BOOTS OPTION_BIT(31)
#define OPTION_HOST OPTION_BIT(32)
#define OPTION_PORT OPTION_BIT(33)
#define OPTION_CONFIG OPTION_BIT(34)
#define OPTION_KEY OPTION_BIT(35)
#define OPTION_PUBLISH OPTION_BIT(36)
#define OPTION_NOTE OPTION_BIT(37)
#define OPTION_REMOVE OPTION_BIT(38)
#define OPTION_KIND OPTION_BIT(39)
#define OPTION_LEVEL OPTION_BIT(40)
#define OPTION_AGGREGATE OPTION_BIT(41)
#define OPTION_RUN OPTION_BIT(42)
#define OPTION_ALL_RUNS OPTION_BIT(43)
#define OPTION_END OPTION_BIT(44) /* above the last; move it when you add one */

struct options {
	enum json_mode json;
	enum color_mode color;
	bool no_pager, help, version;
	const char *socket; /* NULL: search */
	uint64_t timeout_ms;
	uint64_t given; /* OPTION_ bits */
	enum shape shape;
	const char *since, *until, *around, *app, *watch, *unwatch, *name;
	const char *by, *span, *method, *throttle; /* words of stages; checked */
	const char *aggregate;			   /* of history; checked */
	const char *unit, *timed;		   /* of emit */
	const char *check, *kind, *level;	   /* of alerts and events; checked */
	const char *note;			   /* of ack, silence, test-alert */
	const char *output, *format, *sensors;	   /* of trace; format is checked */
	const char *host, *config, *key;	   /* of mqtt-latency */
	uint64_t frame;
	double step_ms, interval_ms, window_ms; /* 0 = not given; window: --span as a time */
	long max_points, lines, count, recent, port;
	long run;     /* 0, -1, … */
	char **words; /* the verb and its arguments */
	int word_count;
};

/* Options may stand before or behind the verb. 0, or -EINVAL after one line about it on stderr.
 * The texts belong to argv, which is permuted. */
int options_parse(int argc, char **argv, struct options *ret);

/* "--since" for OPTION_SINCE. */
const char *options_name(uint64_t option);

/* " TIME" for OPTION_SINCE, "" for a flag. */
const char *options_argument(uint64_t option);

/* One line: the option, its argument, and what it does for this verb. */
void options_explain(const char *verb, uint64_t option, FILE *out);

/* The lines about the options that every verb knows. */
void options_usage(FILE *out);
