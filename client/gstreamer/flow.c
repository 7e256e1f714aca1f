/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.c: measures what the elements of a GStreamer application do. A push into an element opens
 * an entry on a stack of the thread; the element's own time is that of the push without the pushes
 * that it makes meanwhile. What leaves an element on another thread has waited in it since it
 * arrived. A buffer's frame is that of the input of the same running time.
 *
 * Hooks take no lock that another streaming thread holds, and allocate nothing once they know the
 * pad.
 */
#include "client/gstreamer/private.h"

#include <gst/base/gstbasesink.h>

#include "proto/mapping.h"

enum {
	DEPTH = 64,	   /* pushes within each other */
	STREAM_SHIFT = 40, /* a frame's id: the pad where it began, and its number there */
};

#define LEVEL_NS UINT64_C(100000000)
#define RATE_NS UINT64_C(1000000000)

enum entry_kind { ENTRY_BUFFER, ENTRY_PULL, ENTRY_EVENT };

struct entry {
	GstPad *object; /* that pushes; only compared */
	struct pad *to; /* NULL: not known */
	uint64_t start_ns;
	uint64_t inside_ns; /* of the pushes within this one */
	uint64_t frame;
	uint64_t pts, time; /* of the buffer; as struct input has it */
	enum entry_kind kind;
};

static __thread struct {
	uint32_t depth;
	/* of the loop that pushes: */
	struct element *loop;
	uint64_t since_ns;  /* end of its last push */
	uint64_t inside_ns; /* of what it pulled and of events since */
	/* the frame that a sink ended; written when those who pushed it have returned */
	uint64_t frame, frame_start_ns, frame_ns;
	bool framed;
	const struct element *late; /* the sink that reported just now that it drops */
	struct entry stack[DEPTH];
} thread;

static uint64_t streams;

static uint64_t new_frame(struct pad *from)
{
	if (from->stream == 0) {
		from->stream = __atomic_add_fetch(&streams, 1, __ATOMIC_RELAXED);
	}
	return (from->stream - 1) << STREAM_SHIFT | from->number++;
}

static struct element *element_at(const struct pad *pad)
{
	return pad ? pad->own : NULL;
}

static enum element_kind kind_of(const struct element *element)
{
	return __atomic_load_n(&element->kind, __ATOMIC_RELAXED);
}

/* The element pushes on while it is pushed into: by its timestamp the buffer belongs to what just
 * came in, or to an input that was held back; else it is made of what came in. */
static uint64_t frame_inside(const struct entry *in, struct pad *from, uint64_t time)
{
	struct input input;
	if (in->kind == ENTRY_BUFFER && (time == in->time || time == GST_CLOCK_TIME_NONE)) {
		return in->frame;
	}
	if (time != GST_CLOCK_TIME_NONE && in->to->kind != PAD_PLAIN &&
		inputs_find(in->to, time, &input)) {
		return input.frame;
	}
	return in->frame != EDGEPROF_NO_FRAME || time == GST_CLOCK_TIME_NONE ? in->frame
									     : new_frame(from);
}

/* A queue's property; queues that are not leaky lose buffers only when they are flushed. */
static bool is_leaky(GstPad *object)
{
	int leaky = 0;
	GstElement *queue = gst_pad_get_parent_element(object);
	if (queue && g_object_class_find_property(G_OBJECT_GET_CLASS(queue), "leaky")) {
		g_object_get(queue, "leaky", &leaky, NULL);
	}
	gst_clear_object(&queue);
	return leaky != 0;
}

