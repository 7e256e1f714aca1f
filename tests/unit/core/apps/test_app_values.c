/* SPDX-License-Identifier: Apache-2.0 */
/* Gauges, counters and attributes of apps. */
#include "daemon/core/apps/values.h"

#include <stdlib.h>

#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/unit.h"

static void gauge_at(struct app_process *p, double value, uint64_t t_ns)
{
	const struct proto_record r = {.kind = PROTO_KIND_GAUGE,
		.start_ns = t_ns,
		.value = bits(value),
		.frame = PROTO_NO_FRAME};
	put(p, &r);
}

FIXTURE(setup, teardown);

START_TEST(a_gauge_is_the_last_value_and_keeps_its_age)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "queue depth", "");
	put_number(p, PROTO_KIND_GAUGE, 0, 3);
	put_number(p, PROTO_KIND_GAUGE, 0, -4.5);
	apps_sample(apps, T0 + S);
	is("gauge/cam/queue_depth", -4.5);
	apps_sample(apps, T0 + 9 * S);
	is("gauge/cam/queue_depth", -4.5);
	ck_assert_uint_eq(metric_time_ns(metric("gauge/cam/queue_depth")), T0);
	ck_assert_uint_eq(metric("gauge/cam/queue_depth")->t_ns, T0 + 9 * S);
	gauge_at(p, 0, T0 + 10 * S);
	gauge_at(p, 7, T0 + 9 * S); /* of a thread that is read later */
	apps_sample(apps, T0 + 11 * S);
	ck_assert_double_eq(metric("gauge/cam/queue_depth")->value, 0);
	ck_assert_uint_eq(metric_time_ns(metric("gauge/cam/queue_depth")), T0 + 10 * S);
	ck_assert_uint_eq(p->app->stages, 0);
	ck_assert_uint_eq(p->accounting.invalid, 0);
}
END_TEST

START_TEST(a_gauge_expires_and_ends_with_its_app)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "depth", "");
	gauge_at(p, 3, T0);
	apps_sample(apps, T0 + 600 * S);
	is("gauge/cam/depth", 3);
	apps_sample(apps, T0 + 601 * S);
	null_because("gauge/cam/depth", "not set for longer than [gauge] expire");
	apps_configure(apps, &(struct apps_config){.gauge_expire_ns = 2 * S});
	gauge_at(p, 4, T0 + 602 * S);
	apps_sample(apps, T0 + 603 * S);
	is("gauge/cam/depth", 4);
	apps_sample(apps, T0 + 605 * S);
	null_because("gauge/cam/depth", "not set for longer than [gauge] expire");

	gauge_at(p, 5, T0 + 606 * S);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 606 * S);
	p = attach_as("cam", 1000, 13, T0 + 606 * S); /* nobody looked in between */
	declare(p, 0, "depth", "");
	apps_sample(apps, T0 + 607 * S);
	null_because("gauge/cam/depth", "not set since the app started");
}
END_TEST

START_TEST(a_counter_is_the_total_of_all_processes_of_the_app)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	struct app_process *q = attach_as("cam", 1000, 13, T0);
	declare(p, 0, "bytes", "bytes");
	declare(q, 5, "bytes", "bytes");
	put_number(p, PROTO_KIND_COUNTER, 0, 10);
	put_number(q, PROTO_KIND_COUNTER, 5, 2.5);
	apps_sample(apps, T0 + S);
	is("counter/cam/bytes", 12.5);
	ck_assert_int_eq(metric("counter/cam/bytes")->unit, UNIT_BYTES);
	apps_sample(apps, T0 + 2 * S);
	is("counter/cam/bytes", 12.5);
	apps_detach(apps, p, PROCESS_ENDED, T0 + 3 * S);
	put_number(q, PROTO_KIND_COUNTER, 5, 1);
	apps_sample(apps, T0 + 4 * S);
	is("counter/cam/bytes", 13.5);
	apps_detach(apps, q, PROCESS_ENDED, T0 + 5 * S);
	apps_sample(apps, T0 + 6 * S);
	null_because("counter/cam/bytes", "app ended");
}
END_TEST

START_TEST(units_are_ours_or_none)
{
	static const struct {
		const char *text;
		enum unit gauge, counter;
	} table[] = {
		{"celsius", UNIT_CELSIUS, UNIT_CELSIUS},
		{"milliseconds", UNIT_MILLISECONDS, UNIT_MILLISECONDS},
		{"", UNIT_NONE, UNIT_COUNT},
		{"parsecs", UNIT_NONE, UNIT_COUNT},
		{"a unit that fills the whole label", UNIT_NONE, UNIT_COUNT},
	};
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	for (uint16_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char name[32];
		snprintf(name, sizeof(name), "v%u", i);
		declare(p, i, name, table[i].text);
		put_number(p, PROTO_KIND_GAUGE, i, 1);
		put_number(p, PROTO_KIND_COUNTER, i, 1);
		snprintf(name, sizeof(name), "gauge/cam/v%u", i);
		ck_assert_int_eq(metric(name)->unit, table[i].gauge);
		snprintf(name, sizeof(name), "counter/cam/v%u", i);
		ck_assert_int_eq(metric(name)->unit, table[i].counter);
	}
}
END_TEST

