/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h: prints aligned tables. Cells are clean UTF-8 text (json_clean). Memory that runs out
 * while cells are added is reported by table_print.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/edgeprofctl/term/style.h"

struct column {
	const char *title;
	bool right; /* numbers */
	/* May be cut when the line is too long; the last column then goes below its row, where the
	 * line is its own. */
	bool shrink;
};

struct table_cell;

struct table {
	const struct column *columns;
	size_t column_count;
	struct table_cell *cells;
	size_t cell_count, cell_capacity;
	bool out_of_memory;
};

/* columns must live as long as the table; a title NULL in the first column = no header line. */
void table_init(struct table *table, const struct column *columns, size_t column_count);
void table_finish(struct table *table);

/* The next cell, row by row. An empty text is an empty cell. */
void table_add(struct table *table, enum tone tone, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A number with that many decimals; NAN is a dim "-". */
void table_add_number(struct table *table, double value, int decimals);

/* Prints header and complete rows, each line after `indent` spaces. Columns whose title and cells
 * are all empty are skipped. 0 or -ENOMEM. */
int table_print(const struct table *table, const struct style *style, FILE *out, unsigned indent);
