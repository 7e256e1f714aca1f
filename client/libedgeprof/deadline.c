/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadline.c: sends deadlines to each daemon that attaches. A record written before a daemon is
 * there, or into a full ring, would be lost, and a restarted daemon has forgotten what it read. So
 * the last value of each deadline is kept, and a bit marks it as due: any thread sets bits, a
 * thread with a slot clears them.
 */
#include "client/libedgeprof/private.h"

enum {
	OF_FRAMES = PROTO_DECLARATIONS, /* behind those of the stages */
	DEADLINES,
	WORDS = (DEADLINES + 63) / 64,
};

static struct {
	uint64_t ns[DEADLINES];
	uint64_t known[WORDS], due[WORDS]; /* a bit each */
	uint32_t any_due;
} deadlines;

/* Exchanges on both sides: the one that takes the flag down sees the bits of everybody who raised
 * it before, also where a plain store and later loads may change places (aarch64). */
static void any_due_set(void)
{
	__atomic_exchange_n(&deadlines.any_due, 1, __ATOMIC_ACQ_REL);
}

void deadline_resend(void)
{
	for (uint32_t i = 0; i < WORDS; i++) {
		uint64_t known = __atomic_load_n(&deadlines.known[i], __ATOMIC_ACQUIRE);
		if (known) {
			__atomic_fetch_or(&deadlines.due[i], known, __ATOMIC_RELEASE);
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
	publish(t, t->slot,
		(struct proto_record){
			.stage = of_frames ? 0 : (uint16_t)index,
			.kind = PROTO_KIND_DEADLINE,
			.flags = of_frames ? PROTO_RECORD_OF_FRAMES : 0,
			.cpu_us = PROTO_CPU_NOT_MEASURED,
			.start_ns = now_ns,
			.value = __atomic_load_n(&deadlines.ns[index], __ATOMIC_RELAXED),
			.frame = PROTO_NO_FRAME,
		});
	return true;
}

void deadline_flush(struct thread *t, uint64_t now_ns)
{
	if (LIKELY(__atomic_load_n(&deadlines.any_due, __ATOMIC_RELAXED) == 0)) {
		return;
	}
	/* before the bits are looked at: who sets one from now on is seen here or next time */
	__atomic_exchange_n(&deadlines.any_due, 0, __ATOMIC_ACQ_REL);
	for (uint32_t i = 0; i < DEADLINES; i++) {
		uint64_t bit = (uint64_t)1 << i % 64, *word = &deadlines.due[i / 64];
		if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit) ||
			!(__atomic_fetch_and(word, ~bit, __ATOMIC_ACQ_REL) & bit)) {
			continue;
		}
		if (!deadline_write(t, i, now_ns)) {
			__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
			any_due_set();
			return;
		}
	}
}

static void deadline_set(uint32_t index, uint64_t deadline_ns)
{
	uint64_t bit = (uint64_t)1 << index % 64;
	__atomic_store_n(&deadlines.ns[index], deadline_ns, __ATOMIC_RELAXED);
	__atomic_fetch_or(&deadlines.known[index / 64], bit, __ATOMIC_RELEASE);
	__atomic_fetch_or(&deadlines.due[index / 64], bit, __ATOMIC_RELEASE);
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
