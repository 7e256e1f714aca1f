/* SPDX-License-Identifier: Apache-2.0 */
/* What names, apps, processes and stages without end may cost, and whom. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/core/apps/entry_quota.h"
#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/unit.h"

TEST_TIMEOUT(600);
FIXTURE(setup, teardown);

START_TEST(limits_refuse_and_the_rest_goes_into_other)
{
	struct app_process *p[4];
	for (pid_t i = 0; i < 4; i++) {
		char name[16];
		snprintf(name, sizeof(name), "app%d", (int)i);
		p[i] = attach_as(name, 1000, 100 + i, T0);
		for (uint32_t d = 0; d < PROTO_DECLARATIONS; d++) {
			snprintf(name, sizeof(name), "s%u", d);
			declare(p[i], d, name, "");
			record(p[i], PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
		}
	}
	/* 127 of its own and __other__; two apps fill the table */
	ck_assert_uint_eq(p[0]->app->stages, APP_STAGES_MAX);
	ck_assert_str_eq(p[0]->app->stage[127]->name, APP_STAGE_OTHER);
	ck_assert_uint_eq(p[3]->app->stages, 1);
	ck_assert_str_eq(p[3]->app->stage[0]->name, APP_STAGE_OTHER);
	ck_assert_uint_eq(p[3]->app->stage[0]->count, PROTO_DECLARATIONS);
	ck_assert_uint_gt(apps_counts(apps)->stages_refused, 2 * PROTO_DECLARATIONS);
	/* what no process uses any more makes room */
	apps_detach(apps, p[0], PROCESS_ENDED, T0 + S);
	struct app_process *q = attach_as("late", 1000, 200, T0 + S);
	declare(q, 0, "infer", "");
	record(q, PROTO_KIND_COMPLETE, 0, T0 + S, MS, 1);
	ck_assert_str_eq(q->app->stage[0]->name, "infer");
	apps_sample(apps, T0 + 2 * S);
}
END_TEST

/* Each is full and needs __other__, which is over no limit: the table must not grow with them. */
START_TEST(apps_under_ever_new_names_keep_the_limit_of_stages)
{
	for (pid_t i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof(name), "app%d", (int)i);
		struct app_process *p = attach_as(name, 1000, 100 + i, T0);
		for (uint32_t d = 0; d < PROTO_DECLARATIONS; d++) {
			snprintf(name, sizeof(name), "s%d_%u", (int)i, d);
			declare(p, d, name, "");
			record(p, PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
		}
		apps_detach(apps, p, PROCESS_ENDED, T0 + S);
		ck_assert_uint_le(apps_counts(apps)->stages, STAGES_MAX + 1);
	}
}
END_TEST

START_TEST(an_event_whose_name_has_no_place_is_not_looked_for_again)
{
	char name[32];
	for (uint32_t i = 0; i < 3 * PROTO_DECLARATIONS; i++) {
		static struct app_process *process;
		uint16_t index = (uint16_t)(i % PROTO_DECLARATIONS);
		if (index == 0) {
			process = attach_as("cam", 1000, 100 + (pid_t)i, T0);
		}
		snprintf(name, sizeof(name), "n%u", (unsigned)i);
		declare(process, index, name, "");
		put_run(process, index, T0, MS);
		ck_assert_uint_ne(process->frame_state.name[index], 0);
	}
}
END_TEST

START_TEST(so_many_names_are_met_as_were_allowed)
{
	struct app_process *process = attach_as("cam", 1000, 100, T0);
	struct proto_record records[8];
	for (uint16_t i = 0; i < 8; i++) {
		char name[8];
		snprintf(name, sizeof(name), "n%u", i / 2u);
		declare(process, i / 2, name, "");
		records[i] = (struct proto_record){.kind = PROTO_KIND_COMPLETE,
			.stage = i / 2,
			.start_ns = T0 + i * MS,
			.value = MS,
			.frame = PROTO_NO_FRAME,
			.cpu_us = PROTO_CPU_NOT_MEASURED};
	}
	apps_allow_new(apps, 2);
	ck_assert_uint_eq(apps_records(apps, process, 0, records, 8, T0 + S), 4);
	ck_assert_uint_eq(apps_records(apps, process, 0, records + 4, 4, T0 + S), 0);
	apps_allow_new(apps, 1);
	ck_assert_uint_eq(apps_records(apps, process, 0, records + 4, 4, T0 + S), 2);
	ck_assert(process->met[2] && !process->met[3]);
	apps_allow_new(apps, SIZE_MAX);
	ck_assert_uint_eq(apps_records(apps, process, 0, records + 6, 2, T0 + S), 2);
	apps_fold_stages(apps);
	ck_assert_uint_eq(process->accounting.invalid, 0);
	ck_assert_uint_eq(process->stages[3]->count, 2);
}
END_TEST

START_TEST(apps_and_processes_have_limits)
{
	struct app_process *p = NULL;
	for (pid_t i = 0; i < APP_PROCESSES_MAX; i++) {
		attach_as("many", 1000, 1 + i, T0);
	}
	ck_assert_int_eq(apps_attach(apps, "many", 1000, 999, 1, 65536, T0, &p), -ENOSPC);
	for (int i = 1; i < APPS_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "app%d", i);
		p = attach_as(name, 1000, 1000 + i, T0);
	}
	struct app_process *refused = NULL;
	ck_assert_int_eq(apps_attach(apps, "late", 1000, 5, 1, 65536, T0, &refused), -ENOSPC);
	ck_assert_ptr_null(refused);
	apps_detach(apps, p, PROCESS_ENDED, T0 + S);
	attach_as("late", 1000, 5, T0 + S); /* the gone one makes room */
	char last[16];
	snprintf(last, sizeof(last), "app%d", APPS_MAX - 1);
	ck_assert_ptr_null(apps_find(apps, last));
	ck_assert_ptr_null(apps_at(apps, APPS_MAX));
	ck_assert_ptr_nonnull(apps_at(apps, APPS_MAX - 1));
}
END_TEST

