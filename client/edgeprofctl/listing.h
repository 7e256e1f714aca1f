/* SPDX-License-Identifier: Apache-2.0 */
/* listing.h: shows an array of a reply as a table, given a list of its columns. */
#pragma once

#include "client/edgeprofctl/ctl.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/table.h"

/* How the cells of a column are aligned. */
enum field_kind {
	FIELD_TEXT,
	FIELD_LONG,   /* text that may be cut */
	FIELD_NUMBER, /* to the right */
};

struct field {
	const char *title;
	enum field_kind kind;
	const char *template; /* template.h; a cell "-" is dim, unless it has a tone */
};

enum { LISTING_FIELDS = 16 };

struct listing {
	struct ctl *ctl;
	const struct field *fields;
	size_t count;
	int depth; /* of the next row: its first cell is indented by twice that */
	struct column columns[LISTING_FIELDS];
	struct table table;
};

void listing_begin(
	struct listing *listing, struct ctl *ctl, const struct field *fields, size_t count);
void listing_add(struct listing *listing, const cJSON *row);
/* Prints the table and frees it. */
void listing_end(struct listing *listing);

/* All of that for the reply's array. */
void listing_show(struct ctl *ctl, const cJSON *reply, const char *array,
	const struct field *fields, size_t count);

/* A line of a table about one object: templates of the first column and of the others, which are
 * delimited by tabs. A line whose second column is empty is skipped; one without others is a
 * heading, unless it is empty. "{*array}" in front of the first makes it a line about each item of
 * the array; only the first one then shows a name that is always the same. Lines about the same
 * array that follow one another are shown item by item, all with their names. */
struct line {
	const char *name, *values;
};
void listing_lines(const struct ctl *ctl, struct table *table, const cJSON *object,
	const struct line *lines, size_t count);
/* Prints a table of two columns made of the lines. */
void listing_facts(struct ctl *ctl, const cJSON *object, const struct line *lines, size_t count);

/* Adds a cell made of a template. */
void listing_cell(
	const struct ctl *ctl, struct table *table, const char *template, const cJSON *object);

/* Writes the template to the output, also for each item of an array. */
void listing_text(const struct ctl *ctl, const char *template, const cJSON *object);
void listing_texts(
	const struct ctl *ctl, const char *template, const cJSON *reply, const char *array);

/* Deletes the items of the reply's array that the function does not want; how many stay. */
int listing_narrow(cJSON *reply, const char *array,
	bool (*wanted)(const cJSON *item, const char *glob), const char *glob);
