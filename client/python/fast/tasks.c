/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks.c: notices that asyncio runs, and asks edgeprof._tasks what the running task has open. Once
 * code of Python runs here, a signal handler of the program may raise in it: that is passed on.
 */
#include "client/python/fast/fast.h"

bool fast_tasks;

PyObject *fast_call_native(const char *name, PyObject *args, PyObject *kwargs)
{
	PyObject *native = PyImport_ImportModule("edgeprof._native");
	PyObject *function = native ? PyObject_GetAttrString(native, name) : NULL;
	PyObject *result = function && args ? PyObject_Call(function, args, kwargs) : NULL;
	Py_XDECREF(function);
	Py_XDECREF(native);
	Py_XDECREF(args);
	return result;
}

bool fast_is_late(void)
{
	bool late = PyErr_ExceptionMatches(PyExc_ImportError);
	if (late) {
		PyErr_Clear();
	}
	return late;
}

bool fast_look(struct local *l, uint64_t now_ns)
{
	enum { LOOK_NS = 10000000 };
	if (fast_tasks || now_ns < l->look_ns) {
		return fast_tasks;
	}
	l->look_ns = now_ns + LOOK_NS;
	PyObject *events = PyDict_GetItemString(PyImport_GetModuleDict(), "asyncio.events");
	PyObject *loop = events ? PyObject_CallMethod(events, "_get_running_loop", NULL) : NULL;
	if (loop && loop != Py_None) {
		Py_XDECREF(fast_call_native("look", PyTuple_New(0), NULL));
	}
	PyErr_Clear(); /* nothing is raised because of the profiler */
	Py_XDECREF(loop);
	return fast_tasks;
}

bool fast_context(const struct local *l, unsigned long long *frame, uint32_t *depth)
{
	*frame = l->frame;
	*depth = l->depth;
	if (!fast_tasks) {
		return true;
	}
	PyObject *here = fast_call_native("here", PyTuple_New(0), NULL);
	bool known = here && PyArg_ParseTuple(here, "KI", frame, depth);
	Py_XDECREF(here);
	return known || fast_is_late();
}
