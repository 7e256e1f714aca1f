/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timers.c: times stages, frames, and the stages of the guides' StageProfiler. Each `with` has an
 * entry of its own, in the object that stage() returned or behind it: a kept object may be entered
 * by any thread and again while it is open. What libedgeprof holds open is ended there; a stage
 * that overlaps others, ends on another thread, or began without a daemon is one record. What
 * asyncio tasks have open is in edgeprof/_tasks.py.
 */
#include "client/python/fast/fast.h"

#include <sys/queue.h>

struct entry {
	edgeprof_token token;
	uint64_t frame;	      /* of the run; a frame's: the one around it */
	struct local *thread; /* NULL: the entry is free */
	SLIST_ENTRY(entry) link;
	uint32_t generation;
	PyObject *node; /* a frame's in edgeprof._tasks; NULL: it is of the thread */
};

struct stage {
	PyObject base;
	int index;		  /* or FRAME */
	unsigned long long frame; /* its own, or NO_FRAME: that of the thread */
	SLIST_HEAD(, entry) open; /* the innermost first */
	struct entry own;	  /* the first one costs no allocation */
};

enum { FRAME = -2 };
static const uint32_t MEASURED = 0x80000000u;	 /* libedgeprof reads meters at a token's end */
static const uint32_t NOT_OPEN = UINT32_MAX - 2; /* a token's depth from here on */

__thread struct local local_self = {.frame = EDGEPROF_NO_FRAME};

PyObject *stage_new(PyTypeObject *type, int index, uint64_t frame)
{
	struct stage *s = PyObject_New(struct stage, type);
	if (s) {
		s->index = index;
		s->frame = frame;
		SLIST_INIT(&s->open);
		s->own.thread = NULL;
	}
	return (PyObject *)s;
}

static void set_frame(struct local *l, uint64_t frame)
{
	l->frame = frame;
	edgeprof_set_frame(frame);
}

/* Shows what is open to a daemon that came meanwhile. Tokens hold their depth and start already. */
static void place(struct local *l)
{
	uint32_t count = l->depth < PROTO_OPEN_STAGES ? l->depth : PROTO_OPEN_STAGES, i = 0;
	while (!l->placed && i < count &&
		edgeprof_open_(i, (int)l->open[i].token.stage, l->open[i].token.start_ns,
			l->open[i].frame)) {
		i++;
	}
	if (i > 0 && i == count) {
		l->placed = true;
		l->depth = count;
	}
}

static edgeprof_token begin_stage(int index, struct local *l, uint64_t frame)
{
	place(l);
	edgeprof_token token = edgeprof_begin(index);
	if (token.start_ns != 0 && token.depth < NOT_OPEN) {
		l->placed = true;
	} else {
		token.start_ns = edgeprof_now();
		token.stage = (uint32_t)index;
		token.depth = index >= 0 ? l->depth : NOT_OPEN;
	}
	uint32_t depth = token.depth & ~MEASURED;
	if (depth < PROTO_OPEN_STAGES) {
		l->open[depth].token = token;
		l->open[depth].frame = frame;
	}
	l->depth = index >= 0 ? depth + 1 : l->depth;
	return token;
}

/* False: an exception, of a signal handler of the program. */
static bool begin_frame(struct local *l, uint64_t frame, struct entry *ret)
{
	edgeprof_token token = {edgeprof_now(), 0, NOT_OPEN};
	PyObject *node = NULL;
	if (fast_look(l, token.start_ns)) {
		node = fast_call_native(
			"enter_frame", Py_BuildValue("(K)", (unsigned long long)frame), NULL);
		if (!node && !fast_is_late()) {
			return false;
		}
	}
	*ret = (struct entry){token, l->frame, l, {NULL}, fast_generation, node};
	if (!node) {
		set_frame(l, frame);
		l->frames++;
	}
	return true;
}

static PyObject *stage_enter(PyObject *self, PyObject *unused)
{
	struct stage *s = (struct stage *)self;
	struct local *l = fast_local();
	struct entry *e = !s->own.thread ? &s->own : PyMem_Malloc(sizeof(*e));
	if (e && s->index == FRAME) { /* else its end finds nothing */
		if (!begin_frame(l, s->frame, e)) {
			PyMem_Free(e == &s->own ? NULL : e);
			return NULL;
		}
	} else if (e) {
		uint64_t outer = l->frame, own = s->frame != EDGEPROF_NO_FRAME ? s->frame : outer;
		if (own != outer) {
			set_frame(l, own);
		}
		edgeprof_token token = begin_stage(s->index, l, own);
		if (own != outer) {
			set_frame(l, outer);
		}
		fast_look(l, token.start_ns);
		*e = (struct entry){token, own, l, {NULL}, fast_generation, NULL};
	}
	if (e) {
		SLIST_INSERT_HEAD(&s->open, e, link);
	}
	Py_INCREF(self);
	return self;
}