/* Processes that come one after the other, each with names that were never there before. */
START_TEST(ever_new_names_neither_grow_nor_touch_another_app)
{
	const char *text = getenv("EDGEPROF_NAMES");
	uint64_t names = text ? strtoull(text, NULL, 10) : 50000;
	struct app_process *good = attach_as("good", 1001, 7, T0);
	declare(good, 0, "infer", "");
	size_t metrics_before = 0;
	for (uint64_t n = 0; n < names; n += PROTO_DECLARATIONS) {
		struct app_process *p = attach_as("evil", 1000, 12, T0);
		for (uint32_t d = 0; d < PROTO_DECLARATIONS; d++) {
			char name[32];
			snprintf(name, sizeof(name), "n%llu", (unsigned long long)(n + d));
			declare(p, d, name, "");
			record(p, PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
			record(p, PROTO_KIND_GAUGE, (uint16_t)d, T0, 0, 1);
		}
		record(good, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
		apps_detach(apps, p, PROCESS_ENDED, T0);
		metrics_before = metrics_before ? metrics_before : metrics_count(metrics);
		ck_assert_uint_le(apps_counts(apps)->stages, APP_STAGES_MAX + 1);
		ck_assert_uint_le(metrics_count(metrics), metrics_before + 8);
	}
	ck_assert_uint_eq(good->app->stages, 1);
	ck_assert_uint_eq(
		good->app->stage[0]->count, (names + PROTO_DECLARATIONS - 1) / PROTO_DECLARATIONS);
}
END_TEST

/* One user's ever new apps and stages push out his own, not what another's app has left. */
START_TEST(who_has_most_gives_first)
{
	struct app_process *p = attach_as("good", 1001, 7, T0);
	declare(p, 0, "infer", "");
	record(p, PROTO_KIND_COMPLETE, 0, T0 - S, MS, 1);
	apps_detach(apps, p, PROCESS_DIED, T0); /* gone before all others, used before all others */
	for (pid_t i = 0; i < 300; i++) {
		char name[32];
		snprintf(name, sizeof(name), "evil%d", (int)i);
		p = attach_as(name, 1000, 100 + i, T0 + 1);
		for (uint32_t d = 0; d < 20; d++) {
			snprintf(name, sizeof(name), "s%d_%u", (int)i, d);
			declare(p, d, name, "");
			record(p, PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
		}
		apps_detach(apps, p, PROCESS_ENDED, T0 + 2);
	}
	ck_assert_ptr_nonnull(apps_find(apps, "good"));
	ck_assert_uint_eq(apps_find(apps, "good")->stage[0]->count, 1);
	ck_assert_ptr_nonnull(apps_find(apps, "evil299"));
	ck_assert_ptr_null(apps_find(apps, "evil0"));
}
END_TEST

START_TEST(a_storm_of_processes_leaves_room_on_the_timeline)
{
	struct app_process *p;
	for (pid_t i = 0; i < 1000; i++) {
		p = attach_as("storm", 1000, 1 + i, T0 + (uint64_t)i);
		apps_detach(apps, p, i % 2 ? PROCESS_DIED : PROCESS_ENDED, T0 + (uint64_t)i);
	}
	ck_assert_uint_eq(timeline_last_serial(timeline), 2 * ENTRY_QUOTA_BURST);
	ck_assert_uint_eq(apps_counts(apps)->suppressed, 2000 - 2 * ENTRY_QUOTA_BURST);
	p = attach_as("cam", 1001, 1, T0); /* another user is told as ever */
	ck_assert_str_eq(last_text(), "started (pid 1)");
	apps_sample(apps, T0 + 100 * S);
	ck_assert_str_eq(last_text(), "suppressed 1872 more entries about apps of uid 1000");
	uint64_t told = timeline_last_serial(timeline);
	apps_sample(apps, T0 + 200 * S);
	ck_assert_uint_eq(timeline_last_serial(timeline), told); /* nothing new */
	attach_as("storm", 1000, 7, T0 + 200 * S);		 /* and the user is heard again */
	ck_assert_str_eq(last_text(), "started (pid 7)");
	apps_detach(apps, p, PROCESS_ENDED, T0 + 300 * S);
}
END_TEST

START_TEST(stages_without_a_place_are_named)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	for (uint32_t d = 0; d < PROTO_DECLARATIONS; d++) {
		char name[16];
		snprintf(name, sizeof(name), "s%u", d);
		declare(p, d, name, "");
		record(p, PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
		record(p, PROTO_KIND_COMPLETE, (uint16_t)d, T0, MS, 1);
	}
	ck_assert_uint_eq(apps_counts(apps)->stages_refused, 1);
	ck_assert_str_eq(apps_other_name(apps, 0), "cam/s127");
	ck_assert_ptr_null(apps_other_name(apps, 1));
	for (uint32_t i = 0; i < 20; i++) {
		char name[16];
		snprintf(name, sizeof(name), "q%u", i);
		struct app_process *q = attach_as("cam", 1000, 13, T0);
		declare(q, 0, name, "");
		record(q, PROTO_KIND_COMPLETE, 0, T0, MS, 1);
	}
	ck_assert_str_eq(apps_other_name(apps, 0), "cam/q19");
	ck_assert_str_eq(apps_other_name(apps, APP_OTHER_NAMES - 1), "cam/q12");
	ck_assert_ptr_null(apps_other_name(apps, APP_OTHER_NAMES));
}
END_TEST
