/* SPDX-License-Identifier: Apache-2.0 */
/* private.h: declares what the files of the library share; nothing of it is exported. Events run in
 * signal handlers, too: what they call allocates nothing and never waits. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#define EDGEPROF_NO_INLINE
#define edgeprof_state_ edgeprof_state_words_ /* the library has a type for it: struct hot */
#include "client/libedgeprof/edgeprof.h"
#undef edgeprof_state_
#include "proto/mapping.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/*
 * What the threads of one process share: the mapping, the gate that sends an event to the slow
 * path, and the lock of the things that seldom change. Events read it and never write it.
 */

enum process_mode {
	PROCESS_NEW,	/* no event yet: the first one initialises the process */
	PROCESS_IDLE,	/* no daemon was ever there */
	PROCESS_ACTIVE, /* a daemon has been sent the mapping; stays so when it goes away */
	PROCESS_OFF,	/* EDGEPROF_DISABLE, edgeprof_shutdown */
};

typedef int clock_fn(clockid_t clock, struct timespec *ret);

/* edgeprof_state_ as the library sees it: all that a stage reads of the process, in the one cache
 * line of which the program has just read the first word. Written about once a second. */
struct hot {
	uint32_t state;	    /* STATE_* */
	uint32_t all_plain; /* stages below this number are plain; only falls once one is not */
	uint64_t gate_ns;   /* whole second; events at or after it take the slow path; 0 = all do */
	uint32_t plain[PROTO_DECLARATIONS / 32]; /* a bit for each stage without options */
	clock_fn *clock; /* clock_gettime, or what does the same with less */
	uint8_t reserved1[64 - 32 - sizeof(clock_fn *)];
};
_Static_assert(sizeof(struct hot) == 64, "as edgeprof.h declares it");
extern struct hot edgeprof_state_ __attribute__((visibility("default")));

struct thread;

struct process {
	uint64_t due_ns;   /* next look for the daemon; taken by compare and exchange */
	uint32_t mode;	   /* enum process_mode */
	uint32_t declared; /* names published in the table */
	bool print;	   /* EDGEPROF_PRINT */
	bool context;	   /* EDGEPROF_CONTEXT is not 0 */
	clock_fn *clock;   /* the kernel's */
	void *map;	   /* NULL until the first successful connect; set with release */
	struct proto_geometry geometry;
	uint64_t idle_ended;	/* events without a daemon of threads that ended; atomic */
	pthread_mutex_t lock;	/* table of names and list of threads; a holder's thread is busy */
	struct thread *threads; /* under lock */
	pthread_key_t key;	/* its destructor gives a thread's slot back */
	bool broken;		/* no key: nothing works */
};

extern struct process process;

enum stage_state { STAGE_UNDECLARED = 0, STAGE_PLAIN, STAGE_MEASURED /* has options */ };
extern uint8_t stage_state[PROTO_DECLARATIONS];

/* Those that are plain have a bit in struct hot as well. From any thread. */
void process_set_stage(uint32_t stage, enum stage_state state);

static inline bool is_plain(uint32_t stage)
{
	if (LIKELY(stage < __atomic_load_n(&edgeprof_state_.all_plain, __ATOMIC_RELAXED))) {
		return true;
	}
	return stage < PROTO_DECLARATIONS &&
	       (__atomic_load_n(&edgeprof_state_.plain[stage / 32], __ATOMIC_RELAXED) >>
			       stage % 32 &
		       1);
}

static inline bool is_declared(uint32_t stage)
{
	return stage < PROTO_DECLARATIONS &&
	       __atomic_load_n(&stage_state[stage], __ATOMIC_ACQUIRE) != STAGE_UNDECLARED;
}

/* Values of edgeprof_state_.state. */
enum { STATE_RECORD = 0, STATE_IDLE = 1, STATE_OFF = 2 };

static inline uint32_t process_state(void)
{
	return __atomic_load_n(&edgeprof_state_.state, __ATOMIC_RELAXED);
}

static inline enum process_mode process_mode(void)
{
	return (enum process_mode)__atomic_load_n(&process.mode, __ATOMIC_ACQUIRE);
}

void process_set_mode(enum process_mode mode);

/* The hot gate follows due_ns, a whole second, unless every event has to take the slow path. */
void process_set_gate(uint64_t due_ns);

/*
 * A thread's side of the mapping: its slot, its current chunk, its open stages. Positions are kept
 * in thread-private memory; the mapping's are only written.
 */

/* Where a slot's next record goes. */
struct cursor {
	struct proto_record *next, *end; /* room in the current chunk; equal: none */
	uint64_t origin; /* address of the slot's record 0, had it all its records in a row */
};

