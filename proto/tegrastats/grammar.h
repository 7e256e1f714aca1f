/* SPDX-License-Identifier: Apache-2.0 */
/* grammar.h: reads the values behind a name in a line of tegrastats, and the tokens that begin with
 * a fixed word. Only for line.c. Readers are true only when the complete word fits. */
#pragma once

#include <stdbool.h>

#include "proto/tegrastats/scan.h"
#include "proto/tegrastats/tegrastats.h"

/* What is said of an engine, the memory controller or the GPU. */
struct tegrastats_reading {
	bool off;
	bool bare;     /* a number without any sign: could be a torn word of something else */
	bool too_much; /* a percentage over 100 was skipped */
	struct tegrastats_load load;
};

/* off | f | n% | @f | n%@f | [n%]@[f,f] | [n%,n%]@f */
bool tegrastats_read_engine(struct scan word, struct tegrastats_reading *ret);

/* now[mW][/average[mW][/peak[mW]]]; a single number needs its unit. */
bool tegrastats_read_power(struct scan word, struct tegrastats_rail *ret, bool *has_unit);

/* 45.5C | 45.5C/52C | -256C */
bool tegrastats_read_temp(struct scan word, struct tegrastats_temp *ret);

struct tegrastats_parser {
	struct tegrastats *stats;
	struct scan rest;
	bool known;    /* something that only tegrastats prints was there */
	bool ram;      /* the line has begun: a second RAM begins another one */
	bool finished; /* what follows belongs to another line */
};

struct tegrastats_keyword {
	const char *word;
	/* `rest` is behind the word and moves only on success. */
	bool (*take)(struct tegrastats_parser *p, struct scan *rest);
	bool also_rail; /* "CPU 466/466" */
};

/* NULL: no keyword. */
const struct tegrastats_keyword *tegrastats_find_keyword(struct scan word);

/* "MM-DD-YYYY HH:MM:SS": `word` and the first of `rest`. */
bool tegrastats_take_timestamp(struct tegrastats_parser *p, struct scan word, struct scan *rest);

void tegrastats_add_unknown(struct tegrastats *stats, struct scan word);
