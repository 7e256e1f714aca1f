/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics that outlive the daemon: what a kill at any moment leaves, and what is made of it. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/core/apps/values.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/core/runs/save_private.h"
#include "daemon/core/stages/stats.h"
#include "daemon/util/runfile.h"
#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/histograms.h"
#include "tests/unit/unit.h"

static const uint8_t boot[16] = {1, 2, 3};
static struct app_save_memory memory;
static size_t room; /* bytes that may be reserved */
static size_t reserved_end;

static bool reserve(void *ctx, size_t offset, size_t length)
{
	(void)ctx;
	if (offset + length > memory.size || length > room) {
		return false;
	}
	room -= length;
	reserved_end = offset + length > reserved_end ? offset + length : reserved_end;
	return true;
}

static void setup_save(void)
{
	setup();
	room = SIZE_MAX;
	memory = (struct app_save_memory){
		.data = calloc(1, apps_save_size()), .size = apps_save_size(), .reserve = reserve};
	ck_assert_int_eq(apps_save_into(apps, &memory, boot), 0);
}

static void teardown_save(void)
{
	teardown();
	free(memory.data);
}

/* kill -9, and another life of the daemon. */
static void restart_as(const uint8_t boot_id[16])
{
	teardown();
	setup();
	ck_assert_int_eq(apps_save_into(apps, &memory, boot_id), 0);
}

static void restart(void)
{
	restart_as(boot);
}

/* A process with two stages, one inside the other, and frames; 100 of each. */
static struct app_process *busy(uint64_t t_ns)
{
	struct app_process *p = attach_as("cam", 1000, 12, t_ns);
	declare(p, 0, "total", "");
	declare(p, 1, "infer", "gpu");
	declare(p, 2, "objects", "");
	drained_ns = t_ns + 10 * S;
	for (uint64_t i = 0; i < 100; i++) {
		struct proto_record r = {.stage = 1,
			.kind = PROTO_KIND_COMPLETE,
			.flags = PROTO_RECORD_NESTED | 1 << PROTO_RECORD_DEPTH_SHIFT,
			.cpu_us = 1000,
			.start_ns = t_ns + i * 20 * MS,
			.value = (i % 7 + 1) * MS,
			.frame = i};
		put(p, &r);
		r = (struct proto_record){.stage = 0,
			.kind = PROTO_KIND_COMPLETE,
			.cpu_us = PROTO_CPU_NOT_MEASURED,
			.start_ns = t_ns + i * 20 * MS,
			.value = 10 * MS,
			.frame = i};
		put(p, &r);
		r = (struct proto_record){.kind = PROTO_KIND_FRAME,
			.start_ns = t_ns + i * 20 * MS,
			.value = 12 * MS,
			.frame = i};
		put(p, &r);
	}
	struct proto_record attribute = {.stage = 2,
		.kind = PROTO_KIND_ATTRIBUTE,
		.cpu_us = 1,
		.start_ns = t_ns,
		.value = bits(42),
		.frame = PROTO_NO_FRAME};
	put(p, &attribute);
	p->frame_state.pass_ns = drained_ns;
	apps_drained(apps, p);
	p->accounting = (struct app_accounting){.sent = 301, .received = 301};
	return p;
}

static const struct stage *stage_named(const struct app *app, const char *name)
{
	for (size_t i = 0; i < app->stages; i++) {
		if (strcmp(app->stage[i]->name, name) == 0) {
			return app->stage[i];
		}
	}
	ck_abort_msg("no stage %s", name);
	return NULL;
}

static void same_answers(const struct stage *stage, const struct stage_answer *want, bool lifetime)
{
	double scratch[1024];
	struct stage_answer have;
	const struct window_query query = {.lifetime = lifetime};
	stage_ask(stage, &query, scratch, &have);
	ck_assert_uint_eq(have.summary.count, want->summary.count);
	ck_assert_double_eq(have.summary.mean, want->summary.mean);
	ck_assert_double_eq(have.summary.p99, want->summary.p99);
	ck_assert_double_eq(have.summary.std, want->summary.std);
	ck_assert_double_eq(have.cpu_ms, want->cpu_ms);
}

TEST_TIMEOUT(60);
FIXTURE(setup_save, teardown_save);

