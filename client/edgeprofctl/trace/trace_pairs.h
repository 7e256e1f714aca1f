/*
 * Begins and ends by id, brought together: they may come from two threads, hence in any order.
 * Bounded: the oldest that still waits gives way and is told alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/edgeprofctl/trace/trace_tracks.h"
#include "proto/mapping.h"
#include "proto/name.h"

struct trace_half {
	bool end;
	uint32_t process; /* ids are a process's own */
	uint64_t id, t_ns;
	char name[PROTO_NAME_SIZE];
	char unit[PROTO_LABEL_SIZE], category[PROTO_LABEL_SIZE]; /* "" = none */
	struct trace_track track;
};

/* end NULL: it has not ended, or that is not kept; begin NULL likewise. Not both. */
typedef void trace_pair_teller(
	void *ctx, const struct trace_half *begin, const struct trace_half *end);

struct trace_pairs;

int trace_pairs_create(trace_pair_teller *tell, void *ctx, struct trace_pairs **ret); /* -ENOMEM */
void trace_pairs_destroy(struct trace_pairs *pairs);

void trace_pairs_add(struct trace_pairs *pairs, const struct trace_half *half);
/* Tells what waits: the next are of another app. */
void trace_pairs_finish(struct trace_pairs *pairs);
