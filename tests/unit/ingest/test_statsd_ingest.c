/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams with real sockets and a real loop, and what their lines do to apps. */
#include "daemon/ingest/statsd/statsd.h"
#include "daemon/ingest/statsd/udp.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/core/metrics/processes.h"
#include "daemon/core/status/counters.h"
#include "daemon/host/socket.h"
#include "daemon/ingest/statsd/apps.h"
#include "daemon/util/log.h"
#include "proto/histogram.h"
#include "proto/text.h"
#include "tests/unit/alloc_faults.h"
#include "tests/unit/unit.h"

static uv_loop_t loop;
static struct core core;
static struct counters counters;
static struct processes processes;
static struct statsd *statsd;
static struct statsd_options options;
static struct run_socket bound;
static struct statsd_apps apps;
static char dir[64], path[96];
static const struct statsd_sender me = {1000, 77, false};
static const uint64_t T = 5000 * UINT64_C(1000000000), SECOND = 1000000000;

static void setup(void)
{
	log_max_level = LOG_LEVEL_ERROR;
	snprintf(dir, sizeof(dir), "/tmp/edgeprof-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/statsd", dir);
	memset(&counters, 0, sizeof(counters));
	statsd = NULL;
	core = (struct core){.counters = &counters, .processes = &processes};
	struct source *source;
	ck_assert_int_eq(sources_create(&core.sources), 0);
	ck_assert_int_eq(sources_add(core.sources, "apps", 0, &source), 0);
	ck_assert_int_eq(metrics_create(&core.metrics), 0);
	ck_assert_int_eq(timeline_create(256, &core.timeline), 0);
	const struct apps_options window = {.stage_window = 64, .frame_window = 30};
	ck_assert_int_eq(apps_create(core.metrics, source, core.timeline, &window, &core.apps), 0);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	bound.fd = -1;
	options = (struct statsd_options){.fd = -1};
	statsd_apps_init(&apps, &core);
}

static void teardown(void)
{
	statsd_apps_finish(&apps, PROCESS_RELEASED, T);
	statsd_close(statsd, PROCESS_RELEASED);
	run_socket_close(&bound);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	apps_destroy(core.apps);
	timeline_destroy(core.timeline);
	metrics_destroy(core.metrics);
	sources_destroy(core.sources);
	ck_assert_int_eq(rmdir(dir), 0);
}

static void open_statsd(void)
{
	ck_assert_int_eq(run_socket_open(&bound, path, SOCK_DGRAM, NULL), 0);
	options.fd = bound.fd;
	ck_assert_int_eq(statsd_open(&loop, &core, &options, &statsd), 0);
}

