/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of hostile mappings. */
#include "daemon/ingest/ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/util/sysops.h"
#include "tests/unit/ingest/ring_writer.h"
#include "tests/unit/unit.h"

enum { SIZE = 64 * 1024 };

struct seen {
	uint64_t records, declarations;
	uint64_t last[64]; /* value of the slot's last record */
	uint32_t threads[64];
	bool ordered;
	char name[PROTO_NAME_SIZE];
};

static void see_declaration(void *ctx, uint32_t index, const struct proto_declaration *copy)
{
	struct seen *seen = ctx;
	ck_assert_uint_lt(index, PROTO_DECLARATIONS);
	ck_assert_uint_lt(strnlen(copy->name, sizeof(copy->name)), sizeof(copy->name));
	seen->declarations++;
	memcpy(seen->name, copy->name, sizeof(seen->name));
}

static size_t see_records(void *ctx, uint32_t slot, const struct proto_record *copies, size_t n)
{
	struct seen *seen = ctx;
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_le(n, RING_BATCH);
	for (size_t i = 0; i < n; i++) {
		seen->ordered = seen->ordered && copies[i].value == seen->last[slot] + 1;
		seen->last[slot] = copies[i].value;
	}
	seen->records += n;
	return n;
}

static struct seen seen;
static const struct ring_sink sink = {see_declaration, see_records, NULL, &seen};
static void *map;
static struct writer writer;
static struct ring *ring;

static void setup(void)
{
	memset(&seen, 0, sizeof(seen));
	seen.ordered = true;
	map = aligned_alloc(64, SIZE);
	ck_assert_ptr_nonnull(map);
	memset(map, 0, SIZE);
	writer_init(&writer, map, SIZE);
	ring = NULL;
}

static void teardown(void)
{
	ring_destroy(ring);
	free(map);
}

static void attach(void)
{
	ring_destroy(ring);
	ring = NULL;
	ck_assert_int_eq(ring_create(map, SIZE, &ring), 0);
}

static size_t drain(size_t budget)
{
	bool more;
	return ring_drain(ring, &sink, budget, &more);
}

/* Numbers each slot's records 1, 2, 3 … */
static unsigned put(uint32_t slot, unsigned count)
{
	unsigned done = 0;
	while (done < count) {
		struct proto_record r = {
			.kind = PROTO_KIND_COMPLETE, .value = writer.head[slot] + 1};
		if (!writer_put(&writer, slot, &r)) {
			break;
		}
		done++;
	}
	return done;
}

static void check_identity(uint64_t tried)
{
	struct ring_counts c;
	ring_counts(ring, &c);
	ck_assert_uint_eq(c.sent, c.received + c.dropped + c.in_ring);
	ck_assert_uint_eq(c.sent, tried);
	uint64_t tails = 0;
	for (uint32_t i = 0; i < writer.g.slots; i++) {
		tails += writer.slots[i].tail;
	}
	ck_assert_uint_eq(c.received, tails);
}

TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_TEST(records_arrive_once_and_in_order)
{
	attach();
	for (unsigned round = 0; round < 200; round++) {
		for (uint32_t slot = 0; slot < 3; slot++) {
			ck_assert_uint_eq(put(slot, 37 + slot), 37 + slot);
		}
		drain(RING_BUDGET);
		check_identity((uint64_t)(round + 1) * (37 + 38 + 39));
	}
	ck_assert(seen.ordered);
	ck_assert_uint_eq(seen.records, 200 * (37 + 38 + 39));
	ck_assert_uint_eq(seen.last[2], 200 * 39);
}
END_TEST

START_TEST(a_full_ring_drops_the_newest_and_counts)
{
	attach();
	unsigned room = writer.g.chunks * writer.g.chunk_records;
	ck_assert_uint_eq(put(0, room + 5), room);
	struct ring_counts c;
	ring_counts(ring, &c);
	ck_assert_uint_eq(c.dropped, 1);
	ck_assert_uint_eq(c.in_ring, room);
	ck_assert_uint_eq(c.sent, room + 1);
	drain(RING_BUDGET);
	ck_assert_uint_eq(seen.records, room);
	/* everything but the chunk that ends at tail is free again */
	ck_assert_uint_eq(put(1, room), room - writer.g.chunk_records);
}
END_TEST

