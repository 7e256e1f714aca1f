/* SPDX-License-Identifier: Apache-2.0 */
/* libedgeprof's slots: threads at once, threads in turn, more threads than slots. */
#include <pthread.h>

#include "tests/unit/libedgeprof/edgeprof_case.h"
#include "tests/unit/unit.h"

enum { THREADS = 4, EVENTS = 20000 };

static void *record_many(void *arg)
{
	int stage = *(int *)arg;
	for (int i = 0; i < EVENTS; i++) {
		edgeprof_complete(stage, 1, 3, EDGEPROF_NO_FRAME);
	}
	return NULL;
}

TEST_TIMEOUT(60);
FIXTURE(NULL, finish);

START_TEST(several_threads_are_counted_exactly_while_drained)
{
	attach();
	int stage = edgeprof_stage("infer");
	pthread_t threads[THREADS];
	struct seen s = {0};
	for (int i = 0; i < THREADS; i++) {
		pthread_create(&threads[i], NULL, record_many, &stage);
	}
	uint64_t sent = 0;
	while (sent < (uint64_t)THREADS * EVENTS) {
		fake_drain(&fake, see, &s);
		sent = fake_count(&fake).sent;
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	fake_drain(&fake, see, &s);
	struct fake_counts n = fake_count(&fake);
	ck_assert_uint_eq(n.sent, (uint64_t)THREADS * EVENTS);
	ck_assert_uint_eq(n.received + n.dropped, n.sent);
	ck_assert_uint_eq(s.records, n.received);
	ck_assert_uint_eq(s.sum, 3 * n.received);
	ck_assert_uint_gt(n.received, 0);
	check_identity();
}
END_TEST

enum { ROUNDS = 10000, MARKS = 10 };

/* Five records a round, three a mark. */
static void *record_all_kinds(void *arg)
{
	int stage = *(int *)arg;
	for (int i = 0; i < ROUNDS; i++) {
		edgeprof_token t = edgeprof_begin(stage);
		edgeprof_gauge(stage, i);
		edgeprof_counter(stage, 1);
		edgeprof_attribute(stage, stage, i);
		edgeprof_end_failed(t);
		if (i % (ROUNDS / MARKS) == 0) {
			edgeprof_mark_with("mark", (const struct edgeprof_value[]){{"x", 1}}, 1);
		}
	}
	return NULL;
}

/* The ring is full most of the time, and drained in between. */
START_TEST(all_kinds_are_counted_exactly)
{
	setenv("EDGEPROF_MAPPING_SIZE", "65536", 1);
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_stage_options(stage, EDGEPROF_PROCESS_CPU);
	pthread_t threads[THREADS];
	struct seen s = {0};
	for (int i = 0; i < THREADS; i++) {
		pthread_create(&threads[i], NULL, record_all_kinds, &stage);
	}
	uint64_t wanted = (uint64_t)THREADS * (5 * ROUNDS + 3 * MARKS);
	while (fake_count(&fake).sent < wanted) {
		fake_drain(&fake, see, &s);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	fake_drain(&fake, see, &s);
	struct fake_counts n = fake_count(&fake);
	ck_assert_uint_eq(n.sent, wanted);
	ck_assert_uint_eq(n.received + n.dropped, n.sent);
	ck_assert_uint_eq(s.records, n.received);
	ck_assert_uint_gt(s.last_kind[PROTO_KIND_COST], 0);
	check_identity();
}
END_TEST

START_TEST(threads_without_a_daemon_are_counted_exactly)
{
	setenv("EDGEPROF_RUNTIME_DIR", "/nonexistent", 1);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	int stage = edgeprof_stage("infer");
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++) {
		pthread_create(&threads[i], NULL, record_many, &stage);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	struct edgeprof_counts c;
	edgeprof_counts(&c);
	ck_assert_uint_eq(c.unattached, (uint64_t)THREADS * EVENTS);
}
END_TEST

static void *record_five(void *arg)
{
	for (int i = 0; i < 5; i++) {
		edgeprof_end(edgeprof_begin(*(int *)arg));
	}
	return NULL;
}

START_TEST(thousand_short_threads_share_the_slots)
{
	attach();
	int stage = edgeprof_stage("infer");
	struct seen s = {0};
	for (int i = 0; i < 1000; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, record_five, &stage);
		pthread_join(thread, NULL);
		if (i % 100 == 99) {
			fake_drain(&fake, see, &s);
		}
	}
	ck_assert_uint_eq(s.records, 5000);
	ck_assert_uint_eq(fake_count(&fake).dropped, 0);
	const struct proto_slot *slots = proto_map_slots(fake.map, &fake.g);
	for (uint32_t i = 0; i < fake.g.slots; i++) {
		ck_assert_uint_ne(slots[i].state, PROTO_SLOT_OWNED);
		ck_assert_uint_eq(slots[i].depth, 0);
	}
	check_identity();
}
END_TEST

static pthread_barrier_t barrier;

static void *record_and_wait(void *arg)
{
	edgeprof_tick();
	(void)arg;
	pthread_barrier_wait(&barrier);
	return NULL;
}

START_TEST(threads_beyond_the_slots_are_counted_lost)
{
	setenv("EDGEPROF_MAPPING_SIZE", "65536", 1);
	attach();
	pthread_t threads[24];
	pthread_barrier_init(&barrier, NULL, 25);
	for (int i = 0; i < 24; i++) {
		pthread_create(&threads[i], NULL, record_and_wait, NULL);
	}
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 24; i++) {
		pthread_join(threads[i], NULL);
	}
	ck_assert_uint_eq(fake_drain(&fake, NULL, NULL), 16);
	ck_assert_uint_eq(((struct proto_map_header *)fake.map)->lost, 8);
	check_identity();
}
END_TEST

