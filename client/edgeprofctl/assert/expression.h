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

enum { EXPRESSION_TERMS = 32, EXPRESSION_DEPTH = 8 };

/* The order is that of certainty: "&&" is the least one, "||" the greatest. */
enum truth { TRUTH_NO, TRUTH_UNKNOWN, TRUTH_YES };

/* Whether it holds for a value that is less than the number, equal, or more. */
struct relation {
	const char *sign;
	bool less, equal, more;
};

struct term {
	char path[PROTO_PATH_SIZE];
	const struct relation *relation;
	double number;
	char unit[8]; /* "": none was typed */
};

struct expression {
	size_t term_count;
	struct term term[EXPRESSION_TERMS];
	double for_s; /* 0: at one moment */
	enum truth truth;
};

/* 0, or -EINVAL with what was expected, and where in the text. The truth is made of those of the
 * terms, which may be NULL as long as they are not known. */
int expression_parse(const char *text, const enum truth *truths, struct expression *ret,
	const char **ret_expected, size_t *ret_at);

/* The factor from a unit that was typed to that of the value ("ms", "bytes", "hertz" …; "" where
 * the value has none); NAN when they do not fit. */
double unit_factor(const char *typed, const char *unit);

/* By how much the value, in the unit that was typed, is on the right side of the number. */
double term_margin(const struct term *term, double value);
enum truth term_truth(const struct term *term, double value);