START_TEST(a_process_that_comes_back_goes_on_with_its_run)
{
	double scratch[1024];
	struct stage_answer recent, lifetime;
	const struct app *app = busy(T0)->app;
	const struct window_query of_window = {.lifetime = false}, of_all = {.lifetime = true};
	stage_ask(stage_named(app, "infer"), &of_window, scratch, &recent);
	stage_ask(stage_named(app, "infer"), &of_all, scratch, &lifetime);
	struct frames_stats before, after;
	frames_stats(app->frames, scratch, &before);
	apps_save_all(apps);
	restart();

	struct app_process *p = attach_as("cam", 1000, 12, T0 + 20 * S);
	app = p->app;
	apps_note_received(p, 301);
	ck_assert_uint_eq(app->since_ns, T0);
	ck_assert_uint_eq(app->run, 1);
	ck_assert_uint_eq(app->starts, 1);
	ck_assert_uint_eq(app->covers_since_ns + app->missing, 0);
	ck_assert_uint_eq(app->stages, 2);
	const struct stage *infer = stage_named(app, "infer");
	same_answers(infer, &recent, false);
	same_answers(infer, &lifetime, true);
	ck_assert_str_eq(infer->unit, "gpu");
	ck_assert_uint_eq(infer->parent[0].serial, stage_named(app, "total")->serial);
	ck_assert_uint_eq(infer->attributes->count, 1);
	ck_assert_double_eq(infer->attributes->attribute[0].last, 42);
	frames_stats(app->frames, scratch, &after);
	ck_assert_uint_eq(after.times.count, before.times.count);
	ck_assert_double_eq(after.fps, before.fps);
	ck_assert_double_eq(after.latencies.p95, before.latencies.p95);

	/* and more of it counts there, the delta over the restart as well */
	declare(p, 1, "infer", "gpu");
	drained_ns = T0 + 22 * S;
	put_run(p, 1, T0 + 21 * S, MS);
	record(p, PROTO_KIND_FRAME, 0, T0 + 5 * S, 12 * MS, 100);
	p->frame_state.pass_ns = drained_ns;
	apps_drained(apps, p);
	ck_assert_uint_eq(infer->count, 101);
	ck_assert_uint_eq(app->stages, 2);
	ck_assert_uint_eq(app->frames->times.all.count, 100);
	apps_sample(apps, T0 + 22 * S);
	is("stage/cam/infer/rate",
		infer->interval.count == 0 ? metric("stage/cam/infer/rate")->value : 0);
	apps_save_all(apps);
	restart();
	p = attach_as("cam", 1000, 12, T0 + 30 * S);
	ck_assert_uint_eq(stage_named(p->app, "infer")->count, 101);
}
END_TEST

static void note(const struct app *app, struct proto_histogram ret[6])
{
	const struct stage *infer = stage_named(app, "infer");
	const struct frames *frames = app->frames;
	const struct proto_histogram *of[] = {infer->all, infer->throttled, &frames->times.all,
		frames->times.throttled, &frames->latencies.all, frames->latencies.throttled};
	for (size_t i = 0; i < 6; i++) {
		proto_histogram_init(&ret[i], calloc);
		ck_assert_ptr_nonnull(of[i]);
		ck_assert(proto_histogram_add_all(&ret[i], of[i]));
		ck_assert_uint_gt(ret[i].count, 0);
	}
}

START_TEST(every_histogram_comes_back)
{
	struct proto_histogram before[6], after[6];
	struct throttle_times times = {.count = 0};
	throttle_times_sample(&times, T0 - S, THROTTLE_NO);
	throttle_times_sample(&times, T0 + S, THROTTLE_YES);
	apps_set_throttle_times(apps, &times);
	const struct app *app = busy(T0)->app;
	struct proto_histogram *all = stage_named(app, "infer")->all;
	uint32_t bucket = proto_histogram_bucket(3 * MS);
	all->buckets[bucket - all->first] = UINT32_MAX; /* about to carry */
	proto_histogram_count(all, bucket);
	note(app, before);
	apps_save_all(apps);
	restart();
	note(attach_as("cam", 1000, 12, T0 + 20 * S)->app, after);
	for (size_t i = 0; i < 6; i++) {
		ck_assert_msg(histograms_match(&before[i], &after[i]), "histogram %zu", i);
		proto_histogram_finish(&before[i]);
		proto_histogram_finish(&after[i]);
	}
}
END_TEST

