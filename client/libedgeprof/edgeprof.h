/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edgeprof.h: reports the stages and frames of a pipeline to edgeprofd.
 *
 *     edgeprof_init("cam");
 *     const int infer = edgeprof_stage("infer");          // once; any thread
 *     for (;;) {
 *         edgeprof_frame_begin(n);
 *         edgeprof_token t = edgeprof_begin(infer);
 *         …
 *         edgeprof_end(t);
 *         edgeprof_frame_end();
 *     }
 *
 * Or: { EDGEPROF_SCOPE("infer"); … } and it ends with the block.
 *
 * No call blocks, fails the program, or writes to stdout/stderr (unless EDGEPROF_PRINT=1 asks for a
 * line `[stage] 12.34ms` on stderr at each end of a stage, daemon or not). Recording an event makes
 * no system call, takes no lock and allocates nothing; the exceptions are marks, stages with
 * edgeprof_stage_options, and edgeprof_frame_end (two system calls up to 120 frames a second). Once
 * a second the first event of that second looks whether a daemon is there. Without a daemon a stage
 * costs about 3 ns. What cannot be delivered is dropped and counted. errno is left alone. Every
 * function may be called from any thread, and from signal handlers unless it takes a lock (an event
 * raised inside an event is dropped and counted). After fork() the child is a process of its own.
 * Link with -ledgeprof; needs only libc.
 *
 * EDGEPROF_RUNTIME_DIR names the daemon's run directory; else /run/edgeprofd, then
 * $XDG_RUNTIME_DIR/edgeprofd. EDGEPROF_DISABLE=1 switches everything off. EDGEPROF_CONTEXT=0: no
 * system call at the end of a frame. EDGEPROF_CLOCK=tsc: times from the processor's counter.
 * EDGEPROF_MAPPING_SIZE is the shared memory in bytes (65536 to 1048576 in powers of two; 262144).
 * All are read once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC visibility push(default)
#endif

#define EDGEPROF_NO_FRAME UINT64_MAX

/* An open stage. Plain data of two registers (a third word costs 4 ns a stage); copy it freely, but
 * end it on the thread that began it. Ending it twice or never is harmless: the second end is
 * ignored. */
typedef struct edgeprof_token {
	uint64_t start_ns;
	uint32_t stage;
	uint32_t depth;
} edgeprof_token;

/* Names this program and tries to reach a daemon. app: 1-48 bytes of [A-Za-z0-9_.-], other bytes
 * become '_'; NULL = the program's file name. Optional (the first event does it with NULL), and
 * only the first name counts. Returns 0, also when no daemon is there; -ENOMEM is the only failure,
 * and then every other call does nothing. */
int edgeprof_init(const char *app);

/* Detaches from the daemon and stops recording. Called automatically at exit. */
void edgeprof_shutdown(void);

/* Finds or declares a name (up to 128 a process, of stages, marks, gauges, counters and attributes
 * together). Takes a lock when it is new: keep the number. Returns it, or -1 when the table is
 * full, the name is NULL or empty, or it is new in a signal handler inside another call: a valid
 * argument everywhere, its events are dropped and counted. */
int edgeprof_stage(const char *name);

/* The same with a category ("memory", "model"; NULL = none), a compute unit ("gpu", NULL = none)
 * and a deadline (0 = none; ns). A known name with another unit is a stage of its own; category and
 * deadline count only when the stage is new. */
int edgeprof_stage_declare(
	const char *name, const char *category, const char *unit, uint64_t deadline_ns);

/* Opens a stage on this thread; nests. */
edgeprof_token edgeprof_begin(int stage);
/* Ends it, and forgets what was opened inside and never ended (longjmp, exceptions). */
void edgeprof_end(edgeprof_token token);
/* The same for a stage whose body failed: it counts as a run, and as a failed one. */
void edgeprof_end_failed(edgeprof_token token);