static uint64_t leaves_queue(
	GstPad *object, struct pad *from, const void *item, uint64_t time, uint64_t now_ns)
{
	struct element *own = from->own;
	struct pad *arrivals = from->arrivals;
	struct input input = {.frame = EDGEPROF_NO_FRAME};
	uint64_t skipped = 0;
	bool found = arrivals && inputs_take(arrivals, item, time, &input, &skipped);
	for (size_t i = 0; !found && !arrivals && i < SINK_PADS; i++) {
		struct pad *sink = __atomic_load_n(&own->sink[i], __ATOMIC_ACQUIRE);
		found = sink && inputs_take(sink, item, time, &input, &skipped);
		from->arrivals = found ? sink : NULL;
	}
	if (!found) {
		return EDGEPROF_NO_FRAME;
	}
	edgeprof_complete(own->stage, input.at_ns, now_ns - input.at_ns, input.frame);
	if (skipped > 0 && is_leaky(object)) {
		edgeprof_counter(
			element_name(own, &own->dropped, "dropped", NULL), (double)skipped);
	}
	if (now_ns >= own->due_ns) {
		uint64_t head = __atomic_load_n(&from->arrivals->head, __ATOMIC_RELAXED);
		own->due_ns = now_ns + LEVEL_NS;
		edgeprof_gauge(element_name(own, &own->level, "level", "buffers"),
			(double)(head - from->arrivals->tail));
	}
	return input.frame;
}

/* An element with a thread of its own: what arrived with this timestamp took from then on. */
static uint64_t leaves_async(struct pad *from, uint64_t time, uint64_t now_ns)
{
	struct element *own = from->own;
	struct input input;
	for (size_t i = 0; time != GST_CLOCK_TIME_NONE && i < SINK_PADS; i++) {
		struct pad *sink = __atomic_load_n(&own->sink[i], __ATOMIC_ACQUIRE);
		if (sink && inputs_find(sink, time, &input)) {
			edgeprof_complete(
				own->stage, input.at_ns, now_ns - input.at_ns, input.frame);
			return input.frame;
		}
	}
	return time != GST_CLOCK_TIME_NONE ? new_frame(from) : EDGEPROF_NO_FRAME;
}

/* A loop produced a buffer since its last push. Bytes of a file, which have neither a timestamp
 * nor caps, are in no frame. */
static uint64_t leaves_source(GstPad *object, struct pad *from, uint64_t time, uint64_t now_ns)
{
	bool counts = time != GST_CLOCK_TIME_NONE || gst_pad_has_current_caps(object);
	uint64_t frame = counts ? new_frame(from) : EDGEPROF_NO_FRAME;
	if (thread.loop == from->own && thread.since_ns > 0) {
		uint64_t took_ns = now_ns - thread.since_ns;
		took_ns -= thread.inside_ns < took_ns ? thread.inside_ns : took_ns;
		edgeprof_complete(from->own->stage, now_ns - took_ns, took_ns, frame);
	}
	return frame;
}

/* A filter that pushes without being pushed into is none. */
static void learn_kind(GstPad *object, struct element *own)
{
	GstElement *parent = gst_pad_get_parent_element(object);
	if (parent) {
		enum element_kind kind = element_is_source(parent) ? ELEMENT_SOURCE : ELEMENT_ASYNC;
		__atomic_store_n(&own->kind, kind, __ATOMIC_RELAXED);
		gst_object_unref(parent);
	}
}

static uint64_t frame_leaving(GstPad *object, struct pad *from, const struct entry *in,
	const void *item, uint64_t time, uint64_t now_ns)
{
	if (!from->own) {
		return in ? in->frame : EDGEPROF_NO_FRAME;
	}
	if (in && element_at(in->to) == from->own) {
		return frame_inside(in, from, time);
	}
	if (kind_of(from->own) == ELEMENT_FILTER) {
		learn_kind(object, from->own);
	}
	switch (kind_of(from->own)) {
	case ELEMENT_QUEUE:
		return leaves_queue(object, from, item, time, now_ns);
	case ELEMENT_ASYNC:
		return leaves_async(from, time, now_ns);
	case ELEMENT_SOURCE:
		return leaves_source(object, from, time, now_ns);
	case ELEMENT_FILTER:
	case ELEMENT_SINK:
		break;
	}
	return EDGEPROF_NO_FRAME;
}

