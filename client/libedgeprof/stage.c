/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.c: records stages, the hot path. A stage whose thread has a slot, room in its chunk and the
 * gate ahead is written here: begin is one clock read and a push to the slot's open stages; end is
 * one clock read, a 32-byte record and one release store. Everything else is the slow path: no slot
 * yet, the end of a chunk, the check once a second, more open stages than the slot holds, stages
 * with options.
 */
#include "client/libedgeprof/private.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* Depths of tokens that opened nothing, deeper than any stage that is open: in a signal handler
 * inside another event; of a stage that was never declared; of a thread that had no slot. */
#define TOKEN_BUSY UINT32_MAX
#define TOKEN_LOST (UINT32_MAX - 1)
#define TOKEN_UNPLACED (UINT32_MAX - 2)
/* added to a depth: an end that has meters to read */
#define TOKEN_MEASURED 0x80000000u
#define TOKEN_DEPTH_MAX 0x40000000u

static uint32_t open_count(const struct thread *t)
{
	return t->depth < PROTO_OPEN_STAGES ? t->depth : PROTO_OPEN_STAGES + t->deep;
}

static void set_open_count(struct thread *t, uint32_t count)
{
	t->deep = count > PROTO_OPEN_STAGES ? count - PROTO_OPEN_STAGES : 0;
	t->depth = count - t->deep;
	__atomic_store_n(&t->slot->depth, count, __ATOMIC_RELEASE);
}

/* On a thread with a slot: a stage with options, or one deeper than most. */
static edgeprof_token begin_deep(struct thread *t, uint32_t stage)
{
	uint32_t depth = open_count(t);
	edgeprof_token token = {.stage = stage, .depth = depth};
	if (depth >= TOKEN_DEPTH_MAX) { /* nobody nests so deep: begun and never ended */
		token.depth = depth = TOKEN_DEPTH_MAX - 1;
	}
	if (depth < PROTO_OPEN_STAGES) {
		struct proto_open_stage *open = &t->slot->open[depth];
		open->stage = stage;
		open->frame = t->frame;
		if (__atomic_load_n(&stage_state[stage], __ATOMIC_RELAXED) == STAGE_MEASURED) {
			cost_begin(t, depth, stage);
			token.depth |= TOKEN_MEASURED;
		}
		open->start_ns = token.start_ns = clock_ns();
	} else {
		token.start_ns = clock_ns();
	}
	set_open_count(t, depth + 1);
	return token;
}

/* Inside another event, no slot yet, no such stage, or one of the above. */
static __attribute__((noinline, cold)) edgeprof_token begin_slow(uint32_t stage)
{
	struct thread *t = &thread_self;
	edgeprof_token token = {.start_ns = 0, .stage = stage, .depth = 0};
	if (t->busy) {
		/* not an idle token, whose end is the shortest */
		return (edgeprof_token){.start_ns = 1, .stage = stage, .depth = TOKEN_BUSY};
	}
	thread_lock(t);
	if (!t->slot) {
		thread_take_slot(t, 0);
	}
	bool declared = is_declared(stage);
	if (t->slot && declared) {
		token = begin_deep(t, stage);
	} else if (t->slot || process.print || process_mode() == PROCESS_ACTIVE) {
		token.depth = declared ? TOKEN_UNPLACED : TOKEN_LOST;
		token.start_ns = clock_ns();
	}
	thread_unlock(t);
	return token;
}

static inline void read_clock(struct timespec *ret)
{
	__atomic_load_n(&edgeprof_state_.clock, __ATOMIC_RELAXED)(CLOCK_MONOTONIC, ret);
}

/* What waits for the clock comes after all that does not: the next reading waits for both. */
static inline uint64_t last_ns(const struct timespec *ts)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return timespec_ns(ts);
}

/* The time is taken first: a stage's time includes the 2 ns that follow. All instructions before
 * the clock count, and those after it hide behind what waits for it. So arguments are kept in
 * memory: a register that survives the call has to be saved first. The record's memory is fetched
 * while the clock is read: that waits for loads before it and for memory of its own, but not for
 * this. With all caches cold a stage costs half. */
