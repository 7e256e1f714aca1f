/* SPDX-License-Identifier: Apache-2.0 */
/* An instrumented process from its hello to its end, with real sockets, real processes and a real
 * loop; and who the daemon takes it for. */
#include <math.h>

#include "daemon/core/status/counters.h"
#include "daemon/ingest/peer.h"
#include "tests/unit/ingest/ingest_fixture.h"
#include "tests/unit/unit.h"

TEST_TIMEOUT(100);
FIXTURE(setup, teardown);

START_TEST(a_process_attaches_and_its_events_arrive)
{
	struct writer w;
	int memfd = make_mapping(&w);
	int fd = say_hello("cam", memfd);
	run_until(&counters.attaches, 1);
	struct app *app = apps_find(core.apps, "cam");
	ck_assert_ptr_nonnull(app);
	ck_assert_uint_eq(app->processes, 1);
	ck_assert_int_eq(app->process[0]->pid, getpid());
	ck_assert_uint_ne(app->process[0]->start_ticks, 0);
	ck_assert_uint_eq(processes.watches, 1);
	ck_assert_int_eq(processes.watch[0].pid, getpid());
	for (unsigned i = 0; i < 10; i++) {
		put(&w, i);
	}
	ck_assert_int_eq(send(fd, "", 1, MSG_NOSIGNAL), 1);
	run_until(&counters.events_received, 10);
	ck_assert_uint_eq(app->stages, 1);
	ck_assert_uint_eq(app->stage[0]->count, 10);
	ck_assert_str_eq(app->stage[0]->name, "infer");
	struct app_accounting a;
	app_accounting(app, &a);
	check_identity(&w, &a);
	w.header->flags = PROTO_MAP_BYE;
	close(fd);
	while (app->processes > 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_str_eq(last_text(), "ended");
	ck_assert_uint_eq(processes.watches, 0);
	close(memfd);
}
END_TEST

/* A thread hands frames to another while the daemon does not look; what the first did is read, and
 * done, before the second comes. */
START_TEST(frames_from_before_the_daemon_looked_are_whole)
{
	struct writer w;
	int memfd = make_mapping(&w);
	int fd = say_hello("cam", memfd);
	writer_declare(&w, "publish", 0);
	for (uint64_t frame = 1; frame <= 3; frame++) {
		put(&w, frame);
	}
	shift_clock(500000000);
	run_until(&counters.events_received, 3);
	const struct app *app = apps_find(core.apps, "cam");
	const struct frame_table *table = app->frame_state->table;
	ck_assert_uint_eq(table->begins, 3);
	ck_assert_uint_eq(table->serial, 3); /* done: nothing came for longer than the grace */
	const uint64_t now_ns = sysops()->now_ns();
	const struct proto_record record = {.kind = PROTO_KIND_COMPLETE,
		.stage = 1,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = now_ns - 1000,
		.value = 1000,
		.frame = 1};
	ck_assert(writer_put(&w, 1, &record));
	run_until(&counters.events_received, 4);
	ck_assert_uint_eq(table->begins, 3);
	ck_assert_uint_eq(table->late, 1);
	sysops_replace(NULL);
	drop_process(&w, fd, memfd);
}
END_TEST

/* Far more than the table holds: each thread's part of a frame finds the other's. */
START_TEST(frames_of_two_threads_that_nobody_read_for_long_are_counted_once)
{
	enum { FRAMES = 600 };
	struct writer w;
	int memfd = make_mapping(&w);
	writer_declare(&w, "publish", 0);
	const uint64_t begin_ns = sysops()->now_ns() - FRAMES * 10000;
	for (uint64_t i = 0; i < FRAMES; i++) {
		struct proto_record record = {.kind = PROTO_KIND_COMPLETE,
			.cpu_us = PROTO_CPU_NOT_MEASURED,
			.start_ns = begin_ns + i * 10000,
			.value = 4000,
			.frame = i};
		ck_assert(writer_put(&w, 0, &record));
		record.stage = 1;
		record.start_ns += 5000;
		ck_assert(writer_put(&w, 1, &record));
	}
	int fd = say_hello("cam", memfd);
	run_until(&counters.attaches, 1);
	run_until(&counters.events_received, 2 * FRAMES);
	ck_assert_uint_eq(apps_find(core.apps, "cam")->frame_state->table->begins, FRAMES);
	drop_process(&w, fd, memfd);
}
END_TEST

START_TEST(a_closed_connection_of_a_living_process_keeps_its_mapping)
{
	struct writer w;
	int memfd = make_mapping(&w);
	int fd = say_hello("cam", memfd);
	run_until(&counters.attaches, 1);
	close(fd);
	put(&w, 1);
	run_until(&counters.events_received, 1);
	for (int i = 0; i < 5; i++) {
		put(&w, 2);
		run_until(&counters.events_received, 2 + (uint64_t)i);
	}
	struct app *app = apps_find(core.apps, "cam");
	ck_assert_uint_eq(app->processes, 1);
	/* the same memfd again goes on where it was; another one of the process replaces it */
	fd = say_hello("cam", memfd);
	put(&w, 3);
	run_until(&counters.events_received, 7);
	ck_assert_uint_eq(app->process[0]->accounting.received, 7);
	ck_assert_uint_eq(app->processes, 1);
	close(fd);
	struct writer w2;
	int memfd2 = make_mapping(&w2);
	fd = say_hello("cam", memfd2);
	run_until(&counters.attaches, 2);
	ck_assert_uint_eq(app->processes, 1);
	ck_assert_uint_eq(app->past.received, 7);
	close(memfd);
	close(memfd2);
	close(fd);
}
END_TEST

/* A child that writes without end until it is killed. */
static pid_t start_writer(struct writer *w, int memfd, int ready)
{
	pid_t pid = fork();
	if (pid == 0) {
		say_hello("victim", memfd);
		w->slots[0].tid = 1;
		w->slots[0].open[0] =
			(struct proto_open_stage){.start_ns = sysops()->now_ns(), .frame = 8841};
		w->slots[0].depth = 1;
		for (uint64_t i = 0;; i++) {
			put(w, i);
			if (i == 50 && write(ready, "", 1) != 1) {
				_exit(1);
			}
		}
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

START_TEST(accounting_is_exact_when_a_writer_is_killed)
{
	uint64_t received = 0;
	for (unsigned round = 0; round < 60; round++) {
		struct writer w;
		int ready[2];
		char byte;
		int memfd = make_mapping(&w);
		ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
		pid_t pid = start_writer(&w, memfd, ready[1]);
		run_until(&counters.attaches, round + 1);
		ck_assert_int_eq(read(ready[0], &byte, 1), 1);
		run_until(&counters.drains, counters.drains + round % 4);
		struct app *app = apps_find(core.apps, "victim");
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		while (app->processes > 0) {
			uv_run(&loop, UV_RUN_ONCE);
		}
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		ck_assert_str_eq(last_text(), "died in `infer`, frame 8841");
		uint64_t head = w.slots[0].head;
		ck_assert_uint_eq(w.slots[0].tail, head);
		received += head;
		ck_assert_uint_eq(app->run, round + 1);
		ck_assert_uint_eq(app->past.received, head);
		ck_assert_uint_eq(app->past.sent, app->past.received + app->past.dropped);
		ck_assert_uint_eq(app->past.in_ring, 0);
		ck_assert_uint_eq(app->past.invalid, 0);
		ck_assert_uint_eq(app->stage[0]->count, head);
		close(ready[0]);
		close(ready[1]);
		munmap(w.map, SIZE);
		close(memfd);
	}
	ck_assert_uint_eq(counters.events_received, received);
}
END_TEST

/* Its last drain waits for a record that was announced but is not there, and nobody writes it now.
 */
START_TEST(a_damaged_record_of_an_ended_process_hides_none_behind_it)
{
	struct writer w;
	int memfd = make_mapping(&w);
	int fd = say_hello("cam", memfd);
	run_until(&counters.attaches, 1);
	w.slots[0].flags = PROTO_SLOT_CHECKED;
	for (uint64_t i = 0; i < 10; i++) {
		struct proto_record r = {.kind = PROTO_KIND_COMPLETE,
			.cpu_us = PROTO_CPU_NOT_MEASURED,
			.start_ns = sysops()->now_ns(),
			.value = 1000,
			.frame = i};
		r.stage = (uint16_t)(proto_record_check(&r, i) << 8);
		r.value += i == 3;
		ck_assert(writer_put(&w, 0, &r));
	}
	w.header->flags = PROTO_MAP_BYE;
	close(fd);
	struct app *app = apps_find(core.apps, "cam");
	while (app->processes > 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_uint_eq(app->past.received, 10);
	ck_assert_uint_eq(app->past.invalid, 1);
	ck_assert_uint_eq(app->past.in_ring, 0);
	ck_assert_uint_eq(app->stage[0]->count, 9);
	close(memfd);
}
END_TEST

START_TEST(nothing_is_lost_over_a_restart_of_the_daemon)
{
	struct writer w;
	int memfd = make_mapping(&w);
	uint64_t tried = 0;
	struct app *app = NULL;
	for (unsigned round = 0; round < 20; round++) {
		int fd = say_hello("cam", memfd);
		run_until(&counters.attaches, round + 1);
		app = apps_find(core.apps, "cam");
		ck_assert_uint_eq(app->processes, 1);
		for (unsigned i = 0; i < round * 7; i++) {
			put(&w, tried++);
		}
		drain_all();
		struct app_accounting a;
		app_accounting(app, &a);
		check_identity(&w, &a);
		ck_assert_uint_eq(a.received, tried);
		close_ingest();
		ck_assert_uint_eq(app->processes, 0);
		for (unsigned i = 0; i < 30; i++) { /* while nobody is there */
			put(&w, tried++);
		}
		close(fd);
		open_ingest();
	}
	int fd = say_hello("cam", memfd);
	run_until(&counters.attaches, 21);
	drain_all();
	struct app_accounting a;
	app_accounting(app, &a);
	check_identity(&w, &a);
	ck_assert_uint_eq(a.received, tried);
	ck_assert_uint_eq(app->stage[0]->count, tried);
	close(fd);
	close(memfd);
}
END_TEST

START_TEST(namespace_numbers_are_read)
{
	static const struct {
		const char *status;
		pid_t want;
		unsigned levels;
	} table[] = {
		{"Name:\tcam\nNSpid:\t812\nNSpgid:\t812\n", 812, 1},
		{"NSpid:\t812\t7\n", 7, 2},
		{"Name:\tNSpid:\nNSpid:\t812\t33\t1\n", 1, 3},
		{"Name:\tcam\n", 0, 0},
		{"", 0, 0},
		{"NSpid:\n1\n", 0, 0},
		{"NSpid:\tx\n", 0, 0},
		{"NSpid:\t99999999999\n", 0, 0},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		unsigned levels;
		ck_assert_int_eq(nspid_parse(table[i].status, &levels), table[i].want);
		ck_assert_uint_eq(levels, table[i].levels);
	}
	struct nspid nspid;
	nspid_init(&nspid, getpid());
	ck_assert_int_eq(nspid.inside, getpid());
	ck_assert_uint_eq(nspid_thread(&nspid, getpid(), 33), 33);
	ck_assert_uint_eq(nspid_thread(&nspid, 0, 33), 0); /* not visible */
	ck_assert(!nspid.wanted);
	nspid.nested = true;
	ck_assert_uint_eq(nspid_thread(&nspid, getpid(), (uint32_t)getpid()), 0);
	ck_assert(nspid.wanted);
	nspid_scan(&nspid, getpid());
	ck_assert_uint_eq(nspid_thread(&nspid, getpid(), (uint32_t)getpid()), (uint32_t)getpid());
	nspid_init(&nspid, 0);
	ck_assert_int_eq(nspid.inside, 0);
}
END_TEST

/* The writer is stopped and sends nothing: its open stage is seen all the same. */
START_TEST(a_stopped_process_is_seen_to_hang)
{
	close_ingest();
	options.sample_interval_ns = 10000000;
	open_ingest();
	struct writer w;
	int ready[2];
	char byte;
	int memfd = make_mapping(&w);
	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = start_writer(&w, memfd, ready[1]);
	run_until(&counters.attaches, 1);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	struct app *app = apps_find(core.apps, "victim");
	run_until(&counters.events_received, 40);
	ck_assert_int_eq(kill(pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
	drain_all();
	shift_clock(5000000000);
	while (app->hangs.count == 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	sysops_replace(NULL);
	ck_assert_ptr_nonnull(strstr(last_text(), "hangs in `infer` for 5."));
	ck_assert_ptr_nonnull(strstr(last_text(), ", frame 8841"));
	ck_assert_double_eq(metrics_find(core.metrics, "app/victim/hung")->value, 1);
	kill(pid, SIGKILL);
	while (app->processes > 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_str_eq(last_text(), "died in `infer`, frame 8841");
	close(ready[0]);
	close(ready[1]);
	close(memfd);
}
END_TEST

enum { CROWD = 12 };

START_TEST(processes_that_start_at_once_attach_over_several_iterations)
{
	struct writer w[CROWD];
	int memfd[CROWD], fd[CROWD];
	uint64_t attached = 0, iterations = 0;
	for (int i = 0; i < CROWD; i++) {
		char name[16];
		snprintf(name, sizeof(name), "cam%d", i);
		memfd[i] = make_mapping(&w[i]);
		put(&w[i], 1);
		fd[i] = say_hello(name, memfd[i]);
	}
	while (counters.attaches < CROWD) {
		attached = counters.attaches;
		counters.iterations++;
		uv_run(&loop, UV_RUN_NOWAIT);
		iterations += counters.attaches > attached;
		ck_assert_uint_le(counters.attaches - attached, 4);
	}
	ck_assert_uint_eq(iterations, CROWD / 4);
	ck_assert_uint_eq(counters.attaches_refused, 0);
	run_until(&counters.events_received, CROWD);
	for (int i = 0; i < CROWD; i++) {
		drop_process(&w[i], fd[i], memfd[i]);
	}
}
END_TEST

static uint64_t stopped_ns;

static uint64_t stopped_now(void)
{
	return stopped_ns;
}

/* The clock is that far ahead and stands still: a sample has all of its time in one iteration. */
static void stop_clock(uint64_t ahead_ns)
{
	static struct sysops stopped;
	stopped = *sysops();
	stopped_ns = stopped.now_ns() + ahead_ns;
	stopped.now_ns = stopped_now;
	sysops_replace(&stopped);
}

static uint64_t slow_now(void)
{
	return stopped_ns += 1000000;
}

/* Each look at the clock takes a millisecond. */
START_TEST(a_long_sample_goes_on_in_the_next_iterations)
{
	const uint64_t second_ns = 1000000000;
	struct writer w;
	int memfd = make_mapping(&w);
	int fd = say_hello("cam", memfd);
	run_until(&counters.attaches, 1);
	put(&w, 1);
	stop_clock(2 * second_ns);
	struct sysops slow = *sysops();
	slow.now_ns = slow_now;
	sysops_replace(&slow);
	unsigned iterations = 0;
	const struct metric *rate = NULL;
	while (!rate || isnan(rate->value)) {
		counters.iterations++;
		uv_run(&loop, UV_RUN_ONCE);
		rate = metrics_find(core.metrics, "stage/cam/infer/max_ms");
		iterations++;
	}
	sysops_replace(NULL);
	ck_assert_uint_ge(iterations, 3);
	ck_assert_uint_ge(counters.events_received, 1);
	drop_process(&w, fd, memfd);
}
END_TEST

/* The timer of the sample alone would fire 50 ms later. */
START_TEST(a_sample_shares_the_wake_up_of_others)
{
	const uint64_t second_ns = 1000000000;
	struct writer w;
	int memfd = make_mapping(&w);
	int fd = say_hello("cam", memfd);
	run_until(&counters.attaches, 1);
	stop_clock(2 * second_ns);
	for (int i = 0; i < 3; i++) {
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	sysops_replace(NULL);
	const struct metric *processes_metric = metrics_find(core.metrics, "app/cam/processes");
	ck_assert_ptr_nonnull(processes_metric);
	ck_assert_double_eq(processes_metric->value, 1);
	drop_process(&w, fd, memfd);
}
END_TEST

START_TEST(start_times_are_read_behind_any_command)
{
	static const struct {
		const char *stat;
		uint64_t want;
	} table[] = {
		{"12 (cam) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20", 777},
		{"12 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 778 20", 778},
		{"12 (cam) S 1 2 3", 0},
		{"12 (cam", 0},
		{"12 (cam) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x 20", 0},
		{"", 0},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_uint_eq(peer_parse_start(table[i].stat), table[i].want);
	}
	ck_assert_uint_ne(peer_start_ticks(getpid()), 0);
}
END_TEST
