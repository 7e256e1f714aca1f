/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.h: defines the event mapping: one sealed memfd per instrumented process, written by
 * libedgeprof, read by the daemon. Both sides compile this layout and its rules. Native byte order:
 * the peers share a kernel. All offsets are fixed for a size, so neither side trusts the other's.
 *
 *     offset 0                   struct proto_map_header         (512 bytes)
 *     PROTO_MAP_DECLARATIONS     struct proto_declaration[128]   (128 bytes each)
 *     geometry.slots_offset      struct proto_slot[slots]        (512 bytes each, one per thread)
 *     geometry.chunks_offset     struct proto_chunk[chunks]         (16 bytes each)
 *     geometry.records_offset    struct proto_record[chunks][chunk_records]
 *
 * Records. A slot's records are numbered from 0; `head` counts those published, and one release
 * store of it both publishes a record and counts it as sent: a process killed while writing has not
 * sent that record. Position p lives in the slot's chunk whose base is p rounded down to a multiple
 * of chunk_records. A thread that needs a chunk takes a free one (owner 0 -> slot+1 by compare and
 * exchange, once in chunk_records events), sets its base, and links it after its last one
 * (its next, or first_chunk when there is none) before it publishes a record in it. No free chunk:
 * the newest event is refused and counted in `dropped`.
 *
 * The reader keeps its position privately and checkpoints it (tail, tail_chunk) in the slot. It
 * passes a chunk when tail has reached base + chunk_records *and* head is beyond it (only then is
 * next linked; the writer still has to write next of a chunk that was read to its end, so such
 * a chunk stays tail_chunk and owned): checkpoint first (tail, tail_chunk = next), then
 * owner = PROTO_CHUNK_FREEING, base = UINT64_MAX, owner = 0, each with release. A reader that
 * attaches again completes what a killed one left between these steps: it frees chunks with owner
 * PROTO_CHUNK_FREEING, and chunks of a slot whose base + chunk_records <= tail, except tail_chunk;
 * a chunk just taken has its slot's owner and base UINT64_MAX still and is left alone.
 *
 * Identity at any time, also across SIGKILL of either side:
 *     sent = received + dropped + in the ring
 *     sent     = sum over slots (head + dropped + dropped_busy) + lost
 *     received = sum over slots tail
 *     dropped  = sum over slots (dropped + dropped_busy) + lost
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/name.h"

#define PROTO_MAP_MAGIC 0x50454745u   /* "EGEP" */
#define PROTO_HELLO_MAGIC 0x48454745u /* "EGEH" */
#define PROTO_NO_CHUNK UINT32_MAX
#define PROTO_CHUNK_FREEING UINT32_MAX /* an owner: the reader is giving it back */
#define PROTO_NO_BASE UINT64_MAX
#define PROTO_CPU_NOT_MEASURED UINT32_MAX
#define PROTO_NO_FRAME UINT64_MAX

enum {
	PROTO_MAP_MAJOR = 2, /* another major is refused */
	PROTO_MAP_MINOR = 0,
	PROTO_MAP_MIN_SIZE = 64 * 1024,
	PROTO_MAP_DEFAULT_SIZE = 256 * 1024,
	PROTO_MAP_MAX_SIZE = 1024 * 1024,
	PROTO_DECLARATIONS = 128,
	PROTO_OPEN_STAGES = 16, /* depth of a thread's stack of open stages */
	PROTO_LABEL_SIZE = 24,
};

/* flags of proto_map_header */
enum {
	PROTO_MAP_BYE = 1, /* the process ended on purpose (exit, edgeprof_shutdown) */
};

struct proto_map_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t size;	       /* of the whole mapping; must equal the file's */
	uint32_t flags;	       /* PROTO_MAP_*, atomic */
	uint64_t created_ns;   /* CLOCK_MONOTONIC */
	uint32_t declarations; /* how many are published; store with release; only grows */
	uint32_t reserved0;
	/* one cache line: written by any thread, seldom */
	_Alignas(64) uint64_t
		lost; /* events with no slot or no declaration to count them in; atomic add */
	/* one cache line: latch set by a writer that woke the reader, cleared by the reader's drain
	 */
	_Alignas(64) uint32_t wake;
	/* one cache line, written by the reader about once a second: what it advises the app to do
	 * (proto_advice_pack), and when it last did, CLOCK_MONOTONIC. The word is stored first, the
	 * time with release; the app loads the time with acquire, then the word, which is never
	 * older than the time. Advice older than PROTO_ADVICE_FRESH_NS is void: no reader runs. */
	_Alignas(64) uint64_t advice;
	uint64_t advice_ns;
	uint8_t reserved1[304];
};

#define PROTO_ADVICE_FRESH_NS UINT64_C(5000000000)

enum proto_advice_level {
	PROTO_ADVICE_NONE = 0, /* no basis for advice */
	PROTO_ADVICE_FULL = 1,
	PROTO_ADVICE_REDUCED = 2,
	PROTO_ADVICE_MINIMAL = 3,
};

