/*
 * What the threads of one process share: the mapping, the gate that sends an event to the slow
 * path, and the lock of the things that seldom change. Events read it and never write it.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define EDGEPROF_NO_INLINE
#include "client/libedgeprof/edgeprof.h"
#include "proto/mapping.h"

enum process_mode {
	PROCESS_FRESH,	/* nothing happened yet: the first event looks around */
	PROCESS_IDLE,	/* no daemon was ever there */
	PROCESS_ACTIVE, /* a daemon has been sent the mapping; stays so when it goes away */
	PROCESS_OFF,	/* EDGEPROF_DISABLE, edgeprof_shutdown */
};

struct thread;

struct process {
	/* one cache line that every event reads: written about once a second */
	_Alignas(64) uint64_t gate_ns; /* events at or after it take the slow path; 0 = all do */
	uint32_t mode;		       /* enum process_mode */
	uint32_t declared;	       /* names published in the table */
	bool print;		       /* EDGEPROF_PRINT */
	bool context;		       /* EDGEPROF_CONTEXT is not 0 */
	/* the rest is for slow paths */
	_Alignas(64) uint64_t due_ns; /* next look for the daemon; taken by compare and exchange */
	void *map; /* NULL until the first successful connect; set with release */
	struct proto_geometry geometry;
	uint64_t idle_ended;	/* events without a daemon of threads that ended; atomic */
	pthread_mutex_t lock;	/* table of names and list of threads; a holder's thread is busy */
	struct thread *threads; /* under lock */
	pthread_key_t key;	/* its destructor gives a thread's slot back */
	bool broken;		/* no key: nothing works */
};

extern struct process process;

/* What begin has to know of a stage, in one byte. */
enum stage_state { STAGE_UNDECLARED = 0, STAGE_PLAIN, STAGE_MEASURED /* has options */ };
extern uint8_t stage_state[PROTO_DECLARATIONS];

static inline bool is_declared(uint32_t stage)
{
	return stage < PROTO_DECLARATIONS &&
	       __atomic_load_n(&stage_state[stage], __ATOMIC_RELAXED) != STAGE_UNDECLARED;
}

/* Values of edgeprof_state_[0]. */
enum { STATE_RECORD = 0, STATE_IDLE = 1, STATE_OFF = 2 };

static inline uint32_t process_state(void)
{
	return __atomic_load_n(&edgeprof_state_[0], __ATOMIC_RELAXED);
}

static inline enum process_mode process_mode(void)
{
	return (enum process_mode)__atomic_load_n(&process.mode, __ATOMIC_ACQUIRE);
}

void process_set_mode(enum process_mode mode);

/* The hot gate follows due_ns, unless every event has to take the slow path. */
void process_set_gate(uint64_t due_ns);
