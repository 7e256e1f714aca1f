/* SPDX-License-Identifier: Apache-2.0 */
/* libedgeprof when the ring is full, the daemon restarts, the app is killed or forks. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "tests/unit/libedgeprof/edgeprof_case.h"
#include "tests/unit/unit.h"

static atomic_bool go_on;

TEST_TIMEOUT(60);
FIXTURE(NULL, finish);

START_TEST(full_ring_refuses_the_newest_and_counts_it)
{
	attach();
	int stage = edgeprof_stage("infer");
	uint64_t room = (uint64_t)fake.g.chunks * fake.g.chunk_records;
	for (uint64_t i = 0; i < room + 1000; i++) {
		edgeprof_complete(stage, 1, i, EDGEPROF_NO_FRAME);
	}
	struct fake_counts n = fake_count(&fake);
	ck_assert_uint_eq(n.in_ring, room);
	ck_assert_uint_eq(n.dropped, 1000);
	struct seen s = {0};
	ck_assert_uint_eq(fake_drain(&fake, see, &s), room);
	ck_assert_uint_eq(s.last.value, room - 1);
	edgeprof_complete(stage, 1, 4711, EDGEPROF_NO_FRAME);
	ck_assert_uint_eq(fake_drain(&fake, see, &s), 1);
	ck_assert_uint_eq(s.last.value, 4711);
	check_identity();
}
END_TEST

START_TEST(past_half_full_wakes_once_until_drained)
{
	attach();
	int stage = edgeprof_stage("infer");
	char bytes[8];
	ck_assert_int_lt(recv(fake.connection, bytes, sizeof(bytes), MSG_DONTWAIT), 0);
	uint64_t room = (uint64_t)fake.g.chunks * fake.g.chunk_records;
	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < room + 1000; i++) {
			edgeprof_complete(stage, 1, i, EDGEPROF_NO_FRAME);
		}
		ck_assert_int_eq(recv(fake.connection, bytes, sizeof(bytes), MSG_DONTWAIT), 1);
		ck_assert_int_lt(recv(fake.connection, bytes, sizeof(bytes), MSG_DONTWAIT), 0);
		fake_drain(&fake, NULL, NULL);
	}
}
END_TEST

START_TEST(restarted_daemon_gets_the_same_mapping_and_what_was_not_drained)
{
	attach();
	int stage = edgeprof_stage("infer");
	struct stat before, after;
	fstat(fake.memfd, &before);
	struct seen s = {0};
	for (uint64_t i = 1; i <= 100; i++) {
		edgeprof_complete(stage, 1, i, EDGEPROF_NO_FRAME);
	}
	ck_assert_uint_eq(fake_drain_slot(&fake, 0, 30, see, &s), 30);
	close(fake.listener);
	fake_drop_connection(&fake);
	for (uint64_t i = 101; i <= 200; i++) {
		edgeprof_complete(stage, 1, i, EDGEPROF_NO_FRAME);
	}
	ck_assert_int_eq(fake_listen(&fake), 0);
	struct pollfd p = {.fd = fake.listener, .events = POLLIN};
	uint64_t extra = 0;
	for (; poll(&p, 1, 10) == 0; extra++) {
		edgeprof_complete(stage, 1, 0, EDGEPROF_NO_FRAME);
	}
	ck_assert_int_eq(fake_accept(&fake), 0);
	fstat(fake.memfd, &after);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.records, 200 + extra);
	ck_assert_uint_eq(s.sum, 200 * 201 / 2);
	check_identity();
}
END_TEST

START_TEST(the_end_of_a_stage_that_was_longer_looks_for_the_daemon)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_end(edgeprof_begin(stage)); /* takes a chunk */
	edgeprof_token token = edgeprof_begin(stage);
	close(fake.listener);
	fake_drop_connection(&fake);
	ck_assert_int_eq(fake_listen(&fake), 0);
	usleep(1100000);
	edgeprof_end(token);
	struct pollfd p = {.fd = fake.listener, .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, 1000), 1);
	ck_assert_int_eq(fake_accept(&fake), 0);
	struct seen s = {0};
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.records, 2);
	check_identity();
}
END_TEST

START_TEST(app_older_than_the_daemon_attaches_and_knows_what_went_before)
{
	ck_assert_int_eq(fake_start(&fake), 0);
	close(fake.listener);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	int stage = edgeprof_stage("infer");
	struct edgeprof_counts c;
	for (int i = 0; i < 1000; i++) {
		edgeprof_end(edgeprof_begin(stage));
	}
	edgeprof_counts(&c);
	ck_assert_uint_eq(c.unattached, 1000);
	ck_assert_uint_eq(c.sent, 0);
	ck_assert_int_eq(c.attached, 0);
	ck_assert_int_eq(fake_listen(&fake), 0);
	emit_until_reconnected(stage);
	ck_assert_int_eq(fake_accept(&fake), 0);
	edgeprof_end(edgeprof_begin(stage));
	ck_assert_uint_eq(fake_drain(&fake, NULL, NULL), fake_count(&fake).sent);
	edgeprof_counts(&c);
	ck_assert_int_eq(c.attached, 1);
	ck_assert_uint_ge(c.unattached, 1000);
	ck_assert_uint_ge(c.sent, 1);
	check_identity();
}
END_TEST

