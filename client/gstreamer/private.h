/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.h: declares what the files of the tracer share. The hooks run on every streaming thread
 * of the application: what they need per buffer is reached from the pad, and is never freed but
 * recycled, so that a thread which races with the removal of an element reads a wrong label at
 * worst. The lock is taken when a pad or an element is seen first, or destroyed.
 */
#pragma once

#define GST_USE_UNSTABLE_API
#include <gst/gst.h>
#include <gst/gsttracer.h>
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
	int stage;		   /* of edgeprof.h */
	bool audio;		   /* of a sink; atomic */
	bool retimes;		   /* queue that passes on buffers with another timestamp */
	char name[64];
	uint64_t resumed_ns; /* last set to play; 0: stopped; atomic */
	uint64_t due_ns;     /* of the next value of the gauge */
	uint64_t count;	     /* sink: frames since since_ns */
	uint64_t since_ns;
	uint64_t last_frame, last_pts; /* sink: of the last buffer */
	uint64_t dropped_count;	       /* that the last QoS message reported */
	struct pad *sink[SINK_PADS];
};

struct pad {
	SLIST_ENTRY(pad) next; /* when recycled */
	struct element *own;   /* NULL: pad of a bin, or internal to one: transparent */
	struct pad *arrivals;  /* of a queue's source pad: where its buffers came in */
	uint64_t stream;       /* of the frames that begin here, shifted; 0: none yet */
	uint64_t number;       /* of the next of them */
	uint64_t origin;       /* of a source pad: the timestamp of running time 0 */
	uint64_t last;	       /* frame of what left last, on a thread of its own */
	uint64_t begun;	       /* of a frame that began within the pipeline: its time */
	bool packets;	       /* of a source pad: or bytes, several make a frame */
	bool audio;	       /* of a source pad */
	/* of a sink pad: what arrived last, written by the thread that pushes there */
	uint64_t head;	 /* arrivals; atomic */
	uint64_t tail;	 /* departures from a queue; atomic */
	uint64_t beyond; /* arrivals in a queue that found no free entry; atomic */
	uint64_t missed; /* departures in a row of such */
	uint64_t mask;	 /* of input; 0: nothing is kept */
	struct input *input;
};

enum entry_kind { ENTRY_BUFFER, ENTRY_PULL, ENTRY_EVENT };

struct entry {
	GstPad *object; /* that pushes; only compared */
	struct pad *to; /* NULL: not known */
	uint64_t start_ns;
	uint64_t inside_ns; /* of the pushes within this one */
	uint64_t frame;
	uint64_t pts, time; /* of the buffer; as struct input has it */
	enum entry_kind kind;
	bool passes; /* the element pushes on within it */
	bool packet;
};

static inline struct element *element_at(const struct pad *pad)
{
	return pad ? pad->own : NULL;
}

static inline enum element_kind kind_of(const struct element *element)
{
	return __atomic_load_n(&element->kind, __ATOMIC_RELAXED);
}

/* The quarks of pads and elements. Once, before any hook. */
void objects_init(void);

/* What is known of a pad; NULL: nothing yet. Locks nothing of GStreamer's. */
struct pad *pad_known(GstPad *object);
/* The same: found, or made. NULL: it has no parent yet. */
struct pad *pad_of(GstPad *object);
/* The same of its peer. NULL: it has none. */
struct pad *pad_of_peer(GstPad *object);
/* A segment's event begins another running time, one of caps another kind of buffers. */
void pad_learn(struct pad *pad, GstEvent *event);
/* Of the element itself, NULL if no buffer came near it yet. */
struct element *element_known(GstElement *object);
/* "prefix_NAME" as a gauge or a counter: looked up, for what is reported seldom. */
int element_name(const struct element *element, const char *prefix, const char *unit);
/* A pad that has no input in push mode produces data itself. */
bool element_is_source(GstElement *object);
/* The sink that ends the app's frames: the first one that asks, until it is stopped or destroyed;
 * one of audio until one of something else asks. */
bool element_owns_frames(struct element *element);

/* The name that is the same in each run, see edgeprof-gstreamer(7). */
void naming_stage(GstElement *object, char *ret, size_t size);
/* What kind of work the element does, from its factory and its class; NULL = not known. */
const char *naming_category(GstElement *object);
bool naming_is_queue(GstElement *object);
bool naming_retimes(GstElement *object);

/* A source pad passes on a flush: what a queue held is lost. Nobody pushes into it meanwhile. */
void frames_flushed(struct pad *from);

/* A buffer arrives; it is kept where it matters. */
void frames_arrive(struct pad *pad, const struct input *input);
/* The frame of a buffer that leaves an element. in: the push or event in which it does, NULL if in
 * none. What it waited for in a queue, or took in an element with a thread of its own, is reported.
 */
uint64_t frames_leave(GstPad *object, struct pad *from, const struct entry *in, const void *item,
	uint64_t time, uint64_t now_ns);

/* Begins to measure. */
void flow_hook(GstTracer *tracer);