/* What edgeprof_begin and edgeprof_end measure besides the time, each time, by system calls. */
enum {
	EDGEPROF_CPU_TIME = 1,	  /* CPU time of this thread; two system calls a stage, ~1 us */
	EDGEPROF_PROCESS_CPU = 2, /* CPU time of all threads; two, ~1 us */
	EDGEPROF_RSS = 4,	  /* growth of the resident memory; six, ~10 us */
};
/* Sets what this stage measures (an or of the above; 0: only the time). Other stages pay nothing.
 * Not for stages that are begun by id. */
void edgeprof_stage_options(int stage, unsigned options);

/* What may a run of this stage take, what a frame of this program? ns, 0 = no deadline. The last
 * one counts, also for a daemon that comes later or restarts: it is never dropped. */
void edgeprof_deadline(int stage, uint64_t deadline_ns);
void edgeprof_frame_deadline(uint64_t deadline_ns);

/* Begin and end by id: may overlap, and end on another thread. */
void edgeprof_begin_id(int stage, uint64_t id);
void edgeprof_end_id(int stage, uint64_t id);

/* A stage that was timed elsewhere: CLOCK_MONOTONIC start and duration, frame or EDGEPROF_NO_FRAME.
 */
void edgeprof_complete(int stage, uint64_t start_ns, uint64_t duration_ns, uint64_t frame);

/* Frames: events of this thread between begin and end carry the frame's id. Up to 120 ends a second
 * of this thread, and while a daemon is there, an end reads the thread's context switches, page
 * faults and time on the run queue (two system calls, 2-6 us). An end without a begin does nothing.
 */
void edgeprof_frame_begin(uint64_t frame);
void edgeprof_frame_end(void);
/* A finished frame that began elsewhere (another thread captured it). start_ns 0 = only a tick. */
void edgeprof_frame(uint64_t frame, uint64_t start_ns);
/* One frame went by: FPS without anything else. */
void edgeprof_tick(void);
/* The id that this thread's next events carry, without frame statistics. */
void edgeprof_set_frame(uint64_t frame);

/* A number that goes up and down; a number that grows by increments. name: as of edgeprof_stage. */
void edgeprof_gauge(int name, double value);
void edgeprof_counter(int name, double increment);
/* edgeprof_stage with a unit ("fps", "bytes"; NULL = none), which counts only when the name is new.
 */
int edgeprof_gauge_declare(const char *name, const char *unit);
/* A number that belongs to a stage in this thread's frame (partitions, boxes, bytes read). */
void edgeprof_attribute(int stage, int name, double value);

/* A moment on the timeline, with this process's memory at that moment: resident, virtual and peak.
 * Reads /proc (six system calls, ~15 us). Takes a lock the first time a label is seen. */
void edgeprof_mark(const char *label);
/* The same with values. */
struct edgeprof_value {
	const char *name;
	double value;
};
void edgeprof_mark_with(const char *label, const struct edgeprof_value *values, size_t count);

/* What this process has counted so far: sent = received + dropped + in the ring.
 * unattached: calls before a daemon was ever there; they are in none of the others. Takes a lock;
 * from a signal handler inside another call, unattached is 0. */
struct edgeprof_counts {
	uint64_t sent, dropped, received, in_ring, unattached;
	int attached; /* a daemon holds the mapping */
};
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* C++: it has the name of the struct */
#endif
void edgeprof_counts(struct edgeprof_counts *ret);
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif

/* What the daemon advises this program to do, from how hot the machine is, whether it throttles and
 * how many of the program's frames miss their deadline. It changes seldom: a level is kept for many
 * seconds. */
enum {
	EDGEPROF_ADVICE_NONE = 0, /* no daemon for 5 s, or it knows nothing to judge by */
	EDGEPROF_ADVICE_FULL = 1,
	EDGEPROF_ADVICE_REDUCED = 2, /* two thirds of the work */
	EDGEPROF_ADVICE_MINIMAL = 3, /* one third */
};
struct edgeprof_advice {
	int level; /* EDGEPROF_ADVICE_* */
	uint32_t skip_frames,
		of_frames; /* skip skip_frames of every of_frames frames; 0 of 1: none */
	double target_fps; /* the same as a rate; 0 = none: as fast as you do, or not known */
};
/* True: *ret is the daemon's advice, not older than 5 s. False: there is none; *ret is all zero,
 * work as without a daemon. Follow skip_frames or target_fps, not both. No system call and no lock,
 * a few nanoseconds: ask each frame. Any thread, signal handlers too. The advice comes with what
 * the program records: it needs edgeprof_init, and events to find a daemon that restarted. */
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* C++: it has the name of the struct */
#endif
bool edgeprof_advice(struct edgeprof_advice *ret);
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif
/* For loops that only need to know whether to skip this frame: ask once per frame, on the thread
 * that produces them. Spreads the skipped frames evenly; never skips without advice. */
