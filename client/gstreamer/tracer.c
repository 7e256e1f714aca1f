/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracer.c: is the plugin: its parameters, and the registration of the hooks in flow.c.
 */
#include "client/gstreamer/private.h"

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
	GstTracer *self = GST_TRACER(object);
	G_OBJECT_CLASS(edgeprof_tracer_parent_class)->constructed(object);
	if (!tracing && g_strcmp0(g_getenv("EDGEPROF_DISABLE"), "1") != 0) {
		objects_init();
		read_parameters(self);
		flow_hook(self);
	}
	tracing = true;
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