START_TEST(what_came_after_it_was_saved_is_counted_as_missing)
{
	struct app_process *p = busy(T0);
	apps_save_all(apps);
	put_run(p, 0, T0 + 5 * S, MS);
	p->accounting.received++;
	restart();
	p = attach_as("cam", 1000, 12, T0 + 20 * S);
	apps_note_received(p, 302);
	ck_assert_uint_eq(p->app->missing, 1);
	ck_assert_uint_eq(p->app->covers_since_ns, 0);
	ck_assert_uint_eq(stage_named(p->app, "total")->count, 100);
	/* no delta between frames of which some may be missing in between */
	record(p, PROTO_KIND_FRAME, 0, T0 + 5 * S, 12 * MS, 101);
	apps_drained(apps, p);
	ck_assert_uint_eq(p->app->frames->times.all.count, 99);
	apps_save_all(apps);
	restart(); /* and it is still known after the next */
	p = attach_as("cam", 1000, 12, T0 + 30 * S);
	apps_note_received(p, p->app->restored ? 302 : 0);
	ck_assert_uint_ge(p->app->missing, 1);
}
END_TEST

START_TEST(what_was_not_saved_is_labelled_with_what_it_covers)
{
	busy(T0);
	restart();
	struct app_process *p = attach_as("cam", 1000, 12, T0 + 20 * S);
	apps_note_received(p, 301);
	ck_assert_uint_eq(p->app->covers_since_ns, T0 + 20 * S);
	p = attach_as("new", 1000, 13, T0 + 20 * S);
	apps_note_received(p, 0);
	ck_assert_uint_eq(p->app->covers_since_ns, 0);
}
END_TEST

START_TEST(nobody_else_gets_the_statistics)
{
	busy(T0);
	apps_save_all(apps);
	restart();
	struct app_process *p = NULL;
	ck_assert_uint_eq(attach_as("cam", 1000, 13, T0 + 20 * S)->app->stages, 0);
	restart();
	ck_assert_uint_eq(attach_as("cam", 1001, 12, T0 + 20 * S)->app->stages, 0);
	restart();
	ck_assert_uint_eq(attach_as("eye", 1000, 12, T0 + 20 * S)->app->stages, 0);
	restart();
	ck_assert_int_eq(apps_attach(apps, "cam", 1000, 12, 2, 65536, T0 + 20 * S, &p), 0);
	ck_assert_uint_eq(p->app->stages, 0);
	static const uint8_t another[16] = {9};
	restart_as(another); /* the machine was booted: times and pids are others */
	ck_assert_uint_eq(attach_as("cam", 1000, 12, T0 + 20 * S)->app->stages, 0);
	restart();
	ck_assert_uint_eq(attach_as("cam", 1000, 12, T0 + 20 * S)->app->stages, 0);
}
END_TEST

START_TEST(what_a_daemon_with_other_headers_saved_is_not_restored)
{
	busy(T0);
	apps_save_all(apps);
	struct runhead *head = memory.data;
	uint32_t shape[RUNHEAD_SHAPES];
	memcpy(shape, head->shape, sizeof(shape));
	ck_assert_uint_eq(shape[5], sizeof(struct app_attributes) ^ saved_layout);
	shape[5] ^= 1;
	const struct runhead other =
		runhead_of(head->magic, head->bytes, shape, RUNHEAD_SHAPES, boot);
	runhead_write(head, &other);
	restart();
	ck_assert_uint_eq(attach_as("cam", 1000, 12, T0 + 20 * S)->app->stages, 0);
}
END_TEST

START_TEST(a_run_that_is_over_is_not_restored)
{
	apps_detach(apps, busy(T0), PROCESS_ENDED, T0 + 11 * S);
	apps_save_all(apps);
	restart();
	ck_assert_uint_eq(attach_as("cam", 1000, 12, T0 + 20 * S)->app->stages, 0);
	restart(); /* nor one that ended after it was saved */
	struct app_process *p = busy(T0 + 30 * S);
	apps_save_all(apps);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 41 * S);
	restart();
	ck_assert_uint_eq(attach_as("cam", 1000, 12, T0 + 50 * S)->app->stages, 0);
}
END_TEST