edgeprof_token edgeprof_begin_(int number)
{
	volatile uint32_t kept = (uint32_t)number;
	struct timespec now;
	if (UNLIKELY(!is_plain((uint32_t)number))) {
		return begin_slow((uint32_t)number);
	}
	__builtin_prefetch(thread_self.at.next, 1);
	read_clock(&now);
	struct thread *t = &thread_self;
	__builtin_prefetch(t->slot, 1);
	uint32_t stage = kept;
	if (UNLIKELY(t->busy)) {
		return begin_slow(stage);
	}
	/* first the lock, then the look: a handler that forks in between takes the slot away */
	thread_lock(t);
	uint32_t depth = t->depth;
	if (UNLIKELY(depth >= PROTO_OPEN_STAGES - 1)) {
		thread_unlock(t);
		return begin_slow(stage);
	}
	struct proto_slot *slot = t->slot;
	struct proto_open_stage *open = &slot->open[depth];
	t->depth = depth + 1;
	open->stage = stage;
	open->frame = t->frame;
	uint64_t now_ns = last_ns(&now);
	open->start_ns = now_ns;
	__atomic_store_n(&slot->depth, depth + 1, __ATOMIC_RELEASE);
	thread_unlock(t);
	return (edgeprof_token){.start_ns = now_ns, .stage = stage, .depth = depth};
}

bool edgeprof_open_(uint32_t depth, int stage, uint64_t start_ns, uint64_t frame)
{
	struct thread *t = &thread_self;
	if (process_state() != STATE_RECORD || t->busy) {
		return false;
	}
	thread_lock(t);
	bool placed = t->slot || thread_take_slot(t, 0);
	if (placed) {
		depth = depth < open_count(t) ? depth : open_count(t);
		if (depth < PROTO_OPEN_STAGES && is_declared((uint32_t)stage)) {
			t->slot->open[depth++] = (struct proto_open_stage){
				.start_ns = start_ns, .frame = frame, .stage = (uint32_t)stage};
		}
		set_open_count(t, depth);
	}
	thread_unlock(t);
	return placed;
}

edgeprof_token edgeprof_begin(int stage)
{
	if (process_state() != STATE_RECORD) {
		return (edgeprof_token){.start_ns = 0, .stage = 0, .depth = 0};
	}
	return edgeprof_begin_(stage);
}

static inline struct proto_record complete(
	const edgeprof_token *token, uint32_t depth, uint64_t now_ns, uint64_t frame)
{
	uint32_t shown = depth < 15 ? depth : 15;
	return (struct proto_record){
		.stage = (uint16_t)token->stage,
		.kind = PROTO_KIND_COMPLETE,
		.flags = (uint8_t)(shown << PROTO_RECORD_DEPTH_SHIFT |
				   (depth ? PROTO_RECORD_NESTED : 0)),
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = token->start_ns,
		.value = now_ns - token->start_ns,
		.frame = frame,
	};
}

static void print_stage(uint32_t stage, uint64_t duration_ns)
{
	int saved = errno;
	uint64_t hundredths = (duration_ns + 5000) / 10000;
	char line[PROTO_NAME_SIZE + 40];
	int n = snprintf(line, sizeof(line), "[%s] %llu.%02ums\n", names_label(stage),
		(unsigned long long)(hundredths / 100), (unsigned)(hundredths % 100));
	(void)!write(STDERR_FILENO, line, (size_t)n);
	errno = saved;
}

/* The stage is open on this thread. Its frame is that of the begin, which the open stages hold;
 * past their 16 it is today's. */
static void end_open(struct thread *t, const edgeprof_token *token, uint64_t now_ns, uint8_t flags)
{
	uint32_t depth = token->depth & ~TOKEN_MEASURED;
	bool held = depth < PROTO_OPEN_STAGES;
	struct proto_record record =
		complete(token, depth, now_ns, held ? t->slot->open[depth].frame : t->frame);
	record.flags |= flags;
	struct proto_record cost = {
		.stage = record.stage,
		.kind = PROTO_KIND_COST,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = record.start_ns,
	};
	if (held && (token->depth & TOKEN_MEASURED) && cost_end(t, depth, &record.cpu_us, &cost)) {
		record_write(t, now_ns, cost);
	}
	record_write(t, now_ns, record);
	set_open_count(t, depth);
}

