/*
 * The hot path. An event that finds its thread with a slot, room in its chunk and the gate ahead is
 * written here: begin is one clock read and a push to the slot's open stages, end is one clock
 * read, a 32-byte record and one release store. Everything else takes thread_prepare.
 */
#include "client/libedgeprof/edgeprof.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "client/libedgeprof/attach.h"
#include "client/libedgeprof/names.h"
#include "client/libedgeprof/thread.h"

enum {
	FRAME_NONE = 0,
	FRAME_IDLE = 1, /* begun while there was no daemon */
};

/* Depths of tokens that opened nothing, deeper than any stage that is open: in a signal handler
 * inside another event; of a stage that was never declared; of a thread that had no slot. */
#define TOKEN_BUSY UINT32_MAX
#define TOKEN_LOST (UINT32_MAX - 1)
#define TOKEN_UNPLACED (UINT32_MAX - 2)

static inline uint64_t clock_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t edgeprof_now(void)
{
	return clock_ns();
}

static inline bool is_quiet(const struct thread *t)
{
	return LIKELY(__atomic_load_n(&process.quiet, __ATOMIC_RELAXED)) && LIKELY(!t->slot);
}

static inline bool is_declared(uint32_t stage)
{
	return stage < __atomic_load_n(&process.declared, __ATOMIC_RELAXED);
}

/* Room is there and nothing else wants to be done first. */
static inline bool is_ready(const struct thread *t, uint64_t now_ns)
{
	return t->next != t->end && now_ns < __atomic_load_n(&process.gate_ns, __ATOMIC_RELAXED);
}