static void see_thread(void *ctx, uint32_t slot)
{
	((struct seen *)ctx)->threads[slot]++;
}

START_TEST(a_slot_that_another_thread_has_is_told_ahead_of_its_records)
{
	const struct ring_sink told = {see_declaration, see_records, see_thread, &seen};
	bool more;
	attach();
	for (uint32_t tid = 100; tid < 110; tid++) {
		writer.slots[1].tid = tid;
		ring_drain(ring, &told, RING_BUDGET, &more);
		ck_assert_uint_eq(seen.threads[1], tid - 100);
		for (int pass = 0; pass < 3; pass++) {
			put(1, 5);
			ring_drain(ring, &told, RING_BUDGET, &more);
			ck_assert_uint_eq(seen.threads[1], tid - 99);
		}
	}
	ck_assert_uint_eq(seen.records, 10 * 3 * 5);
	ck_assert_uint_eq(seen.threads[0], 0);
}
END_TEST

static unsigned wanted;

static size_t take_some(void *ctx, uint32_t slot, const struct proto_record *copies, size_t n)
{
	size_t taken = n < wanted ? n : wanted;
	wanted -= (unsigned)taken;
	return taken > 0 ? see_records(ctx, slot, copies, taken) : 0;
}

START_TEST(what_the_sink_refuses_comes_again)
{
	const struct ring_sink reluctant = {see_declaration, take_some, NULL, &seen};
	attach();
	put(0, 100);
	put(1, 100);
	bool more;
	for (unsigned round = 0; round < 20; round++) {
		wanted = 10;
		ck_assert_uint_eq(ring_drain(ring, &reluctant, 1000, &more), 10);
		ck_assert(more || round == 19);
		check_identity(200);
	}
	ck_assert(!more);
	ck_assert(seen.ordered);
}
END_TEST

START_TEST(a_budget_ends_a_call_and_no_slot_starves)
{
	attach();
	put(0, 500);
	put(1, 500);
	bool more;
	ck_assert_uint_eq(ring_drain(ring, &sink, 300, &more), 300);
	ck_assert(more);
	put(0, 400);
	ck_assert_uint_eq(ring_drain(ring, &sink, 700, &more), 700);
	ck_assert_uint_eq(ring_drain(ring, &sink, 700, &more), 400);
	ck_assert(!more);
	ck_assert(seen.ordered);
	check_identity(1400);
}
END_TEST

static uint64_t newest_ns[2];

static size_t see_times(void *ctx, uint32_t slot, const struct proto_record *copies, size_t n)
{
	newest_ns[slot] = copies[n - 1].start_ns;
	const uint64_t *ahead = &newest_ns[newest_ns[1] > newest_ns[0]];
	const uint64_t behind = newest_ns[newest_ns[1] <= newest_ns[0]];
	if (behind < 990) { /* it has more */
		ck_assert_uint_le(*ahead - behind, RING_TURN * 8);
	}
	return see_records(ctx, slot, copies, n);
}

/* One has eight records in the time of one of the other. */
START_TEST(slots_are_read_in_the_order_of_time)
{
	const struct ring_sink timed = {see_declaration, see_times, NULL, &seen};
	bool more;
	attach();
	for (uint64_t t_ns = 1; t_ns <= 1000; t_ns++) {
		struct proto_record r = {.kind = PROTO_KIND_GAUGE, .start_ns = t_ns, .value = t_ns};
		ck_assert(writer_put(&writer, 0, &r));
		r.value = t_ns / 8;
		ck_assert(t_ns % 8 != 0 || writer_put(&writer, 1, &r));
	}
	ck_assert_uint_eq(ring_drain(ring, &timed, RING_BUDGET, &more), 1125);
	ck_assert(!more && seen.ordered);
}
END_TEST

