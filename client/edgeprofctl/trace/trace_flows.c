/* Frames by their id in small sets. Ids that count up use the sets in turn, so a frame stays until
 * about a thousand further ones have come: records of two threads are a tenth of a second apart. */
#include "client/edgeprofctl/trace/trace_flows.h"

#include <errno.h>
#include <stdlib.h>

enum { SETS = 257, WAYS = 4 };

struct frame {
	uint64_t id, serial; /* serial 0 = free */
	size_t count;
	struct trace_flow_part part[TRACE_FLOW_PARTS];
};

struct trace_flows {
	trace_flow_teller *tell;
	void *ctx;
	uint64_t serial;
	struct frame frame[SETS][WAYS];
};

int trace_flows_create(trace_flow_teller *tell, void *ctx, struct trace_flows **ret)
{
	struct trace_flows *flows = calloc(1, sizeof(*flows));
	if (!flows) {
		return -ENOMEM;
	}
	flows->tell = tell;
	flows->ctx = ctx;
	*ret = flows;
	return 0;
}

void trace_flows_destroy(struct trace_flows *flows)
{
	free(flows);
}

static int by_start(const void *a, const void *b)
{
	const struct trace_flow_part *left = a, *right = b;
	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

static void end_frame(struct trace_flows *flows, struct frame *frame)
{
	if (frame->serial != 0 && frame->count > 1) {
		qsort(frame->part, frame->count, sizeof(frame->part[0]), by_start);
		flows->tell(flows->ctx, frame->id, frame->part, frame->count);
	}
	frame->serial = 0;
	frame->count = 0;
}

void trace_flows_add(struct trace_flows *flows, uint64_t frame, const struct trace_flow_part *part)
{
	struct frame *set = flows->frame[frame % SETS], *place = &set[0];
	for (size_t i = 0; i < WAYS; i++) {
		if (set[i].serial != 0 && set[i].id == frame) {
			place = &set[i];
			break;
		}
		place = set[i].serial < place->serial ? &set[i] : place;
	}
	if (place->serial == 0 || place->id != frame) {
		end_frame(flows, place);
		place->id = frame;
		place->serial = ++flows->serial;
	}
	if (place->count < TRACE_FLOW_PARTS) {
		place->part[place->count++] = *part;
	}
}

void trace_flows_finish(struct trace_flows *flows)
{
	for (size_t i = 0; i < SETS; i++) {
		for (size_t w = 0; w < WAYS; w++) {
			end_frame(flows, &flows->frame[i][w]);
		}
	}
}