/* Each word of what the second round wrote, spoiled alone: the first round's is found instead. */
START_TEST(a_torn_copy_leaves_the_one_before_it)
{
	struct app_process *p = busy(T0);
	apps_save_all(apps);
	unsigned char *first = malloc(memory.size);
	memcpy(first, memory.data, memory.size);
	put_run(p, 0, T0 + 5 * S, MS);
	p->accounting.received++;
	apps_save_all(apps);
	unsigned char *data = memory.data, *second = malloc(memory.size);
	memcpy(second, data, memory.size);
	size_t spoiled = 0;
	for (size_t i = 4096; i + 8 <= reserved_end; i += 8) {
		if (memcmp(first + i, second + i, 8) == 0) {
			continue;
		}
		spoiled++;
		if (spoiled > 64 && spoiled % 16 != 0) {
			continue; /* all of the heads, and a sample of the rest */
		}
		memcpy(data, second, memory.size);
		data[i + spoiled % 8] ^= 0x10;
		restart();
		p = attach_as("cam", 1000, 12, T0 + 20 * S);
		ck_assert_uint_eq(p->app->stages, 2);
		uint64_t count = stage_named(p->app, "total")->count;
		ck_assert(count == 100 || count == 101);
		apps_note_received(p, 302);
		ck_assert_uint_ge(count + p->app->missing, 101);
		ck_assert_uint_eq(stage_named(p->app, "infer")->count, 100);
	}
	ck_assert_uint_gt(spoiled, 100);
	free(first);
	free(second);
}
END_TEST

START_TEST(without_room_nothing_is_believed_to_be_there)
{
	busy(T0);
	room = 10000; /* for some of it */
	apps_save_all(apps);
	room = SIZE_MAX;
	restart();
	struct app_process *p = attach_as("cam", 1000, 12, T0 + 20 * S);
	apps_note_received(p, 301);
	ck_assert_uint_eq(p->app->stages, 0);
	ck_assert_uint_eq(p->app->covers_since_ns, T0 + 20 * S);
	struct app_save_memory small = memory;
	small.size = 4096;
	struct apps *other;
	const struct apps_options options = {.stage_window = 1024, .frame_window = 300};
	ck_assert_int_eq(apps_create(metrics, source, timeline, &options, &other), 0);
	ck_assert_int_eq(apps_save_into(other, &small, boot), -EINVAL);
	room = 0;
	ck_assert_int_eq(apps_save_into(other, &memory, boot), -ENOSPC);
	apps_destroy(other);
}
END_TEST

START_TEST(saving_goes_on_where_it_stopped_and_writes_only_what_changed)
{
	struct app_process *p = busy(T0);
	for (uint64_t i = 1; i <= 4; i++) { /* two stages, the stream, the app */
		restart();
		ck_assert_uint_eq(attach_as("cam", 1000, 12, T0 + 20 * S)->app->stages, 0);
		restart();
		p = busy(T0 + i * S);
		for (uint64_t k = 0; k < i; k++) {
			apps_save_some(apps, 1);
		}
	}
	unsigned char *written = malloc(memory.size);
	memcpy(written, memory.data, memory.size);
	apps_save_some(apps, 100);
	ck_assert_int_eq(memcmp(written, memory.data, memory.size), 0);
	free(written);
	put_run(p, 0, T0 + 5 * S, MS);
	p->accounting.received++;
	apps_save_some(apps, 100);
	restart();
	p = attach_as("cam", 1000, 12, T0 + 20 * S);
	apps_note_received(p, 302);
	ck_assert_uint_eq(p->app->missing, 0);
	ck_assert_uint_eq(stage_named(p->app, "total")->count, 101);
}
END_TEST