static int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Sends and lets the loop take it. */
static void put(int fd, const void *bytes, size_t length)
{
	uint64_t before = counters.statsd_datagrams;
	ck_assert_int_eq(send(fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
	while (counters.statsd_datagrams == before) {
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	for (int i = 0; i < 200; i++) { /* the rest of a batch, if there is any */
		uv_run(&loop, UV_RUN_NOWAIT);
	}
}

static void say(int fd, const char *text)
{
	put(fd, text, strlen(text));
}

/* Without sockets: lines of a sender at a time. Their values. */
static size_t take(const struct statsd_sender *sender, const char *text, uint64_t now_ns)
{
	struct statsd_reader reader;
	size_t values = 0;
	statsd_reader_init(&reader, text, strlen(text));
	while (statsd_next(&reader) == STATSD_LINE) {
		values += statsd_apps_append(&apps, sender, &reader.line, now_ns);
	}
	statsd_apps_drained(&apps);
	return values;
}

static struct stage *stage_of(const char *app_name, const char *name)
{
	struct app *app = apps_find(core.apps, app_name);
	for (size_t i = 0; app && i < app->stages; i++) {
		if (strcmp(app->stage[i]->name, name) == 0) {
			return app->stage[i];
		}
	}
	return NULL;
}

static double value_of(const char *app_name, const char *name)
{
	struct app *app = apps_find(core.apps, app_name);
	for (size_t i = 0; app && app->values && i < app->values->count; i++) {
		if (strcmp(app->values->value[i].name, name) == 0) {
			return app->values->value[i].value;
		}
	}
	return (double)NAN;
}

TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_TEST(a_timing_is_a_run_that_ended_when_it_came)
{
	ck_assert_uint_eq(
		take(&me, "infer:12.5|ms|#app:cam,frame:12,unit:gpu,category:vision", T), 1);
	const struct stage *stage = stage_of("cam", "infer");
	ck_assert_ptr_nonnull(stage);
	ck_assert_uint_eq(stage->count, 1);
	ck_assert_uint_eq(stage->total_ns, 12500000);
	ck_assert_uint_eq(stage->last_ns, T);
	ck_assert_uint_eq(stage->last_frame, 12);
	ck_assert_str_eq(stage->unit, "gpu");
	ck_assert_str_eq(stage->category, "vision");
	const struct app *app = apps_find(core.apps, "cam");
	ck_assert_uint_eq(app->uid, 1000);
	ck_assert_uint_eq(app->processes, 1);
	ck_assert_int_eq(app->process[0]->pid, 0);
}
END_TEST

static void one_after_the_other(const char *text, const char *first, uint64_t end_ms)
{
	take(&me, text, T);
	ck_assert_uint_eq(stage_of("cam", first)->last_ns, T - end_ms * 1000000);
	ck_assert_uint_eq(stage_of("cam", "c")->last_ns, T);
}

START_TEST(stages_of_a_frame_in_a_datagram_are_one_after_the_other)
{
	one_after_the_other("a:10|ms|#app:cam,frame:1\nc:20|ms|#app:cam,frame:1", "a", 20);
	one_after_the_other(
		"b:1|ms|#app:cam,frame:2\nc:2:3|ms|#app:cam,frame:2\nc:4|ms|#app:cam,frame:2", "b",
		9);
	/* with what is of no frame, and with the sum */
	one_after_the_other(
		"total:33|ms|#app:cam,frame:3\nd:1|ms|#app:cam,frame:3\ng:1|g|#app:cam\n"
		"x:7|ms|#app:cam\nc:2|ms|#app:cam,frame:3\n"
		"sum:33|ms|#app:cam,frame:3,category:total",
		"d", 2);
	ck_assert_uint_eq(stage_of("cam", "total")->last_ns, T);
	ck_assert_uint_eq(stage_of("cam", "sum")->last_ns, T);
	ck_assert_uint_eq(stage_of("cam", "x")->last_ns, T);
	/* but not of other frames or none */
	one_after_the_other("e:9|ms|#app:cam,frame:4\nc:9|ms|#app:cam,frame:5", "e", 0);
	one_after_the_other("h:9|ms|#app:cam\nc:9|ms|#app:cam", "h", 0);
}
END_TEST

START_TEST(a_frame_with_its_stages_in_a_datagram_takes_their_sum)
{
	char text[64 * STATSD_RECORDS] = "";
	struct text all = TEXT_IN(text);
	for (int i = 0; i < STATSD_RECORDS; i++) { /* more than reach core at once */
		text_add(&all, "a:10|ms|#app:cam,frame:%d\nb:20|ms|#app:cam,frame:%d\n", i, i);
	}
	take(&me, text, T);
	statsd_apps_expire_frames(&apps, T + 10 * SECOND);
	const struct frames *frames = apps_find(core.apps, "cam")->frames;
	ck_assert_uint_eq(frames->count, STATSD_RECORDS);
	double ms[2] = {0, 100}, ns[2];
	proto_histogram_percentiles(&frames->latencies.all, ms, ns, 2);
	ck_assert_double_eq_tol(ns[0] / 1e6, 30, 0.3);
	ck_assert_double_eq_tol(ns[1] / 1e6, 30, 0.3);
}
END_TEST

START_TEST(histograms_and_distributions_are_timings)
{
	ck_assert_uint_eq(take(&me, "a:1|h\na:2|d\na:3:4|ms", T), 4);
	ck_assert_uint_eq(stage_of("statsd", "a")->count, 4);
	ck_assert_uint_eq(stage_of("statsd", "a")->total_ns, 10000000);
}
END_TEST

START_TEST(gauges_are_set_and_changed_by_differences)
{
	take(&me, "t:40|g\nt:+2.5|g\nt:-1|g\nnew:-3|g", T);
	ck_assert(value_of("statsd", "t") == 41.5);
	ck_assert(value_of("statsd", "new") == -3);
	take(&me, "t:1e308|g\nt:+1e308|g\nt:+1|g", T); /* a sum that is no number changes nothing */
	ck_assert(value_of("statsd", "t") == 1e308);
	struct app_accounting sum;
	app_accounting(apps_find(core.apps, "statsd"), &sum);
	ck_assert_uint_eq(sum.invalid, 1);
}
END_TEST

START_TEST(counters_are_scaled_by_their_rate)
{
	take(&me, "hits:1|c|@0.1\nhits:2:3|c\nhits:-1|c", T);
	ck_assert(fabs(value_of("statsd", "hits") - 14) < 1e-9);
}
END_TEST

START_TEST(what_no_record_can_say_is_counted_invalid)
{
	struct app_accounting sum;
	/* negative; longer than the machine runs; longer than a day */
	take(&me, "a:-1|ms\na:1e300|ms\na:5000001|ms\na:1|ms", T);
	app_accounting(apps_find(core.apps, "statsd"), &sum);
	ck_assert_uint_eq(sum.sent, 4);
	ck_assert_uint_eq(sum.received, 4);
	ck_assert_uint_eq(sum.invalid, 3);
	ck_assert_uint_eq(stage_of("statsd", "a")->count, 1);
	take(&me, "a:90000000|ms", 200000 * SECOND);
	app_accounting(apps_find(core.apps, "statsd"), &sum);
	ck_assert_uint_eq(sum.invalid, 4);
}
END_TEST

START_TEST(a_name_of_another_user_is_refused_and_told_once)
{
	const struct statsd_sender other = {1001, 78, false};
	struct app_process *process;
	ck_assert_int_eq(apps_attach(core.apps, "cam", 1000, 42, 1, 65536, T, &process), 0);
	uint64_t serial = timeline_last_serial(core.timeline);
	for (int i = 0; i < 100; i++) {
		ck_assert_uint_eq(take(&other, "infer:1|ms|#app:cam", T + (uint64_t)i), 0);
	}
	ck_assert_uint_eq(counters.statsd_refused, 100);
	ck_assert_uint_eq(counters.rejected_attaches.count, 1);
	ck_assert_str_eq(counters.rejected_attaches.entry[0].app, "cam");
	ck_assert_uint_eq(counters.rejected_attaches.entry[0].uid, 1001);
	ck_assert_str_eq(
		counters.rejected_attaches.entry[0].reason, "another user's app has this name");
	ck_assert_uint_eq(timeline_last_serial(core.timeline), serial + 1);
	ck_assert_uint_eq(apps_find(core.apps, "cam")->stages, 0);
	/* its owner may, beside the process that is attached */
	ck_assert_uint_eq(take(&me, "infer:1|ms|#app:cam", T), 1);
	ck_assert_uint_eq(apps_find(core.apps, "cam")->processes, 2);
	apps_detach(core.apps, process, PROCESS_ENDED, T);
}
END_TEST

START_TEST(without_a_tag_every_user_has_an_app)
{
	const struct statsd_sender other = {1001, 78, false};
	ck_assert_uint_eq(take(&me, "a:1|ms", T), 1);
	ck_assert_uint_eq(take(&other, "a:1|ms\na:1|ms", T), 2);
	ck_assert_uint_eq(stage_of("statsd", "a")->count, 1);
	ck_assert_uint_eq(stage_of("statsd.1001", "a")->count, 2);
}
END_TEST

START_TEST(one_name_more_than_fits_is_dropped_and_counted)
{
	char text[64];
	struct app_accounting sum;
	for (int i = 0; i < STATSD_NAMES_MAX + 10; i++) {
		snprintf(text, sizeof(text), "name.%d:1|ms", i);
		take(&me, text, T);
	}
	take(&me, "name.0:1|ms", T);
	app_accounting(apps_find(core.apps, "statsd"), &sum);
	ck_assert_uint_eq(sum.sent, STATSD_NAMES_MAX + 11);
	ck_assert_uint_eq(sum.dropped, 10);
	ck_assert_uint_eq(sum.sent, sum.received + sum.dropped);
	ck_assert_uint_eq(counters.statsd_refused, 10);
	ck_assert_uint_eq(stage_of("statsd", "name.0")->count, 2);
}
END_TEST

START_TEST(long_names_that_begin_alike_stay_apart)
{
	char text[512], name[201];
	memset(name, 'n', sizeof(name) - 1);
	name[200] = '\0';
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "%s%d:1|ms", name, i);
		take(&me, text, T);
	}
	ck_assert_uint_eq(apps_find(core.apps, "statsd")->stages, 3);
}
END_TEST

START_TEST(apps_have_a_limit_and_the_silent_one_makes_room)
{
	const struct statsd_sender root = {0, 1, true};
	const struct statsd_sender other = {1001, 78, false};
	char text[64];
	for (int i = 0; i < 40; i++) { /* all at once: nobody is silent yet */
		snprintf(text, sizeof(text), "a:1|ms|#app:own%d", i);
		take(&me, text, T);
	}
	ck_assert_uint_eq(apps.count, APPS_OWN_MAX / 2);
	ck_assert_uint_eq(take(&other, "a:1|ms|#app:theirs", T), 1);
	/* later one's own oldest goes */
	ck_assert_uint_eq(take(&me, "a:1|ms|#app:own1", T + SECOND), 1);
	ck_assert_uint_eq(take(&me, "a:1|ms|#app:late", T + SECOND + 1), 1);
	ck_assert_uint_eq(apps.count, APPS_OWN_MAX / 2 + 1);
	ck_assert_uint_eq(apps_find(core.apps, "own1")->processes, 1);
	ck_assert_uint_eq(apps_find(core.apps, "theirs")->processes, 1);
	for (int i = 0; i < 40; i++) {
		snprintf(text, sizeof(text), "a:1|ms|#app:root%d", i);
		take(&root, text, T + 3 * SECOND);
	}
	ck_assert_uint_le(apps.count, COUNT(apps.app));
}
END_TEST

START_TEST(a_flood_of_apps_costs_few_attaches)
{
	char text[64];
	uint64_t serial = timeline_last_serial(core.timeline);
	for (uint64_t i = 0; i < 100000; i++) { /* in one second */
		snprintf(text, sizeof(text), "a:1|ms|#app:f%d", (int)i);
		take(&me, text, T + i * 10000);
	}
	ck_assert_uint_le(timeline_last_serial(core.timeline) - serial, 128); /* app_told.h */
	ck_assert_uint_le(apps.count, COUNT(apps.app));
}
END_TEST

START_TEST(a_silent_app_ends_and_nobody_calls_it_dead)
{
	take(&me, "a:1|ms|#app:one\na:1|ms|#app:two", T);
	take(&me, "a:1|ms|#app:two", T + 30 * SECOND);
	ck_assert_uint_eq(statsd_apps_sweep(&apps, T + 59 * SECOND), 2);
	ck_assert_uint_eq(statsd_apps_sweep(&apps, T + 60 * SECOND), 1);
	const struct app *app = apps_find(core.apps, "one");
	ck_assert_uint_eq(app->processes, 0);
	ck_assert_str_eq(app->last_words, "");
	ck_assert_uint_eq(statsd_apps_sweep(&apps, T + 90 * SECOND), 0);
	/* and comes back with a run of its own */
	take(&me, "a:1|ms|#app:one", T + 91 * SECOND);
	struct app_accounting sum;
	app_accounting(apps_find(core.apps, "one"), &sum);
	ck_assert_uint_eq(sum.received, 1);
	ck_assert_uint_eq(stage_of("one", "a")->count, 1);
	ck_assert_uint_eq(apps_find(core.apps, "one")->run, 2);
}
END_TEST

START_TEST(without_memory_an_app_is_refused)
{
	alloc_faults_start(1);
	ck_assert_uint_eq(take(&me, "a:1|ms", T), 0);
	alloc_faults_stop();
	ck_assert_uint_eq(counters.statsd_refused, 1);
	ck_assert_uint_eq(take(&me, "a:1|ms", T + 2 * SECOND), 1);
}
END_TEST

START_TEST(lines_of_a_known_name_allocate_nothing)
{
	const char *text = "a:1|ms|#app:cam,frame:3\nb:2|g|#app:cam\nc:1|c|#app:cam\n";
	for (uint64_t i = 0; i < 1000; i++) {
		if (i == 64) { /* the stage's window has its size */
			alloc_faults_start(0);
		}
		take(&me, text, T + i);
	}
	size_t calls = alloc_calls;
	alloc_faults_stop();
	ck_assert_uint_eq(calls, 0);
}
END_TEST

START_TEST(the_kernel_tells_who_sends)
{
	open_statsd();
	int fd = dial();
	say(fd, "infer:5|ms|#app:cam\nbad\nx:1|s\ninfer:6|ms|#app:cam\n");
	ck_assert_uint_eq(apps_find(core.apps, "cam")->uid, geteuid());
	ck_assert_uint_eq(stage_of("cam", "infer")->count, 2);
	ck_assert_uint_eq(counters.statsd_datagrams, 1);
	ck_assert_uint_eq(counters.statsd_lines, 4);
	ck_assert_uint_eq(counters.statsd_bad_lines, 1);
	ck_assert_uint_eq(counters.statsd_unsupported, 1);
	ck_assert_str_eq(counters.statsd_bad_reason, "no ':' after the name");
	close(fd);
}
END_TEST

START_TEST(it_can_be_opened_again_at_once)
{
	open_statsd();
	statsd_close(statsd, PROCESS_RELEASED);
	run_socket_close(&bound);
	open_statsd(); /* while the handles of the first are still closing */
	int fd = dial();
	say(fd, "a:1|ms");
	ck_assert_uint_eq(counters.statsd_lines, 1);
	close(fd);
}
END_TEST

static size_t open_descriptors(void)
{
	size_t count = 0;
	DIR *folder = opendir("/proc/self/fd");
	ck_assert_ptr_nonnull(folder);
	while (readdir(folder)) {
		count++;
	}
	closedir(folder);
	return count;
}

START_TEST(descriptors_that_come_along_are_not_kept)
{
	open_statsd();
	int fd = dial();
	say(fd, "a:1|ms");
	int memfd = memfd_create("none", MFD_CLOEXEC); /* another kind is closed by a thread */
	ck_assert_int_ge(memfd, 0);
	size_t before = open_descriptors(), passed = 0;
	for (int round = 0; round < 3; round++) {
		union {
			struct cmsghdr align;
			char bytes[CMSG_SPACE(sizeof(int))];
		} control = {0};
		struct iovec iov = {.iov_base = (char[]){"a:1|ms"}, .iov_len = 6};
		struct msghdr msg = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.bytes,
			.msg_controllen = sizeof(control.bytes)};
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &memfd, sizeof(memfd));
		ssize_t n = sendmsg(fd, &msg, 0);
		ck_assert(n == 6 || errno == EPERM); /* Linux 6.16 does not let it through */
		passed += n == 6;
		say(fd, "a:1|ms");
	}
	ck_assert_uint_eq(open_descriptors(), before);
	ck_assert_uint_eq(stage_of("statsd", "a")->count, 4 + passed);
	close(memfd);
	close(fd);
}
END_TEST

