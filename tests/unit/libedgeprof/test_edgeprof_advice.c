/* SPDX-License-Identifier: Apache-2.0 */
/* Advice as the library reads it: fresh or none, whole or none, whatever stands in the mapping. */
#include <pthread.h>
#include <sys/wait.h>

#include "tests/unit/libedgeprof/edgeprof_case.h"
#include "tests/unit/unit.h"

static uint64_t *word(void)
{
	return &((struct proto_map_header *)fake.map)->advice;
}

static uint64_t *time_of(void)
{
	return &((struct proto_map_header *)fake.map)->advice_ns;
}

/* As the daemon does it. */
static void write_advice(uint64_t value, uint64_t at_ns)
{
	__atomic_store_n(word(), value, __ATOMIC_RELAXED);
	__atomic_store_n(time_of(), at_ns, __ATOMIC_RELEASE);
}

static void advise(enum proto_advice_level level, uint8_t skip, uint8_t of, uint32_t mfps)
{
	const struct proto_advice advice = {level, skip, of, mfps};
	write_advice(proto_advice_pack(&advice), edgeprof_now());
}

static bool is_none(void)
{
	static const struct edgeprof_advice zero = {.level = EDGEPROF_ADVICE_NONE};
	struct edgeprof_advice advice = {7, 7, 7, 7};
	return !edgeprof_advice(&advice) && !edgeprof_should_skip() && advice.level == zero.level &&
	       advice.skip_frames == 0 && advice.of_frames == 0 && advice.target_fps <= 0;
}

TEST_TIMEOUT(60);
FIXTURE(NULL, finish);

START_TEST(what_the_daemon_says_is_read)
{
	attach();
	ck_assert(is_none()); /* a daemon that knows of no advice: its bytes stay zero */
	advise(PROTO_ADVICE_REDUCED, 1, 3, 20000);
	struct edgeprof_advice advice;
	ck_assert(edgeprof_advice(&advice));
	ck_assert_int_eq(advice.level, EDGEPROF_ADVICE_REDUCED);
	ck_assert_uint_eq(advice.skip_frames, 1);
	ck_assert_uint_eq(advice.of_frames, 3);
	ck_assert_double_eq(advice.target_fps, 20);
	advise(PROTO_ADVICE_FULL, 0, 1, 0);
	ck_assert(edgeprof_advice(&advice));
	ck_assert_int_eq(advice.level, EDGEPROF_ADVICE_FULL);
	ck_assert(!edgeprof_should_skip());
	advise(PROTO_ADVICE_NONE, 0, 0, 0);
	ck_assert(is_none());
	edgeprof_shutdown();
	advise(PROTO_ADVICE_MINIMAL, 2, 3, 0);
	ck_assert(is_none());
}
END_TEST

START_TEST(without_a_daemon_there_is_none)
{
	setenv("EDGEPROF_RUNTIME_DIR", "/nonexistent", 1);
	ck_assert(is_none());
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	ck_assert(is_none());
}
END_TEST

START_TEST(advice_older_than_five_seconds_is_none)
{
	const uint64_t second = 1000000000;
	const struct proto_advice advice = {PROTO_ADVICE_MINIMAL, 2, 3, 5000};
	struct edgeprof_advice ret;
	attach();
	write_advice(proto_advice_pack(&advice), edgeprof_now() - 5 * second - second / 10);
	ck_assert(is_none());
	write_advice(proto_advice_pack(&advice), edgeprof_now() - 4 * second);
	ck_assert(edgeprof_advice(&ret));
	write_advice(proto_advice_pack(&advice), edgeprof_now() + 2 * second);
	ck_assert(is_none());
	write_advice(proto_advice_pack(&advice), 0);
	ck_assert(is_none());
	write_advice(proto_advice_pack(&advice), UINT64_MAX);
	ck_assert(is_none());
	write_advice(proto_advice_pack(&advice), edgeprof_now()); /* it is back */
	ck_assert(edgeprof_advice(&ret));
	fake_drop_connection(&fake);
	ck_assert(edgeprof_advice(&ret)); /* until it is too old */
}
END_TEST