START_TEST(ever_new_apps_find_a_slot)
{
	for (uint64_t i = 0; i < 500; i++) {
		char name[16];
		snprintf(name, sizeof(name), "a%d", (int)i);
		struct app_process *p = attach_as(name, 1000, 12 + (pid_t)i, T0 + i * S);
		declare(p, 0, "infer", "");
		drained_ns = T0 + (i + 1) * S;
		put_run(p, 0, T0 + i * S, MS);
		p->accounting.received = 1;
		apps_save_some(apps, 8);
		if (i % 3 == 0) {
			restart(); /* what nobody comes back for makes room */
		} else {
			apps_detach(apps, p, PROCESS_ENDED, T0 + (i + 1) * S);
		}
	}
	busy(T0 + 1000 * S);
	apps_save_all(apps);
	restart();
	ck_assert_uint_eq(attach_as("cam", 1000, 12, T0 + 1020 * S)->app->stages, 2);
}
END_TEST

/* Of an app that has nothing else. */
START_TEST(gauges_and_counters_go_on_with_their_age)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "depth", "bytes");
	declare(p, 1, "frames", "");
	for (int kind = PROTO_KIND_GAUGE; kind <= PROTO_KIND_COUNTER; kind++) {
		struct proto_record r = {.stage = kind == PROTO_KIND_COUNTER,
			.kind = (uint8_t)kind,
			.start_ns = T0 + 2 * S,
			.value = bits(7),
			.frame = PROTO_NO_FRAME};
		put(p, &r);
	}
	apps_save_some(apps, 8);
	restart();
	p = attach_as("cam", 1000, 12, T0 + 20 * S);
	apps_note_received(p, 2);
	apps_sample(apps, T0 + 21 * S);
	const struct metric *gauge = metrics_find(metrics, "gauge/cam/depth");
	ck_assert_double_eq(gauge->value, 7);
	ck_assert_int_eq(gauge->unit, UNIT_BYTES);
	ck_assert_uint_eq(metric_time_ns(gauge), T0 + 2 * S);
	declare(p, 0, "frames", "");
	struct proto_record r = {.kind = PROTO_KIND_COUNTER,
		.start_ns = T0 + 21 * S,
		.value = bits(1),
		.frame = PROTO_NO_FRAME};
	put(p, &r);
	apps_sample(apps, T0 + 22 * S);
	ck_assert_double_eq(metrics_find(metrics, "counter/cam/frames")->value, 8);
	ck_assert_uint_eq(p->app->values->count, 2);
}
END_TEST

START_TEST(marks_survive_with_what_they_measured)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "model loaded", "");
	declare(p, 1, "file_size_mb", "");
	for (uint64_t i = 0; i < 70; i++) { /* more than are kept of one app */
		struct proto_record r = {.kind = PROTO_KIND_MARK,
			.start_ns = T0 + i * S,
			.value = (i + 1) << 20,
			.frame = PROTO_NO_FRAME};
		p->marks = 0;
		put(p, &r);
	}
	struct proto_record attribute = {.stage = 1,
		.kind = PROTO_KIND_ATTRIBUTE,
		.cpu_us = 0,
		.start_ns = T0 + 69 * S,
		.value = bits(42),
		.frame = PROTO_NO_FRAME};
	put(p, &attribute);
	apps_save_some(apps, 8);
	restart();
	const struct app_mark *mark = apps_mark_at(apps, APP_MARKS_KEPT - 1);
	ck_assert_ptr_nonnull(mark);
	ck_assert_ptr_null(apps_mark_at(apps, APP_MARKS_KEPT));
	ck_assert_str_eq(mark->label, "model loaded");
	ck_assert_str_eq(mark->app, "cam");
	ck_assert_uint_eq(mark->t_ns, T0 + 69 * S);
	ck_assert_double_eq(mark->rss_bytes, 70 << 20);
	ck_assert_str_eq(mark->memory_source, "app");
	ck_assert_uint_eq(mark->attributes, 1);
	ck_assert_double_eq(mark->attribute[0].value, 42);
	ck_assert_ptr_eq(
		apps_mark_before(apps, APP_MARKS_KEPT - 1), apps_mark_at(apps, APP_MARKS_KEPT - 2));
	/* and go on from there */
	struct app_mark another;
	app_mark_init(&another, T0 + 100 * S, "by hand");
	apps_mark(apps, &another);
	apps_save_marks(apps);
	restart();
	ck_assert_str_eq(apps_mark_at(apps, APP_MARKS_KEPT)->label, "by hand");
	ck_assert_str_eq(
		apps_mark_at(apps, APP_MARKS_KEPT)->memory_reason, "the mark is of no app");
}
END_TEST
