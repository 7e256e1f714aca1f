/* A list of the halves that wait, oldest first. Few do, so it is searched from end to end. */
#include "client/edgeprofctl/trace/trace_pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WAITING_MAX = 512 };

struct trace_pairs {
	trace_pair_teller *tell;
	void *ctx;
	size_t count;
	struct trace_half half[WAITING_MAX];
};

int trace_pairs_create(trace_pair_teller *tell, void *ctx, struct trace_pairs **ret)
{
	struct trace_pairs *pairs = calloc(1, sizeof(*pairs));
	if (!pairs) {
		return -ENOMEM;
	}
	pairs->tell = tell;
	pairs->ctx = ctx;
	*ret = pairs;
	return 0;
}

void trace_pairs_destroy(struct trace_pairs *pairs)
{
	free(pairs);
}

static void tell_alone(struct trace_pairs *pairs, const struct trace_half *half)
{
	pairs->tell(pairs->ctx, half->end ? NULL : half, half->end ? half : NULL);
}

static void take_out(struct trace_pairs *pairs, size_t index)
{
	pairs->count--;
	memmove(&pairs->half[index], &pairs->half[index + 1],
		(pairs->count - index) * sizeof(pairs->half[0]));
}

/* An end belongs to the begin before it, also when the same id is used again and again. */
static bool fits(const struct trace_half *a, const struct trace_half *b)
{
	const struct trace_half *begin = a->end ? b : a, *end = a->end ? a : b;
	return a->end != b->end && a->id == b->id && a->process == b->process &&
	       begin->t_ns <= end->t_ns && strcmp(a->name, b->name) == 0;
}

void trace_pairs_add(struct trace_pairs *pairs, const struct trace_half *half)
{
	for (size_t i = pairs->count; i > 0; i--) {
		const struct trace_half *other = &pairs->half[i - 1];
		if (fits(half, other)) {
			pairs->tell(pairs->ctx, half->end ? other : half, half->end ? half : other);
			take_out(pairs, i - 1);
			return;
		}
	}
	if (pairs->count == WAITING_MAX) {
		tell_alone(pairs, &pairs->half[0]);
		take_out(pairs, 0);
	}
	pairs->half[pairs->count++] = *half;
}

void trace_pairs_finish(struct trace_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		tell_alone(pairs, &pairs->half[i]);
	}
	pairs->count = 0;
}