/* In a library that is loaded into a running program, thread-local memory may not be aligned more
 * than the C library's own (glibc, TCB_ALIGNMENT): 64 on x86-64, as little as 8 elsewhere. */
#ifdef __x86_64__
#define THREAD_LINE _Alignas(64)
#else
#define THREAD_LINE _Alignas(8)
#endif

struct thread {
	/* one cache line: all that an event touches */
	THREAD_LINE struct proto_slot *slot; /* NULL: none */
	struct cursor at;
	uint64_t frame; /* that the next events carry */
	uint32_t depth; /* open stages that the slot holds; THREAD_NO_SLOT */
	uint32_t busy;	/* inside the library; a signal handler looks */
	/* an event without a daemon touches this line alone, others seldom */
	THREAD_LINE uint64_t idle; /* events without a daemon */
	uint64_t idle_limit;	   /* at this many, look for one */
	uint64_t frame_start_ns;   /* 0: no open frame; 1: begun without a daemon */
	uint64_t idle_checked_ns;
	struct thread *list_next, **list_prev; /* of process.threads; list_prev NULL: not in it */
	uint32_t idle_step;
	uint32_t slotless;  /* events to refuse before looking for a free slot again */
	uint32_t index;	    /* of slot */
	uint32_t deep;	    /* open stages beyond the slot's; counts only when those are full */
	uint32_t uncounted; /* records taken since the owned chunks were counted */
	bool keyed;	    /* the destructor is armed */
	bool forking;	    /* between fork's handlers, which hold process.lock */
	bool ended;	    /* the destructor ran: never take a slot again */
};

/* initial-exec: one load to find it, and no allocation behind our back in a dlopen()ed library. */
extern __thread struct thread thread_self __attribute__((tls_model("initial-exec")));

enum {
	THREAD_SLOTS = 64,			/* of the largest mapping */
	THREAD_NO_SLOT = PROTO_OPEN_STAGES + 1, /* a depth at which a stage takes the slow path */
};

/* Records published in the slot: one word less to keep than a counter. */
static inline uint64_t thread_position(const struct thread *t)
{
	return ((uint64_t)(uintptr_t)t->at.next - t->at.origin) / sizeof(struct proto_record);
}

/* Begin of a section that a signal handler's events must not enter. */
static inline void thread_lock(struct thread *t)
{
	*(volatile uint32_t *)&t->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void thread_unlock(struct thread *t)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint32_t *)&t->busy = 0;
}

/* Looks for the daemon when that is due, and takes a slot unless there is one. Counts nothing.
 * now_ns 0: reads the clock. The caller holds thread_lock. */
bool thread_take_slot(struct thread *t, uint64_t now_ns);

/* Makes room for one record in the slot that the thread has; counts nothing. */
bool thread_room(struct thread *t);

/* thread_take_slot, the deadlines that are due, and room for one record. False: the event has been
 * counted where it belongs. */
bool thread_prepare(struct thread *t, uint64_t now_ns);

/* Counts an event that no daemon will ever see, and plans the next look by the rate. Under
 * thread_lock. */
void thread_count_idle(struct thread *t, uint64_t now_ns);

/* Counts an event that a signal handler raised inside another. Safe without thread_lock. */
void thread_count_busy(struct thread *t);

/* An event that has no place: no declaration, no slot. */
void thread_count_lost(void);

/* Forgets slot, chunk and open stages: the mapping belongs to another process now. */
void thread_forget(struct thread *t);

/* In a forked child: none of the slots and of their threads is ours. */
void thread_forget_slots(void);

/* For pthread_key_create: gives the slot back. */
void thread_end(void *t);

/* Arms the destructor and enters the list of threads, unless done. may_allocate: false for an
 * event, which a signal handler inside malloc may raise. Under thread_lock. */
void thread_register(struct thread *t, bool may_allocate);

/*
 * record: writes one record; shared by the hot path and all other events.
 */

static inline uint64_t timespec_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec;
}

static inline uint64_t clock_ns(void)
{
	struct timespec ts;
	__atomic_load_n(&edgeprof_state_.clock, __ATOMIC_RELAXED)(CLOCK_MONOTONIC, &ts);
	return timespec_ns(&ts);
}

/* The kernel's code for clock_gettime that libc would call, or clock_gettime itself. When the
 * library is loaded. */
clock_fn *clock_find(void);

/* EDGEPROF_CLOCK=tsc: the processor's counter, or what is given where that is not to be trusted.
 * Opens a file. */
clock_fn *clock_counter(clock_fn *kernel);

/* Once a second and at the start, if the counter is in use. Under the channel's lock. */
void clock_calibrate(void);

/* In a forked child: the parent may have been in the middle of it. */
void clock_forget(void);

