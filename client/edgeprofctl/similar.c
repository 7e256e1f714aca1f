/* SPDX-License-Identifier: Apache-2.0 */
/* similar.c: compares a word with names by the number of letters to change, and takes a name that
 * begins with the word for the one that was meant. */
#include "client/edgeprofctl/similar.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "proto/text.h"

enum { LONGEST = 128 };

/* Changes of one letter between two words; what is beyond LONGEST is ignored. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[LONGEST + 1];
	size_t width = strnlen(b, LONGEST);
	for (size_t j = 0; j <= width; j++) {
		row[j] = (unsigned)j;
	}
	for (size_t i = 1; i <= LONGEST && a[i - 1] != '\0'; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= width; j++) {
			unsigned best = diagonal + (tolower((unsigned char)a[i - 1]) !=
							   tolower((unsigned char)b[j - 1]));
			diagonal = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
		}
	}
	return row[width];
}

/* They differ by two adjacent letters in reverse order. */
static bool is_swapped(const char *a, const char *b)
{
	size_t i = 0;
	while (a[i] != '\0' && tolower((unsigned char)a[i]) == tolower((unsigned char)b[i])) {
		i++;
	}
	return a[i] != '\0' && a[i + 1] != '\0' && b[i] != '\0' &&
	       strncasecmp((const char[]){b[i + 1], b[i], '\0'}, a + i, 2) == 0 &&
	       strcasecmp(a + i + 2, b + i + 2) == 0;
}

struct similar similar_to(const char *word)
{
	return (struct similar){word, NULL, strlen(word) > 4 ? 3 : 2};
}

void similar_add(struct similar *similar, const char *name)
{
	const char *word = similar->word;
	bool begins = strlen(word) > 1 && strncasecmp(name, word, strlen(word)) == 0;
	unsigned far = begins ? 0 : is_swapped(word, name) ? 1 : distance(word, name);
	if (far < similar->min) {
		similar->min = far;
		similar->name = name;
	}
}

void similar_ask(const struct similar *similar, struct text *text)
{
	if (similar->name) {
		text_add(text, "; did you mean '%s'?", similar->name);
	}
}
