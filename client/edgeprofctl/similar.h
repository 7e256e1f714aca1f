/* SPDX-License-Identifier: Apache-2.0 */
/* similar.h: finds the name that a mistyped word stands for. */
#pragma once

/* The name most similar to the word, among those that are added. */
struct similar {
	const char *word, *name; /* NULL: none is similar */
	unsigned min;
};
struct similar similar_to(const char *word);
void similar_add(struct similar *similar, const char *name);

struct text;
/* Adds the question whether that was meant; nothing without a similar one. */
void similar_ask(const struct similar *similar, struct text *text);