START_TEST(hostile_datagrams_are_only_counted)
{
	static char bytes[STATSD_DATAGRAM_MAX + 4096];
	open_statsd();
	int fd = dial();
	const int room = 1 << 20;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	for (int c = 0; c < 256; c++) {
		memset(bytes, c, STATSD_DATAGRAM_MAX);
		put(fd, bytes, STATSD_DATAGRAM_MAX);
	}
	uint64_t state = 1;
	for (size_t i = 0; i < STATSD_DATAGRAM_MAX; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (char)(state >> 56);
	}
	put(fd, bytes, STATSD_DATAGRAM_MAX);
	put(fd, "", 0);
	ck_assert_uint_eq(counters.statsd_datagrams, 258);
	ck_assert_uint_eq(counters.statsd_truncated, 0);
	ck_assert_uint_eq(apps_find(core.apps, "statsd") != NULL, 0);
	say(fd, "a:1|ms");
	ck_assert_uint_eq(stage_of("statsd", "a")->count, 1);
	close(fd);
}
END_TEST

START_TEST(of_a_datagram_that_is_too_long_whole_lines_count)
{
	static char bytes[STATSD_DATAGRAM_MAX + 4096];
	size_t at = 0, lines = 0;
	open_statsd();
	int fd = dial();
	while (at + 16 < sizeof(bytes)) {
		lines += at + 8 <= STATSD_DATAGRAM_MAX;
		memcpy(bytes + at, "a:25|ms\n", 8);
		at += 8;
	}
	bytes[STATSD_DATAGRAM_MAX - 1] = '5'; /* the cut would leave "a:25|ms5" or less */
	put(fd, bytes, at);
	ck_assert_uint_eq(counters.statsd_truncated, 1);
	ck_assert_uint_eq(counters.statsd_lines, lines - 1);
	ck_assert_uint_eq(counters.statsd_bad_lines, 0);
	ck_assert_uint_eq(stage_of("statsd", "a")->count, lines - 1);
	close(fd);
}
END_TEST