/* Takes out the innermost entry of this thread, else of any; its node is the caller's. False: there
 * is none. */
static bool take(struct stage *s, const struct local *l, struct entry *ret)
{
	struct entry *e;
	SLIST_FOREACH(e, &s->open, link)
	{
		if (e->thread == l && e->generation == fast_generation) {
			break;
		}
	}
	e = e ? e : SLIST_FIRST(&s->open);
	if (!e) {
		return false;
	}
	*ret = *e;
	SLIST_REMOVE(&s->open, e, entry, link);
	e->thread = NULL;
	if (e != &s->own) {
		PyMem_Free(e);
	}
	return true;
}

/* One record of a stage inside of depth others. */
static void complete(int index, uint32_t flags, uint32_t cpu_us, uint64_t start_ns,
	uint64_t duration_ns, uint64_t frame, uint32_t depth)
{
	uint32_t shown = depth < 15 ? depth : 15;
	flags |= depth ? PROTO_RECORD_NESTED | shown << PROTO_RECORD_DEPTH_SHIFT : 0;
	flags |= fast_tasks ? PROTO_RECORD_OF_TASK : 0;
	edgeprof_write_(
		index, PROTO_KIND_COMPLETE | flags << 8, cpu_us, start_ns, duration_ns, frame);
}

/* emit(index, kind, value, flags=0, cpu_us=NOT_MEASURED, start_ns=now, frame=that of the thread or
 * task, depth=-1: as many stages as are open). False: it was dropped. A deadline is kept, and sent
 * to each daemon that comes. */
PyObject *fast_emit(PyObject *module, PyObject *args)
{
	const struct local *l = fast_local();
	int index, given = -1;
	unsigned kind, flags = 0, cpu_us = PROTO_CPU_NOT_MEASURED;
	unsigned long long value, start_ns = 0, frame = 0, own;
	uint32_t depth;
	bool written = true;
	if (!PyArg_ParseTuple(args, "iIK|IIKKi:emit", &index, &kind, &value, &flags, &cpu_us,
		    &start_ns, &frame, &given)) {
		return NULL;
	}
	const bool framed = PyTuple_Size(args) > 6;
	if (!framed || given < 0) {
		if (!fast_context(l, &own, &depth)) {
			return NULL;
		}
		frame = framed ? frame : own;
	}
	if (kind == PROTO_KIND_COMPLETE) {
		complete(index, flags, cpu_us, start_ns, value, frame,
			given < 0 ? depth : (uint32_t)given);
	} else if (kind != PROTO_KIND_DEADLINE) {
		written = edgeprof_write_(index, kind | flags << 8, cpu_us, start_ns, value, frame);
	} else if (flags & PROTO_RECORD_OF_FRAMES) {
		edgeprof_frame_deadline(value);
	} else {
		edgeprof_deadline(index, value);
	}
	return PyBool_FromLong(written);
}

static bool is_open(const struct local *l, const struct entry *e)
{
	uint32_t depth = e->token.depth & ~MEASURED;
	return e->thread == l && depth < l->depth &&
	       (depth >= PROTO_OPEN_STAGES || l->open[depth].token.start_ns == e->token.start_ns);
}

/* Ended on another thread. The one that has them open may be gone: it is compared only. */
static struct entry ended[16];
uint32_t fast_ended;

void fast_close_ended(struct local *l)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < fast_ended; i++) {
		if (ended[i].thread != l) {
			ended[kept++] = ended[i];
		} else if (is_open(l, &ended[i])) {
			l->depth = ended[i].token.depth & ~MEASURED;
			edgeprof_open_(l->depth, -1, 0, 0);
		}
	}
	fast_ended = kept;
}

/* Closes it, and what was opened inside, as far as Python knows. False: that had happened. */
static bool close_entry(struct local *l, const struct entry *e)
{
	bool open = is_open(l, e);
	if (open) {
		l->depth = e->token.depth & ~MEASURED;
	} else if (e->thread != l) { /* too many: the last of them is forgotten */
		fast_ended -= fast_ended == sizeof(ended) / sizeof(ended[0]);
		ended[fast_ended++] = *e;
	}
	return open;
}

static void end_stage(int index, struct local *l, const struct entry *e, uint32_t failed)
{
	if (!close_entry(l, e) || !l->placed) {
		complete(index, failed, PROTO_CPU_NOT_MEASURED, e->token.start_ns,
			edgeprof_now() - e->token.start_ns, e->frame, l->depth);
		place(l);
	} else if (failed) {
		edgeprof_end_failed(e->token);
	} else {
		edgeprof_end(e->token);
	}
}

/* To the frame around it, which may have ended before: after the last one none is open. False: an
 * exception, of a signal handler of the program. */
