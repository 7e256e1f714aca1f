/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h: finds durations in lines of text. A pattern is text with placeholders: {s} {ms} {us}
 * {ns} the duration in that unit, {stage} a word that names the stage, {stage=NAME} the name
 * itself, {frame} a frame id, {*} any text, {{ a brace. It may match anywhere in a line; a blank in
 * it stands for one or more blanks or tabs.
 */
#pragma once

#include "proto/statsd/statsd.h"

struct pattern {
	const char *text;
	struct statsd_text stage; /* {stage=NAME}, or the first word, unless the line names it */
};

struct pattern_match {
	const char *end; /* in the line, behind what matched */
	struct statsd_text stage, frame;
	double ms;
};

/* Returns NULL, or what is wrong at byte *position. The pattern points into text. */
const char *pattern_parse(const char *text, struct pattern *ret, size_t *position);

/* The first match that begins at `at` or later; `line` is where the line begins. Time is linear in
 * the line: {*} never gives back what follows it. */
bool pattern_find(const struct pattern *pattern, const char *line, const char *at, const char *end,
	struct pattern_match *ret);
