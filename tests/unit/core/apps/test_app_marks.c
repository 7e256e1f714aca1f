/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: what is kept of them, and how they hang together. */
#include "daemon/core/apps/marks.h"

#include <stdlib.h>

#include "daemon/core/apps/entry_quota.h"
#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/unit.h"

static void put_mark(struct app_process *p, uint16_t label, uint64_t t_ns, uint64_t rss)
{
	const struct proto_record r = {.stage = label,
		.kind = PROTO_KIND_MARK,
		.start_ns = t_ns,
		.value = rss,
		.frame = 3};
	put(p, &r);
}

static void put_memory(
	struct app_process *p, uint16_t label, uint64_t t_ns, uint64_t vms, uint64_t peak)
{
	const struct proto_record r = {.stage = label,
		.kind = PROTO_KIND_MARK_MEMORY,
		.start_ns = t_ns,
		.value = vms,
		.frame = peak};
	put(p, &r);
}

static void put_attribute(
	struct app_process *p, uint16_t name, uint32_t label, uint64_t t_ns, double value)
{
	const struct proto_record r = {.stage = name,
		.kind = PROTO_KIND_ATTRIBUTE,
		.cpu_us = label,
		.start_ns = t_ns,
		.value = bits(value),
		.frame = 3};
	put(p, &r);
}

static size_t count_of(const char *app)
{
	size_t count = 0;
	const struct app_mark *mark;
	for (size_t i = 0; (mark = apps_mark_at(apps, i)); i++) {
		count += strcmp(mark->app, app) == 0;
	}
	return count;
}

static struct system_memory memory_now;

static bool read_memory(void *ctx, struct system_memory *ret)
{
	(void)ctx;
	*ret = memory_now;
	return memory_now.t_ns > 0;
}

TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_TEST(the_system_s_memory_is_read_when_the_mark_arrives)
{
	struct app_mark mark;
	apps_set_memory_reader(apps, read_memory, NULL);
	memory_now = (struct system_memory){4e9, 3e9, T0};
	app_mark_init(&mark, T0, "before");
	apps_mark(apps, &mark);
	memory_now = (struct system_memory){4e9, 2.5e9, T0 + 3 * S};
	app_mark_init(&mark, T0 + S, "after"); /* it waited 2 s to be read */
	apps_mark(apps, &mark);
	ck_assert_double_eq(apps_mark_at(apps, 0)->system_available_bytes, 3e9);
	ck_assert_uint_eq(apps_mark_at(apps, 0)->system_delay_ns, 0);
	ck_assert_double_eq(apps_mark_at(apps, 1)->system_available_bytes, 2.5e9);
	ck_assert_double_eq(apps_mark_at(apps, 1)->system_used_percent, 37.5);
	ck_assert_uint_eq(apps_mark_at(apps, 1)->system_delay_ns, 2 * S);
	memory_now.t_ns = 0;
	app_mark_init(&mark, T0 + 4 * S, "unreadable");
	apps_mark(apps, &mark);
	ck_assert(isnan(apps_mark_at(apps, 2)->system_available_bytes));
}
END_TEST

/* covers G0.8 G0.9 G0.10 */
START_TEST(a_pair_of_marks_tells_what_was_between_them)
{
	apps_set_memory_reader(apps, read_memory, NULL);
	memory_now = (struct system_memory){4e9, 3e9, T0};
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "before model load", "");
	declare(p, 1, "after model load", "");
	declare(p, 2, "file_size_mb", "");
	declare(p, 3, "input_tensor_sizes_kb", "");
	put_mark(p, 0, T0 + 5, 100 << 20);
	put_memory(p, 0, T0 + 5, 300 << 20, 110 << 20);
	put_mark(p, 1, T0 + 9, 150 << 20);
	put_memory(p, 1, T0 + 9, 360 << 20, 155 << 20);
	put_attribute(p, 2, 1, T0 + 9, 13.5);
	put_attribute(p, 3, 1, T0 + 9, 588);
	put_attribute(p, 3, 1, T0 + 9, 4);
	const struct app_mark *after = apps_mark_at(apps, 1), *before = apps_mark_before(apps, 1);
	ck_assert_ptr_eq(before, apps_mark_at(apps, 0));
	ck_assert_ptr_null(apps_mark_before(apps, 0));
	ck_assert_ptr_null(apps_mark_at(apps, 2));
	ck_assert_str_eq(before->label, "before model load");
	ck_assert_str_eq(after->app, "cam");
	ck_assert_uint_eq(after->uid, 1000);
	ck_assert_uint_eq(after->frame, 3);
	ck_assert_double_eq(after->rss_bytes - before->rss_bytes, 50 << 20);
	ck_assert_double_eq(after->vms_bytes, 360 << 20);
	ck_assert_double_eq(after->peak_rss_bytes, 155 << 20);
	ck_assert_str_eq(after->memory_source, "app");
	ck_assert_double_eq(after->system_total_bytes, 4e9);
	ck_assert_double_eq(after->system_available_bytes, 3e9);
	ck_assert_double_eq(after->system_used_percent, 25);
	ck_assert_uint_eq(before->attributes, 0);
	ck_assert_uint_eq(after->attributes, 3);
	ck_assert_str_eq(after->attribute[0].name, "file_size_mb");
	ck_assert_double_eq(after->attribute[0].value, 13.5);
	ck_assert_double_eq(after->attribute[1].value, 588); /* a list of one name */
	ck_assert_double_eq(after->attribute[2].value, 4);
	ck_assert_uint_eq(p->app->stages, 0); /* labels and names are no stages */
	ck_assert_uint_eq(p->accounting.invalid, 0);
	ck_assert_str_eq(last_text(), "after model load");
	ck_assert_uint_eq(after->serial, timeline_last_serial(timeline));
}
END_TEST