static struct entry *enter(GstPad *object, enum entry_kind kind, uint64_t now_ns)
{
	if (thread.depth >= DEPTH) {
		return NULL;
	}
	struct entry *entry = &thread.stack[thread.depth++];
	*entry = (struct entry){.object = object,
		.start_ns = now_ns,
		.frame = EDGEPROF_NO_FRAME,
		.pts = GST_CLOCK_TIME_NONE,
		.time = GST_CLOCK_TIME_NONE,
		.kind = kind};
	return entry;
}

void flow_push(GstPad *object, const void *item, GstBuffer *first, uint64_t now_ns)
{
	const struct entry *in = thread.depth > 0 ? &thread.stack[thread.depth - 1] : NULL;
	struct entry *entry = enter(object, ENTRY_BUFFER, now_ns);
	struct pad *from = entry ? pad_of(object) : NULL;
	if (!from) {
		return;
	}
	entry->pts = first ? GST_BUFFER_PTS(first) : GST_CLOCK_TIME_NONE;
	entry->time = entry->pts != GST_CLOCK_TIME_NONE ? entry->pts - from->origin : entry->pts;
	entry->frame = frame_leaving(object, from, in, item, entry->time, now_ns);
	entry->to = pad_peer(object, from);
	if (element_at(entry->to) && entry->to->kind != PAD_PLAIN) {
		const struct input input = {
			.item = item, .time = entry->time, .at_ns = now_ns, .frame = entry->frame};
		inputs_add(entry->to, &input);
	}
}

/* How long a sink waited for its clock: until the running time of the buffer, with latency and
 * offsets, as gst_base_sink_adjust_time() has it. */
static uint64_t clock_wait(GstPad *object, uint64_t pts, uint64_t took_ns)
{
	GstPad *peer = gst_pad_get_peer(object);
	GstElement *parent = peer ? gst_pad_get_parent_element(peer) : NULL;
	GstBaseSink *sink = parent && GST_IS_BASE_SINK(parent) ? GST_BASE_SINK(parent) : NULL;
	GstClock *clock =
		sink && gst_base_sink_get_sync(sink) ? gst_element_get_clock(parent) : NULL;
	uint64_t wait_ns = 0;
	if (clock && sink->segment.format == GST_FORMAT_TIME) {
		uint64_t running =
			gst_segment_to_running_time(&sink->segment, GST_FORMAT_TIME, pts);
		int64_t due = (int64_t)(gst_element_get_base_time(parent) + running +
					gst_base_sink_get_latency(sink)) +
			      gst_base_sink_get_ts_offset(sink) -
			      (int64_t)gst_base_sink_get_render_delay(sink);
		int64_t left = due - (int64_t)(gst_clock_get_time(clock) - took_ns);
		if (running != GST_CLOCK_TIME_NONE && left > 0) {
			wait_ns = (uint64_t)left < took_ns ? (uint64_t)left : took_ns;
		}
	}
	gst_clear_object(&clock);
	gst_clear_object(&parent);
	gst_clear_object(&peer);
	return wait_ns;
}

static void write_frame(void)
{
	if (thread.framed) {
		thread.framed = false;
		edgeprof_write_(0, PROTO_KIND_FRAME, PROTO_CPU_NOT_MEASURED, thread.frame_start_ns,
			thread.frame_ns, thread.frame);
	}
}

static void leave_sink(GstPad *object, const struct entry *entry, uint64_t took_ns)
{
	struct element *own = entry->to->own;
	uint64_t end_ns = entry->start_ns + took_ns;
	uint64_t wait_ns =
		entry->pts != GST_CLOCK_TIME_NONE ? clock_wait(object, entry->pts, took_ns) : 0;
	if (wait_ns > 0) {
		if (own->waiting == NAME_UNDECLARED) {
			char name[sizeof(own->name) + 8];
			g_snprintf(name, sizeof(name), "%s_sync", own->name);
			own->waiting = edgeprof_stage_declare(name, "wait", NULL, 0);
		}
		edgeprof_complete(own->waiting, entry->start_ns, wait_ns, entry->frame);
	}
	edgeprof_complete(own->stage, entry->start_ns + wait_ns, took_ns - wait_ns, entry->frame);
	if (thread.late == own) {
		thread.late = NULL;
		return;
	}
	if (element_owns_frames(own)) {
		write_frame(); /* an encoder that is drained pushes several */
		thread.framed = true;
		thread.frame = entry->frame;
		thread.frame_start_ns = entry->start_ns;
		thread.frame_ns = took_ns;
		return;
	}
	own->since_ns = own->since_ns > 0 ? own->since_ns : end_ns;
	if (end_ns - own->since_ns >= RATE_NS) {
		edgeprof_gauge(element_name(own, &own->rate, "fps", "fps"),
			(double)own->count * 1e9 / (double)(end_ns - own->since_ns));
		own->since_ns = end_ns;
		own->count = 0;
	}
	own->count++;
}

