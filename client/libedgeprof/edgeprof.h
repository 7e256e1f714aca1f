/*
 * edgeprof.h - tell edgeprofd what your pipeline does, without noticing it yourself.
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
 * Or: { EDGEPROF_SCOPE(infer); … } and it ends with the block.
 *
 * No call blocks, fails the program, or writes to stdout/stderr (unless EDGEPROF_PRINT=1 asks for a
 * line `[stage] 12.34ms` on stderr at each end of a stage, daemon or not). Recording an event makes
 * no system call, takes no lock and allocates nothing; once a second the first event of that second
 * looks whether a daemon is there. Without a daemon an event costs a few nanoseconds. What cannot
 * be delivered is dropped and counted. Every function may be called from any thread; begin, end,
 * frame and the like also from signal handlers (an event raised inside an event is dropped and
 * counted). After fork() the child is a process of its own. Link with -ledgeprof; needs only libc.
 *
 * EDGEPROF_RUNTIME_DIR names the daemon's run directory; else /run/edgeprofd, then
 * $XDG_RUNTIME_DIR/edgeprofd. EDGEPROF_DISABLE=1 switches everything off. EDGEPROF_MAPPING_SIZE is
 * the shared memory in bytes (65536 to 1048576 in powers of two; 262144). All are read once.
 */
#pragma once

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
 * only the first call counts. Returns 0, also when no daemon is there; -ENOMEM is the only failure,
 * and then every other call does nothing. */
int edgeprof_init(const char *app);

/* Says bye to the daemon and stops recording. Called at exit by itself. */
void edgeprof_shutdown(void);

/* Finds or declares a stage by name (up to 128 names a process, for stages, marks and gauges
 * together). Takes a lock: keep the number. Returns it, or -1 when the table is full: a valid
 * argument everywhere, its events are dropped and counted. */
int edgeprof_stage(const char *name);

/* The same with a category ("memory", "model"; NULL = none), a compute unit ("gpu", NULL = none)
 * and a deadline (0 = none; ns). They count only when the name is new. */
int edgeprof_stage_declare(
	const char *name, const char *category, const char *unit, uint64_t deadline_ns);

/* Opens a stage on this thread; nests. */
edgeprof_token edgeprof_begin(int stage);
/* Ends it, and forgets what was opened inside and never ended (longjmp, exceptions). */
void edgeprof_end(edgeprof_token token);

/* Begin and end by id: may overlap, and end on another thread. */
void edgeprof_begin_id(int stage, uint64_t id);
void edgeprof_end_id(int stage, uint64_t id);

/* A stage that was timed elsewhere: CLOCK_MONOTONIC start and duration, frame or EDGEPROF_NO_FRAME.
 */
void edgeprof_complete(int stage, uint64_t start_ns, uint64_t duration_ns, uint64_t frame);

/* Frames: events of this thread between begin and end carry the frame's id. */
void edgeprof_frame_begin(uint64_t frame);
void edgeprof_frame_end(void);
/* A finished frame that began elsewhere (another thread captured it). start_ns 0 = only a tick. */
void edgeprof_frame(uint64_t frame, uint64_t start_ns);
/* One frame went by: FPS without anything else. */
void edgeprof_tick(void);
/* The id that this thread's next events carry, without frame statistics. */
void edgeprof_set_frame(uint64_t frame);

/* A moment on the timeline. Takes a lock the first time a label is seen. */
void edgeprof_mark(const char *label);

/* What this process has counted so far: sent = received + dropped + in the ring.
 * unattached: events before a daemon was ever there; they are in none of the others. */
struct edgeprof_counts {
	uint64_t sent, dropped, received, in_ring, unattached;
	int attached; /* a daemon holds the mapping */
};
void edgeprof_counts(struct edgeprof_counts *ret);

/* Now on the clock of all times here (CLOCK_MONOTONIC, ns). */
uint64_t edgeprof_now(void);

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC visibility pop
static inline void edgeprof_scope_end_(edgeprof_token *token)
{
	edgeprof_end(*token);
}
#define EDGEPROF_JOIN2_(a, b) a##b
#define EDGEPROF_JOIN_(a, b) EDGEPROF_JOIN2_(a, b)
/* Times the rest of the enclosing block as `stage` (a number of edgeprof_stage). */
#define EDGEPROF_SCOPE(stage)                                                                \
	__attribute__((cleanup(edgeprof_scope_end_), unused)) edgeprof_token EDGEPROF_JOIN_( \
		edgeprof_scope_, __LINE__) = edgeprof_begin(stage)
#endif

#ifdef __cplusplus
}
#endif