START_TEST(declarations_come_before_their_records)
{
	attach();
	writer_declare(&writer, "infer", 33);
	put(0, 1);
	drain(RING_BUDGET);
	ck_assert_uint_eq(seen.declarations, 1);
	ck_assert_str_eq(seen.name, "infer");
	drain(RING_BUDGET);
	ck_assert_uint_eq(seen.declarations, 1);
	memset(proto_map_declarations(map)[1].name, 'x', PROTO_NAME_SIZE); /* no NUL */
	writer.header->declarations = UINT32_MAX;
	drain(RING_BUDGET);
	ck_assert_uint_eq(seen.declarations, PROTO_DECLARATIONS);
	writer.header->declarations = 0;
	drain(RING_BUDGET);
	ck_assert_uint_eq(seen.declarations, PROTO_DECLARATIONS);
}
END_TEST

START_TEST(a_new_reader_goes_on_at_the_checkpoint)
{
	attach();
	uint64_t tried = 0;
	for (unsigned round = 0; round < 500; round++) {
		tried += put(round % 3, round % 50);
		drain(round % 41 + 10);
		attach();
		check_identity(tried);
	}
	drain(RING_BUDGET);
	check_identity(tried);
	ck_assert_uint_eq(seen.records, tried);
	ck_assert(seen.ordered);
	struct ring_counts c;
	ring_counts(ring, &c);
	ck_assert_uint_eq(c.skipped, 0);
}
END_TEST

/* What a reader killed between its checkpoint and the hand-back leaves. */
START_TEST(a_new_reader_frees_what_the_old_one_left)
{
	attach();
	put(0, writer.g.chunk_records + 1);
	uint32_t old = writer.slots[0].first_chunk;
	drain(RING_BUDGET);
	ck_assert_uint_eq(proto_map_chunks(map, &writer.g)[old].owner, 0);
	proto_map_chunks(map, &writer.g)[old].base = 0;
	proto_map_chunks(map, &writer.g)[old].owner = 1;
	attach();
	ck_assert_uint_eq(proto_map_chunks(map, &writer.g)[old].owner, 0);
	ck_assert_uint_eq(proto_map_chunks(map, &writer.g)[old].base, PROTO_NO_BASE);
	/* killed after the first step of the hand-back, and after the second */
	proto_map_chunks(map, &writer.g)[old].base = 0;
	proto_map_chunks(map, &writer.g)[old].owner = PROTO_CHUNK_FREEING;
	attach();
	ck_assert_uint_eq(proto_map_chunks(map, &writer.g)[old].owner, 0);
	ck_assert_uint_eq(proto_map_chunks(map, &writer.g)[old].base, PROTO_NO_BASE);
	proto_map_chunks(map, &writer.g)[old].owner = PROTO_CHUNK_FREEING;
	attach();
	ck_assert_uint_eq(proto_map_chunks(map, &writer.g)[old].owner, 0);
	/* just taken: base not yet set */
	proto_map_chunks(map, &writer.g)[old].owner = 2;
	attach();
	ck_assert_uint_eq(proto_map_chunks(map, &writer.g)[old].owner, 2);
}
END_TEST

START_TEST(killed_between_the_two_words_of_a_checkpoint_loses_nothing)
{
	attach();
	uint32_t n = writer.g.chunk_records;
	put(0, n);
	drain(RING_BUDGET);
	put(0, 5);
	uint32_t second = proto_map_chunks(map, &writer.g)[writer.slots[0].tail_chunk].next;
	writer.slots[0].tail_chunk = second; /* stored, but the old chunk not handed back */
	attach();
	drain(RING_BUDGET);
	ck_assert(seen.ordered);
	ck_assert_uint_eq(seen.records, n + 5);
	check_identity(n + 5);
}
END_TEST