/* Not open here: ended before, truncated by an outer end, or opened by another thread or by the
 * parent of this process. */
static bool is_open(const struct thread *t, const edgeprof_token *token)
{
	uint32_t depth = token->depth & ~TOKEN_MEASURED;
	return t->slot && depth < open_count(t) &&
	       (depth >= PROTO_OPEN_STAGES || t->slot->open[depth].start_ns == token->start_ns);
}

static void end_any(struct thread *t, edgeprof_token token, uint64_t now_ns, uint8_t flags)
{
	if (token.depth == TOKEN_BUSY) {
		thread_count_busy(t);
		return;
	}
	if (token.depth == TOKEN_LOST || !is_declared(token.stage)) {
		thread_count_lost();
		return;
	}
	/* begun before this thread had a slot: not among its open stages */
	bool placed = token.depth != TOKEN_UNPLACED && !t->ended;
	if (placed && !is_open(t, &token)) {
		return;
	}
	if (process.print) {
		print_stage(token.stage, now_ns - token.start_ns);
	}
	if (placed) {
		end_open(t, &token, now_ns, flags);
	} else {
		struct proto_record record = complete(&token, 0, now_ns, t->frame);
		record.flags |= flags;
		record_write(t, now_ns, record);
	}
}

/* Unlocks the thread: so the hot path keeps nothing across a call but the clock's. */
static __attribute__((noinline, cold)) void end_slow(
	struct thread *t, edgeprof_token token, uint64_t now_ns, uint8_t flags)
{
	end_any(t, token, now_ns, flags);
	thread_unlock(t);
}

/* The gate is at a whole second: they are there before the rest of the time. */
void edgeprof_end_(edgeprof_token ended)
{
	volatile edgeprof_token kept = ended;
	struct timespec now;
	read_clock(&now);
	edgeprof_token token = {kept.start_ns, kept.stage, kept.depth};
	struct thread *t = &thread_self;
	if (UNLIKELY(t->busy)) {
		thread_count_busy(t);
		return;
	}
	/* first the lock, then the look: a handler in between would take the room that was seen */
	thread_lock(t);
	struct proto_slot *slot = t->slot;
	uint32_t depth = token.depth;
	struct proto_record *r = t->at.next;
	bool usual = before_gate((uint64_t)now.tv_sec * 1000000000u) && r != t->at.end &&
		     depth < t->depth && slot->open[depth].start_ns == token.start_ns;
	if (UNLIKELY(!usual)) {
		end_slow(t, token, timespec_ns(&now), 0);
		return;
	}
	if (depth >= PROTO_OPEN_STAGES) {
		__builtin_unreachable(); /* t->depth is at most that, with a slot */
	}
	/* all but the duration; unseen until head */
	*r = complete(&token, depth, token.start_ns, slot->open[depth].frame);
	r->value = last_ns(&now) - token.start_ns;
	publish(t, slot, r);
	t->depth = depth;
	__atomic_store_n(&slot->depth, depth, __ATOMIC_RELAXED);
	thread_unlock(t);
}

void edgeprof_end(edgeprof_token token)
{
	if (LIKELY(token.start_ns != 0)) {
		edgeprof_end_(token);
	} else if (process_state() != STATE_OFF) {
		edgeprof_idle_();
	}
}

void edgeprof_end_failed(edgeprof_token token)
{
	struct thread *t = &thread_self;
	if (token.start_ns == 0) {
		edgeprof_end(token);
		return;
	}
	uint64_t now_ns = clock_ns();
	if (t->busy) {
		thread_count_busy(t);
		return;
	}
	thread_lock(t);
	end_slow(t, token, now_ns, PROTO_RECORD_FAILED);
}
