/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of sources: names, states as seen later, wishes. */
#include "daemon/core/metrics/sources.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/core.h"
#include "daemon/core/status/broker_status.h"
#include "tests/unit/alloc_faults.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)

static struct sources *sources;

static void setup(void)
{
	ck_assert_int_eq(sources_create(&sources), 0);
}

static void teardown(void)
{
	sources_destroy(sources);
	sources = NULL;
}

FIXTURE(setup, teardown);

START_TEST(a_new_source_is_unavailable_and_wanted)
{
	struct source *source = NULL;
	ck_assert_int_eq(sources_add(sources, "thermal", SECOND, &source), 0);
	ck_assert_uint_eq(source->id, 0);
	ck_assert_str_eq(source->name, "thermal");
	ck_assert_int_eq(source->state, SOURCE_UNAVAILABLE);
	ck_assert_str_eq(source->reason, "not sampled yet");
	ck_assert(source->wanted);
	ck_assert_uint_eq(source->interval_ns, SECOND);
	ck_assert_ptr_eq(sources_find(sources, "thermal"), source);
	ck_assert_ptr_eq(sources_at(sources, 0), source);
	ck_assert_ptr_null(sources_at(sources, 1));
	ck_assert_ptr_null(sources_find(sources, "therma"));
}
END_TEST

START_TEST(bad_and_taken_names_are_refused)
{
	struct source *source = NULL;
	ck_assert_int_eq(sources_add(sources, "a/b", 0, &source), -EINVAL);
	ck_assert_int_eq(sources_add(sources, "", 0, &source), -EINVAL);
	ck_assert_ptr_null(source);
	ck_assert_int_eq(sources_add(sources, "a", 0, &source), 0);
	struct source *first = source;
	ck_assert_int_eq(sources_add(sources, "a", 0, &source), -EEXIST);
	ck_assert_ptr_eq(source, first);
	ck_assert_uint_eq(sources_count(sources), 1);
}
END_TEST

START_TEST(the_registry_ends_at_its_limit)
{
	struct source *source = NULL;
	for (int i = 0; i < SOURCES_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "s%d", i);
		ck_assert_int_eq(sources_add(sources, name, 0, &source), 0);
		ck_assert_int_eq(source->id, i);
	}
	ck_assert_int_eq(sources_add(sources, "more", 0, &source), -ENOSPC);
	ck_assert_uint_eq(sources_count(sources), SOURCES_MAX);
}
END_TEST

START_TEST(a_report_tells_only_changes)
{
	struct source *source = NULL;
	ck_assert_int_eq(sources_add(sources, "a", 0, &source), 0);
	ck_assert(source_report(source, SOURCE_ERROR, "Permission denied"));
	ck_assert(!source_report(source, SOURCE_ERROR, "Permission denied"));
	ck_assert(source_report(source, SOURCE_ERROR, "No such device"));
	ck_assert(source_report(source, SOURCE_OK, NULL));
	ck_assert_str_eq(source->reason, "");
	ck_assert(!source_report(source, SOURCE_OK, NULL));
	char longer[2 * SOURCE_REASON_SIZE];
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	ck_assert(source_report(source, SOURCE_ERROR, longer));
	ck_assert(!source_report(source, SOURCE_ERROR, longer));
	ck_assert_uint_eq(strlen(source->reason), SOURCE_REASON_SIZE - 1);
}
END_TEST

START_TEST(an_ok_source_is_stale_after_three_intervals)
{
	struct source source = {.state = SOURCE_OK,
		.wanted = true,
		.interval_ns = SECOND,
		.last_ok_ns = 10 * SECOND};
	ck_assert_int_eq(source_state_at(&source, 9 * SECOND), SOURCE_OK);
	ck_assert_int_eq(source_state_at(&source, 13 * SECOND), SOURCE_OK);
	ck_assert_int_eq(source_state_at(&source, 13 * SECOND + 1), SOURCE_STALE);
	ck_assert_str_eq(source_reason_at(&source, 13 * SECOND), "");
	ck_assert_str_eq(source_reason_at(&source, 13 * SECOND + 1), "no new reading");
	source.state = SOURCE_ERROR;
	ck_assert_int_eq(source_state_at(&source, 99 * SECOND), SOURCE_ERROR);
	source.state = SOURCE_OK;
	source.interval_ns = 0;
	ck_assert_int_eq(source_state_at(&source, UINT64_MAX), SOURCE_OK);
	source.interval_ns = UINT64_MAX;
	ck_assert_int_eq(source_state_at(&source, UINT64_MAX), SOURCE_OK);
}
END_TEST

START_TEST(each_wish_has_a_serial_and_zero_keeps_the_interval)
{
	struct source source = {.wanted = true};
	source_request(&source, false, 5 * SECOND);
	ck_assert(!source.wanted);
	ck_assert_uint_eq(source.wanted_interval_ns, 5 * SECOND);
	ck_assert_uint_eq(source.request_serial, 1);
	source_request(&source, true, 0);
	ck_assert(source.wanted);
	ck_assert_uint_eq(source.wanted_interval_ns, 5 * SECOND);
	ck_assert_uint_eq(source.request_serial, 2);
}
END_TEST

START_TEST(a_request_shows_before_it_is_carried_out)
{
	struct source source = {.state = SOURCE_OK, .wanted = true};
	source_request(&source, false, 0);
	ck_assert_int_eq(source_state_at(&source, SECOND), SOURCE_SUSPENDED);
	ck_assert_str_eq(source_reason_at(&source, SECOND), "switched off");
	source_report(&source, SOURCE_SUSPENDED, "switched off");
	source_request(&source, true, 0);
	ck_assert_int_eq(source_state_at(&source, SECOND), SOURCE_SUSPENDED);
	ck_assert_str_eq(source_reason_at(&source, SECOND), "switched on, not sampled yet");
}
END_TEST

START_TEST(every_state_has_its_word)
{
	ck_assert_str_eq(source_state_name(SOURCE_OK), "ok");
	ck_assert_str_eq(source_state_name(SOURCE_UNAVAILABLE), "unavailable");
	ck_assert_str_eq(source_state_name(SOURCE_STALE), "stale");
	ck_assert_str_eq(source_state_name(SOURCE_ERROR), "error");
	ck_assert_str_eq(source_state_name(SOURCE_SUSPENDED), "suspended");
	ck_assert_str_eq(broker_state_name(BROKER_OFF), "off");
	ck_assert_str_eq(broker_state_name(BROKER_CONNECTING), "connecting");
	ck_assert_str_eq(broker_state_name(BROKER_CONNECTED), "connected");
	ck_assert_str_eq(broker_state_name(BROKER_AWAY), "away");
}
END_TEST

START_TEST(short_memory_is_reported_and_harmless)
{
	struct sources *other = NULL;
	struct source *source = NULL;
	alloc_faults_start(1);
	ck_assert_int_eq(sources_create(&other), -ENOMEM);
	ck_assert_ptr_null(other);
	alloc_faults_start(1);
	ck_assert_int_eq(sources_add(sources, "a", 0, &source), -ENOMEM);
	ck_assert_ptr_null(source);
	alloc_faults_stop();
	ck_assert_uint_eq(sources_count(sources), 0);
	ck_assert_int_eq(sources_add(sources, "a", 0, &source), 0);
	sources_destroy(NULL);
}
END_TEST
