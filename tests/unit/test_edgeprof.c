/*
 * libedgeprof against a fake daemon that reads by proto/mapping.h alone (tests/unit/fake_daemon.h).
 * Each test runs in a process of its own (libcheck forks), so each attaches anew.
 */
#include <check.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "client/libedgeprof/edgeprof.h"
#include "tests/unit/fake_daemon.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_SANITIZER 1
#endif
#endif
#ifndef HAVE_SANITIZER
#define HAVE_SANITIZER 0
#endif

static struct fake_daemon fake;

/* What the drains of a test saw. */
struct seen {
	uint64_t records, last_kind[PROTO_KIND_COUNT];
	struct proto_record last, first;
	uint64_t sum; /* of values */
};

static void see(void *ctx, uint32_t slot, const struct proto_record *record)
{
	struct seen *s = ctx;
	(void)slot;
	if (s->records++ == 0) {
		s->first = *record;
	}
	s->last = *record;
	s->sum += record->value;
	ck_assert_uint_lt(record->kind, PROTO_KIND_COUNT);
	s->last_kind[record->kind]++;
}

static void attach(void)
{
	ck_assert_int_eq(fake_start(&fake), 0);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	ck_assert_int_eq(fake_accept(&fake), 0);
}

static void finish(void)
{
	if (fake.directory[0]) {
		fake_stop(&fake);
	}
}

static void check_identity(void)
{
	struct fake_counts n = fake_count(&fake);
	struct edgeprof_counts c;
	edgeprof_counts(&c);
	ck_assert_uint_eq(n.sent, n.received + n.dropped + n.in_ring);
	ck_assert_uint_eq(c.sent, n.sent);
	ck_assert_uint_eq(c.received, n.received);
	ck_assert_uint_eq(c.dropped, n.dropped);
	ck_assert_uint_eq(c.in_ring, n.in_ring);
}

/* Lets the once-a-second look happen now: time is the library's own, so wait for its clock. */
static void emit_until_reconnected(int stage)
{
	struct pollfd p = {.fd = fake.listener, .events = POLLIN};
	while (poll(&p, 1, 10) == 0) {
		edgeprof_complete(stage, 1, 1, EDGEPROF_NO_FRAME);
	}
}

START_TEST(mapping_is_sealed_whole_and_described)
{
	int stage = 0;
	ck_assert_int_eq(fake_start(&fake), 0);
	stage = edgeprof_stage_declare("infer", "model", "gpu", 33000000);
	ck_assert_int_eq(stage, 0);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	ck_assert_int_eq(fake_accept(&fake), 0);
	ck_assert_uint_eq(fake.hello.magic, PROTO_HELLO_MAGIC);
	ck_assert_str_eq(fake.hello.app, "unit_test");
	ck_assert_uint_eq(fake.hello.mapping_size, PROTO_MAP_DEFAULT_SIZE);
	ck_assert_uint_eq(fake.hello.page_size, (uint32_t)sysconf(_SC_PAGESIZE));
	ck_assert_uint_le(edgeprof_now() - fake.hello.mono_ns, 1000000000u);
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	ck_assert_int_eq(fcntl(fake.memfd, F_GET_SEALS), seals);
	ck_assert_int_lt(ftruncate(fake.memfd, 4096), 0);
	struct stat st;
	ck_assert_int_eq(fstat(fake.memfd, &st), 0);
	ck_assert_int_eq(st.st_size, PROTO_MAP_DEFAULT_SIZE);
	ck_assert_int_ge(st.st_blocks * 512, st.st_size);
	const struct proto_map_header *header = fake.map;
	ck_assert_uint_eq(header->magic, PROTO_MAP_MAGIC);
	ck_assert_uint_eq(header->major, PROTO_MAP_MAJOR);
	ck_assert_uint_eq(header->size, PROTO_MAP_DEFAULT_SIZE);
	ck_assert_uint_eq(header->declarations, 1);
	const struct proto_declaration *d = proto_map_declarations(fake.map);
	ck_assert_str_eq(d[0].name, "infer");
	ck_assert_str_eq(d[0].category, "model");
	ck_assert_str_eq(d[0].unit, "gpu");
	ck_assert_uint_eq(d[0].deadline_ns, 33000000);
	ck_assert_int_eq(edgeprof_stage("publish"), 1);
	ck_assert_uint_eq(header->declarations, 2);
	ck_assert_str_eq(d[1].name, "publish");
}
END_TEST