START_TEST(what_an_app_scribbles_there_is_none_or_sound)
{
	uint32_t state = 1;
	attach();
	for (int i = 0; i < 200000; i++) {
		uint64_t value = 0;
		for (int k = 0; k < 4; k++) {
			state = state * 1664525u + 1013904223u;
			value = value << 16 | state >> 16;
		}
		value = i % 2 ? value & 0xffffffff00030303u : value;
		write_advice(value, edgeprof_now());
		struct edgeprof_advice ret;
		if (edgeprof_advice(&ret)) {
			ck_assert_int_ge(ret.level, EDGEPROF_ADVICE_FULL);
			ck_assert_int_le(ret.level, EDGEPROF_ADVICE_MINIMAL);
			ck_assert_uint_lt(ret.skip_frames, ret.of_frames);
		}
		edgeprof_should_skip();
	}
}
END_TEST

static const struct {
	uint8_t skip, of;
	const char *frames;
} patterns[] = {{1, 3, "..x..x..x..x"}, {2, 3, ".xx.xx.xx.xx"}, {1, 2, ".x.x.x.x.x.x"},
	{0, 1, "............"}, {3, 4, ".xxx.xxx.xxx"}, {2, 4, ".x.x.x.x.x.x"}};

START_LOOP_TEST(skipped_frames_are_spread_evenly, 0, COUNT(patterns))
{
	attach();
	advise(PROTO_ADVICE_REDUCED, patterns[_i].skip, patterns[_i].of, 0);
	for (const char *c = patterns[_i].frames; *c; c++) {
		ck_assert_int_eq(edgeprof_should_skip(), *c == 'x');
	}
}
END_TEST

static void *skip_two_of_three(void *ctx)
{
	unsigned *skipped = ctx;
	for (int i = 0; i < 300; i++) {
		*skipped += edgeprof_should_skip();
	}
	return NULL;
}

START_TEST(each_thread_has_its_own_count)
{
	pthread_t thread[4];
	unsigned skipped[4] = {0};
	attach();
	advise(PROTO_ADVICE_MINIMAL, 2, 3, 0);
	for (int i = 0; i < 4; i++) {
		pthread_create(&thread[i], NULL, skip_two_of_three, &skipped[i]);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		ck_assert_uint_eq(skipped[i], 200);
	}
}
END_TEST

/* skip, of and rate of a word belong together: n, n + 1, 1000 n. */
static void *read_all(void *ctx)
{
	const bool *stop = ctx;
	unsigned torn = 0;
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		struct edgeprof_advice ret;
		torn += edgeprof_advice(&ret) && (ret.of_frames != ret.skip_frames + 1 ||
							 ret.target_fps < ret.skip_frames - 0.1 ||
							 ret.target_fps > ret.skip_frames + 0.1);
	}
	return (void *)(uintptr_t)torn;
}

START_TEST(no_reader_sees_half_of_one)
{
	pthread_t thread[3];
	bool stop = false;
	attach();
	advise(PROTO_ADVICE_FULL, 0, 1, 0);
	for (int i = 0; i < 3; i++) {
		pthread_create(&thread[i], NULL, read_all, &stop);
	}
	for (uint32_t i = 0; i < 1000000; i++) {
		uint8_t n = (uint8_t)(i % 200);
		advise(PROTO_ADVICE_REDUCED, n, (uint8_t)(n + 1), 1000u * n);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++) {
		void *torn;
		pthread_join(thread[i], &torn);
		ck_assert_ptr_null(torn);
	}
}
END_TEST

START_TEST(a_forked_child_has_its_own_or_none)
{
	attach();
	int stage = edgeprof_stage("a");
	advise(PROTO_ADVICE_MINIMAL, 2, 3, 0);
	pid_t pid = fork();
	if (pid == 0) {
		bool none = is_none(); /* the parent's is not the child's */
		edgeprof_complete(stage, 1, 1, EDGEPROF_NO_FRAME);
		fake_drop_connection(&fake);
		bool own = fake_accept(&fake) == 0;
		advise(PROTO_ADVICE_REDUCED, 1, 3, 0);
		struct edgeprof_advice ret;
		own = own && edgeprof_advice(&ret) && ret.level == EDGEPROF_ADVICE_REDUCED;
		_exit(none && own ? 0 : 1);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	struct edgeprof_advice ret;
	ck_assert(edgeprof_advice(&ret));
	ck_assert_int_eq(ret.level, EDGEPROF_ADVICE_MINIMAL);
}
END_TEST