/* The entry that the pad opened, and all within it, whose end was not reported. */
static struct entry *find_entry(GstPad *object, enum entry_kind kind)
{
	for (uint32_t i = thread.depth; i-- > 0;) {
		if (thread.stack[i].object == object && thread.stack[i].kind == kind) {
			thread.depth = i;
			return &thread.stack[i];
		}
	}
	return NULL;
}

static void leave(GstPad *object, enum entry_kind kind, uint64_t now_ns)
{
	struct entry *entry = find_entry(object, kind);
	if (!entry) {
		return;
	}
	uint64_t took_ns = now_ns - entry->start_ns;
	uint64_t own_ns = took_ns - (entry->inside_ns < took_ns ? entry->inside_ns : took_ns);
	struct element *own = element_at(entry->to);
	if (own && kind != ENTRY_EVENT) {
		switch (kind_of(own)) {
		case ELEMENT_SINK:
			leave_sink(object, entry, took_ns);
			break;
		case ELEMENT_FILTER:
		case ELEMENT_SOURCE:
			edgeprof_complete(own->stage, entry->start_ns, own_ns, entry->frame);
			break;
		case ELEMENT_ASYNC:
		case ELEMENT_QUEUE:
			break;
		}
	}
	if (thread.depth > 0) {
		thread.stack[thread.depth - 1].inside_ns += took_ns;
	} else if (kind != ENTRY_BUFFER) {
		thread.inside_ns += took_ns;
	}
	if (thread.depth == 0) {
		write_frame();
	}
}

void flow_pushed(GstPad *object, uint64_t now_ns)
{
	leave(object, ENTRY_BUFFER, now_ns);
	if (thread.depth == 0) {
		thread.loop = element_at(pad_of(object));
		thread.since_ns = now_ns;
		thread.inside_ns = 0;
	}
}

void flow_pull(GstPad *object, uint64_t now_ns)
{
	struct entry *entry = enter(object, ENTRY_PULL, now_ns);
	struct pad *from = entry ? pad_of(object) : NULL;
	if (from) {
		entry->to = pad_peer(object, from);
	}
}

void flow_pulled(GstPad *object, uint64_t now_ns)
{
	leave(object, ENTRY_PULL, now_ns);
}

void flow_event(GstPad *object, GstEvent *event, uint64_t now_ns)
{
	struct entry *entry = enter(object, ENTRY_EVENT, now_ns);
	struct pad *from = entry && GST_PAD_IS_SRC(object) ? pad_of(object) : NULL;
	if (!from) {
		return;
	}
	entry->to = pad_peer(object, from);
	if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) {
		const GstSegment *segment;
		gst_event_parse_segment(event, &segment);
		from->origin =
			segment->format == GST_FORMAT_TIME ? segment->start - segment->base : 0;
	}
}

void flow_event_pushed(GstPad *object, uint64_t now_ns)
{
	leave(object, ENTRY_EVENT, now_ns);
}

void flow_dropped(struct element *element, uint64_t total)
{
	if (total > element->dropped_count) {
		edgeprof_counter(element_name(element, &element->dropped, "dropped", NULL),
			(double)(total - element->dropped_count));
		thread.late = element;
	}
	element->dropped_count = total;
}