START_TEST(an_unbelievable_checkpoint_starts_at_head)
{
	attach();
	put(0, 40);
	drain(20);
	static const struct {
		uint64_t tail;
		uint32_t chunk;
	} table[] = {{41, 0}, {UINT64_MAX, 0}, {1ull << 40, 5}};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		writer.slots[0].tail = table[i].tail;
		writer.slots[0].tail_chunk = table[i].chunk;
		attach();
		ck_assert_uint_eq(writer.slots[0].tail, 40);
		check_identity(40);
	}
	seen.last[0] = 40;
	put(0, 60);
	drain(RING_BUDGET);
	ck_assert(seen.ordered);
	check_identity(100);
	/* the chunk of tail is owned by somebody else: what is left is skipped and counted */
	put(0, 10);
	memset(proto_map_chunks(map, &writer.g), 0xff, 16 * writer.g.chunks);
	attach();
	struct ring_counts c;
	ring_counts(ring, &c);
	ck_assert_uint_eq(c.skipped, 10);
	check_identity(110);
}
END_TEST

START_TEST(a_forged_head_damages_its_slot_only)
{
	static const int64_t moves[] = {-1, -1000, 100000, INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		teardown();
		setup();
		attach();
		put(0, 100);
		put(1, 10);
		drain(RING_BUDGET);
		writer.slots[0].head += (uint64_t)moves[i];
		put(1, 10);
		drain(RING_BUDGET);
		ck_assert_uint_eq(seen.last[1], 20);
		struct ring_counts c;
		ring_counts(ring, &c);
		ck_assert_uint_eq(c.damaged, 1);
		ck_assert_uint_eq(c.sent, c.received + c.dropped + c.in_ring);
		ck_assert_uint_eq(c.received, 120);
	}
}
END_TEST

/* There is no room for more records than the mapping has places: not one of them is taken. */
START_TEST(a_head_beyond_the_capacity_is_damage_at_once)
{
	const uint64_t room = (uint64_t)writer.g.chunks * writer.g.chunk_records;
	const uint64_t ahead[] = {room + 1, room + writer.g.chunk_records, 2 * room - 1, 2 * room};
	for (size_t i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
		teardown();
		setup();
		attach();
		const unsigned some = writer.g.chunk_records + 3; /* the rest of a chunk is there */
		put(0, some);
		drain(RING_BUDGET);
		ck_assert_uint_eq(seen.records, some);
		writer.slots[0].head += ahead[i];
		struct ring_counts c;
		ring_counts(ring, &c); /* nor are they counted before they are read */
		ck_assert_uint_eq(c.in_ring, 0);
		drain(RING_BUDGET);
		ck_assert_uint_eq(seen.records, some);
		ring_counts(ring, &c);
		ck_assert_uint_eq(c.damaged, 1);
		ck_assert_uint_eq(c.received, some);
		attach(); /* nor does a new reader begin so far behind */
		ck_assert_uint_eq(writer.slots[0].tail, some + ahead[i]);
	}
}
END_TEST

START_TEST(forged_links_never_lead_astray)
{
	uint32_t n = writer.g.chunk_records;
	attach();
	put(0, 2 * n);
	put(1, 2 * n);
	/* loops, strangers and nonsense in the links: the tables still know the chunks */
	for (uint32_t i = 0; i < writer.g.chunks; i++) {
		proto_map_chunks(map, &writer.g)[i].next = i % 3 ? i : UINT32_MAX - i;
	}
	writer.slots[0].first_chunk = writer.slots[1].first_chunk;
	drain(RING_BUDGET);
	ck_assert(seen.ordered);
	ck_assert_uint_eq(seen.records, 4 * n);
	/* the chunk itself is given away: nothing can be read */
	put(0, n);
	proto_map_chunks(map, &writer.g)[writer.chunk[0]].owner = 7;
	drain(RING_BUDGET);
	struct ring_counts c;
	ring_counts(ring, &c);
	ck_assert_uint_eq(c.damaged, 1);
	ck_assert_uint_eq(seen.records, 4 * n);
}
END_TEST