static inline uint64_t double_bits(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Nothing else wants to be done first. */
static inline bool before_gate(uint64_t now_ns)
{
	return now_ns < __atomic_load_n(&edgeprof_state_.gate_ns, __ATOMIC_RELAXED);
}

/* r is the one at the cursor, written. The reader sees it once it sees head. Under thread_lock. */
static inline void publish(struct thread *t, struct proto_slot *slot, struct proto_record *r)
{
	t->at.next = r + 1;
	__atomic_store_n(&slot->head, thread_position(t), __ATOMIC_RELEASE);
}

/* Writes a record, finding room first, or counts what has none. Under thread_lock. */
static inline bool record_write(struct thread *t, uint64_t now_ns, struct proto_record record)
{
	bool ready = t->at.next != t->at.end && before_gate(now_ns);
	if (!ready && !thread_prepare(t, now_ns)) {
		return false;
	}
	*t->at.next = record;
	publish(t, t->slot, t->at.next);
	return true;
}

/* A descriptor inside somebody else's program: it is used only while it is still ours. Apps that
 * close what they do not know, or reuse the number, must not find our bytes in their files. */

struct descriptor {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
};

/* Takes fd over (a negative one is -EBADF). Numbers 0-2 are left to the app, which may have closed
 * them and still write there. 0 or -EBADF. */
int descriptor_set(struct descriptor *d, int fd);

bool descriptor_ours(const struct descriptor *d);

/* Closes it if it is ours, forgets it anyway. */
void descriptor_close(struct descriptor *d);

/* Creates, fills and seals the memfd, maps it, copies the table of names and publishes it in
 * process.map. Returns the descriptor (the caller's), -EAGAIN when the table of names is being
 * written just now, -ENOMEM. */
int mapping_create(uint32_t size);

/* Writes the whole table into a new mapping. Under process.lock. */
void names_copy(void *map);

/* The name of a declared stage. */
const char *names_label(uint32_t stage);

/* When the library is loaded, and again at edgeprof_init: events never read the environment, which
 * another thread may be changing. */
void attach_read_environment(void);

/* Names the app (only the first name counts) and looks for a daemon now. 0, or -ENOMEM when a
 * daemon is there and the mapping cannot be made. */
int attach_init(const char *app);

struct sockaddr_un;
/* Where the daemon's socket of that name may be, in order: how many, at most 2. Reads the
 * environment. */
size_t attach_paths(const char *name, struct sockaddr_un *ret);

/* The app's name, after attach_init. */
const char *attach_app(void);

/* When the second is over: is the daemon still there, is there one now? Under thread_lock. */
void attach_check(uint64_t now_ns);

/* Counts records for which room was taken. Past half full, notifies the daemon: at most once in
 * 1000 counted records and never twice before the daemon drains. */
void attach_count(uint32_t records, bool half_full);

/* A daemon holds the mapping, as far as known. */
bool attach_connected(void);

/* The end: nothing is recorded and nobody looked for from now on. */
void attach_close(void);

/* In a forked child: the connection and the memfd are the parent's. */
void attach_forget(void);

/* In a forked child: what another thread was asking for is the parent's, and so is its session. */
void session_forget(void);

/* Deadlines set at run time: kept here, so that every daemon that attaches receives them. */

/* A daemon has just been attached: all deadlines are due again. From any thread. */
void deadline_resend(void);

/* Writes what is due, as far as there is room; the rest stays due. Under thread_lock, with a slot.
 */
void deadline_flush(struct thread *t, uint64_t now_ns);

/* What happened to the thread of a frame: switches, page faults, waiting for a CPU. */

/* At a frame's end, behind its record. Under thread_lock, with a slot. Two system calls while the
 * thread's frames are few enough. */
void context_frame(struct thread *t, uint64_t now_ns, uint64_t frame);

/* The thread that had this slot has ended. */
void context_end(uint32_t slot);

/* What stages with edgeprof_stage_options measure besides the time. */

/* Notes where the meters stand for the open stage at depth (below PROTO_OPEN_STAGES) of the
 * thread's slot. */
void cost_begin(const struct thread *t, uint32_t depth, uint32_t stage);

/* What they say since cost_begin. The thread's CPU time in us for the COMPLETE record; true when a
 * COST record is wanted too, whose value and frame are filled then. */
bool cost_end(const struct thread *t, uint32_t depth, uint32_t *cpu_us, struct proto_record *cost);

/* This process's memory, asked for when a mark or a stage with EDGEPROF_RSS wants it. */

struct memory {
	uint64_t resident_bytes, virtual_bytes;
};

/* 0, or -ENODATA: no /proc here, or no descriptor left. Allocates nothing; may be called from a
 * signal handler; leaves errno alone. */
int memory_read(struct memory *ret);

/* The most that was ever resident, which is at least what is now. */
uint64_t memory_peak(uint64_t resident_bytes);
