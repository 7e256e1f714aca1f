/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects.c: keeps what the tracer knows of pads and elements. It hangs on the objects themselves
 * (qdata), is made when a buffer first comes near them, and recycled when they are destroyed.
 * Nothing of GStreamer's that could destroy an object is called under the lock.
 */
#include "client/gstreamer/private.h"

#include <gst/base/gstbasesink.h>
#include <string.h>

static struct {
	GMutex lock;
	GQuark pad_quark, element_quark;
	SLIST_HEAD(, pad) pads; /* to recycle, as the following */
	SLIST_HEAD(, element) elements;
	struct element *frames; /* the sink that ends frames; atomic */
} objects;

void objects_init(void)
{
	objects.pad_quark = g_quark_from_static_string("edgeprof-pad");
	objects.element_quark = g_quark_from_static_string("edgeprof-element");
}

static void pad_gone(gpointer data)
{
	struct pad *pad = data;
	g_mutex_lock(&objects.lock);
	for (size_t i = 0; pad->own && i < SINK_PADS; i++) {
		if (pad->own->sink[i] == pad) {
			__atomic_store_n(&pad->own->sink[i], NULL, __ATOMIC_RELEASE);
		}
	}
	SLIST_INSERT_HEAD(&objects.pads, pad, next);
	g_mutex_unlock(&objects.lock);
}

static void element_gone(gpointer data)
{
	struct element *element = data;
	g_mutex_lock(&objects.lock);
	if (objects.frames == element) {
		__atomic_store_n(&objects.frames, NULL, __ATOMIC_RELEASE);
	}
	SLIST_INSERT_HEAD(&objects.elements, element, next);
	g_mutex_unlock(&objects.lock);
}