START_TEST(open_stages_are_told_oldest_first)
{
	attach();
	writer_declare(&writer, "infer", 0);
	put(0, 1);
	put(1, 1);
	drain(RING_BUDGET);
	writer.slots[0].open[0] = (struct proto_open_stage){.start_ns = 30, .frame = 1};
	writer.slots[0].open[1] = (struct proto_open_stage){.start_ns = 50, .frame = 2};
	writer.slots[0].open[2] = (struct proto_open_stage){.start_ns = 60, .stage = 9999};
	writer.slots[0].depth = UINT32_MAX;
	for (int i = 3; i < PROTO_OPEN_STAGES; i++) {
		writer.slots[0].open[i].stage = 1;
	}
	writer.slots[1].open[0] = (struct proto_open_stage){.start_ns = 40, .frame = 3};
	writer.slots[1].depth = 1;
	struct ring_open open[16];
	ck_assert_uint_eq(ring_open_stages(ring, open, 16), 3);
	ck_assert_uint_eq(open[0].stage.start_ns, 30);
	ck_assert_uint_eq(open[1].stage.frame, 3);
	ck_assert_uint_eq(open[2].stage.frame, 2);
	ck_assert_uint_eq(ring_open_stages(ring, open, 2), 2);
	ck_assert_uint_eq(open[0].stage.frame, 3);
	ck_assert_uint_eq(open[1].stage.frame, 2);
}
END_TEST

START_TEST(the_wake_latch_is_cleared_by_a_drain)
{
	attach();
	writer.header->wake = 1;
	drain(0);
	ck_assert_uint_eq(writer.header->wake, 0);
	ck_assert_uint_eq(ring_flags(ring), 0);
	writer.header->flags = PROTO_MAP_BYE;
	ck_assert_uint_eq(ring_flags(ring), PROTO_MAP_BYE);
}
END_TEST

/* As Python writes: the check is in the upper byte of stage. */
static struct proto_record checked(uint64_t value, uint64_t position)
{
	struct proto_record r = {.stage = 5,
		.kind = PROTO_KIND_COMPLETE,
		.flags = PROTO_RECORD_NESTED,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = 0x123456789abcdef0u + value,
		.value = value,
		.frame = value * 0x9e3779b97f4a7c15u};
	r.stage |= (uint16_t)(proto_record_check(&r, position) << 8);
	return r;
}

static unsigned put_checked(uint32_t slot, unsigned count)
{
	writer.slots[slot].flags = PROTO_SLOT_CHECKED;
	unsigned done = 0;
	for (; done < count; done++) {
		struct proto_record r = checked(writer.head[slot] + 1, writer.head[slot]);
		if (!writer_put(&writer, slot, &r)) {
			break;
		}
	}
	return done;
}

static struct proto_record *record_at(uint32_t slot, uint64_t position)
{
	uint64_t offset = position % writer.g.chunk_records;
	for (uint32_t i = 0; i < writer.g.chunks; i++) {
		if (proto_map_chunks(map, &writer.g)[i].owner == slot + 1 &&
			proto_map_chunks(map, &writer.g)[i].base == position - offset) {
			return &proto_map_records(map, &writer.g, i)[offset];
		}
	}
	ck_abort_msg("position %u is in no chunk", (unsigned)position);
}

static struct {
	unsigned records, none;
	uint16_t stage;
} judged;

static size_t judge_records(void *ctx, uint32_t slot, const struct proto_record *copies, size_t n)
{
	(void)ctx;
	(void)slot;
	for (size_t i = 0; i < n; i++) {
		judged.none += copies[i].kind == PROTO_KIND_NONE;
		judged.stage |= copies[i].stage;
	}
	judged.records += (unsigned)n;
	return n;
}

static const struct ring_sink judge = {see_declaration, judge_records, NULL, &seen};

