/* The last raw records of all apps. */
#include "daemon/core/apps/trace_buffer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"
#include "tests/unit/unit.h"

static const size_t CHUNK = EVENTS_CHUNK * sizeof(struct event);

static struct events *make(size_t chunks)
{
	struct events *events = NULL;
	ck_assert_int_eq(events_create(chunks * CHUNK, &events), 0);
	return events;
}

static struct events_log *open_log(struct events *events)
{
	struct events_log *log = NULL;
	ck_assert_int_eq(events_open(events, &log), 0);
	return log;
}

static void add(struct events_log *log, uint64_t from, uint64_t count)
{
	for (uint64_t i = from; i < from + count; i++) {
		const struct event event = {.record = {.start_ns = 1000 + i, .value = i}};
		events_add(log, &event);
	}
}

/* Every event in order, each with the value after the one before. */
static void expect(const struct events_log *log, uint64_t from, uint64_t count)
{
	struct events_cursor cursor = {0};
	const struct event *event;
	uint64_t seen = 0, lost = 0;
	while ((event = events_next(log, &cursor, &lost))) {
		ck_assert_uint_eq(event->record.value, from + seen);
		seen++;
	}
	ck_assert_uint_eq(seen, count);
	ck_assert_uint_eq(lost, 0);
	struct events_usage span;
	events_span(log, &span);
	ck_assert_uint_eq(span.count, count);
	ck_assert_uint_eq(span.overwritten, from);
	ck_assert_uint_eq(span.oldest_ns, count ? 1000 + from : 0);
}

START_TEST(the_last_records_are_kept_in_order)
{
	struct events *events = make(4);
	struct events_log *log = open_log(events);
	expect(log, 0, 0);
	add(log, 0, 1);
	expect(log, 0, 1);
	add(log, 1, 4 * EVENTS_CHUNK - 1);
	expect(log, 0, 4 * EVENTS_CHUNK);
	add(log, 4 * EVENTS_CHUNK, 1); /* the oldest chunk goes */
	expect(log, EVENTS_CHUNK, 3 * EVENTS_CHUNK + 1);
	add(log, 4 * EVENTS_CHUNK + 1, 1000000);
	struct events_usage usage;
	events_usage(events, &usage);
	ck_assert_uint_eq(usage.bytes, 4 * CHUNK);
	ck_assert_uint_eq(usage.used_bytes, 4 * CHUNK);
	ck_assert_uint_eq(usage.count + usage.overwritten, 4 * EVENTS_CHUNK + 1000001);
	ck_assert_uint_ge(usage.count, 3 * EVENTS_CHUNK);
	expect(log, usage.overwritten, usage.count);
	events_close(log);
	events_destroy(events);
}
END_TEST

START_TEST(a_pool_of_one_chunk_holds_the_newest)
{
	struct events *events = make(1);
	struct events_log *a = open_log(events), *b = open_log(events);
	add(a, 0, 2 * EVENTS_CHUNK + 5);
	expect(a, 2 * EVENTS_CHUNK, 5);
	add(b, 0, 3); /* takes the only chunk while a writes to it */
	expect(b, 0, 3);
	expect(a, 2 * EVENTS_CHUNK + 5, 0);
	add(a, 2 * EVENTS_CHUNK + 5, 2);
	expect(a, 2 * EVENTS_CHUNK + 5, 2);
	expect(b, 3, 0);
	events_close(b);
	events_close(a);
	events_destroy(events);
}
END_TEST

START_TEST(a_loud_app_leaves_a_quiet_one_its_share)
{
	struct events *events = make(16);
	struct events_log *loud = open_log(events), *quiet = open_log(events);
	add(loud, 0, 100 * EVENTS_CHUNK);
	add(quiet, 0, 8 * EVENTS_CHUNK);
	add(loud, 100 * EVENTS_CHUNK, 100 * EVENTS_CHUNK);
	expect(quiet, 0, 8 * EVENTS_CHUNK);
	struct events_usage span;
	events_span(loud, &span);
	ck_assert_uint_eq(span.count, 8 * EVENTS_CHUNK);
	ck_assert_uint_eq(span.bytes, 8 * CHUNK);
	add(quiet, 8 * EVENTS_CHUNK, 8 * EVENTS_CHUNK); /* more than its share: its own oldest */
	events_span(loud, &span);
	ck_assert_uint_ge(span.count, 7 * EVENTS_CHUNK);
	events_span(quiet, &span);
	ck_assert_uint_ge(span.count, 7 * EVENTS_CHUNK);
	/* a third one gets its share of both */
	struct events_log *third = open_log(events);
	add(third, 0, 50 * EVENTS_CHUNK);
	events_span(third, &span);
	ck_assert_uint_ge(span.count, 5 * EVENTS_CHUNK);
	events_span(quiet, &span);
	ck_assert_uint_ge(span.count, 5 * EVENTS_CHUNK);
	events_close(loud);
	add(third, 50 * EVENTS_CHUNK, 50 * EVENTS_CHUNK); /* what was given back is used */
	struct events_usage usage;
	events_usage(events, &usage);
	ck_assert_uint_eq(usage.used_bytes, 16 * CHUNK);
	events_close(quiet);
	events_close(third);
	events_usage(events, &usage);
	ck_assert_uint_eq(usage.used_bytes, 0);
	ck_assert_uint_eq(usage.oldest_ns, 0);
	events_destroy(events);
}
END_TEST

