/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.c: measures what the elements of a GStreamer application do. A push into an element opens
 * an entry on a stack of the thread; the element's own time is that of the push without the pushes
 * that it makes meanwhile. Hooks take no lock that another streaming thread holds, and allocate
 * nothing once they know the pad.
 */
#include "client/gstreamer/private.h"

#include <gst/base/gstbasesink.h>

#include "proto/mapping.h"
#include "proto/name.h"

enum { DEPTH = 64 }; /* pushes within each other */

#define RATE_NS UINT64_C(1000000000)

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

/* A hook's time counts from the start of GStreamer; this is on libedgeprof's clock. Hooks that race
 * here find the same within some 100 ns. */
static uint64_t clock_time(GstClockTime hook_ns)
{
	static uint64_t origin_ns;
	uint64_t origin = __atomic_load_n(&origin_ns, __ATOMIC_RELAXED);
	if (origin == 0) {
		origin = edgeprof_now() - hook_ns;
		__atomic_store_n(&origin_ns, origin, __ATOMIC_RELAXED);
	}
	return origin + hook_ns;
}

static struct entry *enter(GstPad *object, enum entry_kind kind, GstClockTime time)
{
	if (thread.depth >= DEPTH) {
		return NULL;
	}
	struct entry *entry = &thread.stack[thread.depth++];
	*entry = (struct entry){.object = object,
		.start_ns = clock_time(time),
		.frame = EDGEPROF_NO_FRAME,
		.pts = GST_CLOCK_TIME_NONE,
		.time = GST_CLOCK_TIME_NONE,
		.kind = kind};
	return entry;
}

static uint64_t resumed_at(const struct element *own)
{
	return __atomic_load_n(&own->resumed_ns, __ATOMIC_RELAXED);
}

/* A source's loop produced a buffer since its last push, unless it stood still. */
static void leave_loop(const struct element *own, const struct entry *entry)
{
	if (kind_of(own) == ELEMENT_SOURCE && thread.loop == own &&
		thread.since_ns > resumed_at(own)) {
		uint64_t took_ns = entry->start_ns - thread.since_ns;
		took_ns -= thread.inside_ns < took_ns ? thread.inside_ns : took_ns;
		edgeprof_complete(own->stage, entry->start_ns - took_ns, took_ns, entry->frame);
	}
}

static void push(GstPad *object, const void *item, GstBuffer *first, GstClockTime time)
{
	struct entry *in = thread.depth > 0 ? &thread.stack[thread.depth - 1] : NULL;
	struct entry *entry = enter(object, ENTRY_BUFFER, time);
	struct pad *from = entry ? pad_of(object) : NULL;
	if (!from) {
		return;
	}
	if (in && in->kind == ENTRY_EVENT) {
		in->to = pad_of_peer(in->object);
	}
	entry->pts = first ? GST_BUFFER_PTS(first) : GST_CLOCK_TIME_NONE;
	entry->time = entry->pts != GST_CLOCK_TIME_NONE ? entry->pts - from->origin : entry->pts;
	entry->packet = from->packets;
	entry->frame = frames_leave(object, from, in, item, entry->time, entry->start_ns);
	if (in && from->own && element_at(in->to) == from->own) {
		in->passes = true;
	} else if (!in && from->own) {
		leave_loop(from->own, entry);
	}
	entry->to = pad_of_peer(object);
	if (entry->to) {
		const struct input input = {.item = item,
			.time = entry->time,
			.at_ns = entry->start_ns,
			.frame = entry->frame};
		frames_arrive(entry->to, &input);
	}
}

/* How long a sink waited for its clock: until the running time of the buffer, with latency and
 * offsets, as gst_base_sink_adjust_time() has it. */
static uint64_t clock_wait(GstBaseSink *sink, uint64_t pts, uint64_t took_ns)
{
	GstElement *parent = GST_ELEMENT(sink);
	GstClock *clock = gst_base_sink_get_sync(sink) ? gst_element_get_clock(parent) : NULL;
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
	return wait_ns;
}

/* Elements say the sum each time. */
static void note_dropped(struct element *own, guint64 dropped)
{
	if (dropped > own->dropped_count) {
		edgeprof_counter(
			element_name(own, "dropped", NULL), (double)(dropped - own->dropped_count));
		thread.late = own;
	}
	own->dropped_count = dropped;
}

/* A sink that drops what is late, but sends no QoS messages, has to be asked. */
static void ask_dropped(struct element *own, GstBaseSink *sink)
{
	GstStructure *stats = NULL;
	guint64 dropped;
	if (gst_base_sink_is_qos_enabled(sink) || gst_base_sink_get_max_lateness(sink) < 0 ||
		!g_object_class_find_property(G_OBJECT_GET_CLASS(sink), "stats")) {
		return; /* the property is there from GStreamer 1.18 on */
	}
	g_object_get(sink, "stats", &stats, NULL);
	if (stats && gst_structure_get_uint64(stats, "dropped", &dropped)) {
		note_dropped(own, dropped);
	}
	g_clear_pointer(&stats, gst_structure_free);
}

