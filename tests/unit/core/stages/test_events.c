/* SPDX-License-Identifier: Apache-2.0 */
/* The last raw records of all apps. */
#include "daemon/core/frames/trace_buffer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"
#include "tests/unit/unit.h"

static const size_t CHUNK = TRACE_CHUNK * sizeof(struct event);

static struct trace_buffer *make(size_t chunks)
{
	struct trace_buffer *events = NULL;
	ck_assert_int_eq(trace_buffer_create(chunks * CHUNK, &events), 0);
	return events;
}

static struct trace_log *open_log(struct trace_buffer *events)
{
	struct trace_log *log = NULL;
	ck_assert_int_eq(trace_log_open(events, &log), 0);
	return log;
}

static void add(struct trace_log *log, uint64_t from, uint64_t count)
{
	for (uint64_t i = from; i < from + count; i++) {
		*trace_log_slot(log) = (struct event){.record = {.start_ns = 1000 + i, .value = i}};
	}
}

/* Every event in order, each with the value after the one before. */
static void expect(const struct trace_log *log, uint64_t from, uint64_t count)
{
	struct trace_cursor cursor = {0};
	const struct event *event;
	uint64_t seen = 0, lost = 0;
	while ((event = trace_log_next(log, &cursor, &lost))) {
		ck_assert_uint_eq(event->record.value, from + seen);
		seen++;
	}
	ck_assert_uint_eq(seen, count);
	ck_assert_uint_eq(lost, 0);
	struct trace_usage span;
	trace_log_span(log, &span);
	ck_assert_uint_eq(span.count, count);
	ck_assert_uint_eq(span.overwritten, from);
	ck_assert_uint_eq(span.oldest_ns, count ? 1000 + from : 0);
}

START_TEST(the_last_records_are_kept_in_order)
{
	struct trace_buffer *events = make(4);
	struct trace_log *log = open_log(events);
	expect(log, 0, 0);
	add(log, 0, 1);
	expect(log, 0, 1);
	add(log, 1, 4 * TRACE_CHUNK - 1);
	expect(log, 0, 4 * TRACE_CHUNK);
	add(log, 4 * TRACE_CHUNK, 1); /* the oldest chunk goes */
	expect(log, TRACE_CHUNK, 3 * TRACE_CHUNK + 1);
	add(log, 4 * TRACE_CHUNK + 1, 1000000);
	struct trace_usage usage;
	trace_buffer_usage(events, &usage);
	ck_assert_uint_eq(usage.bytes, 4 * CHUNK);
	ck_assert_uint_eq(usage.used_bytes, 4 * CHUNK);
	ck_assert_uint_eq(usage.count + usage.overwritten, 4 * TRACE_CHUNK + 1000001);
	ck_assert_uint_ge(usage.count, 3 * TRACE_CHUNK);
	expect(log, usage.overwritten, usage.count);
	trace_log_close(log);
	trace_buffer_destroy(events);
}
END_TEST

START_TEST(a_pool_of_one_chunk_holds_the_newest)
{
	struct trace_buffer *events = make(1);
	struct trace_log *a = open_log(events), *b = open_log(events);
	add(a, 0, 2 * TRACE_CHUNK + 5);
	expect(a, 2 * TRACE_CHUNK, 5);
	add(b, 0, 3); /* takes the only chunk while a writes to it */
	expect(b, 0, 3);
	expect(a, 2 * TRACE_CHUNK + 5, 0);
	add(a, 2 * TRACE_CHUNK + 5, 2);
	expect(a, 2 * TRACE_CHUNK + 5, 2);
	expect(b, 3, 0);
	trace_log_close(b);
	trace_log_close(a);
	trace_buffer_destroy(events);
}
END_TEST

START_TEST(a_loud_app_leaves_a_quiet_one_its_share)
{
	struct trace_buffer *events = make(16);
	struct trace_log *loud = open_log(events), *quiet = open_log(events);
	add(loud, 0, 100 * TRACE_CHUNK);
	add(quiet, 0, 8 * TRACE_CHUNK);
	add(loud, 100 * TRACE_CHUNK, 100 * TRACE_CHUNK);
	expect(quiet, 0, 8 * TRACE_CHUNK);
	struct trace_usage span;
	trace_log_span(loud, &span);
	ck_assert_uint_eq(span.count, 8 * TRACE_CHUNK);
	ck_assert_uint_eq(span.bytes, 8 * CHUNK);
	add(quiet, 8 * TRACE_CHUNK, 8 * TRACE_CHUNK); /* more than its share: its own oldest */
	trace_log_span(loud, &span);
	ck_assert_uint_ge(span.count, 7 * TRACE_CHUNK);
	trace_log_span(quiet, &span);
	ck_assert_uint_ge(span.count, 7 * TRACE_CHUNK);
	/* a third one gets its share of both */
	struct trace_log *third = open_log(events);
	add(third, 0, 50 * TRACE_CHUNK);
	trace_log_span(third, &span);
	ck_assert_uint_ge(span.count, 5 * TRACE_CHUNK);
	trace_log_span(quiet, &span);
	ck_assert_uint_ge(span.count, 5 * TRACE_CHUNK);
	trace_log_close(loud);
	add(third, 50 * TRACE_CHUNK, 50 * TRACE_CHUNK); /* what was given back is used */
	struct trace_usage usage;
	trace_buffer_usage(events, &usage);
	ck_assert_uint_eq(usage.used_bytes, 16 * CHUNK);
	trace_log_close(quiet);
	trace_log_close(third);
	trace_buffer_usage(events, &usage);
	ck_assert_uint_eq(usage.used_bytes, 0);
	ck_assert_uint_eq(usage.oldest_ns, 0);
	trace_buffer_destroy(events);
}
END_TEST

