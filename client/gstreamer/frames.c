/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.c: knows the frame of a buffer that leaves an element: that of the input of the same
 * running time, which arrived in the push that is going on, was held back, or came on another
 * thread. For that, sink pads keep what arrived last. One thread at a time pushes into a pad, and
 * one takes from a queue; a filter's entries are overwritten, a queue's not before they were taken.
 */
#include "client/gstreamer/private.h"

enum { STREAM_SHIFT = 40 }; /* a frame's id: the pad where it began, and its number there */

#define LEVEL_NS UINT64_C(100000000)

static void store(struct input *to, const struct input *from)
{
	__atomic_store_n(&to->item, from->item, __ATOMIC_RELAXED);
	__atomic_store_n(&to->time, from->time, __ATOMIC_RELAXED);
	__atomic_store_n(&to->at_ns, from->at_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&to->frame, from->frame, __ATOMIC_RELAXED);
}

static struct input load(const struct input *from)
{
	return (struct input){
		.item = __atomic_load_n(&from->item, __ATOMIC_RELAXED),
		.time = __atomic_load_n(&from->time, __ATOMIC_RELAXED),
		.at_ns = __atomic_load_n(&from->at_ns, __ATOMIC_RELAXED),
		.frame = __atomic_load_n(&from->frame, __ATOMIC_RELAXED),
	};
}

void frames_arrive(struct pad *pad, const struct input *input)
{
	uint64_t head = pad->head, tail = head;
	if (pad->mask == 0) {
		return;
	}
	if (pad->own->kind == ELEMENT_QUEUE) {
		tail = __atomic_load_n(&pad->tail, __ATOMIC_ACQUIRE);
	}
	if (head - tail > pad->mask) { /* a longer queue's last ones are not measured */
		__atomic_fetch_add(&pad->beyond, 1, __ATOMIC_RELAXED);
		return;
	}
	store(&pad->input[head & pad->mask], input);
	__atomic_store_n(&pad->head, head + 1, __ATOMIC_RELEASE);
}

void frames_flushed(struct pad *from)
{
	if (from->arrivals) {
		uint64_t head = __atomic_load_n(&from->arrivals->head, __ATOMIC_ACQUIRE);
		__atomic_store_n(&from->arrivals->tail, head, __ATOMIC_RELEASE);
		__atomic_store_n(&from->arrivals->beyond, 0, __ATOMIC_RELAXED);
	}
}

/* The latest arrival of that time, or before an end; false: none of those that are kept. */
static bool inputs_find(const struct pad *pad, uint64_t time, uint64_t end, struct input *ret)
{
	uint64_t head =
		time != GST_CLOCK_TIME_NONE ? __atomic_load_n(&pad->head, __ATOMIC_ACQUIRE) : 0;
	uint64_t oldest = head > pad->mask ? head - pad->mask - 1 : 0;
	for (uint64_t i = head; i-- > oldest;) {
		*ret = load(&pad->input[i & pad->mask]);
		if (ret->time == time || ret->time < end) {
			return true;
		}
	}
	return false;
}

/* A buffer leaves a queue: its arrival; *skipped: those before it that never left. Behind buffers
 * that it dropped, a queue pushes a copy of one that others share: the timestamp has to do, where
 * it is known that they come from this pad. */
static bool inputs_take(struct pad *pad, bool known, const void *item, uint64_t time,
	struct input *ret, uint64_t *skipped)
{
	uint64_t head = __atomic_load_n(&pad->head, __ATOMIC_ACQUIRE), tail = pad->tail, at = head;
	bool same = false;
	for (uint64_t i = tail; i != head && !same; i++) {
		struct input input = load(&pad->input[i & pad->mask]);
		same = input.item == item && (input.time == time || pad->own->retimes);
		bool first = known && at == head && time != GST_CLOCK_TIME_NONE;
		if (same || (first && input.time == time)) {
			at = i;
			*ret = input;
		}
	}
	if (at == head) {
		return false;
	}
	*skipped = at - tail;
	__atomic_store_n(&pad->tail, at + 1, __ATOMIC_RELEASE);
	pad->missed = 0;
	return true;
}

static uint64_t streams;

static uint64_t new_frame(struct pad *from)
{
	if (from->stream == 0) {
		from->stream = __atomic_add_fetch(&streams, 1, __ATOMIC_RELAXED);
	}
	return (from->stream - 1) << STREAM_SHIFT | from->number++;
}

/* Where frames begin that were in packets before: all buffers of one time are one. */
static uint64_t begin_frame(struct pad *from, uint64_t time)
{
	if (time == GST_CLOCK_TIME_NONE) {
		return EDGEPROF_NO_FRAME;
	}
	if (time != from->begun) {
		from->begun = time;
		return new_frame(from);
	}
	return (from->stream - 1) << STREAM_SHIFT | (from->number - 1);
}

/* The element pushes on while it is pushed into: by its timestamp the buffer belongs to what just
 * came in, or to an input that was held back; else it is made of what came in. */