bool element_owns_frames(struct element *element)
{
	struct element *owner = __atomic_load_n(&objects.frames, __ATOMIC_RELAXED);
	bool free = !owner || __atomic_load_n(&owner->resumed_ns, __ATOMIC_RELAXED) == 0 ||
		    (__atomic_load_n(&owner->audio, __ATOMIC_RELAXED) && !element->audio);
	return owner == element ||
	       (free && __atomic_compare_exchange_n(&objects.frames, &owner, element, false,
				__ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

int element_name(const struct element *element, const char *prefix, const char *unit)
{
	char name[sizeof(element->name) + 16];
	g_snprintf(name, sizeof(name), "%s_%s", prefix, element->name);
	return edgeprof_gauge_declare(name, unit);
}

bool element_is_source(GstElement *object)
{
	bool is_source = true;
	GST_OBJECT_LOCK(object);
	for (GList *l = object->sinkpads; l; l = l->next) {
		is_source = is_source && GST_PAD_MODE(GST_PAD_CAST(l->data)) == GST_PAD_MODE_PULL;
	}
	GST_OBJECT_UNLOCK(object);
	return is_source;
}

struct element *element_known(GstElement *object)
{
	return g_object_get_qdata(G_OBJECT(object), objects.element_quark);
}

/* Before the first event of any thread: while one thread connects, events of others are lost. */
static void connect_once(void)
{
	static gsize connected;
	if (g_once_init_enter(&connected)) {
		edgeprof_init(NULL);
		g_once_init_leave(&connected, 1);
	}
}

static struct element *element_of(GstElement *object)
{
	struct element *element = element_known(object), *other;
	if (element) {
		return element;
	}
	struct element made = {.resumed_ns = 1,
		.last_frame = EDGEPROF_NO_FRAME,
		.kind = naming_is_queue(object)	   ? ELEMENT_QUEUE
			: GST_IS_BASE_SINK(object) ? ELEMENT_SINK
						   : ELEMENT_FILTER,
		.retimes = naming_retimes(object)};
	connect_once();
	naming_stage(object, made.name, sizeof(made.name));
	made.stage = edgeprof_stage_declare(made.name, naming_category(object), NULL, 0);
	g_mutex_lock(&objects.lock);
	other = element_known(object);
	if (!other) {
		element = SLIST_FIRST(&objects.elements);
		if (element) {
			SLIST_REMOVE_HEAD(&objects.elements, next);
		} else {
			element = g_new(struct element, 1);
		}
		*element = made;
		g_object_set_qdata_full(
			G_OBJECT(object), objects.element_quark, element, element_gone);
	}
	g_mutex_unlock(&objects.lock);
	return other ? other : element;
}

/* Under the lock. */
static struct pad *pad_new(struct element *own, bool is_sink)
{
	struct pad *pad = SLIST_FIRST(&objects.pads);
	if (pad) {
		SLIST_REMOVE_HEAD(&objects.pads, next);
	} else {
		pad = g_new0(struct pad, 1);
	}
	pad->own = own;
	pad->arrivals = NULL;
	pad->stream = pad->number = pad->origin = 0;
	pad->last = EDGEPROF_NO_FRAME;
	pad->begun = GST_CLOCK_TIME_NONE;
	pad->audio = false;
	pad->head = pad->tail = pad->mask = pad->beyond = pad->missed = 0;
	if (!own || !is_sink || own->kind == ELEMENT_SINK) {
		return pad;
	}
	pad->mask = (own->kind == ELEMENT_QUEUE ? INPUTS_QUEUE : INPUTS_FILTER) - 1;
	pad->input = pad->input ? pad->input : g_new0(struct input, INPUTS_QUEUE);
	for (size_t i = 0; i < SINK_PADS; i++) {
		if (!own->sink[i]) {
			__atomic_store_n(&own->sink[i], pad, __ATOMIC_RELEASE);
			break;
		}
	}
	return pad;
}

struct pad *pad_known(GstPad *object)
{
	return g_object_get_qdata(G_OBJECT(object), objects.pad_quark);
}

void pad_learn(struct pad *pad, GstEvent *event)
{
	const GstSegment *segment;
	GstCaps *caps;
	if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) {
		gst_event_parse_segment(event, &segment);
		pad->origin =
			segment->format == GST_FORMAT_TIME ? segment->start - segment->base : 0;
	} else if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS) {
		gst_event_parse_caps(event, &caps);
		const char *name = gst_structure_get_name(gst_caps_get_structure(caps, 0));
		pad->packets = g_str_has_prefix(name, "application/x-rt") ||
			       g_str_has_prefix(name, "application/x-srt") ||
			       strcmp(name, "video/mpegts") == 0;
		pad->audio = g_str_has_prefix(name, "audio/");
	}
}

/* An appsrc says that its buffers have times: they are frames without caps, too. */
static bool is_timed(GstElement *object)
{
	GstFormat format = GST_FORMAT_UNDEFINED;
	GParamSpec *spec = g_object_class_find_property(G_OBJECT_GET_CLASS(object), "format");
	if (spec && spec->value_type == GST_TYPE_FORMAT) {
		g_object_get(object, "format", &format, NULL);
	}
	return format == GST_FORMAT_TIME;
}

/* Pads of bins have no element of their own, nor have the pads inside that stand for them. */
static struct pad *pad_make(GstPad *object)
{
	GstElement *parent = GST_IS_PROXY_PAD(object) ? NULL : gst_pad_get_parent_element(object);
	if (!parent && !GST_IS_PROXY_PAD(object)) {
		return NULL;
	}
	struct element *own = parent && !GST_IS_BIN(parent) ? element_of(parent) : NULL;
	const bool timed = own && is_timed(parent);
	GstEvent *known[] = {gst_pad_get_sticky_event(object, GST_EVENT_SEGMENT, 0),
		gst_pad_get_sticky_event(object, GST_EVENT_CAPS, 0)};
	g_mutex_lock(&objects.lock);
	struct pad *pad = pad_known(object);
	if (!pad) {
		pad = pad_new(own, gst_pad_get_direction(object) == GST_PAD_SINK);
		pad->packets = !timed; /* until it has caps */
		for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
			if (known[i]) {
				pad_learn(pad, known[i]);
			}
		}
		g_object_set_qdata_full(G_OBJECT(object), objects.pad_quark, pad, pad_gone);
	}
	g_mutex_unlock(&objects.lock);
	g_clear_pointer(&known[0], gst_event_unref);
	g_clear_pointer(&known[1], gst_event_unref);
	gst_clear_object(&parent);
	return pad;
}

struct pad *pad_of(GstPad *object)
{
	struct pad *pad = pad_known(object);
	return pad ? pad : pad_make(object);
}

struct pad *pad_of_peer(GstPad *object)
{
	GST_OBJECT_LOCK(object); /* while it is held, the peer stays one, and exists */
	GstPad *other = GST_PAD_PEER(object);
	struct pad *peer = other ? pad_known(other) : NULL;
	GST_OBJECT_UNLOCK(object);
	other = peer ? NULL : gst_pad_get_peer(object);
	if (other) {
		peer = pad_of(other);
		gst_object_unref(other);
	}
	return peer;
}