/* Writes as fast as it can: start, value and frame tell each other, so that a torn record shows. */
static void *write_forever(void *arg)
{
	int stage = *(int *)arg;
	for (uint64_t i = 1; go_on; i++) {
		edgeprof_complete(stage, i, i * 0x9e3779b97f4a7c15u, ~i);
	}
	return NULL;
}

static void check_whole(void *ctx, uint32_t slot, const struct proto_record *r)
{
	uint64_t *next = ctx;
	ck_assert_uint_eq(r->value, r->start_ns * 0x9e3779b97f4a7c15u);
	ck_assert_uint_eq(r->frame, ~r->start_ns);
	ck_assert_uint_eq(r->kind, PROTO_KIND_COMPLETE);
	/* what is missing in between was refused and counted */
	ck_assert_uint_ge(r->start_ns, next[slot]);
	next[slot] = r->start_ns + 1;
}

enum { KILLS = 50 };

START_TEST(killed_writer_leaves_only_whole_records)
{
	ck_assert_int_eq(fake_start(&fake), 0);
	srand(1);
	uint64_t received = 0;
	for (int k = 0; k < KILLS; k++) {
		pid_t pid = fork();
		if (pid == 0) {
			go_on = true;
			int stage = edgeprof_stage("infer");
			edgeprof_init("victim");
			pthread_t other;
			pthread_create(&other, NULL, write_forever, &stage);
			write_forever(&stage);
			_exit(0);
		}
		ck_assert_int_eq(fake_accept(&fake), 0);
		uint64_t next[64] = {0};
		/* the moment of the kill is random by how much is drained before it */
		uint64_t enough = (uint64_t)(rand() % 5000), got = 0;
		while (got < enough) {
			got += fake_drain(&fake, check_whole, next);
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		got += fake_drain(&fake, check_whole, next);
		struct fake_counts n = fake_count(&fake);
		ck_assert_uint_eq(n.in_ring, 0);
		ck_assert_uint_eq(n.received, got);
		ck_assert_uint_eq(n.sent, n.received + n.dropped);
		ck_assert_uint_eq(((struct proto_map_header *)fake.map)->flags, 0);
		received += got;
		fake_drop_connection(&fake);
	}
	ck_assert_uint_gt(received, 0);
}
END_TEST

START_TEST(exit_says_bye)
{
	ck_assert_int_eq(fake_start(&fake), 0);
	pid_t pid = fork();
	if (pid == 0) {
		edgeprof_init("short");
		edgeprof_end(edgeprof_begin(edgeprof_stage("infer")));
		exit(0);
	}
	ck_assert_int_eq(fake_accept(&fake), 0);
	char byte;
	ck_assert_int_eq(recv(fake.connection, &byte, 1, 0), 0);
	ck_assert_uint_eq(((struct proto_map_header *)fake.map)->flags, PROTO_MAP_BYE);
	ck_assert_uint_eq(fake_drain(&fake, NULL, NULL), 1);
	waitpid(pid, NULL, 0);
}
END_TEST

START_TEST(forked_child_attaches_as_itself)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_end(edgeprof_begin(stage));
	edgeprof_token open = edgeprof_begin(stage);
	struct fake_daemon second = fake;
	pid_t pid = fork();
	if (pid == 0) {
		edgeprof_end(open); /* the parent's */
		for (int i = 0; i < 10; i++) {
			edgeprof_end(edgeprof_begin(stage));
		}
		edgeprof_end(open);
		exit(0);
	}
	ck_assert_int_eq(fake_accept(&second), 0);
	waitpid(pid, NULL, 0);
	struct stat a, b;
	fstat(fake.memfd, &a);
	fstat(second.memfd, &b);
	ck_assert_uint_ne(a.st_ino, b.st_ino);
	ck_assert_uint_eq(fake_drain(&second, NULL, NULL), 10);
	ck_assert_uint_eq(((struct proto_map_header *)second.map)->flags, PROTO_MAP_BYE);
	ck_assert_str_eq(proto_map_declarations(second.map)[stage].name, "infer");
	fake_drop_connection(&second);
	ck_assert_uint_eq(((struct proto_map_header *)fake.map)->flags, 0);
	edgeprof_end(open);
	ck_assert_uint_eq(fake_drain(&fake, NULL, NULL), 2);
	check_identity();
}
END_TEST

START_TEST(events_do_not_read_the_environment)
{
	ck_assert_int_eq(setenv("EDGEPROF_DISABLE", "1", 1), 0);
	edgeprof_tick();
	struct edgeprof_counts n;
	edgeprof_counts(&n);
	ck_assert_uint_eq(n.unattached, 1); /* not off, as it would be had it looked */
}
END_TEST