struct proto_advice {
	enum proto_advice_level level;
	uint8_t skip_frames, of_frames; /* frames to skip of each of_frames; 0 of 1: none */
	uint32_t target_mfps;		/* frames in 1000 s; 0 = no target */
};

/* Packs advice into one word, so that no reader ever sees half of it. All zero: no advice. */
static inline uint64_t proto_advice_pack(const struct proto_advice *advice)
{
	return (uint64_t)advice->level | (uint64_t)advice->skip_frames << 8 |
	       (uint64_t)advice->of_frames << 16 | (uint64_t)advice->target_mfps << 32;
}

/* False: no advice, or a word that proto_advice_pack never makes. */
static inline bool proto_advice_unpack(uint64_t word, struct proto_advice *ret)
{
	uint8_t level = (uint8_t)word, skip = (uint8_t)(word >> 8), of = (uint8_t)(word >> 16);
	if (level == PROTO_ADVICE_NONE || level > PROTO_ADVICE_MINIMAL || skip >= of) {
		return false;
	}
	*ret = (struct proto_advice){
		(enum proto_advice_level)level, skip, of, (uint32_t)(word >> 32)};
	return true;
}

/* A name is declared once and never changed; index = position in the table. */
struct proto_declaration {
	char name[PROTO_NAME_SIZE];	 /* NUL-terminated; cleaned by the reader all the same */
	char category[PROTO_LABEL_SIZE]; /* "" = none */
	char unit[PROTO_LABEL_SIZE]; /* compute unit (cpu, gpu, …) or a gauge's unit; "" = none */
	uint8_t reserved[15];
	uint64_t deadline_ns; /* 0 = none */
	uint64_t reserved2;
};

struct proto_open_stage {
	uint64_t start_ns;
	uint64_t frame; /* PROTO_NO_FRAME = none */
	uint32_t stage;
	uint32_t reserved;
};

/* flags of a slot, set before its first record */
enum { PROTO_SLOT_CHECKED = 1 };

enum proto_slot_state { PROTO_SLOT_FREE = 0, PROTO_SLOT_OWNED = 1, PROTO_SLOT_RELEASED = 2 };

/* All that a stage writes here but its record is in the first cache line, unless it is nested. */
struct proto_slot {
	/* written by the owning thread */
	uint64_t head;	       /* records published; release */
	uint64_t dropped;      /* events refused: no free chunk */
	uint64_t dropped_busy; /* events refused: raised by a signal handler inside an event; atomic
				  add */
	uint32_t depth; /* open stages; may exceed PROTO_OPEN_STAGES, the excess is not stored */
	uint32_t state; /* enum proto_slot_state; taken by compare and exchange */
	uint32_t tid;	/* gettid() in the process's namespace */
	uint32_t first_chunk; /* PROTO_NO_CHUNK until the first record */
	struct proto_open_stage open[PROTO_OPEN_STAGES];
	uint32_t flags; /* PROTO_SLOT_* */
	/* written by the reader */
	_Alignas(64) uint64_t tail;
	uint32_t tail_chunk; /* chunk of position tail; PROTO_NO_CHUNK before the first record */
};

/* One line for four chunks: a thread that goes from one to the next meets few lines that the reader
 * has written. */
struct proto_chunk {
	uint64_t base;	/* position in its slot of the first record; PROTO_NO_BASE */
	uint32_t owner; /* 0 = free, slot + 1, or PROTO_CHUNK_FREEING */
	uint32_t next;	/* the chunk that follows in its slot; PROTO_NO_CHUNK */
};

/* What the fields of a record hold, by kind; stage is always a declaration index.
 *
 *     kind        stage       cpu_us          start_ns    value              frame
 *     COMPLETE    the stage   thread's CPU    begin       duration, ns       its frame
 *     BEGIN END   the stage   (END: CPU)      the moment  id                 its frame
 *     FRAME       -           -               begin       duration, 0 = tick its id
 *     MARK        the label   -               the moment  RSS, bytes, 0 = ?  the frame
 *     MARK_MEMORY the label   -               its mark's  VMS, bytes         peak RSS, bytes
 *     GAUGE       the gauge   -               the moment  bits of a double   -
 *     COUNTER     the counter -               the moment  bits, increment    -
 *     ATTRIBUTE   its name    index of the    the moment, bits of a double   the frame
 *                             stage or mark   a mark's
 *     CONTEXT     -           run delay, us   tick time   proto_context      its id
 *     COST        the stage   -               begin       process CPU, ns    RSS growth, bytes
 *     DEADLINE    the stage   -               the moment  ns, 0 = none       -
 *
 * COST comes right before its COMPLETE and has the same start. DEADLINE with PROTO_RECORD_OF_FRAMES
 * is that of the app's frames. Not measured: PROTO_CPU_NOT_MEASURED; COST: UINT64_MAX and
 * INT64_MIN.
 */