START_TEST(a_reader_is_told_what_was_overwritten)
{
	struct trace_buffer *events = make(3);
	struct trace_log *log = open_log(events);
	struct trace_cursor cursor = {0};
	uint64_t lost = 0;
	ck_assert_ptr_null(trace_log_next(log, &cursor, &lost));
	add(log, 0, TRACE_CHUNK + 10);
	for (uint64_t i = 0; i < 5; i++) {
		ck_assert_uint_eq(trace_log_next(log, &cursor, &lost)->record.value, i);
	}
	add(log, TRACE_CHUNK + 10, 3 * TRACE_CHUNK); /* the oldest kept is that of chunk 2 */
	const struct event *event = trace_log_next(log, &cursor, &lost);
	ck_assert_uint_eq(event->record.value, 2 * TRACE_CHUNK);
	ck_assert_uint_eq(lost, 2 * TRACE_CHUNK - 5);
	while (trace_log_next(log, &cursor, &lost)) {
	}
	add(log, 4 * TRACE_CHUNK + 10, 1); /* it goes on where it was */
	ck_assert_uint_eq(trace_log_next(log, &cursor, &lost)->record.value, 4 * TRACE_CHUNK + 10);
	ck_assert_uint_eq(lost, 2 * TRACE_CHUNK - 5);
	trace_log_close(log);
	trace_buffer_destroy(events);
}
END_TEST

START_TEST(names_keep_their_number)
{
	struct trace_buffer *events = make(1);
	struct trace_log *log = open_log(events);
	char name[PROTO_NAME_SIZE];
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < TRACE_NAMES_MAX; i++) {
			snprintf(name, sizeof(name), "n%d", i);
			ck_assert_uint_eq(trace_log_name(log, name), i);
			ck_assert_str_eq(trace_log_name_of(log, (uint16_t)i), name);
		}
	}
	ck_assert_uint_eq(trace_log_name(log, "one too many"), TRACE_NO_NAME);
	ck_assert_str_eq(trace_log_name_of(log, TRACE_NO_NAME), "");
	trace_log_close(log);
	trace_log_close(NULL);
	trace_buffer_destroy(events);
}
END_TEST

static unsigned allocations_left;

START_TEST(the_time_since_which_so_many_are_kept)
{
	struct trace_buffer *events = make(8);
	struct trace_log *loud = open_log(events), *quiet = open_log(events);
	uint64_t since_ns = 1;
	ck_assert_int_eq(trace_buffer_since(events, 10, &since_ns), 0);
	ck_assert_uint_eq(since_ns, 0);
	add(quiet, 2 * TRACE_CHUNK, 10);
	add(loud, 0, 3 * TRACE_CHUNK + 5);
	ck_assert_int_eq(trace_buffer_since(events, 10 + 3 * TRACE_CHUNK + 5, &since_ns), 0);
	ck_assert_uint_eq(since_ns, 0); /* all */
	ck_assert_int_eq(trace_buffer_since(events, 10 + 3 * TRACE_CHUNK + 4, &since_ns), 0);
	ck_assert_uint_eq(since_ns, 1000 + TRACE_CHUNK); /* without the oldest chunks */
	ck_assert_int_eq(trace_buffer_since(events, TRACE_CHUNK + 5, &since_ns), 0);
	ck_assert_uint_eq(since_ns, 1000 + 2 * TRACE_CHUNK);
	trace_log_close(loud);
	trace_log_close(quiet);
	trace_buffer_destroy(events);
}
END_TEST

static void *failing_calloc(size_t count, size_t size)
{
	return allocations_left-- == 0 ? NULL : calloc(count, size);
}

START_TEST(too_little_is_einval_and_short_memory_enomem)
{
	struct trace_buffer *events = NULL;
	ck_assert_int_eq(trace_buffer_create(CHUNK - 1, &events), -EINVAL);
	struct sysops table = *sysops();
	table.calloc = failing_calloc;
	sysops_replace(&table);
	for (unsigned i = 0; i < 3; i++) {
		allocations_left = i;
		ck_assert_int_eq(trace_buffer_create(CHUNK, &events), -ENOMEM);
		ck_assert_ptr_null(events);
	}
	allocations_left = 100;
	ck_assert_int_eq(trace_buffer_create(CHUNK, &events), 0);
	struct trace_log *log = NULL;
	allocations_left = 0;
	ck_assert_int_eq(trace_log_open(events, &log), -ENOMEM);
	ck_assert_ptr_null(log);
	allocations_left = 1;
	ck_assert_int_eq(trace_log_open(events, &log), 0);
	ck_assert_uint_eq(trace_log_name(log, "a"), TRACE_NO_NAME);
	sysops_replace(NULL);
	trace_log_close(log);
	trace_buffer_destroy(events);
	trace_buffer_destroy(NULL);
}
END_TEST