START_TEST(what_is_no_number_is_invalid)
{
	static const double bad[] = {NAN, INFINITY, -INFINITY};
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "x", "");
	declare(p, 1, "stage", "");
	put_number(p, PROTO_KIND_GAUGE, 0, 7);
	put_number(p, PROTO_KIND_COUNTER, 0, 1.5e308);
	uint64_t invalid = 0;
	for (size_t i = 0; i < 3; i++) {
		put_number(p, PROTO_KIND_GAUGE, 0, bad[i]);
		put_number(p, PROTO_KIND_COUNTER, 0, bad[i]);
		invalid += 2;
		ck_assert_uint_eq(p->accounting.invalid, invalid);
	}
	put_number(p, PROTO_KIND_COUNTER, 0, 1.5e308); /* the sum is none */
	put_number(p, PROTO_KIND_GAUGE, 9, 1);	       /* not declared */
	put_number(p, PROTO_KIND_GAUGE, PROTO_DECLARATIONS, 1);
	invalid += 3;
	ck_assert_uint_eq(p->accounting.invalid, invalid);
	apps_sample(apps, T0 + S);
	is("gauge/cam/x", 7);
	is("counter/cam/x", 1.5e308);
}
END_TEST

static void flood(struct app_process *p, const char *prefix)
{
	for (uint16_t i = 0; i < PROTO_DECLARATIONS; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%s%u", prefix, i);
		declare(p, i, name, "");
		put_number(p, PROTO_KIND_GAUGE, i, i);
		put_number(p, PROTO_KIND_GAUGE, i, i);
	}
}

START_TEST(names_beyond_the_limit_are_refused_and_counted)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	apps_configure(apps, &(struct apps_config){.gauge_expire_ns = 86400 * S});
	flood(p, "a");
	ck_assert_uint_eq(p->app->values->count, APP_VALUES_MAX);
	ck_assert_uint_eq(
		p->app->values->refused, 2 * (uint64_t)(PROTO_DECLARATIONS - APP_VALUES_MAX));
	ck_assert_uint_eq(p->accounting.invalid, 0);
	apps_sample(apps, T0 + S);
	is("gauge/cam/a63", 63);
	ck_assert_ptr_null(metrics_find(metrics, "gauge/cam/a64"));
	size_t all = metrics_count(metrics);

	/* the next life of the app brings other names: what nobody uses any more makes room */
	apps_detach(apps, p, PROCESS_ENDED, drained_ns);
	for (unsigned life = 0; life < 50; life++) {
		char prefix[16];
		snprintf(prefix, sizeof(prefix), "b%u_", life);
		drained_ns += 2 * S;
		p = attach_as("cam", 1000, 12, drained_ns - S);
		flood(p, prefix);
		apps_sample(apps, drained_ns);
		ck_assert_uint_eq(metrics_count(metrics), all);
		apps_detach(apps, p, PROCESS_ENDED, drained_ns);
	}
	is("gauge/cam/b49_0", 0);
}
END_TEST

/* Apps of a user with all names they can declare; how many of their values are kept. */
static size_t flood_of(const char *prefix, uid_t uid, pid_t count)
{
	size_t values = 0;
	for (pid_t i = 0; i < count; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%s%d", prefix, (int)i);
		struct app_process *p = attach_as(name, uid, 100 + i, T0);
		flood(p, "g");
		values += p->app->values->count;
	}
	return values;
}

START_TEST(a_user_has_half_of_the_metrics_and_root_leaves_what_is_on_top)
{
	ck_assert_uint_eq(flood_of("own", 1000, 34), METRICS_OWN_MAX / 2);
	ck_assert_uint_eq(metrics_refused(metrics), 34 * PROTO_DECLARATIONS - METRICS_OWN_MAX / 2);
	ck_assert_uint_eq(flood_of("root", 0, 34), METRICS_OWN_MAX / 2);
	ck_assert_uint_eq(metrics_count(metrics), METRICS_OWN_MAX);
	ck_assert_uint_eq(flood_of("their", 1001, 4), METRICS_OWN_MAX / 8 / 2);
	ck_assert_uint_eq(
		metrics_count(metrics) + metrics_refused(metrics), 72 * PROTO_DECLARATIONS);
	apps_sample(apps, T0 + S);
	is("gauge/root31/g63", 63);
}
END_TEST