START_TEST(what_was_not_measured_is_not_known)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "here", "");
	put_mark(p, 0, T0, 0);
	const struct app_mark *mark = apps_mark_at(apps, 0);
	ck_assert(isnan(mark->rss_bytes) && isnan(mark->vms_bytes));
	ck_assert(isnan(mark->peak_rss_bytes) && isnan(mark->system_total_bytes));
	ck_assert_ptr_null(mark->memory_source);
	ck_assert_str_eq(mark->memory_reason, "the app did not measure it");
}
END_TEST

START_TEST(deltas_are_to_the_same_process)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	struct app_process *q = attach_as("cam", 1000, 13, T0);
	struct app_process *r = attach_as("other", 1000, 14, T0);
	declare(p, 0, "m", "");
	declare(q, 0, "m", "");
	declare(r, 0, "m", "");
	put_mark(p, 0, T0 + 1, 10);
	put_mark(q, 0, T0 + 2, 20);
	put_mark(r, 0, T0 + 2, 30);
	put_mark(p, 0, T0 + 3, 40);
	ck_assert_ptr_null(apps_mark_before(apps, 1));
	ck_assert_ptr_null(apps_mark_before(apps, 2));
	ck_assert_ptr_eq(apps_mark_before(apps, 3), apps_mark_at(apps, 0));
	/* what follows goes to the mark of its process, though another has the same time */
	put_memory(r, 0, T0 + 2, 77, 88);
	ck_assert_double_eq(apps_mark_at(apps, 2)->vms_bytes, 77);
	ck_assert(isnan(apps_mark_at(apps, 1)->vms_bytes));
}
END_TEST

START_TEST(the_last_64_of_an_app_are_kept)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "m", "");
	for (uint64_t i = 0; i < 500; i++) {
		put_mark(p, 0, T0 + i, i + 1);
		apps_sample(apps, T0 + i); /* or the flood would be cut */
	}
	ck_assert_uint_eq(count_of("cam"), APP_MARKS_KEPT);
	ck_assert_double_eq(apps_mark_at(apps, 0)->rss_bytes, 500 - APP_MARKS_KEPT + 1);
	ck_assert_double_eq(apps_mark_at(apps, APP_MARKS_KEPT - 1)->rss_bytes, 500);
}
END_TEST

START_TEST(all_apps_share_the_places_and_who_has_most_gives)
{
	for (pid_t i = 0; i < 4; i++) {
		char name[16];
		snprintf(name, sizeof(name), "app%d", (int)i);
		struct app_process *p = attach_as(name, 1000, 100 + i, T0);
		declare(p, 0, "m", "");
		for (uint64_t k = 0; k < 64; k++) {
			put_mark(p, 0, T0 + k, 1);
		}
	}
	struct app_process *p = attach_as("small", 1001, 9, T0);
	declare(p, 0, "m", "");
	for (uint64_t k = 0; k < 50; k++) {
		put_mark(p, 0, T0 + k, 1);
	}
	ck_assert_uint_eq(count_of("small"), 50);
	ck_assert_ptr_nonnull(apps_mark_at(apps, MARKS_MAX - 1));
	ck_assert_ptr_null(apps_mark_at(apps, MARKS_MAX));
	size_t least = MARKS_MAX;
	for (pid_t i = 0; i < 4; i++) {
		char name[16];
		snprintf(name, sizeof(name), "app%d", (int)i);
		least = count_of(name) < least ? count_of(name) : least;
	}
	ck_assert_uint_ge(least, 50);
}
END_TEST