START_TEST(a_turn_of_the_loop_takes_a_bounded_amount)
{
	static char bytes[60000];
	open_statsd();
	int fd = dial();
	for (size_t at = 0; at + 6 <= sizeof(bytes); at += 6) {
		memcpy(bytes + at, "a:1|c\n", 6);
	}
	ck_assert_int_eq(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	ck_assert_int_eq(send(fd, "b:1|c", 5, 0), 5);
	uint64_t before = 0, most = 0, turns = 0;
	while (counters.statsd_lines < 10001) {
		uv_run(&loop, UV_RUN_NOWAIT);
		uint64_t step = counters.statsd_lines - before;
		most = step > most ? step : most;
		before = counters.statsd_lines;
		turns++;
	}
	ck_assert_uint_le(most, 4096);
	ck_assert_uint_ge(turns, 2);
	ck_assert(value_of("statsd", "a") == 10000);
	close(fd);
}
END_TEST

START_TEST(a_full_queue_is_the_senders_matter)
{
	open_statsd();
	int fd = dial();
	int sent = 0;
	while (send(fd, "a:1|c", 5, MSG_NOSIGNAL) == 5) { /* nobody reads */
		sent++;
	}
	ck_assert_int_eq(errno, EAGAIN);
	while (counters.statsd_datagrams < (uint64_t)sent) {
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	ck_assert(value_of("statsd", "a") == sent);
	close(fd);
}
END_TEST

static uint16_t free_port(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(in);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &length), 0);
	close(fd);
	return ntohs(in.sin_port);
}