static uint64_t frame_inside(const struct entry *in, struct pad *from, uint64_t time)
{
	struct input input;
	if (in->frame == EDGEPROF_NO_FRAME && in->packet) {
		return from->packets ? EDGEPROF_NO_FRAME : begin_frame(from, time);
	}
	if (in->kind == ENTRY_BUFFER && (time == in->time || time == GST_CLOCK_TIME_NONE)) {
		return in->frame;
	}
	if (inputs_find(in->to, time, 0, &input)) {
		return input.frame;
	}
	return in->frame != EDGEPROF_NO_FRAME || time == GST_CLOCK_TIME_NONE ? in->frame
									     : new_frame(from);
}

/* A queue's property, and how many buffers it holds; queues that are not leaky lose buffers only
 * when they are flushed. */
static bool is_leaky(GstPad *object, guint *level)
{
	int leaky = 0;
	GstElement *queue = gst_pad_get_parent_element(object);
	if (queue && g_object_class_find_property(G_OBJECT_GET_CLASS(queue), "leaky")) {
		g_object_get(queue, "leaky", &leaky, "current-level-buffers", level, NULL);
	}
	gst_clear_object(&queue);
	return leaky != 0;
}

/* A buffer leaves a queue that arrived when no entry was free: how many have been dropped. Where
 * the queue is leaky, those that have the entries are older, and will never leave; elsewhere they
 * follow, unless they were lost when the pipeline was stopped. */
static uint64_t inputs_miss(GstPad *object, struct pad *pad)
{
	uint64_t head = __atomic_load_n(&pad->head, __ATOMIC_ACQUIRE), kept = head - pad->tail;
	guint level = 0;
	bool leaky = kept > pad->mask && is_leaky(object, &level);
	if (kept <= pad->mask || (!leaky && ++pad->missed <= INPUTS_QUEUE)) {
		return 0;
	}
	uint64_t gone = kept + __atomic_exchange_n(&pad->beyond, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&pad->tail, head, __ATOMIC_RELEASE);
	pad->missed = 0;
	return leaky && gone > level + UINT64_C(1) ? gone - level - 1 : 0;
}

/* The buffer came into the element on another thread: it has been there since, with the same
 * timestamp. A queue passes on the same buffer, and keeps each until then. */
static uint64_t leaves_async(
	GstPad *object, struct pad *from, const void *item, uint64_t time, uint64_t now_ns)
{
	struct element *own = from->own;
	bool queue = kind_of(own) == ELEMENT_QUEUE, found = false;
	struct input input = {.frame = EDGEPROF_NO_FRAME};
	uint64_t skipped = 0;
	size_t pads = from->arrivals ? 1 : SINK_PADS;
	for (size_t i = 0; i < pads && !found; i++) {
		struct pad *sink = from->arrivals
					   ? from->arrivals
					   : __atomic_load_n(&own->sink[i], __ATOMIC_ACQUIRE);
		if (queue && sink) {
			found = inputs_take(
				sink, sink == from->arrivals, item, time, &input, &skipped);
			from->arrivals = found ? sink : from->arrivals;
		} else if (sink) {
			found = inputs_find(sink, time, 0, &input);
		}
	}
	if (!queue && !found) {
		const GstBuffer *buffer = GST_IS_BUFFER(item) ? item : NULL;
		bool lasts = buffer && GST_BUFFER_DURATION_IS_VALID(buffer);
		uint64_t end = time + (lasts ? GST_BUFFER_DURATION(buffer) : 1);
		for (size_t i = 0; i < SINK_PADS && !found; i++) {
			struct pad *sink = __atomic_load_n(&own->sink[i], __ATOMIC_ACQUIRE);
			found = sink && inputs_find(sink, time, end, &input);
		}
		if (found && input.frame == from->last) { /* shows it again */
			return input.frame;
		}
	}
	from->last = input.frame;
	guint level;
	if (queue && !found && from->arrivals) {
		skipped = inputs_miss(object, from->arrivals);
	}
	if (skipped > 0 && is_leaky(object, &level)) {
		edgeprof_counter(element_name(own, "dropped", NULL), (double)skipped);
	}
	if (!found) {
		return queue || from->packets || time == GST_CLOCK_TIME_NONE ? EDGEPROF_NO_FRAME
									     : new_frame(from);
	}
	if (own->retimes && input.frame == EDGEPROF_NO_FRAME) {
		input.frame = begin_frame(from, time);
	}
	edgeprof_complete(own->stage, input.at_ns, now_ns - input.at_ns, input.frame);
	if (queue && now_ns >= own->due_ns) {
		uint64_t head = __atomic_load_n(&from->arrivals->head, __ATOMIC_RELAXED);
		own->due_ns = now_ns + LEVEL_NS;
		edgeprof_gauge(element_name(own, "level", "buffers"),
			(double)(head - from->arrivals->tail));
	}
	return input.frame;
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

uint64_t frames_leave(GstPad *object, struct pad *from, const struct entry *in, const void *item,
	uint64_t time, uint64_t now_ns)
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
	case ELEMENT_ASYNC:
		return leaves_async(object, from, item, time, now_ns);
	case ELEMENT_SOURCE:
		return from->packets ? EDGEPROF_NO_FRAME : new_frame(from);
	case ELEMENT_FILTER:
	case ELEMENT_SINK:
		break;
	}
	return EDGEPROF_NO_FRAME;
}