/* Under thread_lock, with room. The reader sees the record once it sees head. */
static inline void publish(struct thread *t, struct proto_slot *slot, uint32_t stage,
	enum proto_kind kind, uint8_t flags, uint64_t start_ns, uint64_t value, uint64_t frame)
{
	struct proto_record *r = t->next;
	r->stage = (uint16_t)stage;
	r->kind = (uint8_t)kind;
	r->flags = flags;
	r->cpu_us = PROTO_CPU_NOT_MEASURED;
	r->start_ns = start_ns;
	r->value = value;
	r->frame = frame;
	t->next = r + 1;
	__atomic_store_n(&slot->head, ++t->head, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) void idle_slow(struct thread *t)
{
	if (t->busy) {
		thread_count_busy(t);
		return;
	}
	thread_lock(t);
	if (process_mode() == PROCESS_OFF) {
		t->idle_limit = UINT64_MAX;
	} else if (t->ended) { /* a later destructor's: nobody adds up this thread any more */
		thread_count_lost();
	} else {
		uint64_t now_ns = clock_ns();
		thread_take_slot(t, now_ns);
		thread_count_idle(t, now_ns);
	}
	thread_unlock(t);
}

/* An event while there is no daemon: a count, and seldom a look. */
static inline void idle(struct thread *t)
{
	uint64_t count = t->idle + 1;
	if (UNLIKELY(count >= t->idle_limit)) {
		idle_slow(t);
		return;
	}
	__atomic_store_n(&t->idle, count, __ATOMIC_RELAXED);
}

static void emit(
	uint32_t stage, enum proto_kind kind, uint64_t start_ns, uint64_t value, uint64_t frame)
{
	struct thread *t = &thread_self;
	if (is_quiet(t)) {
		idle(t);
		return;
	}
	if (t->busy) {
		thread_count_busy(t);
		return;
	}
	thread_lock(t);
	uint64_t now_ns = clock_ns();
	if (kind != PROTO_KIND_FRAME && !is_declared(stage)) {
		thread_count_lost();
	} else if (is_ready(t, now_ns) || thread_prepare(t, now_ns)) {
		uint64_t at_ns = start_ns ? start_ns : now_ns;
		if (kind == PROTO_KIND_FRAME && start_ns) {
			value = now_ns > start_ns ? now_ns - start_ns : 0;
		}
		publish(t, t->slot, stage, kind, 0, at_ns, value, frame);
	}
	thread_unlock(t);
}

int edgeprof_init(const char *app)
{
	struct thread *t = &thread_self;
	if (process.broken) {
		return -ENOMEM;
	}
	if (t->busy) {
		return 0;
	}
	thread_lock(t);
	thread_register(t);
	int error = attach_init(app);
	thread_unlock(t);
	return error;
}

int edgeprof_stage(const char *name)
{
	return names_declare(name, NULL, NULL, 0);
}

int edgeprof_stage_declare(
	const char *name, const char *category, const char *unit, uint64_t deadline_ns)
{
	return names_declare(name, category, unit, deadline_ns);
}

/* Pushes to the open stages. The time is taken last, with little to keep across the call. */
static inline edgeprof_token begin_open(struct thread *t, struct proto_slot *slot, uint32_t stage)
{
	thread_lock(t);
	uint32_t depth = t->depth++;
	edgeprof_token token = {.stage = stage, .depth = depth};
	if (LIKELY(depth < PROTO_OPEN_STAGES)) {
		struct proto_open_stage *open = &slot->open[depth];
		open->stage = stage;
		open->frame = t->frame;
		open->start_ns = token.start_ns = clock_ns();
	} else {
		token.start_ns = clock_ns();
	}
	__atomic_store_n(&slot->depth, depth + 1, __ATOMIC_RELEASE);
	thread_unlock(t);
	return token;
}

/* No slot yet, no such stage, or inside another event. */
static __attribute__((noinline)) edgeprof_token begin_slow(struct thread *t, uint32_t stage)
{
	edgeprof_token token = {.start_ns = 0, .stage = stage, .depth = 0};
	if (t->busy) {
		token.start_ns = 1; /* not an idle token, whose end is the shortest */
		token.depth = TOKEN_BUSY;
		return token;
	}
	thread_lock(t);
	if (!t->slot) {
		thread_take_slot(t, 0);
	}
	thread_unlock(t);
	bool declared = is_declared(stage);
	if (t->slot && declared) {
		return begin_open(t, t->slot, stage);
	}
	if (t->slot || process.print || process_mode() == PROCESS_ACTIVE) {
		token.depth = declared ? TOKEN_UNPLACED : TOKEN_LOST;
		token.start_ns = clock_ns();
	}
	return token;
}

/* Apart from edgeprof_begin, which without a daemon then needs no stack frame. */
static __attribute__((noinline)) edgeprof_token begin_recorded(struct thread *t, uint32_t stage)
{
	struct proto_slot *slot = t->slot;
	if (UNLIKELY(!slot || t->busy || !is_declared(stage))) {
		return begin_slow(t, stage);
	}
	return begin_open(t, slot, stage);
}

edgeprof_token edgeprof_begin(int stage)
{
	struct thread *t = &thread_self;
	if (LIKELY(is_quiet(t))) {
		return (edgeprof_token){.start_ns = 0, .stage = 0, .depth = 0};
	}
	return begin_recorded(t, (uint32_t)stage);
}

/* Not open here: ended before, truncated by an outer end, or opened by another thread. */
static inline bool is_open(
	const struct thread *t, const struct proto_slot *slot, const edgeprof_token *token)
{
	return token->depth < t->depth &&
	       (token->depth >= PROTO_OPEN_STAGES ||
		       slot->open[token->depth].start_ns == token->start_ns);
}

/* The frame is that of the begin, which the open stages hold; past their 16 it is today's. */
static inline void end_open(
	struct thread *t, struct proto_slot *slot, const edgeprof_token *token, uint64_t now_ns)
{
	uint64_t frame = LIKELY(token->depth < PROTO_OPEN_STAGES) ? slot->open[token->depth].frame
								  : t->frame;
	publish(t, slot, token->stage, PROTO_KIND_COMPLETE, token->depth ? PROTO_RECORD_NESTED : 0,
		token->start_ns, now_ns - token->start_ns, frame);
}

static inline void truncate_open(struct thread *t, struct proto_slot *slot, uint32_t depth)
{
	t->depth = depth;
	__atomic_store_n(&slot->depth, depth, __ATOMIC_RELAXED);
}

static void print_stage(uint32_t stage, uint64_t duration_ns)
{
	uint64_t hundredths = (duration_ns + 5000) / 10000;
	char line[PROTO_NAME_SIZE + 40];
	int n = snprintf(line, sizeof(line), "[%s] %llu.%02ums\n", names_label(stage),
		(unsigned long long)(hundredths / 100), (unsigned)(hundredths % 100));
	(void)!write(STDERR_FILENO, line, (size_t)n);
}

/* Under thread_lock. */
static __attribute__((noinline)) void end_slow(
	struct thread *t, edgeprof_token token, uint64_t now_ns)
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
	struct proto_slot *slot = token.depth == TOKEN_UNPLACED ? NULL : t->slot;
	if (!slot || is_open(t, slot, &token)) {
		if (process.print) {
			print_stage(token.stage, now_ns - token.start_ns);
		}
		if (thread_prepare(t, now_ns)) {
			if (slot) {
				end_open(t, slot, &token, now_ns);
			} else {
				publish(t, t->slot, token.stage, PROTO_KIND_COMPLETE, 0,
					token.start_ns, now_ns - token.start_ns, t->frame);
			}
		}
		if (slot) {
			truncate_open(t, slot, token.depth);
		}
	}
}