START_TEST(a_reader_is_told_what_was_overwritten)
{
	struct events *events = make(3);
	struct events_log *log = open_log(events);
	struct events_cursor cursor = {0};
	uint64_t lost = 0;
	ck_assert_ptr_null(events_next(log, &cursor, &lost));
	add(log, 0, EVENTS_CHUNK + 10);
	for (uint64_t i = 0; i < 5; i++) {
		ck_assert_uint_eq(events_next(log, &cursor, &lost)->record.value, i);
	}
	add(log, EVENTS_CHUNK + 10, 3 * EVENTS_CHUNK); /* the oldest kept is that of chunk 2 */
	const struct event *event = events_next(log, &cursor, &lost);
	ck_assert_uint_eq(event->record.value, 2 * EVENTS_CHUNK);
	ck_assert_uint_eq(lost, 2 * EVENTS_CHUNK - 5);
	while (events_next(log, &cursor, &lost)) {
	}
	add(log, 4 * EVENTS_CHUNK + 10, 1); /* it goes on where it was */
	ck_assert_uint_eq(events_next(log, &cursor, &lost)->record.value, 4 * EVENTS_CHUNK + 10);
	ck_assert_uint_eq(lost, 2 * EVENTS_CHUNK - 5);
	events_close(log);
	events_destroy(events);
}
END_TEST

START_TEST(names_keep_their_number)
{
	struct events *events = make(1);
	struct events_log *log = open_log(events);
	char name[PROTO_NAME_SIZE];
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < EVENTS_NAMES_MAX; i++) {
			snprintf(name, sizeof(name), "n%d", i);
			ck_assert_uint_eq(events_name(log, name), i);
			ck_assert_str_eq(events_name_of(log, (uint16_t)i), name);
		}
	}
	ck_assert_uint_eq(events_name(log, "one too many"), EVENTS_NO_NAME);
	ck_assert_str_eq(events_name_of(log, EVENTS_NO_NAME), "");
	events_close(log);
	events_close(NULL);
	events_destroy(events);
}
END_TEST

static unsigned allocations_left;

START_TEST(the_time_since_which_so_many_are_kept)
{
	struct events *events = make(8);
	struct events_log *loud = open_log(events), *quiet = open_log(events);
	uint64_t since_ns = 1;
	ck_assert_int_eq(events_since(events, 10, &since_ns), 0);
	ck_assert_uint_eq(since_ns, 0);
	add(quiet, 2 * EVENTS_CHUNK, 10);
	add(loud, 0, 3 * EVENTS_CHUNK + 5);
	ck_assert_int_eq(events_since(events, 10 + 3 * EVENTS_CHUNK + 5, &since_ns), 0);
	ck_assert_uint_eq(since_ns, 0); /* all */
	ck_assert_int_eq(events_since(events, 10 + 3 * EVENTS_CHUNK + 4, &since_ns), 0);
	ck_assert_uint_eq(since_ns, 1000 + EVENTS_CHUNK); /* without the oldest chunks */
	ck_assert_int_eq(events_since(events, EVENTS_CHUNK + 5, &since_ns), 0);
	ck_assert_uint_eq(since_ns, 1000 + 2 * EVENTS_CHUNK);
	events_close(loud);
	events_close(quiet);
	events_destroy(events);
}
END_TEST

static void *failing_calloc(size_t count, size_t size)
{
	return allocations_left-- == 0 ? NULL : calloc(count, size);
}

START_TEST(too_little_is_einval_and_short_memory_enomem)
{
	struct events *events = NULL;
	ck_assert_int_eq(events_create(CHUNK - 1, &events), -EINVAL);
	struct sysops table = *sysops();
	table.calloc = failing_calloc;
	sysops_replace(&table);
	for (unsigned i = 0; i < 3; i++) {
		allocations_left = i;
		ck_assert_int_eq(events_create(CHUNK, &events), -ENOMEM);
		ck_assert_ptr_null(events);
	}
	allocations_left = 100;
	ck_assert_int_eq(events_create(CHUNK, &events), 0);
	struct events_log *log = NULL;
	allocations_left = 0;
	ck_assert_int_eq(events_open(events, &log), -ENOMEM);
	ck_assert_ptr_null(log);
	allocations_left = 1;
	ck_assert_int_eq(events_open(events, &log), 0);
	ck_assert_uint_eq(events_name(log, "a"), EVENTS_NO_NAME);
	sysops_replace(NULL);
	events_close(log);
	events_destroy(events);
	events_destroy(NULL);
}
END_TEST