static size_t drain_judged(void)
{
	bool more;
	return ring_drain(ring, &judge, RING_BUDGET, &more);
}

START_TEST(checks_are_verified_and_taken_out_of_stage)
{
	attach();
	memset(&judged, 0, sizeof(judged));
	unsigned room = 3 * writer.g.chunk_records + 5;
	ck_assert_uint_eq(put_checked(0, room), room);
	ck_assert_uint_eq(drain_judged(), room);
	ck_assert_uint_eq(judged.none, 0);
	ck_assert_uint_eq(judged.stage, 5);
	check_identity(room);
	/* without the flag the upper byte is the stage's */
	writer.slots[0].flags = 0;
	struct proto_record r = {.kind = PROTO_KIND_COMPLETE, .stage = 0x1234};
	ck_assert(writer_put(&writer, 0, &r));
	drain_judged();
	ck_assert_uint_eq(judged.stage, 0x1234 | 5);
}
END_TEST

/* At every position of a chunk, also its first: head was seen before the record. */
START_TEST(a_record_that_comes_late_is_waited_for)
{
	attach();
	memset(&judged, 0, sizeof(judged));
	uint32_t n = writer.g.chunk_records;
	unsigned total = 0;
	for (uint32_t late = 0; late < 2 * n + 1; late++) {
		put_checked(0, late + 3);
		put_checked(1, 2);
		struct proto_record *at = record_at(0, total + late);
		struct proto_record whole = *at;
		at->stage ^= 0x100; /* any other damage is as good in 255 cases of 256 */
		ck_assert_uint_eq(drain_judged(), late + 2);
		check_identity(total + late + 3 + 2 * (late + 1));
		*at = whole;
		ck_assert_uint_eq(drain_judged(), 3);
		total += late + 3;
		ck_assert_uint_eq(judged.records, total + 2 * (late + 1));
	}
	ck_assert_uint_eq(judged.none, 0);
	struct ring_counts c;
	ring_counts(ring, &c);
	ck_assert_uint_eq(c.damaged, 0);
}
END_TEST

START_TEST(a_record_that_never_comes_is_nothing_and_stops_nobody)
{
	uint32_t n = writer.g.chunk_records;
	attach();
	memset(&judged, 0, sizeof(judged));
	put_checked(0, 3 * n);
	uint64_t bad[] = {0, n - 1, n, 2 * n + 3, 2 * n + 4};
	for (size_t i = 0; i < 5; i++) {
		record_at(0, bad[i])->value ^= 1u << i;
	}
	/* each costs one pass */
	size_t done = 0, passes = 0;
	for (; done < 3 * n; passes++) {
		done += drain_judged();
		ck_assert_uint_lt(passes, 6);
	}
	ck_assert_uint_eq(passes, 6);
	ck_assert_uint_eq(judged.records, 3 * n);
	ck_assert_uint_eq(judged.none, 5);
	ck_assert_uint_eq(judged.stage, 5);
	check_identity(3 * n);
	/* one at its right place, but of another position */
	put_checked(0, 1);
	*record_at(0, 3 * n) = checked(1, 1);
	drain_judged();
	drain_judged();
	ck_assert_uint_eq(judged.none, 6);
}
END_TEST

static void *no_memory(size_t count, size_t size)
{
	(void)count;
	(void)size;
	return NULL;
}

START_TEST(what_is_no_mapping_is_refused)
{
	ck_assert_int_eq(ring_create(map, SIZE + 1, &ring), -EINVAL);
	writer.header->size = 2 * SIZE;
	ck_assert_int_eq(ring_create(map, SIZE, &ring), -EBADMSG);
	writer.header->size = SIZE;
	writer.header->magic = 0;
	ck_assert_int_eq(ring_create(map, SIZE, &ring), -EBADMSG);
	writer.header->magic = PROTO_MAP_MAGIC;
	writer.header->major = PROTO_MAP_MAJOR + 1;
	ck_assert_int_eq(ring_create(map, SIZE, &ring), -EPROTONOSUPPORT);
	writer.header->major = PROTO_MAP_MAJOR;
	struct sysops table = *sysops();
	table.calloc = no_memory;
	sysops_replace(&table);
	ck_assert_int_eq(ring_create(map, SIZE, &ring), -ENOMEM);
	sysops_replace(NULL);
	ck_assert_ptr_null(ring);
}
END_TEST

