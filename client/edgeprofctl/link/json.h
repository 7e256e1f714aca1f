/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h: reads and writes the daemon's replies. The readers never fail on a shape they did not
 * expect: a member that is absent, null or of another type reads as "nothing" (NULL, NAN, the
 * fallback).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

/* The member, or NULL when object is not an object, or the member is absent or null. */
const cJSON *json_get(const cJSON *object, const char *name);
const char *json_text(const cJSON *object, const char *name);	/* NULL: no text */
const char *json_word(const cJSON *object, const char *name);	/* like json_text, but "" */
double json_number(const cJSON *object, const char *name);	/* NAN: no number */
int64_t json_whole(double number);				/* 0: no whole number */
int64_t json_integer(const cJSON *object, const char *name);	/* 0: no whole number */
bool json_true(const cJSON *object, const char *name);		/* false unless true */
const cJSON *json_first(const cJSON *object, const char *name); /* of an array; then ->next */
int json_count(const cJSON *object, const char *name);		/* of an array, else 0 */

/* Adds a member; what is not finite is null. */
void json_add_number(cJSON *object, const char *name, double value);

/* Makes every string of the tree fit for a terminal, in place (text_clean). */
void json_clean(cJSON *tree, bool utf8);

/* Writes the value and a newline: on one line, or indented. Strings are escaped such that no
 * control character reaches a terminal; the JSON value is the same. Whole numbers up to 2^53 have
 * no exponent. */
void json_write(FILE *out, const cJSON *value, bool pretty);

/* A text in quotes, escaped likewise. */
void json_write_text(FILE *out, const char *text);
