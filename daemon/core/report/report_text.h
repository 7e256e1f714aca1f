/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_text.h: declares what the files of the report share: the text that grows line by line,
 * and what it is about.
 */
#pragma once

#include "daemon/core/core.h"
#include "daemon/core/runs/relations.h"

struct report {
	char *text;
	size_t size, length;
	bool cut;	   /* a line did not fit: nothing follows */
	const char *title; /* of the section; NULL: it has none, or has begun */

	const struct core *core;
	const struct app *app;
	uint64_t end_ns; /* of the time it covers */
	struct app_relations relations;
	int width;	 /* of the column of names */
	double *scratch; /* for a window of either kind */
	bool failed;	 /* memory was short */
	bool estimated;	 /* some percentiles come from a histogram */
	size_t sorted;	 /* events of windows so far */
};

/* Adds a complete line, or cuts the report before it. The title comes before a section's first. */
void report_line(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A stage's numbers over its lifetime: exact where its window still holds all of it, and the
 * windows so far were not too many to sort in one iteration of the loop. */
void report_ask(struct report *report, const struct stage *stage, struct stage_answer *ret);

/* "infer@gpu" */
struct report_name {
	char text[PROTO_NAME_SIZE + PROTO_LABEL_SIZE + 1];
};
struct report_name report_stage_name(const struct report *report, size_t index);

double report_percent(uint64_t part, uint64_t total); /* 0 of nothing */

/* The sections, in their order. */
void report_pipeline(struct report *report);
void report_outside(struct report *report);
void report_categories(struct report *report);
void report_units(struct report *report);
void report_top(struct report *report);
void report_deadlines(struct report *report);
void report_slow_frames(struct report *report);
void report_energy(struct report *report);
void report_hygiene(struct report *report);
void report_diagnosis(struct report *report);