bool edgeprof_should_skip(void);

/* A session records what this program does, with the environment, for reports and comparisons. */
struct edgeprof_tag {
	const char *name, *value;
};
struct edgeprof_session {
	size_t size; /* sizeof(struct edgeprof_session); other members may be 0 */
	const struct edgeprof_tag *tags;
	size_t tag_count;
	int warmup;	      /* frames that do not count; 0 = 10, -1 = none */
	uint32_t frames;      /* ends after that many; 0 = when it is stopped */
	uint64_t duration_ns; /* ends after that time; 0 = likewise */
	char *ret_name;	      /* receives the session's name, which differs when it was taken */
	size_t ret_name_size;
};
/* Starts a session of this program (its name is cleaned as the program's; options may be NULL),
 * stops one: NULL is the one started last. error NULL, or why it failed, which is kept. These wait
 * for the daemon, up to a second: not for the hot path, nor for signal handlers. They read the
 * environment (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, MKL_NUM_THREADS, NUMEXPR_NUM_THREADS). Return
 * 0 or a negative errno: -ENOENT, -ECONNREFUSED no daemon, -EACCES, -EPERM not permitted,
 * -ETIMEDOUT, -EBUSY another thread is in one of these, -EDQUOT too many sessions, -EINVAL wrong
 * arguments, -ENXIO no such session, -ESHUTDOWN disabled or shut down. */
int edgeprof_session_start(const char *name, const struct edgeprof_session *options);
int edgeprof_session_stop(const char *name, const char *error);

/* Now on the clock of all times here (CLOCK_MONOTONIC, ns). */
uint64_t edgeprof_now(void);

/* Internal to the inline functions below, but part of the ABI. [0] is 0 when events
 * have to be recorded, 1 without a daemon, 2 when recording is disabled; a cache line,
 * because the linker may move it among a program's own variables. */
extern uint32_t edgeprof_state_[16];
edgeprof_token edgeprof_begin_(int stage);
void edgeprof_end_(edgeprof_token token);
#ifdef __has_attribute
#if __has_attribute(noplt)
__attribute__((noplt)) /* without a daemon it is most of what a stage costs */
#endif
#endif
void edgeprof_idle_(void);
/* The same, for recorders in other languages. One record as proto/mapping.h has it: kind | flags <<
 * 8, start_ns 0 = now. False: it was counted where it belongs. */
bool edgeprof_write_(int name, uint32_t kind, uint32_t cpu_us, uint64_t start_ns, uint64_t value,
	uint64_t frame);
/* From now on `depth` of this thread's open stages are open (at most as many as were), and one more
 * that began at start_ns, unless stage is -1 or 16 are. False: nobody listens, or no slot is free.
 */
bool edgeprof_open_(uint32_t depth, int stage, uint64_t start_ns, uint64_t frame);
/* edgeprof_stage for the text of a mark, which people read: kept as it is, as far as it fits. */
int edgeprof_label_(const char *label);

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC visibility pop

/* Without a daemon begin is a load and a jump, and end one short call. Functions of the same names
 * are in the library for those who need their address. */
#ifndef EDGEPROF_NO_INLINE
extern __inline __attribute__((always_inline, gnu_inline)) edgeprof_token edgeprof_begin(int stage)
{
	if (__builtin_expect(__atomic_load_n(&edgeprof_state_[0], __ATOMIC_RELAXED) == 0, 1)) {
		return edgeprof_begin_(stage);
	}
	edgeprof_token none = {0, 0, 0};
	return none;
}

