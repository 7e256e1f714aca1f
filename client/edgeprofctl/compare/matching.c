/* SPDX-License-Identifier: Apache-2.0 */
/* matching.c: counts the conditions of both sides; of each, as many values as the side with fewer
 * of them has are picked, evenly over time. */
#include "client/edgeprofctl/compare/matching.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct condition {
	int value;
	size_t count[2]; /* of each side */
	size_t passed;	 /* of the side that is selected from, so far */
};

static int by_value(const void *a, const void *b)
{
	const struct condition *x = a, *y = b;
	return (x->value > y->value) - (x->value < y->value);
}

/* The conditions of all runs of a side, unsorted; how many. */
static size_t collect(const struct side *side, int which, const char *series, struct condition *to)
{
	size_t count = 0;
	for (size_t run = side->count >= 3; run < side->count; run++) {
		const struct measured_series *from = measured_series(side->run[run], series);
		for (size_t i = 0; from && i < from->count; i++) {
			if (from->condition[i] != CONDITION_UNKNOWN && to) {
				to[count] = (struct condition){.value = from->condition[i]};
				to[count].count[which] = 1;
			}
			count += from->condition[i] != CONDITION_UNKNOWN;
		}
	}
	return count;
}

/* Each condition once, with both counts. */
static size_t merge(struct condition *conditions, size_t count)
{
	size_t kept = 0;
	qsort(conditions, count, sizeof(*conditions), by_value);
	for (size_t i = 0; i < count; i++) {
		struct condition *last = kept > 0 ? &conditions[kept - 1] : NULL;
		if (last && last->value == conditions[i].value) {
			last->count[0] += conditions[i].count[0];
			last->count[1] += conditions[i].count[1];
		} else {
			conditions[kept++] = conditions[i];
		}
	}
	return kept;
}

static bool pick(struct condition *condition, int which)
{
	size_t all = condition->count[which], other = condition->count[!which];
	size_t wanted = all < other ? all : other, at = condition->passed++;
	return (at + 1) * wanted / all > at * wanted / all;
}

int matching_values(const struct side *const sides[2], int which, size_t run, const char *series,
	struct measured_series *ret)
{
	const struct side *side = sides[which];
	size_t count = collect(sides[0], 0, series, NULL) + collect(sides[1], 1, series, NULL);
	struct condition *conditions = calloc(count + 1, sizeof(*conditions));
	const struct measured_series *last = measured_series(side->run[run], series);
	ret->value = calloc(last->count + 1, sizeof(*ret->value));
	if (!conditions || !ret->value) {
		free(conditions);
		return -ENOMEM;
	}
	count = collect(sides[0], 0, series, conditions);
	count += collect(sides[1], 1, series, conditions + count);
	count = merge(conditions, count);
	/* The earlier runs have had their share. */
	for (size_t i = side->count >= 3; i <= run; i++) {
		const struct measured_series *from = measured_series(side->run[i], series);
		for (size_t j = 0; from && j < from->count; j++) {
			const struct condition wanted = {.value = from->condition[j]};
			struct condition *condition =
				bsearch(&wanted, conditions, count, sizeof(*conditions), by_value);
			if (condition && pick(condition, which) && i == run) {
				ret->value[ret->count++] = from->value[j];
			}
		}
	}
	free(conditions);
	return 0;
}
