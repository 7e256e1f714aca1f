/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines told at run time: never lost, whatever the daemon does. */
#include <sys/wait.h>

#include "tests/unit/libedgeprof/edgeprof_case.h"
#include "tests/unit/unit.h"

struct told {
	uint64_t stage_ns[8], frame_ns, records, others;
};

static void note(void *ctx, uint32_t slot, const struct proto_record *record)
{
	struct told *told = ctx;
	(void)slot;
	if (record->kind != PROTO_KIND_DEADLINE) {
		told->others++;
		return;
	}
	told->records++;
	if (record->flags & PROTO_RECORD_OF_FRAMES) {
		told->frame_ns = record->value;
	} else {
		ck_assert_uint_lt(record->stage, 8);
		told->stage_ns[record->stage] = record->value;
	}
}

static struct told drain(struct fake_daemon *daemon)
{
	struct told told = {.records = 0};
	fake_drain(daemon, note, &told);
	return told;
}

TEST_TIMEOUT(60);
FIXTURE(NULL, finish);

/* covers G1.12 */
START_TEST(deadlines_are_told_at_once)
{
	attach();
	int a = edgeprof_stage("a"), b = edgeprof_stage("b");
	edgeprof_deadline(b, 33000000);
	edgeprof_frame_deadline(40000000);
	edgeprof_deadline(a, 5);
	edgeprof_deadline(a, 0);
	struct told told = drain(&fake);
	ck_assert_uint_eq(told.records, 4);
	ck_assert_uint_eq(told.stage_ns[b], 33000000);
	ck_assert_uint_eq(told.stage_ns[a], 0);
	ck_assert_uint_eq(told.frame_ns, 40000000);
	check_identity();
}
END_TEST

START_TEST(the_last_one_is_kept_for_a_daemon_that_comes_late)
{
	ck_assert_int_eq(fake_start(&fake), 0);
	close(fake.listener);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	int a = edgeprof_stage("a"), b = edgeprof_stage("b");
	edgeprof_deadline(a, 1);
	edgeprof_deadline(b, 2);
	edgeprof_deadline(a, 3);
	edgeprof_frame_deadline(4);
	ck_assert_int_eq(fake_listen(&fake), 0);
	emit_until_reconnected(a);
	ck_assert_int_eq(fake_accept(&fake), 0);
	edgeprof_end(edgeprof_begin(a));
	struct told told = drain(&fake);
	ck_assert_uint_eq(told.records, 3);
	ck_assert_uint_eq(told.stage_ns[a], 3);
	ck_assert_uint_eq(told.stage_ns[b], 2);
	ck_assert_uint_eq(told.frame_ns, 4);
	check_identity();
}
END_TEST

START_TEST(a_restarted_daemon_is_told_again)
{
	attach();
	int a = edgeprof_stage("a");
	edgeprof_deadline(a, 7);
	ck_assert_uint_eq(drain(&fake).records, 1);
	close(fake.listener);
	fake_drop_connection(&fake);
	ck_assert_int_eq(fake_listen(&fake), 0);
	emit_until_reconnected(a);
	ck_assert_int_eq(fake_accept(&fake), 0);
	edgeprof_end(edgeprof_begin(a));
	struct told told = drain(&fake);
	ck_assert_uint_eq(told.records, 1);
	ck_assert_uint_eq(told.stage_ns[a], 7);
	check_identity();
}
END_TEST

START_TEST(a_full_ring_delays_it)
{
	attach();
	int a = edgeprof_stage("a");
	uint64_t room = (uint64_t)fake.g.chunks * fake.g.chunk_records;
	for (uint64_t i = 0; i < room; i++) {
		edgeprof_complete(a, 1, i, EDGEPROF_NO_FRAME);
	}
	edgeprof_deadline(a, 9);
	edgeprof_frame_deadline(10);
	ck_assert_uint_eq(fake_count(&fake).dropped, 0);
	ck_assert_uint_eq(drain(&fake).records, 0);
	edgeprof_tick();
	struct told told = drain(&fake);
	ck_assert_uint_eq(told.records, 2);
	ck_assert_uint_eq(told.others, 1);
	ck_assert_uint_eq(told.stage_ns[a], 9);
	ck_assert_uint_eq(told.frame_ns, 10);
	check_identity();
}
END_TEST

START_TEST(a_forked_child_tells_its_own_daemon)
{
	attach();
	int a = edgeprof_stage("a");
	edgeprof_deadline(a, 11);
	struct fake_daemon second = fake;
	pid_t pid = fork();
	if (pid == 0) {
		edgeprof_end(edgeprof_begin(a));
		exit(0);
	}
	ck_assert_int_eq(fake_accept(&second), 0);
	waitpid(pid, NULL, 0);
	ck_assert_uint_eq(drain(&second).stage_ns[a], 11);
	fake_drop_connection(&second);
	ck_assert_uint_eq(drain(&fake).records, 1);
	check_identity();
}
END_TEST