extern __inline __attribute__((always_inline, gnu_inline)) void edgeprof_end(edgeprof_token token)
{
	if (__builtin_expect(token.start_ns != 0, 1)) {
		edgeprof_end_(token);
	} else if (__atomic_load_n(&edgeprof_state_[0], __ATOMIC_RELAXED) != 2) {
		edgeprof_idle_();
	}
}
#endif

static __inline void edgeprof_scope_end_(edgeprof_token *token)
{
	edgeprof_end(*token);
}

/* A place in the code keeps the number of its name: below -1 not known yet. A string literal is
 * declared once, and after three failures (the table is full) never again; any other text is looked
 * up each time. */
enum { EDGEPROF_SITE_NEW_ = -4, EDGEPROF_SITE_VARIES_ = -5 };
#define EDGEPROF_SITE_(stage) \
	(__builtin_constant_p(stage) ? EDGEPROF_SITE_NEW_ : EDGEPROF_SITE_VARIES_)

static __inline __attribute__((cold)) int edgeprof_site_declare_(
	int *site, int known, const char *name, const char *category, const char *unit)
{
	int stage = edgeprof_stage_declare(name, category, unit, 0);
	if (known != EDGEPROF_SITE_VARIES_) {
		__atomic_store_n(site, stage >= 0 ? stage : known + 1, __ATOMIC_RELEASE);
	}
	return stage;
}

/* Threads that meet here declare the same name, and receive the same number. */
static __inline int edgeprof_site_named_(
	int *site, const char *name, const char *category, const char *unit)
{
	int known = __atomic_load_n(site, __ATOMIC_ACQUIRE);
	return __builtin_expect(known >= -1, 1)
		       ? known
		       : edgeprof_site_declare_(site, known, name, category, unit);
}

static __inline int edgeprof_site_numbered_(
	int *site, int stage, const char *category, const char *unit)
{
	(void)site;
	(void)category;
	(void)unit;
	return stage;
}

#ifdef __cplusplus
extern "C++" {
static __inline int edgeprof_site_stage_(
	int *site, const char *name, const char *category, const char *unit)
{
	return edgeprof_site_named_(site, name, category, unit);
}
static __inline int edgeprof_site_stage_(
	int *site, int stage, const char *category, const char *unit)
{
	return edgeprof_site_numbered_(site, stage, category, unit);
}
}
#define EDGEPROF_SITE_STAGE_(site, stage, category, unit) \
	edgeprof_site_stage_(&site, stage, category, unit)
#else
#define EDGEPROF_SITE_STAGE_(site, stage, category, unit) \
	__extension__ _Generic((stage), char *: edgeprof_site_named_, const char *      \
			       : edgeprof_site_named_, default: edgeprof_site_numbered_)( \
		&site, stage, category, unit)
#endif

#define EDGEPROF_JOIN2_(a, b) a##b
#define EDGEPROF_JOIN_(a, b) EDGEPROF_JOIN2_(a, b)
#define EDGEPROF_SCOPE_(site, token, stage, category, unit, ...)                     \
	static int site = EDGEPROF_SITE_(stage);                                     \
	__attribute__((cleanup(edgeprof_scope_end_), unused)) edgeprof_token token = \
		edgeprof_begin(EDGEPROF_SITE_STAGE_(site, stage, category, unit))
/* Times the rest of the enclosing block: EDGEPROF_SCOPE("infer"), which needs no variable; with
 * category and unit as of edgeprof_stage_declare: EDGEPROF_SCOPE("infer", "model", "gpu"); or
 * EDGEPROF_SCOPE(stage), a number of edgeprof_stage. Two declarations; one use per line. */
#define EDGEPROF_SCOPE(...)                                       \
	EDGEPROF_SCOPE_(EDGEPROF_JOIN_(edgeprof_site_, __LINE__), \
		EDGEPROF_JOIN_(edgeprof_scope_, __LINE__), __VA_ARGS__, NULL, NULL, 0)
#endif

#ifdef __cplusplus
}
#endif
