/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that write what they like into their mappings, or too much of it. */
#include "daemon/core/status/counters.h"
#include "daemon/ingest/ring.h"
#include "tests/unit/ingest/ingest_fixture.h"
#include "tests/unit/unit.h"

static uint64_t chance(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A word that code may trip over. */
static uint64_t bad_word(uint64_t *state, uint64_t old)
{
	uint64_t r = chance(state);
	switch (r >> 60) {
	case 0:
		return UINT64_MAX;
	case 1:
		return 0;
	case 2:
		return sysops()->now_ns() + (r & 0xffffffff);
	case 3:
	case 4:
		return old + (r & 15) - 8;
	case 5:
	case 6:
		return old ^ (uint64_t)1 << (r & 63);
	case 7:
	case 8: /* a record's first word: any kind of a declared stage */
		return (r & 1) | (r >> 8 & 15) << 16 | (r & 0xff000000);
	case 9:
		return r & 127;
	default:
		return chance(state);
	}
}

/* Attaches mapping after mapping and writes into each what it likes. Tables and slots more often
 * than records, which are most of the space. */
static void mutate(uint64_t words)
{
	enum { PER_MAPPING = 20000, BURST = 500 };
	uint64_t state = 0x9e3779b97f4a7c15u;
	for (uint64_t done = 0; done < words; done += PER_MAPPING) {
		struct writer w;
		int memfd = make_mapping(&w);
		writer_declare(&w, "gauge", 0);
		w.header->wake = 1; /* the first drain clears it */
		int fd = say_hello("evil", memfd);
		while (__atomic_load_n(&w.header->wake, __ATOMIC_RELAXED)) {
			nanosleep(&(struct timespec){0, 50000}, NULL);
		}
		uint64_t *word = w.map;
		uint64_t tables = w.g.records_offset / 8;
		for (unsigned i = 0; i < PER_MAPPING; i++) {
			if (i % BURST == 0) {
				put(&w, i);
				(void)!send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
				nanosleep(&(struct timespec){0, 50000}, NULL);
			}
			uint64_t r = chance(&state);
			uint64_t at = r % (i % 3 ? tables : SIZE / 8);
			uint64_t old = __atomic_load_n(&word[at], __ATOMIC_RELAXED);
			__atomic_store_n(&word[at], bad_word(&state, old), __ATOMIC_RELAXED);
		}
		munmap(w.map, SIZE);
		close(fd);
		close(memfd);
	}
}

/* An app that counts for itself and ends by its own will when told. */
static pid_t start_good(struct writer *w, int memfd, const int go[2])
{
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		int fd = say_hello("good", memfd);
		fcntl(go[0], F_SETFL, O_NONBLOCK);
		close(go[1]);
		for (uint64_t i = 0; read(go[0], &byte, 1) != 0; i++) {
			struct timespec pause_for = {0, 200000};
			put(w, i);
			nanosleep(&pause_for, NULL);
		}
		w->header->flags = PROTO_MAP_BYE;
		_exit(fd < 0);
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

static bool ended(pid_t pid)
{
	int status;
	pid_t got = waitpid(pid, &status, WNOHANG);
	ck_assert(got != pid || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
	return got == pid;
}

static uint64_t wanted_mutations(uint64_t usual)
{
	const char *text = getenv("EDGEPROF_MUTATIONS");
	uint64_t words = text ? strtoull(text, NULL, 10) : 0;
	return words > 0 ? words : usual;
}

TEST_TIMEOUT(600);
FIXTURE(setup, teardown);

START_TEST(any_words_in_a_mapping_disturb_nobody)
{
	close_ingest();
	options.drain_interval_ns = 1000000;
	options.sample_interval_ns = 20000000;
	open_ingest();
	struct writer good;
	int memfd = make_mapping(&good), go[2];
	ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
	pid_t good_pid = start_good(&good, memfd, go);
	run_until(&counters.attaches, 1);
	struct app *app = apps_find(core.apps, "good");
	size_t before = open_fds();
	pid_t pid = fork();
	if (pid == 0) {
		mutate(wanted_mutations(10000000));
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	while (!ended(pid)) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_uint_ge(counters.attaches, wanted_mutations(10000000) / 20000);
	close(go[1]);
	while (app->processes > 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	while (!ended(good_pid)) {
	}
	uint64_t head = good.slots[0].head;
	ck_assert_uint_gt(head, 100);
	ck_assert_uint_eq(app->past.received, head);
	ck_assert_uint_eq(app->past.sent, head);
	ck_assert_uint_eq(app->past.invalid + app->past.dropped, 0);
	ck_assert_uint_eq(app->stage[0]->count, head);
	struct app *evil = apps_find(core.apps, "evil");
	while (evil->processes > 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_uint_le(open_fds(), before);
	for (size_t i = 0; i < evil->stages; i++) {
		ck_assert(proto_name_valid(evil->stage[i]->name));
	}
	close(go[0]);
	close(memfd);
}
END_TEST

START_TEST(forged_tables_and_counters_are_bounded)
{
	struct writer w;
	int memfd = make_mapping(&w);
	struct proto_declaration *d = proto_map_declarations(w.map);
	memset(&d[1], 'x', sizeof(d[1])); /* no NUL anywhere */
	w.header->declarations = UINT32_MAX;
	w.header->lost = UINT64_MAX - 5;
	for (uint32_t i = 0; i < w.g.slots; i++) {
		w.slots[i].state = PROTO_SLOT_OWNED;
		w.slots[i].depth = UINT32_MAX;
		w.slots[i].dropped = UINT64_MAX;
		for (uint32_t k = 0; k < PROTO_OPEN_STAGES; k++) {
			w.slots[i].open[k] = (struct proto_open_stage){
				.start_ns = UINT64_MAX - k, .stage = k % 2 ? 1 : UINT32_MAX};
		}
	}
	w.slots[1].head = UINT64_MAX;
	w.slots[2].head = 3; /* no chunk is its own */
	w.slots[3].head = 3;
	w.slots[3].first_chunk = UINT32_MAX - 1;
	put(&w, 1);
	int fd = say_hello("evil", memfd);
	run_until(&counters.attaches, 1);
	struct app *app = apps_find(core.apps, "evil");
	drain_all();
	apps_sample(core.apps, sysops()->now_ns());
	ck_assert_uint_eq(app->stage[0]->count, 1);
	ck_assert_uint_eq(app->process[0]->open_count, 16);
	for (uint32_t i = 0; i < 16; i++) {
		ck_assert_uint_eq(strlen(app->process[0]->open[i].stage), PROTO_NAME_MAX);
	}
	ck_assert_uint_eq(app->hangs.count, 0); /* opened in the far future */
	close(fd);
	close(memfd);
}
END_TEST

START_TEST(holes_and_truncation_cost_only_their_own_events)
{
	struct writer w;
	int memfd = make_mapping(&w);
	int fd = say_hello("evil", memfd);
	run_until(&counters.attaches, 1);
	for (unsigned i = 0; i < 10; i++) {
		put(&w, i);
	}
	run_until(&counters.events_received, 10);
	ck_assert_int_lt(ftruncate(memfd, 0), 0);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE), 0);
	for (int i = 0; i < 10; i++) { /* all zero: nothing moves, nothing breaks */
		drain_all();
		apps_sample(core.apps, sysops()->now_ns());
		fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096 * i, 8192);
	}
	struct app *app = apps_find(core.apps, "evil");
	ck_assert_uint_eq(app->stage[0]->count, 10);
	struct writer good;
	int memfd2 = make_mapping(&good);
	int fd2 = say_hello("good", memfd2);
	run_until(&counters.attaches, 2);
	put(&good, 1);
	run_until(&counters.events_received, 11);
	close(fd);
	close(fd2);
	close(memfd);
	close(memfd2);
}
END_TEST

START_TEST(a_storm_of_attach_requests_leaves_neither_descriptors_nor_a_flood)
{
	uint64_t told = timeline_last_serial(core.timeline);
	size_t before = open_fds();
	for (unsigned i = 0; i < 3000; i++) {
		char name[16];
		int memfd = make_memfd(SIZE, true, SEALS);
		snprintf(name, sizeof(name), "storm%u", i);
		int fd = say_hello(name, memfd); /* no header in it */
		close(memfd);
		run_until(&counters.attaches_refused, i + 1);
		close(fd);
	}
	uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_uint_le(open_fds(), before);
	ck_assert_uint_le(timeline_last_serial(core.timeline), told + 100);
	ck_assert_uint_gt(apps_counts(core.apps)->suppressed, 2800);
	ck_assert_uint_le(counters.rejected_attaches.count, REJECTED_ATTACHES_MAX);
}
END_TEST

/* Each look at the clock takes a millisecond. */
static uint64_t slow_now_ns(void)
{
	static uint64_t passed_ns;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	passed_ns += 1000000;
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + passed_ns;
}

START_TEST(what_piled_up_in_many_rings_does_not_hold_the_loop)
{
	enum { MANY = 24 };
	static struct writer w[MANY];
	uint64_t written = 0;
	int fd[MANY];
	for (unsigned i = 0; i < MANY; i++) {
		int memfd = make_mapping(&w[i]);
		fd[i] = say_hello("cam", memfd);
		close(memfd);
		run_until(&counters.attaches, i + 1);
	}
	const struct proto_record record = {
		.kind = PROTO_KIND_COMPLETE, .start_ns = sysops()->now_ns()};
	for (unsigned i = 0; i < MANY; i++) {
		while (writer_put(&w[i], 0, &record)) {
			written++;
		}
	}
	struct sysops slow = *sysops();
	slow.now_ns = slow_now_ns;
	sysops_replace(&slow);
	counters.iterations++;
	ck_assert(!ingest_drain(ingest));
	sysops_replace(NULL);
	ck_assert_uint_gt(counters.events_received, 0);
	ck_assert_uint_le(counters.events_received, 1024); /* of one: time was over */
	run_until(&counters.events_received, written);	   /* by turns, and all of it */
	for (unsigned i = 0; i < MANY; i++) {
		close(fd[i]);
		munmap(w[i].map, SIZE);
	}
}
END_TEST