START_TEST(values_of_apps_that_ended_make_room)
{
	flood_of("own", 1000, 34);
	apps_detach(apps, apps_find(apps, "own0")->process[0], PROCESS_ENDED, T0);
	struct app_process *p = attach_as("late", 1000, 1, T0);
	flood(p, "h");
	ck_assert_uint_eq(p->app->values->count, APP_VALUES_MAX);
	ck_assert_uint_eq(apps_find(apps, "own0")->values->count, 0);
	ck_assert_ptr_null(metrics_find(metrics, "gauge/own0/g0"));
	ck_assert_uint_eq(metrics_count(metrics), METRICS_OWN_MAX / 2);
	/* also while more are taken than the apps may: sources of the daemon's own come on top */
	for (unsigned i = 0; i < METRICS_OWN_MAX / 2 + 100; i++) {
		char name[32];
		struct metric *metric;
		snprintf(name, sizeof(name), "sensor/s%u", i);
		ck_assert_int_eq(metrics_add(metrics, source, name, UNIT_NONE, &metric), 0);
	}
	apps_detach(apps, p, PROCESS_ENDED, T0);
	p = attach_as("later", 1000, 2, T0);
	flood(p, "i");
	ck_assert_uint_eq(p->app->values->count, APP_VALUES_MAX);
	ck_assert_uint_eq(metrics_count(metrics), METRICS_OWN_MAX + 100);
}
END_TEST

START_TEST(values_of_another_users_app_that_ended_make_room_when_all_are_taken)
{
	struct app_process *p;
	flood_of("own", 1000, 34);
	apps_detach(apps, apps_find(apps, "own1")->process[0], PROCESS_ENDED, T0);
	flood_of("root", 0, 32);
	ck_assert_uint_eq(apps_find(apps, "own1")->values->count, APP_VALUES_MAX);
	p = attach_as("more", 0, 1, T0);
	flood(p, "h");
	ck_assert_uint_eq(p->app->values->count, APP_VALUES_MAX);
	ck_assert_uint_eq(apps_find(apps, "own1")->values->count, 0);
}
END_TEST

static const struct app_attribute *attribute(const struct stage *stage, const char *name)
{
	const struct app_attributes *all = stage->attributes;
	for (size_t i = 0; all && i < all->count; i++) {
		if (strcmp(all->attribute[i].name, name) == 0) {
			return &all->attribute[i];
		}
	}
	return NULL;
}

static void put_attribute(
	struct app_process *process, uint16_t name, uint32_t stage, uint64_t t_ns, double value)
{
	const struct proto_record r = {.stage = name,
		.kind = PROTO_KIND_ATTRIBUTE,
		.cpu_us = stage,
		.start_ns = t_ns,
		.value = bits(value),
		.frame = 7};
	put(process, &r);
}

/* covers G3.10 */
START_TEST(attributes_of_a_stage_have_last_mean_and_extremes)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "infer", "");
	declare(p, 1, "partitions", "");
	declare(p, 2, "coverage_pct", "");
	put_attribute(p, 1, 0, T0, 3); /* before the first run ends */
	put_run(p, 0, T0, MS);
	put_attribute(p, 1, 0, T0, 28);
	put_attribute(p, 1, 0, T0, 18);
	put_attribute(p, 2, 0, T0, 97.5);
	ck_assert_uint_eq(p->app->stages, 1); /* names are no stages */
	const struct stage *infer = p->app->stage[0];
	ck_assert_uint_eq(infer->count, 1); /* and no runs */
	const struct app_attribute *a = attribute(infer, "partitions");
	ck_assert_ptr_nonnull(a);
	ck_assert_uint_eq(a->count, 3);
	ck_assert_double_eq(a->last, 18);
	ck_assert_double_eq(a->min, 3);
	ck_assert_double_eq(a->max, 28);
	ck_assert_double_eq_tol(app_attribute_mean(a), 49.0 / 3, 1e-12);
	ck_assert_double_eq(attribute(infer, "coverage_pct")->last, 97.5);

	/* another process of the app means the same ones, by other indices */
	struct app_process *q = attach_as("cam", 1000, 13, T0);
	declare(q, 0, "coverage_pct", "");
	declare(q, 1, "infer", "");
	put_attribute(q, 0, 1, T0, 96.5);
	ck_assert_uint_eq(infer->attributes->count, 2);
	ck_assert_double_eq(attribute(infer, "coverage_pct")->min, 96.5);
	ck_assert_uint_eq(p->accounting.invalid + q->accounting.invalid, 0);
}
END_TEST

START_TEST(attributes_have_limits_and_must_be_numbers_of_something)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare(p, 0, "infer", "");
	for (uint16_t i = 1; i < 40; i++) {
		char name[16];
		snprintf(name, sizeof(name), "a%u", i);
		declare(p, i, name, "");
		put_attribute(p, i, 0, T0, i);
	}
	const struct app_attributes *all = p->app->stage[0]->attributes;
	ck_assert_uint_eq(all->count, STAGE_ATTRIBUTES_MAX);
	ck_assert_uint_eq(all->refused, 39 - STAGE_ATTRIBUTES_MAX);
	ck_assert_uint_eq(p->accounting.invalid, 0);
	put_attribute(p, 1, 0, T0, NAN);
	put_attribute(p, 1, 0, T0, INFINITY);
	put_attribute(p, 1, 99, T0, 1); /* of nothing declared */
	put_attribute(p, 1, UINT32_MAX, T0, 1);
	put_attribute(p, 99, 0, T0, 1);
	put_attribute(p, 1, 0, T0, 1.7e308);
	put_attribute(p, 1, 0, T0, 1.7e308); /* no mean any more */
	ck_assert_uint_eq(p->accounting.invalid, 6);
}
END_TEST