enum proto_kind {
	PROTO_KIND_NONE = 0,
	PROTO_KIND_COMPLETE = 1,
	PROTO_KIND_BEGIN = 2, /* by id, matched with END of the same stage and id */
	PROTO_KIND_END = 3,
	PROTO_KIND_FRAME = 4, /* tick time = start + duration */
	PROTO_KIND_MARK = 5,
	PROTO_KIND_GAUGE = 6,
	PROTO_KIND_COUNTER = 7,
	PROTO_KIND_CONTEXT = 8, /* switches, faults and run delay of the frame's thread */
	PROTO_KIND_ATTRIBUTE = 9,
	PROTO_KIND_MARK_MEMORY = 10, /* right after its mark */
	PROTO_KIND_COST = 11,
	PROTO_KIND_DEADLINE = 12,
	PROTO_KIND_COUNT
};

/* flags of a record */
enum {
	PROTO_RECORD_NESTED = 1, /* its parent stage was open in the same thread */
	PROTO_RECORD_FAILED = 2, /* the body ended by an error the client saw */
	PROTO_RECORD_OF_FRAMES = 4,
	PROTO_RECORD_OF_TASK = 8,     /* its thread may be in several frames in turns (asyncio) */
	PROTO_RECORD_DEPTH_SHIFT = 4, /* upper four bits: stages open around it, at most 15 */
};

/* The value of a CONTEXT: four saturating counts of the frame. */
static inline uint64_t proto_context(
	uint16_t voluntary, uint16_t involuntary, uint16_t minor_faults, uint16_t major_faults)
{
	return (uint64_t)voluntary | (uint64_t)involuntary << 16 | (uint64_t)minor_faults << 32 |
	       (uint64_t)major_faults << 48;
}

struct proto_record {
	uint16_t stage; /* declaration index; a checked slot's has the check in its upper byte */
	uint8_t kind;	/* enum proto_kind */
	uint8_t flags;
	uint32_t cpu_us; /* saturating; PROTO_CPU_NOT_MEASURED */
	uint64_t start_ns;
	uint64_t value;
	uint64_t frame; /* PROTO_NO_FRAME = none */
};

/* The check of a record at a position of a slot with PROTO_SLOT_CHECKED, whose writer has no
 * release store (Python): all bytes but the check's own, and the position, folded by exclusive or.
 * A record whose check is wrong is not there yet: the reader waits one pass, then takes it for
 * damaged. stage holds the index only. */
static inline uint8_t proto_record_check(const struct proto_record *record, uint64_t position)
{
	uint64_t x = (uint64_t)(record->stage & 0xff) | (uint64_t)record->kind << 16 |
		     (uint64_t)record->flags << 24 | (uint64_t)record->cpu_us << 32;
	x ^= record->start_ns ^ record->value ^ record->frame ^ position ^ position >> 8;
	x ^= x >> 32;
	x ^= x >> 16;
	x ^= x >> 8;
	return (uint8_t)(x ^ 0xa5);
}

/* The one packet that carries the memfd (SCM_RIGHTS) on the SOCK_SEQPACKET events socket. Any later
 * packet on the connection is a wake-up byte. The reader never answers. */
struct proto_hello {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t mapping_size;
	uint32_t page_size;
	uint64_t mono_ns; /* the sender's CLOCK_MONOTONIC: another time namespace is > 1 s off */
	char app[64];	  /* NUL-terminated; cleaned by the reader */
};

struct proto_geometry {
	uint32_t size;
	uint32_t slots;
	uint32_t chunks;
	uint32_t chunk_records; /* power of two */
	uint32_t slots_offset, chunks_offset, records_offset;
};

#define PROTO_MAP_DECLARATIONS sizeof(struct proto_map_header)

/* Else the compiler calls libatomic, whose locks the peers do not share. ARMv6 needs armv6k. */
#if __GCC_ATOMIC_LLONG_LOCK_FREE != 2
#error "no lock-free 64-bit atomics"
#endif
_Static_assert(sizeof(struct proto_map_header) == 512, "header");
_Static_assert(sizeof(struct proto_declaration) == 128, "declaration");
_Static_assert(sizeof(struct proto_slot) == 512, "slot");
_Static_assert(sizeof(struct proto_chunk) == 16, "chunk");
_Static_assert(sizeof(struct proto_record) == 32, "record");
_Static_assert(sizeof(struct proto_hello) == 88, "hello");

/* The layout of a mapping of one of these sizes: 64K, 128K, 256K, 512K, 1M. 0, or -EINVAL for
 * any other size. Pure: both sides get the same numbers. */
int proto_geometry(uint32_t size, struct proto_geometry *ret);

static inline struct proto_declaration *proto_map_declarations(void *map)
{
	return (struct proto_declaration *)((char *)map + PROTO_MAP_DECLARATIONS);
}

static inline struct proto_slot *proto_map_slots(void *map, const struct proto_geometry *g)
{
	return (struct proto_slot *)((char *)map + g->slots_offset);
}

static inline struct proto_chunk *proto_map_chunks(void *map, const struct proto_geometry *g)
{
	return (struct proto_chunk *)((char *)map + g->chunks_offset);
}

/* The chunk's first record; the caller has checked chunk < g->chunks. */
static inline struct proto_record *proto_map_records(
	void *map, const struct proto_geometry *g, uint32_t chunk)
{
	return (struct proto_record *)((char *)map + g->records_offset) +
	       (size_t)chunk * g->chunk_records;
}