START_TEST(udp_is_nobodys)
{
	char udp[32];
	uint16_t port = free_port();
	snprintf(udp, sizeof(udp), "127.0.0.1:%u", port);
	options.udp = udp;
	open_statsd();
	struct sockaddr_in in = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	say(fd, "a:1|ms|#app:net");
	ck_assert_uint_eq(apps_find(core.apps, "net")->uid, 65534);
	/* a flood into a socket that nobody reads: the kernel tells what it dropped */
	const int flood = 20000;
	for (int i = 0; i < flood; i++) {
		ck_assert_int_eq(send(fd, "a:1|c|#app:net", 14, 0), 14);
	}
	for (int i = 0; i < 20000 && counters.statsd_lost == 0; i++) {
		uv_run(&loop, UV_RUN_NOWAIT);
		send(fd, "a:1|c|#app:net", 14, 0);
	}
	ck_assert_uint_gt(counters.statsd_lost, 0);
	struct statsd *second;
	ck_assert_int_eq(statsd_open(&loop, &core, &options, &second), -EADDRINUSE);
	close(fd);
}
END_TEST

static const struct {
	const char *text;
	int result;
} addresses[] = {
	{"127.0.0.1:8125", 0},
	{"127.1.2.3:1", 0},
	{"[::1]:8125", 0},
	{"0.0.0.0:8125", -EPERM},
	{"192.168.1.2:8125", -EPERM},
	{"[::]:8125", -EPERM},
	{"0.0.0.0:8125 anyone", 0},
	{"[::]:65535 anyone", 0},
	{"127.0.0.1", -EINVAL},
	{"127.0.0.1:0", -EINVAL},
	{"127.0.0.1:65536", -EINVAL},
	{"127.0.0.1:x", -EINVAL},
	{"localhost:8125", -EINVAL},
	{"::1:8125", -EINVAL},
	{"[::1:8125", -EINVAL},
	{"[]:8125", -EINVAL},
	{"[:8125", -EINVAL},
	{":8125", -EINVAL},
	{"", -EINVAL},
	{" anyone", -EINVAL},
	{"8125", -EINVAL},
};

FIXTURE(NULL, NULL);

START_LOOP_TEST(an_address_is_of_this_machine_unless_told, 0, COUNT(addresses))
{
	struct statsd_address address;
	ck_assert_int_eq(statsd_address_parse(addresses[_i].text, &address), addresses[_i].result);
}
END_TEST

FIXTURE(setup, teardown);

START_TEST(opening_without_memory_leaves_nothing)
{
	for (size_t i = 1; i <= 2; i++) {
		alloc_faults_start(i);
		ck_assert_int_eq(statsd_open(&loop, &core, &options, &statsd), -ENOMEM);
		alloc_faults_stop();
	}
	statsd = NULL;
}
END_TEST
