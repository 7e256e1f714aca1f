/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c: makes the module edgeprof._fast, libedgeprof for the Python module: stage(), and what
 * edgeprof/_native.py stands on, which checks the arguments.
 */
#include "client/python/fast/fast.h"

#include <pthread.h>

struct state {
	PyObject *names;	   /* {name, or (name, unit): declaration index} */
	PyObject *plans;	   /* the same: what makes a stage once tasks were seen */
	PyObject *unit, *category; /* the words */
	PyTypeObject *stage;
};

uint32_t fast_generation;
bool fast_started;

void fast_start(void)
{
	fast_started = true;
	PyObject *app = fast_call_native("started", PyTuple_New(0), NULL);
	edgeprof_init(app ? PyBytes_AsString(app) : NULL);
	PyErr_Clear(); /* nothing is raised because of the profiler */
	Py_XDECREF(app);
}

/* libedgeprof has a handler of its own. */
static void forked(void)
{
	fast_generation++;
	fast_next_frame = EDGEPROF_NO_FRAME;
	fast_started = false;
	local_self.depth = 0;
	local_self.placed = false;
}

__attribute__((constructor)) static void watch(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* The key of a name, perhaps with a unit; the category counts only when it is new. NULL: stage()
 * was asked for more, or an error. */
static PyObject *known_key(const struct state *state, PyObject *args, PyObject *kwargs)
{
	PyObject *name = PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : NULL, *unit = NULL;
	if (name && kwargs) {
		unit = PyDict_GetItem(kwargs, state->unit);
		int known = (unit != NULL) + !!PyDict_GetItem(kwargs, state->category);
		name = PyDict_Size(kwargs) == known ? name : NULL;
	}
	if (name && unit && unit != Py_None) {
		return PyTuple_Pack(2, name, unit);
	}
	Py_XINCREF(name);
	return name;
}

static PyObject *fast_stage(PyObject *module, PyObject *args, PyObject *kwargs)
{
	const struct state *state = PyModule_GetState(module);
	PyObject *key = known_key(state, args, kwargs);
	PyObject *known = fast_tasks ? state->plans : state->names;
	PyObject *found = key && known ? PyDict_GetItemWithError(known, key) : NULL;
	Py_XDECREF(key);
	if (found) {
		return fast_tasks ? PyObject_CallObject(found, NULL)
				  : stage_new(state->stage, (int)PyLong_AsLong(found),
					    EDGEPROF_NO_FRAME);
	}
	PyErr_Clear(); /* not hashable: Python says what it should be */
	Py_INCREF(args);
	PyObject *made = fast_call_native("new_stage", args, kwargs);
	return made || !fast_is_late() ? made : stage_new(state->stage, -1, EDGEPROF_NO_FRAME);
}

/* new(index, frame): of stage() with options. */
static PyObject *fast_new(PyObject *module, PyObject *args)
{
	const struct state *state = PyModule_GetState(module);
	int index;
	unsigned long long frame;
	return PyArg_ParseTuple(args, "iK:new", &index, &frame)
		       ? stage_new(state->stage, index, frame)
		       : NULL;
}

/* declare(name, category, unit, kind): 's' a stage, 'm' the label of a mark, else any name. */
static PyObject *fast_declare(PyObject *module, PyObject *args)
{
	const char *name, *category, *unit;
	int kind;
	if (!PyArg_ParseTuple(args, "yzzC:declare", &name, &category, &unit, &kind)) {
		return NULL;
	}
	return PyLong_FromLong(kind == 's'   ? edgeprof_stage_declare(name, category, unit, 0)
			       : kind == 'm' ? edgeprof_label_(name)
					     : edgeprof_gauge_declare(name, unit));
}

/* counts(look): after looking for a daemon, as numbers. */
static PyObject *fast_counts(PyObject *module, PyObject *look)
{
	struct edgeprof_counts c;
	if (look == Py_True) {
		fast_start();
	}
	edgeprof_counts(&c);
	return Py_BuildValue("KKKKKN", c.sent, c.received, c.dropped, c.in_ring, c.unattached,
		PyBool_FromLong(c.attached));
}

/* thread(): (frame, number of open stages) of the calling thread. */
static PyObject *fast_thread(PyObject *module, PyObject *unused)
{
	const struct local *l = fast_local();
	return Py_BuildValue("KI", (unsigned long long)l->frame, l->depth);
}

/* tasks(): from now on stages and frames are asked of edgeprof._tasks. */
static PyObject *fast_use_tasks(PyObject *module, PyObject *unused)
{
	fast_tasks = true;
	return fast_none();
}

static PyObject *fast_shutdown(PyObject *module, PyObject *unused)
{
	edgeprof_shutdown();
	return fast_none();
}

static PyObject *fast_advice(PyObject *module, PyObject *unused)
{
	struct edgeprof_advice a;
	if (!edgeprof_advice(&a)) {
		return fast_none();
	}
	return Py_BuildValue("iIId", a.level, a.skip_frames, a.of_frames, a.target_fps);
}

static PyMethodDef functions[] = {
	{"stage", (PyCFunction)(void (*)(void))fast_stage, METH_VARARGS | METH_KEYWORDS, NULL},
	{"new", fast_new, METH_VARARGS, NULL},
	{"declare", fast_declare, METH_VARARGS, NULL},
	{"emit", fast_emit, METH_VARARGS, NULL},
	{"thread", fast_thread, METH_NOARGS, NULL},
	{"tasks", fast_use_tasks, METH_NOARGS, NULL},
	{"counts", fast_counts, METH_O, NULL},
	{"shutdown", fast_shutdown, METH_NOARGS, NULL},
	{"advice", fast_advice, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static int module_exec(PyObject *module)
{
	struct state *state = PyModule_GetState(module);
	PyObject *common = PyImport_ImportModule("edgeprof._common");
	PyObject *help = common ? PyObject_GetAttrString(common, "STAGE_HELP") : NULL;
	Py_XDECREF(common);
	if (!help || PyModule_AddObject(module, "frame", PyType_FromSpec(&frame_spec)) < 0 ||
		PyModule_AddObject(module, "Profiler", PyType_FromSpec(&profiler_spec)) < 0 ||
		!(state->stage = (PyTypeObject *)PyType_FromSpec(&stage_spec)) ||
		!(state->unit = PyUnicode_InternFromString("unit")) ||
		!(state->category = PyUnicode_InternFromString("category")) ||
		!(state->names = PyDict_New()) || !(state->plans = PyDict_New())) {
		return -1;
	}
	functions[0].ml_doc = PyBytes_AsString(help); /* for good: help is never released */
	return PyObject_SetAttrString(module, "names", state->names) < 0
		       ? -1
		       : PyObject_SetAttrString(module, "plans", state->plans);
}

/* Only plans refer to what may refer to the module. */
static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
	const struct state *state = PyModule_GetState(module);
	if (state) {
		Py_VISIT(state->plans);
	}
	return 0;
}

static int module_clear(PyObject *module)
{
	struct state *state = PyModule_GetState(module);
	if (state) {
		Py_CLEAR(state->plans);
	}
	return 0;
}

static void module_free(void *module)
{
	struct state *state = PyModule_GetState(module);
	if (state) {
		Py_CLEAR(state->plans);
		Py_CLEAR(state->names);
		Py_CLEAR(state->unit);
		Py_CLEAR(state->category);
		Py_CLEAR(state->stage);
	}
}

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "edgeprof._fast",
	.m_doc = "libedgeprof, for the module edgeprof.",
	.m_size = sizeof(struct state),
	.m_methods = functions,
	.m_slots = (PyModuleDef_Slot[]){{Py_mod_exec, module_exec}, {0, NULL}},
	.m_traverse = module_traverse,
	.m_clear = module_clear,
	.m_free = module_free,
};

__attribute__((visibility("default"))) PyMODINIT_FUNC PyInit__fast(void);
PyMODINIT_FUNC PyInit__fast(void)
{
	return PyModuleDef_Init(&definition);
}