static bool end_frame(struct local *l, uint64_t frame, uint64_t outer, PyObject *node)
{
	if (node) {
		PyObject *done = PyObject_CallMethod(node, "leave", NULL);
		Py_DECREF(node);
		Py_XDECREF(done);
		return done;
	}
	l->frames -= l->frames > 0;
	if (l->frames == 0) {
		set_frame(l, EDGEPROF_NO_FRAME);
	} else if (l->frame == frame) {
		set_frame(l, outer);
	}
	return true;
}

static PyObject *stage_exit(PyObject *self, PyObject *args)
{
	struct stage *s = (struct stage *)self;
	struct local *l = fast_local();
	PyObject *kind = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : Py_None;
	/* a generator that is closed did not fail */
	bool raised = kind != Py_None && kind != PyExc_GeneratorExit;
	uint32_t flags = raised ? PROTO_RECORD_FAILED : 0;
	struct entry e;
	bool ours = take(s, l, &e);
	flags |= ours && e.node ? PROTO_RECORD_OF_TASK : 0;
	bool handled = !ours || s->index != FRAME || end_frame(l, s->frame, e.frame, e.node);
	if (!ours || e.generation != fast_generation) {
		return handled ? fast_none() : NULL; /* perhaps begun by this process's parent */
	}
	if (s->index != FRAME) {
		end_stage(s->index, l, &e, flags);
	} else {
		edgeprof_write_(0, PROTO_KIND_FRAME | flags << 8, PROTO_CPU_NOT_MEASURED,
			e.token.start_ns, edgeprof_now() - e.token.start_ns, s->frame);
	}
	return handled ? fast_none() : NULL;
}

/* Ends it without a record: (start_ns, frame) of what was open, or None. */
static PyObject *stage_close(PyObject *self, PyObject *unused)
{
	struct local *l = fast_local();
	struct entry e;
	if (!take((struct stage *)self, l, &e) || e.generation != fast_generation) {
		return fast_none();
	}
	if (close_entry(l, &e)) {
		edgeprof_open_(l->depth, -1, 0, 0);
	}
	return Py_BuildValue("KK", e.token.start_ns, e.frame);
}

/* Of an object whose class may be one of Python. */
static void object_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

static void stage_dealloc(PyObject *self)
{
	struct stage *s = (struct stage *)self;
	struct entry e;
	while (take(s, NULL, &e)) { /* never ended */
		Py_XDECREF(e.node);
	}
	object_free(self);
}

unsigned long long fast_next_frame = EDGEPROF_NO_FRAME;

/* The next automatic id; EDGEPROF_NO_FRAME: an exception. */
static unsigned long long automatic_id(void)
{
	if (fast_next_frame == EDGEPROF_NO_FRAME) {
		PyObject *number = fast_call_native(
			"first_frame", Py_BuildValue("(i)", fast_generation > 0), NULL);
		unsigned long long first = number	    ? PyLong_AsUnsignedLongLong(number)
					   : fast_is_late() ? 0
							    : EDGEPROF_NO_FRAME;
		Py_XDECREF(number);
		if (fast_next_frame == EDGEPROF_NO_FRAME) { /* else another thread was faster */
			fast_next_frame = first;
		}
	}
	return fast_next_frame;
}

static PyObject *frame_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	unsigned long long id = 0;
	PyObject *given = Py_None;
	if ((kwargs || PyTuple_Size(args) > 0) &&
		!PyArg_ParseTupleAndKeywords(
			args, kwargs, "|O:frame", (char *[]){"id", NULL}, &given)) {
		return NULL;
	}
	if (given != Py_None) {
		PyObject *number = PyNumber_Index(given);
		id = number ? PyLong_AsUnsignedLongLong(number) : EDGEPROF_NO_FRAME;
		if (number && id == EDGEPROF_NO_FRAME) {
			PyErr_Clear();
			PyErr_Format(PyExc_ValueError, "id is out of range: %S", number);
		}
		Py_XDECREF(number);
	} else {
		id = automatic_id();
	}
	PyObject *self = id != EDGEPROF_NO_FRAME ? PyType_GenericNew(type, NULL, NULL) : NULL;
	if (self) {
		fast_next_frame += given == Py_None;
		((struct stage *)self)->index = FRAME;
		((struct stage *)self)->frame = id;
	}
	return self;
}

