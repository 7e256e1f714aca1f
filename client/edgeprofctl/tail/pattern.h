/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h: finds durations in lines of text. A pattern is text with placeholders: {s} {ms} {us}
 * {ns} the duration in that unit, {stage} a word that names the stage, {stage=NAME} the name
 * itself, {frame} a frame id, {*} any text, {{ a brace. It may match anywhere in a line; a blank in
 * it stands for one or more blanks or tabs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PATTERN_PARTS = 16 };

struct pattern_text {
	const char *at; /* NULL: absent */
	size_t length;
};

enum pattern_kind { PATTERN_TEXT, PATTERN_ANY, PATTERN_DURATION, PATTERN_STAGE, PATTERN_FRAME };

struct pattern {
	struct pattern_part {
		enum pattern_kind kind;
		struct pattern_text text;
		double to_ms; /* of a duration */
	} parts[PATTERN_PARTS];
	size_t count;
	unsigned kinds; /* private: a bit for each that occurs */
	/* {stage=NAME}, or the first word of the pattern's text, unless the line names it */
	struct pattern_text stage, word;
};

struct pattern_match {
	const char *end; /* in the line, behind what matched */
	struct pattern_text stage, frame;
	double ms;
};

/* Returns NULL, or what is wrong at byte *position. The pattern points into text. */
const char *pattern_parse(const char *text, struct pattern *ret, size_t *position);

/* The first match that begins at `at` or later; `line` is where the line begins. Time is linear in
 * the line: {*} never gives back what follows it. */
bool pattern_find(const struct pattern *pattern, const char *line, const char *at, const char *end,
	struct pattern_match *ret);