START_TEST(mapping_size_follows_the_environment)
{
	static const struct {
		const char *text;
		uint32_t size;
	} cases[] = {{"65536", 65536}, {"1048576", 1048576}, {"65537", PROTO_MAP_DEFAULT_SIZE},
		{"", PROTO_MAP_DEFAULT_SIZE}, {"lots", PROTO_MAP_DEFAULT_SIZE},
		{"4295032832", PROTO_MAP_DEFAULT_SIZE}};
	setenv("EDGEPROF_MAPPING_SIZE", cases[_i].text, 1);
	attach();
	ck_assert_uint_eq(fake.hello.mapping_size, cases[_i].size);
}
END_TEST

START_TEST(names_are_cleaned_unique_and_found_again)
{
	attach();
	int a = edgeprof_stage("a b"), b = edgeprof_stage("a_b"), c = edgeprof_stage("infer@gpu");
	ck_assert_int_ne(a, b);
	ck_assert_int_eq(edgeprof_stage("a b"), a);
	ck_assert_int_eq(edgeprof_stage("a_b"), b);
	const struct proto_declaration *d = proto_map_declarations(fake.map);
	ck_assert_str_eq(d[a].name, "a_b");
	ck_assert_str_eq(d[b].name, "a_b.2");
	ck_assert_str_eq(d[c].unit, "gpu");
	ck_assert_int_eq(edgeprof_stage(NULL), -1);
	ck_assert_int_eq(edgeprof_stage(""), -1);
}
END_TEST

START_TEST(full_table_is_minus_one_and_its_events_are_counted)
{
	attach();
	char name[16];
	for (int i = 0; i < PROTO_DECLARATIONS; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		ck_assert_int_eq(edgeprof_stage(name), i);
	}
	ck_assert_int_eq(edgeprof_stage("one more"), -1);
	edgeprof_end(edgeprof_begin(-1));
	edgeprof_begin_id(-1, 1);
	edgeprof_end(edgeprof_begin(PROTO_DECLARATIONS));
	edgeprof_mark("one more");
	ck_assert_uint_eq(fake_count(&fake).dropped, 4);
	ck_assert_uint_eq(fake_drain(&fake, NULL, NULL), 0);
	check_identity();
}
END_TEST

/* covers G4.11 */
START_TEST(every_kind_arrives_as_told)
{
	attach();
	int stage = edgeprof_stage("infer");
	struct seen s = {0};
	edgeprof_begin_id(stage, 77);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.kind, PROTO_KIND_BEGIN);
	ck_assert_uint_eq(s.last.value, 77);
	edgeprof_end_id(stage, 77);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.kind, PROTO_KIND_END);
	edgeprof_complete(stage, 1000, 250, 9);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.kind, PROTO_KIND_COMPLETE);
	ck_assert_uint_eq(s.last.start_ns, 1000);
	ck_assert_uint_eq(s.last.value, 250);
	ck_assert_uint_eq(s.last.frame, 9);
	ck_assert_uint_eq(s.last.cpu_us, PROTO_CPU_NOT_MEASURED);
	uint64_t before = edgeprof_now();
	edgeprof_frame_begin(42);
	edgeprof_end(edgeprof_begin(stage));
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.frame, 42);
	edgeprof_frame_end();
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.kind, PROTO_KIND_FRAME);
	ck_assert_uint_eq(s.last.frame, 42);
	ck_assert_uint_ge(s.last.start_ns, before);
	ck_assert_uint_le(s.last.start_ns + s.last.value, edgeprof_now());
	edgeprof_frame_end();
	edgeprof_tick();
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.value, 0);
	ck_assert_uint_eq(s.last.frame, PROTO_NO_FRAME);
	edgeprof_frame(43, before);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.frame, 43);
	ck_assert_uint_gt(s.last.value, 0);
	edgeprof_mark("before model load");
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.kind, PROTO_KIND_MARK);
	ck_assert_str_eq(proto_map_declarations(fake.map)[s.last.stage].name, "before_model_load");
	ck_assert_uint_eq(s.records, 8);
	check_identity();
}
END_TEST

