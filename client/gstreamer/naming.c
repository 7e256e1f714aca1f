/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming.c: names the stage of an element, and the kind of its work. An element that the
 * application named keeps that name. GStreamer numbers the others for as long as the process
 * lives; their number within the pipeline is the same in each run.
 */
#include "client/gstreamer/private.h"

#include <gst/base/gstaggregator.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_NUMBERED = -1 };

/* The first word that matches decides: the start of the factory's name, or, from the first capital
 * on, a word of the class ("Codec/Decoder/Video"). */
static const struct {
	const char *category, *words[10];
} categories[] = {
	{"inference", {"nvinfer", "nvdsinfer", "tensor_filter", "hailonet", "gvadetect",
			      "gvaclassify", "gvainference", "onnxinference", "tflite"}},
	{"preprocess", {"nvpreprocess", "nvdspreprocess"}},
	{"postprocess", {"nvtracker", "nvdsosd", "tensor_decoder"}},
	{"output", {"Sink"}},
	{"capture", {"Source"}},
	{"decode", {"Decoder"}},
	{"encode", {"Encoder"}},
	{"decode", {"Demuxer", "Depayloader", "Parser"}},
	{"encode", {"Muxer", "Payloader"}},
	{"preprocess", {"Converter", "Scaler", "Filter"}},
};

/* Elements that only keep buffers until another thread takes them. */
static const char *const queues[] = {"queue", "queue2", "multiqueue", "rtpjitterbuffer", NULL};

static const char *factory_name(GstElement *object)
{
	GstElementFactory *factory = gst_element_get_factory(object);
	return factory ? GST_OBJECT_NAME(factory) : G_OBJECT_TYPE_NAME(object);
}

bool naming_is_queue(GstElement *object)
{
	return g_strv_contains(queues, factory_name(object));
}

bool naming_retimes(GstElement *object)
{
	return strcmp(factory_name(object), "rtpjitterbuffer") == 0;
}

const char *naming_category(GstElement *object)
{
	const char *name = factory_name(object);
	const char *class = gst_element_class_get_metadata(
		GST_ELEMENT_GET_CLASS(object), GST_ELEMENT_METADATA_KLASS);
	bool waits = GST_IS_AGGREGATOR(object) && class && strstr(class, "Muxer");
	if (naming_is_queue(object) || waits) { /* for the other streams, on a thread of its own */
		return "wait";
	}
	for (size_t i = 0; i < G_N_ELEMENTS(categories); i++) {
		for (const char *const *word = categories[i].words; *word; word++) {
			if (g_ascii_isupper(**word) ? class && strstr(class, *word) != NULL
						    : g_str_has_prefix(name, *word)) {
				return categories[i].category;
			}
		}
	}
	return NULL;
}

/* The number of a name as gst_object_set_name() makes it: the type without "Gst" in lower case,
 * "-" behind a digit, the number. */
static int number_of(GstElement *object, const char *name)
{
	const char *type = G_OBJECT_TYPE_NAME(object);
	type += strncmp(type, "Gst", 3) == 0 ? 3 : 0;
	size_t length = strlen(type);
	if (g_ascii_strncasecmp(name, type, length) != 0) {
		return NOT_NUMBERED;
	}
	name += length;
	name += *name == '-';
	bool numbered = *name && strspn(name, "0123456789") == strlen(name);
	return numbered ? (int)strtol(name, NULL, 10) : NOT_NUMBERED;
}

/* Those of the same factory in a pipeline. */
struct census {
	GstElementFactory *factory;
	int number; /* of the one that is being named */
	int count, before;
};

static void count_one(const GValue *value, gpointer data)
{
	struct census *census = data;
	GstElement *object = g_value_get_object(value);
	if (gst_element_get_factory(object) != census->factory) {
		return;
	}
	char *name = gst_object_get_name(GST_OBJECT(object));
	int number = number_of(object, name);
	census->count += number != NOT_NUMBERED;
	census->before += number != NOT_NUMBERED && number < census->number;
	g_free(name);
}

static void count_all(GstElement *object, struct census *census)
{
	GstObject *top = gst_object_ref(object), *parent;
	while ((parent = gst_object_get_parent(top))) {
		gst_object_unref(top);
		top = parent;
	}
	if (GST_IS_BIN(top)) {
		GstIterator *elements = gst_bin_iterate_recurse(GST_BIN(top));
		while (gst_iterator_foreach(elements, count_one, census) == GST_ITERATOR_RESYNC) {
			census->count = census->before = 0;
			gst_iterator_resync(elements);
		}
		gst_iterator_free(elements);
	}
	gst_object_unref(top);
}

void naming_stage(GstElement *object, char *ret, size_t size)
{
	char *name = gst_object_get_name(GST_OBJECT(object));
	struct census census = {
		.factory = gst_element_get_factory(object), .number = number_of(object, name)};
	if (census.number == NOT_NUMBERED) {
		g_strlcpy(ret, name, size);
	} else {
		count_all(object, &census);
		g_strlcpy(ret, factory_name(object), size);
		if (census.count > 1) {
			size_t length = strlen(ret);
			g_snprintf(ret + length, size - length,
				g_ascii_isdigit(ret[length - 1]) ? "-%d" : "%d", census.before);
		}
	}
	g_free(name);
}