static pthread_barrier_t full, released;

static void *hold_a_slot(void *arg)
{
	(void)arg;
	edgeprof_tick();
	pthread_barrier_wait(&full);
	pthread_barrier_wait(&released);
	return NULL;
}

/* The outer stage is begun while all slots are taken; one comes free before it ends. */
START_TEST(stages_begun_without_a_slot_are_counted_when_they_end)
{
	setenv("EDGEPROF_MAPPING_SIZE", "65536", 1);
	attach();
	int stage = edgeprof_stage("infer");
	pthread_t threads[16];
	pthread_barrier_init(&full, NULL, 17);
	pthread_barrier_init(&released, NULL, 17);
	for (int i = 0; i < 16; i++) {
		pthread_create(&threads[i], NULL, hold_a_slot, NULL);
	}
	pthread_barrier_wait(&full);
	edgeprof_token outer = edgeprof_begin(stage), second = edgeprof_begin(stage);
	pthread_barrier_wait(&released);
	for (int i = 0; i < 16; i++) {
		pthread_join(threads[i], NULL);
	}
	for (int i = 0; i < 1000; i++) { /* looks for a slot once in 256 */
		edgeprof_token inner = edgeprof_begin(stage);
		edgeprof_end(inner);
	}
	edgeprof_token open = edgeprof_begin(stage);
	edgeprof_end(second);
	edgeprof_end(outer);
	edgeprof_end(open);
	ck_assert_uint_eq(fake_count(&fake).sent, 16 + 1000 + 3);
	check_identity();
}
END_TEST

static void tick_late(void *arg)
{
	(void)arg;
	edgeprof_tick();
}

static void *end_with_a_tick(void *arg)
{
	edgeprof_tick();
	pthread_setspecific(*(pthread_key_t *)arg, arg);
	return NULL;
}

/* Keys' destructors run in the order of their making: the library's was first. */
START_TEST(events_of_late_destructors_are_counted)
{
	struct edgeprof_counts n;
	pthread_key_t key;
	setenv("EDGEPROF_RUNTIME_DIR", "/nonexistent", 1);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	ck_assert_int_eq(pthread_key_create(&key, tick_late), 0);
	for (int i = 0; i < 10; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, end_with_a_tick, &key);
		pthread_join(thread, NULL);
	}
	edgeprof_counts(&n);
	ck_assert_uint_eq(n.unattached, 20);
}
END_TEST