START_TEST(tokens_nest_truncate_and_forgive)
{
	attach();
	int stage = edgeprof_stage("infer");
	const struct proto_slot *slot = proto_map_slots(fake.map, &fake.g);
	struct seen s = {0};
	edgeprof_set_frame(5);
	edgeprof_token outer = edgeprof_begin(stage);
	ck_assert_uint_eq(slot->depth, 1);
	ck_assert_uint_eq(slot->open[0].frame, 5);
	ck_assert_uint_eq(slot->open[0].start_ns, outer.start_ns);
	edgeprof_token inner = edgeprof_begin(stage);
	edgeprof_token never = edgeprof_begin(stage);
	edgeprof_end(inner);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.flags, PROTO_RECORD_NESTED);
	ck_assert_uint_eq(slot->depth, 1);
	edgeprof_end(inner); /* twice */
	edgeprof_end(never); /* truncated */
	edgeprof_end(outer);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.records, 2);
	ck_assert_uint_eq(s.last.flags, 0);
	ck_assert_uint_eq(s.last.frame, 5);
	ck_assert_uint_eq(slot->depth, 0);
	edgeprof_token deep[20];
	for (int i = 0; i < 20; i++) {
		deep[i] = edgeprof_begin(stage);
	}
	for (int i = 19; i >= 0; i--) {
		edgeprof_end(deep[i]);
	}
	ck_assert_uint_eq(fake_drain(&fake, NULL, NULL), 20);
	{
		EDGEPROF_SCOPE(stage);
	}
	ck_assert_uint_eq(fake_drain(&fake, NULL, NULL), 1);
	check_identity();
}
END_TEST

enum { THREADS = 4, EVENTS = 20000 };

static atomic_bool go_on;

static void *record_many(void *arg)
{
	int stage = *(int *)arg;
	for (int i = 0; i < EVENTS; i++) {
		edgeprof_complete(stage, 1, 3, EDGEPROF_NO_FRAME);
	}
	return NULL;
}

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