START_TEST(a_user_of_many_apps_leaves_others_their_marks)
{
	struct app_process *small = attach_as("small", 1001, 9, T0);
	declare(small, 0, "m", "");
	for (uint64_t k = 0; k < 50; k++) {
		put_mark(small, 0, T0 + k, 1);
	}
	for (size_t i = 0; i < 50000;
		i++) { /* far too many for a cost that grows with the square */
		struct app_mark mark;
		char name[16];
		snprintf(name, sizeof(name), "app%zu", i % 50);
		app_mark_init(&mark, T0 + i, name);
		memcpy(mark.app, name, sizeof(name));
		mark.uid = 1000;
		apps_mark(apps, &mark);
	}
	ck_assert_uint_eq(count_of("small"), 50);
	ck_assert_uint_ge(count_of("app7"), 4);
}
END_TEST

START_TEST(marks_of_an_app_by_others_do_not_push_out_its_own)
{
	static const char *const apps_of[] = {"cam", ""};
	for (size_t i = 0; i < 2; i++) {
		struct app_mark mark;
		app_mark_init(&mark, T0, "m");
		snprintf(mark.app, sizeof(mark.app), "%s", apps_of[i]);
		for (size_t k = 0; k < 3 + 2 * APP_MARKS_KEPT; k++) {
			mark.uid = k < 3 ? 1000 : 1001;
			apps_mark(apps, &mark);
		}
		ck_assert_uint_eq(count_of(apps_of[i]), 3 + APP_MARKS_KEPT);
	}
}
END_TEST

START_TEST(a_flood_is_refused_with_what_belongs_to_it)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "m", "");
	declare(p, 1, "x", "");
	for (uint64_t i = 0; i < 1000; i++) {
		put_mark(p, 0, T0 + i, 1);
		put_memory(p, 0, T0 + i, 1, 1);
		put_attribute(p, 1, 0, T0 + i, 1);
	}
	ck_assert_uint_eq(app_marks_refused(p->app), 1000 - APP_MARKS_MAX);
	ck_assert_uint_eq(p->accounting.invalid, 0);
	ck_assert_uint_eq(p->app->stages, 0);
	for (size_t i = 0; i < 20; i++) {
		put_attribute(p, 1, 0, T0 + 3, 1);
	}
	ck_assert_uint_eq(apps_mark_at(apps, 3)->attributes, MARK_ATTRIBUTES_MAX);
	ck_assert_uint_eq(apps_mark_at(apps, 3)->attributes_refused, 21 - MARK_ATTRIBUTES_MAX);
	apps_detach(apps, p, PROCESS_ENDED, T0 + S);
	ck_assert_uint_eq(app_marks_refused(apps_find(apps, "cam")), 1000 - APP_MARKS_MAX);
}
END_TEST

START_TEST(a_users_marks_do_not_push_out_what_others_tell)
{
	struct app_process *p[4];
	for (size_t i = 0; i < 4; i++) {
		p[i] = attach_as((const char *[]){"a", "b", "c", "d"}[i], 1000, 12 + (pid_t)i, T0);
		declare(p[i], 0, "m", "");
	}
	struct app_process *other = attach_as("cam", 1001, 30, T0);
	declare(other, 0, "m", "");
	uint64_t serial = timeline_last_serial(timeline);
	for (uint64_t second = 0; second < 20; second++) {
		for (uint64_t i = 0; i < 4 * APP_MARKS_MAX; i++) {
			put_mark(p[i % 4], 0, T0 + i, i + 1);
		}
		apps_sample(apps, T0 + second * 1000000);
	}
	ck_assert_uint_le(timeline_last_serial(timeline) - serial, ENTRY_QUOTA_MARKS_BURST + 1);
	ck_assert_uint_ge(apps_counts(apps)->suppressed, 19 * 4 * APP_MARKS_MAX);
	ck_assert_uint_eq(count_of("a"), APP_MARKS_KEPT);
	serial = timeline_last_serial(timeline);
	put_mark(other, 0, T0, 1);
	ck_assert_uint_eq(timeline_last_serial(timeline), serial + 1);
}
END_TEST

START_TEST(marks_stay_when_the_app_ends_and_go_with_its_name)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "m", "");
	put_mark(p, 0, T0, 1);
	struct app_mark mark;
	app_mark_init(&mark, T0 + 2, "by hand");
	ck_assert_uint_eq(apps_mark(apps, &mark), timeline_last_serial(timeline));
	ck_assert_str_eq(last_text(), "by hand");
	apps_detach(apps, p, PROCESS_ENDED, T0 + S);
	ck_assert_uint_eq(count_of("cam"), 1);
	attach_as("cam", 1001, 12, T0 + 100 * S); /* another user's app has the name now */
	ck_assert_uint_eq(count_of("cam"), 0);
	ck_assert_uint_eq(count_of(""), 1);
}
END_TEST