static PyMethodDef stage_methods[] = {
	{"__enter__", stage_enter, METH_NOARGS, NULL},
	{"__exit__", stage_exit, METH_VARARGS, NULL},
	{"close", stage_close, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

PyType_Spec stage_spec = {"edgeprof._fast.Stage", sizeof(struct stage), 0, Py_TPFLAGS_DEFAULT,
	(PyType_Slot[]){{Py_tp_dealloc, stage_dealloc}, {Py_tp_methods, stage_methods}, {0, NULL}}};

static PyMemberDef frame_members[] = {
	{"id", T_ULONGLONG, offsetof(struct stage, frame), 0, NULL},
	{NULL, 0, 0, 0, NULL},
};

PyType_Spec frame_spec = {"edgeprof._fast.frame", sizeof(struct stage), 0,
	Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	(PyType_Slot[]){{Py_tp_new, frame_new}, {Py_tp_dealloc, stage_dealloc},
		{Py_tp_doc, "frame(id=None)\n--\n\n"}, {Py_tp_methods, stage_methods},
		{Py_tp_members, frame_members}, {0, NULL}}};

/* StageProfiler's start and stop; timings, a dict of lists, and names, the module's table, are set
 * by Python, whose _declare adds a name to it. Neither refers to a profiler, so that the garbage
 * collector has no cycle to look for. */
struct profiler {
	PyObject base;
	PyObject *timings, *names, *stage; /* stage NULL: none is open */
	uint64_t start_ns;
	long index, orphan_end, abandoned;
};

static PyObject *profiler_start(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct profiler *p = (struct profiler *)self;
	PyObject *name = !kwargs && PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : NULL;
	if (!name && !PyArg_ParseTupleAndKeywords(
			     args, kwargs, "O:start", (char *[]){"stage_name", NULL}, &name)) {
		return NULL;
	}
	PyObject *index = p->names && PyUnicode_Check(name) ? PyDict_GetItem(p->names, name) : NULL;
	Py_XINCREF(index);
	if (!index && !(index = PyObject_CallMethod(self, "_declare", "O", name))) {
		return NULL;
	}
	p->index = PyLong_AsLong(index);
	Py_DECREF(index);
	p->abandoned += p->stage != NULL;
	Py_XDECREF(p->stage);
	Py_INCREF(name);
	p->stage = name;
	p->start_ns = edgeprof_now();
	return fast_none();
}

static PyObject *profiler_stop(PyObject *self, PyObject *unused)
{
	struct profiler *p = (struct profiler *)self;
	const struct local *l = fast_local();
	uint64_t duration_ns = edgeprof_now() - p->start_ns;
	unsigned long long frame;
	uint32_t depth;
	PyObject *stage = p->stage;
	p->stage = NULL;
	if (!stage) {
		p->orphan_end++;
		return fast_none();
	}
	if (!fast_context(l, &frame, &depth)) {
		Py_DECREF(stage);
		return NULL;
	}
	complete((int)p->index, 0, PROTO_CPU_NOT_MEASURED, p->start_ns, duration_ns, frame, depth);
	PyObject *timings = p->timings;
	Py_XINCREF(timings);
	PyObject *list = PyObject_GetItem(timings, stage);
	PyObject *value = list ? PyFloat_FromDouble((double)duration_ns / 1e6) : NULL;
	PyObject *done = NULL;
	if (value && PyList_Check(list)) {
		done = PyList_Append(list, value) == 0 ? fast_none() : NULL;
	} else if (value) {
		done = PyObject_CallMethod(list, "append", "O", value);
	}
	Py_XDECREF(timings);
	Py_XDECREF(list);
	Py_XDECREF(value);
	Py_DECREF(stage);
	return done;
}

static void profiler_dealloc(PyObject *self)
{
	struct profiler *p = (struct profiler *)self;
	Py_XDECREF(p->timings);
	Py_XDECREF(p->names);
	Py_XDECREF(p->stage);
	object_free(self);
}

static PyMethodDef profiler_methods[] = {
	{"start", (PyCFunction)(void (*)(void))profiler_start, METH_VARARGS | METH_KEYWORDS,
		"start($self, stage_name)\n--\n\nTypeError, ValueError: not a name (any non-empty "
		"str is)."},
	{"stop", profiler_stop, METH_NOARGS, "stop($self)\n--\n\n"},
	{NULL, NULL, 0, NULL},
};

static PyMemberDef profiler_members[] = {
	{"timings", T_OBJECT_EX, offsetof(struct profiler, timings), 0, NULL},
	{"_names", T_OBJECT_EX, offsetof(struct profiler, names), 0, NULL},
	{"orphan_end", T_LONG, offsetof(struct profiler, orphan_end), 0, NULL},
	{"abandoned", T_LONG, offsetof(struct profiler, abandoned), 0, NULL},
	{NULL, 0, 0, 0, NULL},
};

PyType_Spec profiler_spec = {"edgeprof._fast.Profiler", sizeof(struct profiler), 0,
	Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	(PyType_Slot[]){{Py_tp_dealloc, profiler_dealloc}, {Py_tp_methods, profiler_methods},
		{Py_tp_members, profiler_members}, {0, NULL}}};
