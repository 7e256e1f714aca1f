/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadline.c: sends deadlines to each daemon that attaches. A record written before a daemon is
 * there, or into a full ring, would be lost, and a restarted daemon has forgotten what it read. So
 * the last value of each deadline is kept, and a flag marks it as due: any thread sets flags, a
 * thread with a slot clears them.
 */
#include "client/libedgeprof/private.h"

enum {
	OF_FRAMES = PROTO_DECLARATIONS, /* behind those of the stages */
	DEADLINES
};

static struct {
	uint64_t ns[DEADLINES];
	uint8_t known[DEADLINES], due[DEADLINES];
	uint32_t any_due;
} deadlines;

/* Exchanges on both sides: the one that takes the flag down sees the flags of everybody who raised
 * it before, also where a plain store and later loads may change places (aarch64). The flags of
 * single deadlines are exchanged, too: of two threads that set one at once, the second continues
 * what the first has released, and the newer value is sent. */
static void any_due_set(void)
{
	__atomic_exchange_n(&deadlines.any_due, 1, __ATOMIC_ACQ_REL);
}

void deadline_resend(void)
{
	for (uint32_t i = 0; i < DEADLINES; i++) {
		if (__atomic_load_n(&deadlines.known[i], __ATOMIC_ACQUIRE)) {
			__atomic_exchange_n(&deadlines.due[i], 1, __ATOMIC_RELEASE);
			any_due_set();
		}
	}
}

static bool deadline_write(struct thread *t, uint32_t index, uint64_t now_ns)
{
	if (!thread_room(t)) {
		return false;
	}
	bool of_frames = index == OF_FRAMES;
	*t->at.next = (struct proto_record){
		.stage = of_frames ? 0 : (uint16_t)index,
		.kind = PROTO_KIND_DEADLINE,
		.flags = of_frames ? PROTO_RECORD_OF_FRAMES : 0,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = now_ns,
		.value = __atomic_load_n(&deadlines.ns[index], __ATOMIC_RELAXED),
		.frame = PROTO_NO_FRAME,
	};
	publish(t, t->slot, t->at.next);
	return true;
}

void deadline_flush(struct thread *t, uint64_t now_ns)
{
	if (LIKELY(__atomic_load_n(&deadlines.any_due, __ATOMIC_RELAXED) == 0)) {
		return;
	}
	/* before the flags are looked at: who sets one from now on is seen here or next time */
	__atomic_exchange_n(&deadlines.any_due, 0, __ATOMIC_ACQ_REL);
	for (uint32_t i = 0; i < DEADLINES; i++) {
		if (!__atomic_load_n(&deadlines.due[i], __ATOMIC_RELAXED) ||
			!__atomic_exchange_n(&deadlines.due[i], 0, __ATOMIC_ACQ_REL)) {
			continue;
		}
		if (!deadline_write(t, i, now_ns)) {
			__atomic_exchange_n(&deadlines.due[i], 1, __ATOMIC_RELEASE);
			any_due_set();
			return;
		}
	}
}

static void deadline_set(uint32_t index, uint64_t deadline_ns)
{
	__atomic_store_n(&deadlines.ns[index], deadline_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&deadlines.known[index], 1, __ATOMIC_RELEASE);
	__atomic_exchange_n(&deadlines.due[index], 1, __ATOMIC_RELEASE);
	any_due_set();
	struct thread *t = &thread_self;
	if (t->busy || process_state() == STATE_OFF) {
		return; /* the next event that looks around takes it along */
	}
	thread_lock(t);
	uint64_t now_ns = clock_ns();
	if (thread_take_slot(t, now_ns)) {
		deadline_flush(t, now_ns);
	}
	thread_unlock(t);
}

void edgeprof_deadline(int stage, uint64_t deadline_ns)
{
	if (is_declared((uint32_t)stage)) {
		deadline_set((uint32_t)stage, deadline_ns);
	} else {
		thread_count_lost();
	}
}

void edgeprof_frame_deadline(uint64_t deadline_ns)
{
	deadline_set(OF_FRAMES, deadline_ns);
}
