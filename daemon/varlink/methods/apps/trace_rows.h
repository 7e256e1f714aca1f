/* SPDX-License-Identifier: Apache-2.0 */
/* trace_rows.h: writes raw records as the columns of ExportTrace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/frames/trace_buffer.h"

struct app;
struct json;

enum {
	/* with every name at its longest and every number at its widest such a chunk is below
	 * PROTO_FRAME_MAX; a unit test makes one */
	TRACE_ROWS = 256,
};

/* Copies of records of one log, and the table of the names that they use. */
struct trace_batch {
	size_t rows;
	struct event row[TRACE_ROWS];
	/* private */
	size_t names;
	uint16_t name[TRACE_NAMES_MAX]; /* numbers in the log */
	int16_t index[TRACE_NAMES_MAX]; /* in name, by number in the log; -1 = not used yet */
};

/* The word for a kind; NULL: records of that kind are not exported. */
const char *trace_kind_name(enum proto_kind kind);
/* Whether the value is a duration. */
bool trace_lasts(const struct proto_record *record);

/* The fields "records" and "names", and of each name that is a stage of the app, in its latest run
 * that had it, "units" and "categories"; empties the batch. */
void trace_rows_write(struct json *out, struct trace_batch *batch, const struct app *app);
