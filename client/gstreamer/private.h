/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.h: declares what the files of the tracer share. The hooks run on every streaming thread
 * of the application: what they need per buffer is reached from the pad, and is never freed but
 * recycled, so that a thread which races with the removal of an element reads a wrong label at
 * worst. The lock is taken when a pad or an element is seen first, linked, or destroyed.
 */
#pragma once

#include <gst/gst.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "client/libedgeprof/edgeprof.h"

enum {
	INPUTS_FILTER = 128, /* buffers that an encoder or decoder may hold back */
	INPUTS_QUEUE = 512,  /* queue holds 200 by default */
	SINK_PADS = 16,	     /* of an element, that are searched for a buffer's arrival */
};

/* A buffer that arrived at a sink pad. */
struct input {
	const void *item; /* GstBuffer or GstBufferList, only compared */
	uint64_t time;	  /* running time, but for a constant; GST_CLOCK_TIME_NONE */
	uint64_t at_ns;
	uint64_t frame;
};

enum element_kind {
	ELEMENT_FILTER, /* pushes within the call that handed it a buffer */
	ELEMENT_SOURCE, /* pushes from its own loop, without input or with pulled input */
	ELEMENT_ASYNC,	/* takes a buffer on one thread and pushes on another */
	ELEMENT_QUEUE,	/* the same, and does nothing but wait */
	ELEMENT_SINK,
};

struct pad;

struct element {
	SLIST_ENTRY(element) next; /* when recycled */
	enum element_kind kind;	   /* atomic */
	int stage;		   /* of edgeprof.h, as the following; 0 is valid, -1 is none */
	int waiting;		   /* sink: until its clock reaches the buffer's time */
	int rate, level, dropped;  /* gauges and a counter, declared when first needed */
	char name[64];
	uint64_t due_ns; /* of the next value of the gauge */
	uint64_t count;	 /* sink: buffers since since_ns */
	uint64_t since_ns;
	uint64_t dropped_count; /* that the last QoS message reported */
	struct pad *sink[SINK_PADS];
};

enum pad_kind { PAD_PLAIN, PAD_OF_FILTER, PAD_OF_QUEUE, PAD_KINDS };

struct pad {
	SLIST_ENTRY(pad) next; /* when recycled */
	struct element *own;   /* NULL: pad of a bin, or internal to one: transparent */
	struct pad *peer;      /* atomic; NULL: not known */
	struct pad *arrivals;  /* of a queue's source pad: where its buffers came in */
	uint64_t stream;       /* of the frames that begin here, shifted; 0: none yet */
	uint64_t number;       /* of the next of them */
	uint64_t origin;       /* of a source pad: the timestamp of running time 0 */
	enum pad_kind kind;    /* never changes, as the size of input */
	/* of a sink pad: what arrived last, written by the thread that pushes there */
	uint64_t head; /* arrivals; atomic */
	uint64_t tail; /* departures from a queue; atomic */
	uint64_t mask;
	struct input input[];
};

enum { NAME_UNDECLARED = -2 };

/* The quarks of pads and elements. Once, before any hook. */
void objects_init(void);

/* What is known of a pad: found, or made. NULL: it has no parent yet. */
struct pad *pad_of(GstPad *object);
/* The same of its peer, which is kept until the link changes. NULL: it has none. */
struct pad *pad_peer(GstPad *object, struct pad *pad);
/* The link of a pad was made or cut. */
void pad_relinked(GstPad *object);
/* Of the element itself, NULL if no buffer came near it yet. */
struct element *element_known(GstElement *object);
/* "prefix_NAME" as a gauge or a counter; declared once, kept in *index. */
int element_name(struct element *element, int *index, const char *prefix, const char *unit);
/* A pad that has no input in push mode produces data itself. */
bool element_is_source(GstElement *object);
/* The sink that ends the app's frames: the first one that asks, until it is destroyed. */
bool element_owns_frames(struct element *element);

/* The name that is the same in each run, see edgeprof-gstreamer(7). */
void naming_stage(GstElement *object, char *ret, size_t size);
/* What kind of work the element does, from its factory and its class; NULL = not known. */
const char *naming_category(GstElement *object);
bool naming_is_queue(GstElement *object);

/* A buffer arrives. */
void inputs_add(struct pad *pad, const struct input *input);
/* The latest arrival of that time; false: none of those that are kept. */
bool inputs_find(const struct pad *pad, uint64_t time, struct input *ret);
/* A buffer leaves a queue: its arrival; *skipped: those before it that never left. */
bool inputs_take(
	struct pad *pad, const void *item, uint64_t time, struct input *ret, uint64_t *skipped);

/* A pad begins to push a buffer or a list, or to pull, or to push an event; then it has. */
void flow_push(GstPad *object, const void *item, GstBuffer *first, uint64_t now_ns);
void flow_pushed(GstPad *object, uint64_t now_ns);
void flow_pull(GstPad *object, uint64_t now_ns);
void flow_pulled(GstPad *object, uint64_t now_ns);
/* What an element pushes while it handles an event is its own, not a source's. */
void flow_event(GstPad *object, GstEvent *event, uint64_t now_ns);
void flow_event_pushed(GstPad *object, uint64_t now_ns);
/* The element reports on this thread how many buffers it has dropped so far. */
void flow_dropped(struct element *element, uint64_t total);
