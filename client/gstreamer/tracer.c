/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracer.c: connects GStreamer's hooks with flow.c, and is the plugin. A hook's time counts from
 * the start of GStreamer, on the clock that libedgeprof uses.
 */
#define GST_USE_UNSTABLE_API
#include "client/gstreamer/private.h"

#include <gst/gsttracer.h>

/* On libedgeprof's clock. Hooks that race here find the same within some 100 ns. */
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

static void on_push(void *self, GstClockTime time, GstPad *pad, GstBuffer *buffer)
{
	(void)self;
	flow_push(pad, buffer, buffer, clock_time(time));
}

static void on_push_list(void *self, GstClockTime time, GstPad *pad, GstBufferList *list)
{
	(void)self;
	bool any = gst_buffer_list_length(list) > 0;
	flow_push(pad, list, any ? gst_buffer_list_get(list, 0) : NULL, clock_time(time));
}

static void on_pushed(void *self, GstClockTime time, GstPad *pad)
{
	(void)self;
	flow_pushed(pad, clock_time(time));
}

static void on_pull(void *self, GstClockTime time, GstPad *pad)
{
	(void)self;
	flow_pull(pad, clock_time(time));
}

static void on_pulled(void *self, GstClockTime time, GstPad *pad)
{
	(void)self;
	flow_pulled(pad, clock_time(time));
}

static void on_event(void *self, GstClockTime time, GstPad *pad, GstEvent *event)
{
	(void)self;
	flow_event(pad, event, clock_time(time));
}

static void on_event_pushed(void *self, GstClockTime time, GstPad *pad)
{
	(void)self;
	flow_event_pushed(pad, clock_time(time));
}

static void on_relink(void *self, GstClockTime time, GstPad *source, GstPad *sink)
{
	(void)self;
	(void)time;
	pad_relinked(source);
	pad_relinked(sink);
}

/* Sinks and decoders report what they drop because it is late, each time with the sum. */
static void on_message(void *self, GstClockTime time, GstElement *object, GstMessage *message)
{
	(void)self;
	(void)time;
	struct element *own;
	GstFormat format;
	guint64 processed, dropped;
	if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_QOS &&
		GST_MESSAGE_SRC(message) == GST_OBJECT(object) && (own = element_known(object))) {
		gst_message_parse_qos_stats(message, &format, &processed, &dropped);
		if (dropped != GST_CLOCK_TIME_NONE) {
			flow_dropped(own, dropped);
		}
	}
}

struct edgeprof_tracer {
	GstTracer parent;
};
struct edgeprof_tracer_class {
	GstTracerClass parent;
};
typedef struct edgeprof_tracer EdgeprofTracer;
typedef struct edgeprof_tracer_class EdgeprofTracerClass;

static GType edgeprof_tracer_get_type(void);
G_DEFINE_TYPE(EdgeprofTracer, edgeprof_tracer, GST_TYPE_TRACER)

static bool tracing; /* GST_TRACERS may name the tracer twice */

static gboolean on_parameter(GQuark name, const GValue *value, gpointer data)
{
	(void)data;
	if (g_strcmp0(g_quark_to_string(name), "app") == 0 && G_VALUE_HOLDS_STRING(value)) {
		edgeprof_init(g_value_get_string(value));
	} else {
		g_printerr("edgeprof tracer: unknown parameter '%s'\n", g_quark_to_string(name));
	}
	return TRUE;
}

/* "app=cam". Without it, the application has named the app when the first buffer comes, or its
 * program's name does. */
static void read_parameters(GstTracer *self)
{
	char *parameters = NULL;
	g_object_get(self, "params", &parameters, NULL);
	if (parameters && *parameters) {
		char *text = g_strdup_printf("edgeprof,%s", parameters);
		GstStructure *structure = gst_structure_from_string(text, NULL);
		if (structure) {
			gst_structure_foreach(structure, on_parameter, NULL);
			gst_structure_free(structure);
		} else {
			g_printerr("edgeprof tracer: invalid parameters '%s'\n", parameters);
		}
		g_free(text);
	}
	g_free(parameters);
}

static void edgeprof_tracer_constructed(GObject *object)
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
		{"pad-link-post", G_CALLBACK(on_relink)},
		{"pad-unlink-post", G_CALLBACK(on_relink)},
		{"element-post-message-pre", G_CALLBACK(on_message)},
	};
	GstTracer *self = GST_TRACER(object);
	G_OBJECT_CLASS(edgeprof_tracer_parent_class)->constructed(object);
	bool off = tracing || g_strcmp0(g_getenv("EDGEPROF_DISABLE"), "1") == 0;
	tracing = true;
	if (!off) {
		objects_init();
		read_parameters(self);
	}
	for (size_t i = 0; !off && i < G_N_ELEMENTS(hooks); i++) {
		gst_tracing_register_hook(self, hooks[i].name, hooks[i].on);
	}
}

static void edgeprof_tracer_class_init(EdgeprofTracerClass *class)
{
	G_OBJECT_CLASS(class)->constructed = edgeprof_tracer_constructed;
}

static void edgeprof_tracer_init(EdgeprofTracer *self)
{
	(void)self;
}

static gboolean plugin_init(GstPlugin *plugin)
{
	return gst_tracer_register(plugin, "edgeprof", edgeprof_tracer_get_type());
}

#define PACKAGE "edgeprofd"
/* GStreamer before 1.20 does not load plugins of a licence that it does not list. */
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, edgeprof,
	"Reports elements and buffers to edgeprofd", plugin_init, EDGEPROF_VERSION,
	GST_LICENSE_UNKNOWN, PACKAGE, PACKAGE)
