/*
 * What doctor found: rows of its report, {"name","state","text"} and "fix", the command that mends
 * it, where there is one.
 */
#pragma once

#include <cjson/cJSON.h>

enum finding {
	FINDING_OK,
	FINDING_HINT,	 /* less than there could be; nothing is broken */
	FINDING_PROBLEM, /* broken */
};

/* Appends a row. fix NULL: there is nothing to do. Memory that runs out loses the row. */
void finding_add(cJSON *checks, enum finding state, const char *name, const char *fix,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* How many rows are in that state. */
int findings_count(const cJSON *checks, enum finding state);

const char *finding_name(enum finding state); /* "ok", "hint", "problem" */
