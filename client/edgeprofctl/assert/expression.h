/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression.h: parses and evaluates the conditions of `assert`:
 *
 *   EXPRESSION = ANY [ "for" SPAN ]
 *   ANY        = ALL { "||" ALL }
 *   ALL        = TERM { "&&" TERM }
 *   TERM       = "(" ANY ")" | PATH OPERATOR NUMBER [ UNIT ]
 *   OPERATOR   = ">" | ">=" | "<" | "<=" | "==" | "!="
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/name.h"

enum { EXPRESSION_TERMS = 32, EXPRESSION_DEPTH = 8, EXPRESSION_TEXT = 32 };

enum truth { TRUTH_NO, TRUTH_UNKNOWN, TRUTH_YES };

enum relation { MORE, AT_LEAST, LESS, AT_MOST, EQUAL, UNEQUAL, RELATIONS };

struct term {
	char path[PROTO_PATH_SIZE];
	enum relation relation;
	double number;
	char unit[8];
	char text[EXPRESSION_TEXT]; /* "> 30ms", for messages */
};

struct expression {
	size_t term_count, step_count;
	struct term term[EXPRESSION_TERMS];
	int step[2 * EXPRESSION_TERMS]; /* in postfix order: a term, or STEP_ALL, STEP_ANY */
	double for_s;			/* 0: at one moment */
};
enum { STEP_ALL = -1, STEP_ANY = -2 };

/* 0, or -EINVAL with what was expected, and where in the text. */
int expression_parse(
	const char *text, struct expression *ret, const char **ret_expected, size_t *ret_at);

/* Of the truths of its terms. Unknown is what a term that is not known decides. */
enum truth expression_truth(const struct expression *expression, const enum truth *terms);

/* The factor from a unit that was typed to that of the value ("ms", "bytes", "hertz" …; "" where
 * the value has none); NAN when they do not fit. */
double unit_factor(const char *typed, const char *unit);

enum truth term_truth(const struct term *term, double factor, double value);
