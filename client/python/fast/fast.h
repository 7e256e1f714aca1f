/* SPDX-License-Identifier: Apache-2.0 */
/* fast.h: declares what the files of edgeprof._fast share. What libedgeprof has once a process is
 * static here, too; Python objects are in the module's state. All of it runs under one GIL: where
 * there is none, or an interpreter has its own, the module is not loaded. */
#pragma once

#include <Python.h>
#include <structmember.h>

#include <stdbool.h>
#include <stdint.h>

#include "client/libedgeprof/edgeprof.h"
#include "proto/mapping.h"

/* What a thread has open, as Python knows it: libedgeprof holds nothing without a daemon. */
struct local {
	uint64_t frame;	  /* that the next events carry */
	uint32_t frames;  /* open ones */
	uint32_t depth;	  /* open stages */
	bool placed;	  /* libedgeprof shows them to the daemon */
	uint64_t look_ns; /* from then on an event looks whether an asyncio loop runs */
	struct {
		edgeprof_token token;
		uint64_t frame;
	} open[PROTO_OPEN_STAGES]; /* the outermost of them */
};
extern __thread struct local local_self __attribute__((tls_model("initial-exec")));

extern uint32_t fast_generation; /* forks: what was opened in a parent is not ours to end */
extern unsigned long long fast_next_frame; /* automatic id; EDGEPROF_NO_FRAME: not known */
extern bool fast_started;		   /* edgeprof_init was called in this process */

/* Before the first event: names the program and looks for a daemon. */
void fast_start(void);

/* Calls a function of edgeprof._native; releases args. NULL: an exception, also without args. */
PyObject *fast_call_native(const char *name, PyObject *args, PyObject *kwargs);

/* After that failed: whether the interpreter is shutting down and its modules are gone, as for late
 * destructors. Clears the exception then. */
bool fast_is_late(void);

/* Tasks of asyncio were seen: what is open is asked of edgeprof._tasks. */
extern bool fast_tasks;

/* Looks for them, a hundred times a second: they begin once. Runs no code of Python until then. */
bool fast_look(struct local *l, uint64_t now_ns);

/* The frame that events carry, and how many stages are open. False: an exception. */
bool fast_context(const struct local *l, unsigned long long *frame, uint32_t *depth);

/* Closes what other threads have ended of this one's stages. */
void fast_close_ended(struct local *l);
extern uint32_t fast_ended; /* how many wait for that */

static inline struct local *fast_local(void)
{
	if (__builtin_expect(!fast_started, 0)) {
		fast_start();
	}
	if (__builtin_expect(fast_ended > 0, 0)) {
		fast_close_ended(&local_self);
	}
	return &local_self;
}

/* What Py_RETURN_NONE was until 3.12, whose headers count no references to None: this file may run
 * in an interpreter that does. */
static inline PyObject *fast_none(void)
{
	Py_INCREF(Py_None);
	return Py_None;
}

PyObject *fast_emit(PyObject *module, PyObject *args);

/* The context manager of a declared stage, or of one that is lost (-1). frame: its own, or
 * NO_FRAME. */
PyObject *stage_new(PyTypeObject *type, int index, uint64_t frame);

extern PyType_Spec stage_spec, frame_spec, profiler_spec;