static void write_frame(void)
{
	if (thread.framed) {
		thread.framed = false;
		edgeprof_write_(0, PROTO_KIND_FRAME, PROTO_CPU_NOT_MEASURED, thread.frame_start_ns,
			thread.frame_ns, thread.frame);
	}
}

/* Muxers and payloaders make several buffers of one: of its frame, with no other timestamp. */
static bool continues_frame(struct element *own, const struct entry *entry)
{
	bool same = entry->frame != EDGEPROF_NO_FRAME && entry->frame == own->last_frame &&
		    (entry->pts == own->last_pts || entry->pts == GST_CLOCK_TIME_NONE ||
			    own->last_pts == GST_CLOCK_TIME_NONE);
	own->last_frame = entry->frame;
	own->last_pts = same && entry->pts == GST_CLOCK_TIME_NONE ? own->last_pts : entry->pts;
	return same;
}

static void leave_sink(
	GstPad *object, const struct entry *entry, uint64_t took_ns, GstFlowReturn result)
{
	struct element *own = entry->to->own;
	uint64_t end_ns = entry->start_ns + took_ns;
	uint64_t wait_ns = 0;
	GstPad *peer = gst_pad_get_peer(object);
	GstElement *parent = peer ? gst_pad_get_parent_element(peer) : NULL;
	if (parent && GST_IS_BASE_SINK(parent)) {
		GstBaseSink *sink = GST_BASE_SINK(parent);
		wait_ns = entry->pts != GST_CLOCK_TIME_NONE ? clock_wait(sink, entry->pts, took_ns)
							    : 0;
		ask_dropped(own, sink);
	}
	gst_clear_object(&parent);
	gst_clear_object(&peer);
	if (wait_ns > 0) {
		char name[PROTO_NAME_SIZE]; /* what is cut is not the end */
		g_snprintf(name, sizeof(name), "%.*s_sync", (int)(sizeof(name) - sizeof("_sync")),
			own->name);
		edgeprof_complete(edgeprof_stage_declare(name, "wait", NULL, 0), entry->start_ns,
			wait_ns, entry->frame);
	}
	uint64_t resumed_ns = resumed_at(own) < end_ns ? resumed_at(own) : end_ns;
	if (resumed_ns > entry->start_ns + wait_ns) {
		wait_ns = resumed_ns - entry->start_ns;
	}
	edgeprof_complete(own->stage, entry->start_ns + wait_ns, took_ns - wait_ns, entry->frame);
	if (thread.late == own || result == GST_FLOW_FLUSHING) {
		thread.late = NULL;
		return;
	}
	if (continues_frame(own, entry)) {
		if (thread.framed && thread.frame == entry->frame) {
			thread.frame_ns = end_ns - thread.frame_start_ns;
		}
		return;
	}
	const struct pad *from = pad_known(object); /* its caps may come with the buffer */
	__atomic_store_n(&own->audio, from && from->audio, __ATOMIC_RELAXED);
	if (entry->frame != EDGEPROF_NO_FRAME && element_owns_frames(own)) {
		write_frame(); /* an encoder that is drained pushes several */
		thread.framed = true;
		thread.frame = entry->frame;
		thread.frame_start_ns = entry->start_ns;
		thread.frame_ns = took_ns;
		return;
	}
	own->since_ns = own->since_ns > 0 ? own->since_ns : end_ns;
	if (end_ns - own->since_ns >= RATE_NS) {
		edgeprof_gauge(element_name(own, "fps", "fps"),
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

static void leave(GstPad *object, enum entry_kind kind, uint64_t now_ns, GstFlowReturn result)
{
	struct entry *entry = find_entry(object, kind);
	if (!entry) {
		return;
	}
	uint64_t took_ns = now_ns - entry->start_ns;
	uint64_t own_ns = took_ns - (entry->inside_ns < took_ns ? entry->inside_ns : took_ns);
	struct element *own = kind != ENTRY_EVENT ? element_at(entry->to) : NULL;
	enum element_kind is = own ? kind_of(own) : ELEMENT_QUEUE;
	if (is == ELEMENT_ASYNC && entry->passes) { /* rtpsession's own thread is for its reports */
		is = ELEMENT_FILTER;
	}
	switch (is) {
	case ELEMENT_SINK:
		leave_sink(object, entry, took_ns, result);
		break;
	case ELEMENT_FILTER:
	case ELEMENT_SOURCE:
		edgeprof_complete(own->stage, entry->start_ns, own_ns, entry->frame);
		break;
	case ELEMENT_ASYNC:
	case ELEMENT_QUEUE:
		break;
	}
	if (thread.depth > 0) {
		thread.stack[thread.depth - 1].inside_ns += took_ns;
		return;
	}
	thread.inside_ns += took_ns;
	write_frame();
}

static void on_push(void *self, GstClockTime time, GstPad *pad, GstBuffer *buffer)
{
	(void)self;
	push(pad, buffer, buffer, time);
}

static void on_push_list(void *self, GstClockTime time, GstPad *pad, GstBufferList *list)
{
	(void)self;
	bool any = gst_buffer_list_length(list) > 0;
	push(pad, list, any ? gst_buffer_list_get(list, 0) : NULL, time);
}

static void on_pushed(void *self, GstClockTime time, GstPad *pad, GstFlowReturn result)
{
	(void)self;
	leave(pad, ENTRY_BUFFER, clock_time(time), result);
	if (thread.depth == 0) {
		thread.loop = element_at(pad_of(pad));
		thread.since_ns = clock_time(time);
		thread.inside_ns = 0;
	}
}

static void on_pull(void *self, GstClockTime time, GstPad *pad)
{
	(void)self;
	struct entry *entry = enter(pad, ENTRY_PULL, time);
	if (entry && pad_of(pad)) {
		entry->to = pad_of_peer(pad);
	}
}

static void on_pulled(void *self, GstClockTime time, GstPad *pad)
{
	(void)self;
	leave(pad, ENTRY_PULL, clock_time(time), GST_FLOW_OK);
}

static void set_resumed(struct element *own, uint64_t at_ns)
{
	if (own) {
		__atomic_store_n(&own->resumed_ns, at_ns, __ATOMIC_RELAXED);
	}
}

/* What an element pushes while it handles an event is its own, not a source's. GStreamer 1.26 has
 * locked the pad already: nothing is called here that would do so. */
static void on_event(void *self, GstClockTime time, GstPad *pad, GstEvent *event)
{
	(void)self;
	struct pad *known = pad_known(pad);
	enter(pad, ENTRY_EVENT, time);
	if (known && GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) {
		frames_flushed(known);
		set_resumed(known->own, clock_time(time));
	} else if (known) {
		pad_learn(known, event);
	}
}

static void on_event_pushed(void *self, GstClockTime time, GstPad *pad)
{
	(void)self;
	leave(pad, ENTRY_EVENT, clock_time(time), GST_FLOW_OK);
}

/* What an element waits until it plays (again) is not its time. */
static void on_state(void *self, GstClockTime time, GstElement *object, GstStateChange change)
{
	(void)self;
	if (change == GST_STATE_CHANGE_READY_TO_PAUSED ||
		change == GST_STATE_CHANGE_PAUSED_TO_PLAYING) {
		set_resumed(element_known(object), clock_time(time));
	} else if (change == GST_STATE_CHANGE_PAUSED_TO_READY) {
		set_resumed(element_known(object), 0);
	}
}

/* Sinks and decoders report what they drop because it is late. */
static void on_message(void *self, GstClockTime time, GstElement *object, GstMessage *message)
{
	(void)self;
	(void)time;
	GstFormat format;
	guint64 processed, dropped = GST_CLOCK_TIME_NONE;
	struct element *own = element_known(object);
	if (own && GST_MESSAGE_TYPE(message) == GST_MESSAGE_QOS &&
		GST_MESSAGE_SRC(message) == GST_OBJECT(object)) {
		gst_message_parse_qos_stats(message, &format, &processed, &dropped);
	}
	if (dropped != GST_CLOCK_TIME_NONE) {
		note_dropped(own, dropped);
	}
}

void flow_hook(GstTracer *tracer)
{
	static const struct {
		const char *name;
		GCallback on;
	} hooks[] = {
		{"pad-push-pre", G_CALLBACK(on_push)},
		{"pad-push-post", G_CALLBACK(on_pushed)},
		{"pad-push-list-pre", G_CALLBACK(on_push_list)},
		{"pad-push-list-post", G_CALLBACK(on_pushed)},
		{"pad-pull-range-pre", G_CALLBACK(on_pull)},
		{"pad-pull-range-post", G_CALLBACK(on_pulled)},
		{"pad-push-event-pre", G_CALLBACK(on_event)},
		{"pad-push-event-post", G_CALLBACK(on_event_pushed)},
		{"element-change-state-pre", G_CALLBACK(on_state)},
		{"element-post-message-pre", G_CALLBACK(on_message)},
	};
	for (size_t i = 0; i < G_N_ELEMENTS(hooks); i++) {
		gst_tracing_register_hook(tracer, hooks[i].name, hooks[i].on);
	}
}
