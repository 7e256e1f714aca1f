/*
 * The tokens of a line of tegrastats that begin with a fixed word, and the state of the parser that
 * they share with the rest. Only for tegrastats.c.
 */
#pragma once

#include <stdbool.h>

#include "proto/tegrastats/scan.h"
#include "proto/tegrastats/tegrastats.h"

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