static __attribute__((noinline)) void end_recorded(struct thread *t, edgeprof_token token)
{
	uint64_t now_ns = clock_ns();
	if (UNLIKELY(t->busy)) {
		thread_count_busy(t);
		return;
	}
	/* first the lock, then the look: a handler in between would take the room that was seen */
	thread_lock(t);
	struct proto_slot *slot = t->slot;
	if (UNLIKELY(!is_ready(t, now_ns) || !is_open(t, slot, &token))) {
		end_slow(t, token, now_ns);
	} else {
		end_open(t, slot, &token, now_ns);
		truncate_open(t, slot, token.depth);
	}
	thread_unlock(t);
}

void edgeprof_end(edgeprof_token token)
{
	struct thread *t = &thread_self;
	/* the straight line is the idle one: a jump is a tenth of it and nothing beside two clocks
	 */
	if (UNLIKELY(token.start_ns != 0)) {
		end_recorded(t, token);
	} else {
		idle(t);
	}
}

void edgeprof_begin_id(int stage, uint64_t id)
{
	emit((uint32_t)stage, PROTO_KIND_BEGIN, 0, id, thread_self.frame);
}

void edgeprof_end_id(int stage, uint64_t id)
{
	emit((uint32_t)stage, PROTO_KIND_END, 0, id, thread_self.frame);
}

void edgeprof_complete(int stage, uint64_t start_ns, uint64_t duration_ns, uint64_t frame)
{
	emit((uint32_t)stage, PROTO_KIND_COMPLETE, start_ns, duration_ns, frame);
}

void edgeprof_frame_begin(uint64_t frame)
{
	struct thread *t = &thread_self;
	t->frame = frame;
	t->frame_start_ns = is_quiet(t) ? FRAME_IDLE : clock_ns();
}

void edgeprof_frame_end(void)
{
	struct thread *t = &thread_self;
	uint64_t start_ns = t->frame_start_ns, frame = t->frame;
	t->frame_start_ns = FRAME_NONE;
	t->frame = EDGEPROF_NO_FRAME;
	if (start_ns == FRAME_IDLE) {
		idle(t);
	} else if (start_ns != FRAME_NONE) {
		emit(0, PROTO_KIND_FRAME, start_ns, 0, frame);
	}
}

void edgeprof_frame(uint64_t frame, uint64_t start_ns)
{
	emit(0, PROTO_KIND_FRAME, start_ns, 0, frame);
}

void edgeprof_tick(void)
{
	emit(0, PROTO_KIND_FRAME, 0, 0, thread_self.frame);
}

void edgeprof_set_frame(uint64_t frame)
{
	thread_self.frame = frame;
}

void edgeprof_mark(const char *label)
{
	struct thread *t = &thread_self;
	if (is_quiet(t)) {
		idle(t);
	} else if (t->busy) {
		thread_count_busy(t);
	} else {
		emit((uint32_t)names_declare(label, NULL, NULL, 0), PROTO_KIND_MARK, 0, 0,
			t->frame);
	}
}
