/* A call's parameters against a table: names and types are checked before a method runs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON;

enum { PARAMS_MAX = 9 };

enum param_type {
	PARAM_STRING,
	PARAM_BOOL,
	PARAM_INT,   /* a whole number up to 2^53 */
	PARAM_FLOAT, /* finite */
};

struct param {
	const char *name;
	enum param_type type;
	bool required;
};

/* The last two of the calls about a run (runs.h). */
#define RUN_PARAMS                            \
	{"run", PARAM_INT, false},            \
	{                                     \
		"all_runs", PARAM_BOOL, false \
	}

/* In the order of the table; what was absent or null is not present. */
struct value {
	bool present;
	bool boolean;
	int64_t integer;
	double number;
	const char *string; /* lives as long as the parsed call */
};

/* Fills values[0..count). object NULL or null is no parameters. NULL when all is well, else the
 * name of the parameter that is unknown, missing or of the wrong type. */
const char *params_read(
	const struct cJSON *object, const struct param *params, size_t count, struct value *values);