START_TEST(app_older_than_the_daemon_attaches_and_knows_what_went_before)
{
	ck_assert_int_eq(fake_start(&fake), 0);
	close(fake.listener);
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

START_TEST(threads_without_a_daemon_are_counted_exactly)
{
	setenv("EDGEPROF_RUNTIME_DIR", "/nonexistent", 1);
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

START_TEST(disabled_is_silent)
{
	setenv("EDGEPROF_DISABLE", "1", 1);
	ck_assert_int_eq(fake_start(&fake), 0);
	ck_assert_int_eq(edgeprof_init(NULL), 0);
	int stage = edgeprof_stage("infer");
	for (int i = 0; i < 1000; i++) {
		edgeprof_end(edgeprof_begin(stage));
	}
	struct pollfd p = {.fd = fake.listener, .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	struct edgeprof_counts c;
	edgeprof_counts(&c);
	ck_assert_uint_eq(c.unattached + c.sent + c.dropped, 0);
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

START_TEST(shutdown_stops_recording)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_end(edgeprof_begin(stage));
	edgeprof_shutdown();
	edgeprof_end(edgeprof_begin(stage));
	edgeprof_tick();
	edgeprof_end(edgeprof_begin(-1));
	ck_assert_uint_eq(fake_count(&fake).sent, 1);
	edgeprof_shutdown();
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
		for (int i = 0; i < 10; i++) {
			edgeprof_end(edgeprof_begin(stage));
		}
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

static int handler_stage;
static atomic_ulong handled;

static void on_signal(int number)
{
	(void)number;
	edgeprof_end(edgeprof_begin(handler_stage));
	edgeprof_complete(handler_stage, 1, 1, EDGEPROF_NO_FRAME);
	handled++;
}

/* Every event of the handler is recorded, or dropped and counted: none is lost, none doubled. */
START_TEST(signal_handler_events_are_recorded_or_counted)
{
	attach();
	handler_stage = edgeprof_stage("handler");
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGALRM, &action, NULL);
	timer_t timer;
	ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
	struct itimerspec every = {{0, 50000}, {0, 50000}};
	timer_settime(timer, 0, &every, NULL);
	uint64_t own = 0, received = 0;
	const struct proto_slot *slot = proto_map_slots(fake.map, &fake.g);
	while (slot->dropped_busy < 5 || handled < 200) {
		for (int i = 0; i < 100; i++) {
			edgeprof_end(edgeprof_begin(handler_stage));
			own++;
		}
		received += fake_drain(&fake, NULL, NULL);
	}
	every = (struct itimerspec){{0, 0}, {0, 0}};
	timer_settime(timer, 0, &every, NULL);
	timer_delete(timer);
	received += fake_drain(&fake, NULL, NULL);
	struct fake_counts n = fake_count(&fake);
	ck_assert_uint_eq(n.sent, own + 2 * handled);
	ck_assert_uint_eq(n.received, received);
	ck_assert_uint_eq(n.sent, n.received + n.dropped);
	ck_assert_uint_eq(slot->depth, 0);
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

/* Kills at any system call but those of the end and of a look for the daemon that happens to be
 * due. Sanitizers' runtimes make none in this loop either. */
static int forbid_system_calls(void)
{
	static const uint32_t allowed[] = {__NR_exit_group, __NR_recvfrom, __NR_sendto, __NR_fstat,
		__NR_newfstatat, __NR_clock_gettime};
	struct sock_filter filter[2 * sizeof(allowed) / sizeof(allowed[0]) + 2];
	unsigned short n = 0;
	filter[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		filter[n++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
		filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	struct sock_fprog program = {.len = n, .filter = filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
		return -1;
	}
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

START_TEST(ten_thousand_events_make_no_system_call)
{
	ck_assert_int_eq(fake_start(&fake), 0);
	pid_t pid = fork();
	if (pid == 0) {
		edgeprof_init("quiet");
		int stage = edgeprof_stage("infer");
		edgeprof_end(edgeprof_begin(stage));
		if (forbid_system_calls() < 0) {
			_exit(77);
		}
		for (int i = 0; i < 10000; i++) {
			edgeprof_frame_begin((uint64_t)i);
			edgeprof_end(edgeprof_begin(stage));
			edgeprof_frame_end();
		}
		syscall(__NR_exit_group, 0);
	}
	ck_assert_int_eq(fake_accept(&fake), 0);
	int status;
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("no seccomp here: skipped\n");
		return;
	}
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ck_assert_uint_eq(fake_count(&fake).sent, 20001);
}
END_TEST

#if !HAVE_SANITIZER
/* Counts what the library (and everything else here) allocates. */
static atomic_ulong allocations;
void *__libc_malloc(size_t size);
void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

START_TEST(events_allocate_nothing)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_end(edgeprof_begin(stage));
	unsigned long before = allocations;
	for (int i = 0; i < 20000; i++) {
		edgeprof_end(edgeprof_begin(stage));
	}
	edgeprof_tick();
	unsigned long after = allocations;
	ck_assert_uint_eq(before, after);
	free(malloc(1));
	ck_assert_uint_gt(allocations, after);
}
END_TEST
#endif

/* covers G0.7 */
START_TEST(print_tells_stage_ends_without_a_daemon)
{
	setenv("EDGEPROF_PRINT", "1", 1);
	setenv("EDGEPROF_RUNTIME_DIR", "/nonexistent", 1);
	int pipes[2];
	ck_assert_int_eq(pipe(pipes), 0);
	dup2(pipes[1], STDERR_FILENO);
	int stage = edgeprof_stage("infer");
	edgeprof_end(edgeprof_begin(stage));
	{
		EDGEPROF_SCOPE(stage);
	}
	char text[128] = "", word[3];
	unsigned a, b, c, d;
	ck_assert_int_gt(read(pipes[0], text, sizeof(text) - 1), 0);
	ck_assert_msg(
		sscanf(text, "[infer] %u.%2u%2s\n[infer] %u.%2ums", &a, &b, word, &c, &d) == 5,
		"%s", text);
	ck_assert_str_eq(word, "ms");
}
END_TEST

START_TEST(app_that_closes_our_descriptors_is_not_written_to)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_end(edgeprof_begin(stage));
	int pair[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	/* the app's socket takes the number of whatever socket of ours is connected to `events` */
	for (int fd = 3; fd < 64; fd++) {
		if (fd != pair[0] && fd != pair[1] && fd != fake.listener &&
			fd != fake.connection && fd != fake.memfd) {
			dup2(pair[0], fd);
		}
	}
	uint64_t room = (uint64_t)fake.g.chunks * fake.g.chunk_records;
	for (uint64_t i = 0; i < room + 1000; i++) {
		edgeprof_complete(stage, 1, i, EDGEPROF_NO_FRAME);
	}
	char byte;
	ck_assert_int_lt(recv(pair[1], &byte, 1, MSG_DONTWAIT), 0);
	check_identity();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("edgeprof");
	TCase *tc = tcase_create("edgeprof");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, NULL, finish);
	tcase_add_test(tc, mapping_is_sealed_whole_and_described);
	tcase_add_loop_test(tc, mapping_size_follows_the_environment, 0, 6);
	tcase_add_test(tc, names_are_cleaned_unique_and_found_again);
	tcase_add_test(tc, full_table_is_minus_one_and_its_events_are_counted);
	tcase_add_test(tc, every_kind_arrives_as_told);
	tcase_add_test(tc, tokens_nest_truncate_and_forgive);
	tcase_add_test(tc, several_threads_are_counted_exactly_while_drained);
	tcase_add_test(tc, full_ring_refuses_the_newest_and_counts_it);
	tcase_add_test(tc, past_half_full_wakes_once_until_drained);
	tcase_add_test(tc, restarted_daemon_gets_the_same_mapping_and_what_was_not_drained);
	tcase_add_test(tc, app_older_than_the_daemon_attaches_and_knows_what_went_before);
	tcase_add_test(tc, threads_without_a_daemon_are_counted_exactly);
	tcase_add_test(tc, disabled_is_silent);
	tcase_add_test(tc, killed_writer_leaves_only_whole_records);
	tcase_add_test(tc, exit_says_bye);
	tcase_add_test(tc, shutdown_stops_recording);
	tcase_add_test(tc, forked_child_attaches_as_itself);
	tcase_add_test(tc, signal_handler_events_are_recorded_or_counted);
	tcase_add_test(tc, thousand_short_threads_share_the_slots);
	tcase_add_test(tc, threads_beyond_the_slots_are_counted_lost);
	tcase_add_test(tc, ten_thousand_events_make_no_system_call);
#if !HAVE_SANITIZER
	tcase_add_test(tc, events_allocate_nothing);
#endif
	tcase_add_test(tc, print_tells_stage_ends_without_a_daemon);
	tcase_add_test(tc, app_that_closes_our_descriptors_is_not_written_to);
	suite_add_tcase(suite, tc);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