static uint64_t random_next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

struct vandal {
	uint64_t words;
	bool done;
};

/* Writes small numbers and wild ones anywhere behind the header's first words. */
static void *vandalise(void *ctx)
{
	struct vandal *vandal = ctx;
	uint64_t seed = 0x2545f4914f6cdd1d;
	for (uint64_t i = 0; i < vandal->words; i++) {
		uint64_t where = random_next(&seed), what = random_next(&seed);
		size_t tables = writer.g.records_offset / 8;
		size_t word = (where & 3 ? 2 + (where >> 8) % (tables - 2)
					 : 2 + (where >> 8) % (SIZE / 8 - 2));
		static const unsigned shifts[] = {0, 32, 48, 56, 60, 63};
		what >>= shifts[(where >> 2) % 6];
		__atomic_store_n((uint64_t *)map + word, what, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&vandal->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void ignore_declaration(void *ctx, uint32_t index, const struct proto_declaration *copy)
{
	(void)ctx;
	ck_assert_uint_lt(index, PROTO_DECLARATIONS);
	ck_assert_uint_lt(strnlen(copy->name, sizeof(copy->name)), sizeof(copy->name));
}

static size_t count_records(void *ctx, uint32_t slot, const struct proto_record *copies, size_t n)
{
	uint64_t *count = ctx;
	(void)copies;
	ck_assert_uint_lt(slot, 64);
	*count += n;
	return n;
}

START_TEST(random_words_never_hang_or_lead_outside)
{
	struct vandal vandal = {.words = 2000000};
	pthread_t thread;
	uint64_t records = 0, reads = 0;
	const struct ring_sink wild = {ignore_declaration, count_records, NULL, &records};
	attach();
	ck_assert_int_eq(pthread_create(&thread, NULL, vandalise, &vandal), 0);
	do {
		bool more;
		/* the map is exactly SIZE bytes of heap: ASan tells a read outside */
		ck_assert_uint_le(ring_drain(ring, &wild, 1000, &more), 1000);
		struct ring_counts c;
		struct ring_open open[16];
		ring_counts(ring, &c);
		ck_assert_uint_eq(c.sent, c.received + c.dropped + c.in_ring);
		ck_assert_uint_le(ring_open_stages(ring, open, 16), 16);
		if (++reads % 16 == 0) {
			attach();
		}
	} while (!__atomic_load_n(&vandal.done, __ATOMIC_ACQUIRE));
	pthread_join(thread, NULL);
	ck_assert_uint_gt(reads, 0);
}
END_TEST

struct producer {
	uint32_t slot;
	unsigned count, put;
};

static void *produce(void *ctx)
{
	struct producer *producer = ctx;
	for (unsigned i = 0; i < producer->count; i++) {
		producer->put += put(producer->slot, 1);
	}
	return NULL;
}

START_TEST(threads_and_reader_at_once_keep_the_identity)
{
	struct producer producers[3];
	pthread_t threads[3];
	attach();
	for (uint32_t i = 0; i < 3; i++) {
		producers[i] = (struct producer){.slot = i, .count = 100000};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
	}
	for (unsigned i = 0; i < 2000; i++) {
		drain(RING_BUDGET);
	}
	uint64_t published = 0;
	for (uint32_t i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		published += producers[i].put;
	}
	drain(RING_BUDGET);
	ck_assert(seen.ordered);
	ck_assert_uint_eq(seen.records, published);
	check_identity(300000);
}
END_TEST
