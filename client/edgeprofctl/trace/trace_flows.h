/*
 * Which slices belong to one frame: its parts are gathered until it is surely over, then told in
 * the order of time, for the arrows of a viewer. Bounded: the oldest frame gives way.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TRACE_FLOW_PARTS = 24 /* of a frame; more are left out */ };

struct trace_flow_part {
	uint64_t start_ns;
	uint32_t pid, tid;
};

/* Two parts at least, in the order of time. */
typedef void trace_flow_teller(
	void *ctx, uint64_t frame, const struct trace_flow_part *part, size_t count);

struct trace_flows;

int trace_flows_create(trace_flow_teller *tell, void *ctx, struct trace_flows **ret); /* -ENOMEM */
/* Tells nothing. */
void trace_flows_destroy(struct trace_flows *flows);

void trace_flows_add(struct trace_flows *flows, uint64_t frame, const struct trace_flow_part *part);
/* Tells all that is there: the next slices are of another app. */
void trace_flows_finish(struct trace_flows *flows);
