/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/publish/outbox_fixture.h"
#include "tests/unit/unit.h"

START_TEST(alerts_go_first_and_in_order)
{
	struct outbox outbox;
	outbox_init(&outbox, 8, 1 << 20);
	put(&outbox, OUTBOX_SUMMARY, "s1", 4);
	put(&outbox, OUTBOX_ALERT, "a1", 4);
	put(&outbox, OUTBOX_ALERT, "a2", 4);
	take_is(&outbox, "a1", 1);
	take_is(&outbox, "a2", 2);
	take_is(&outbox, "s1", 3);
	ck_assert_ptr_null(outbox_take(&outbox, 0));
	outbox_finish(&outbox);
}
END_TEST

START_TEST(old_summaries_make_room_and_are_counted)
{
	struct outbox outbox;
	outbox_init(&outbox, 4, 1 << 20);
	for (int i = 0; i < 5; i++) {
		char topic[8];
		snprintf(topic, sizeof(topic), "s%d", i);
		ck_assert_int_eq(put(&outbox, OUTBOX_SUMMARY, topic, 4), 0);
	}
	ck_assert_uint_eq(
		outbox_count(&outbox).dropped[OUTBOX_SUMMARY], 3); /* they have the half */
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(put(&outbox, OUTBOX_ALERT, "a", 4), 0);
	}
	struct outbox_counts counts = outbox_count(&outbox);
	ck_assert_uint_eq(counts.messages, 4);
	ck_assert_uint_eq(counts.dropped[OUTBOX_SUMMARY], 4);
	ck_assert_uint_eq(counts.dropped[OUTBOX_ALERT], 0);
	take_is(&outbox, "a", 1);
	take_is(&outbox, "a", 2);
	take_is(&outbox, "a", 3);
	take_is(&outbox, "s4", 4);
	outbox_finish(&outbox);
}
END_TEST

START_TEST(alerts_are_never_displaced)
{
	struct outbox outbox;
	outbox_init(&outbox, 2, 1 << 20);
	ck_assert_int_eq(put(&outbox, OUTBOX_ALERT, "a1", 4), 0);
	ck_assert_int_eq(put(&outbox, OUTBOX_ALERT, "a2", 4), 0);
	ck_assert_int_eq(put(&outbox, OUTBOX_ALERT, "a3", 4), -ENOSPC);
	ck_assert_int_eq(put(&outbox, OUTBOX_SUMMARY, "s1", 4), -ENOSPC);
	struct outbox_counts counts = outbox_count(&outbox);
	ck_assert_uint_eq(counts.dropped[OUTBOX_ALERT], 1);
	ck_assert_uint_eq(counts.dropped[OUTBOX_SUMMARY], 1);
	take_is(&outbox, "a1", 1);
	take_is(&outbox, "a2", 2);
	outbox_finish(&outbox);
}
END_TEST

START_TEST(bytes_are_bounded_and_what_never_fits_drops_nothing_else)
{
	struct outbox outbox;
	outbox_init(&outbox, 100, 4096);
	ck_assert_int_eq(put(&outbox, OUTBOX_SUMMARY, "s1", 800), 0);
	ck_assert_int_eq(put(&outbox, OUTBOX_SUMMARY, "s2", 800), 0);
	ck_assert_int_eq(put(&outbox, OUTBOX_ALERT, "huge", 4096), -ENOSPC);
	ck_assert_uint_eq(outbox_count(&outbox).messages, 2);
	ck_assert_uint_eq(outbox_count(&outbox).dropped[OUTBOX_SUMMARY], 0);
	ck_assert_int_eq(put(&outbox, OUTBOX_ALERT, "a", 2900), 0);
	ck_assert_uint_le(outbox_count(&outbox).bytes, 4096);
	ck_assert_uint_eq(outbox_count(&outbox).messages, 2);
	ck_assert_uint_eq(outbox_count(&outbox).dropped[OUTBOX_SUMMARY], 1);
	outbox_finish(&outbox);
}
END_TEST

START_TEST(what_flies_counts_but_is_not_displaced)
{
	struct outbox outbox;
	outbox_init(&outbox, 2, 1 << 20);
	put(&outbox, OUTBOX_SUMMARY, "s1", 4);
	take_is(&outbox, "s1", 1);
	put(&outbox, OUTBOX_SUMMARY, "s2", 4);
	take_is(&outbox, "s2", 2);
	ck_assert_int_eq(put(&outbox, OUTBOX_ALERT, "a", 4), -ENOSPC);
	ck_assert(outbox_answered(&outbox, 1, true));
	ck_assert_int_eq(put(&outbox, OUTBOX_ALERT, "a", 4), 0);
	ck_assert(!outbox_answered(&outbox, 1, true));
	ck_assert_uint_eq(outbox_count(&outbox).delivered, 0); /* QoS 0: who knows */
	take_is(&outbox, "a", 3);
	ck_assert(outbox_answered(&outbox, 3, true));
	ck_assert_uint_eq(outbox_count(&outbox).delivered, 1);
	outbox_finish(&outbox);
}
END_TEST

START_TEST(no_more_than_the_window_is_in_flight)
{
	struct outbox outbox;
	outbox_init(&outbox, 100, 1 << 20);
	for (int i = 0; i < OUTBOX_IN_FLIGHT + 1; i++) {
		put(&outbox, OUTBOX_ALERT, "a", 4);
	}
	for (int i = 0; i < OUTBOX_IN_FLIGHT; i++) {
		take_is(&outbox, "a", i + 1);
	}
	ck_assert_ptr_null(outbox_take(&outbox, 0));
	ck_assert(outbox_answered(&outbox, 7, true));
	take_is(&outbox, "a", 100);
	ck_assert_ptr_null(outbox_take(&outbox, 0));
	outbox_finish(&outbox);
}
END_TEST

START_TEST(a_lost_connection_puts_messages_back_in_order)
{
	struct outbox outbox;
	outbox_init(&outbox, 100, 1 << 20);
	put(&outbox, OUTBOX_ALERT, "a1", 4);
	put(&outbox, OUTBOX_ALERT, "a2", 4);
	put(&outbox, OUTBOX_ALERT, "a3", 4);
	put(&outbox, OUTBOX_SUMMARY, "s1", 4);
	take_is(&outbox, "a1", 1);
	take_is(&outbox, "a2", 2);
	take_is(&outbox, "a3", 3);
	take_is(&outbox, "s1", 4);
	ck_assert(outbox_answered(&outbox, 2, true));
	put(&outbox, OUTBOX_ALERT, "a4", 4);
	put(&outbox, OUTBOX_SUMMARY, "s2", 4);
	outbox_return(&outbox, false, NULL, 0);
	ck_assert_uint_eq(outbox_count(&outbox).in_flight, 0);
	static const char *const order[] = {"a1", "a3", "a4", "s1", "s2"};
	for (int i = 0; i < COUNT(order); i++) {
		take_is(&outbox, order[i], 5);
		ck_assert(outbox_answered(&outbox, 5, true));
	}
	outbox_return(&outbox, false, NULL, 0);
	ck_assert_uint_eq(outbox_count(&outbox).messages, 0);
	outbox_finish(&outbox);
}
END_TEST

/* A broker that ends the connection after a message that it refuses: its answer is lost with what
 * was on its way behind it. */
START_TEST(after_a_loss_one_message_is_in_flight_and_each_answer_doubles_it)
{
	struct outbox outbox;
	outbox_init(&outbox, 100, 1 << 20);
	for (int i = 0; i < 2 * OUTBOX_IN_FLIGHT; i++) {
		put(&outbox, OUTBOX_ALERT, "a", 4);
	}
	for (int mid = 0; mid < OUTBOX_IN_FLIGHT; mid++) {
		take_is(&outbox, "a", mid);
	}
	ck_assert_ptr_null(outbox_take(&outbox, 0));
	outbox_return(&outbox, false, NULL, 0);
	ck_assert_uint_eq(outbox.window, 1);
	int mid = 0, answered = 0;
	for (unsigned window = 1; window <= OUTBOX_IN_FLIGHT; window *= 2) {
		while (outbox_count(&outbox).in_flight < window) {
			take_is(&outbox, "a", mid++);
		}
		ck_assert_ptr_null(outbox_take(&outbox, 0));
		ck_assert(!outbox_count(&outbox).ready);
		ck_assert(outbox_answered(&outbox, answered++, window % 4 == 0));
	}
	outbox_finish(&outbox);
}
END_TEST

START_TEST(what_nobody_answers_opens_no_window)
{
	struct outbox outbox;
	outbox_init(&outbox, 100, 1 << 20);
	put(&outbox, OUTBOX_SUMMARY, "s", 4);
	take_is(&outbox, "s", 1);
	outbox_return(&outbox, false, NULL, 0);
	take_is(&outbox, "s", 1);
	ck_assert(outbox_answered(&outbox, 1, true)); /* written */
	put(&outbox, OUTBOX_ALERT, "a", 4);
	put(&outbox, OUTBOX_ALERT, "b", 4);
	take_is(&outbox, "a", 2);
	ck_assert_ptr_null(outbox_take(&outbox, 0));
	outbox_finish(&outbox);
}
END_TEST

START_TEST(a_message_that_ends_each_connection_is_given_up)
{
	struct outbox outbox;
	char topic[6] = "";
	outbox_init(&outbox, 100, 1 << 20);
	put(&outbox, OUTBOX_ALERT, "forbidden", 4);
	put(&outbox, OUTBOX_ALERT, "a", 4);
	take_is(&outbox, "forbidden", 1);
	take_is(&outbox, "a", 2);
	ck_assert(!outbox_return(&outbox, true, topic, sizeof(topic))); /* one of them */
	for (int strike = 1; strike <= OUTBOX_STRIKES; strike++) {
		take_is(&outbox, "forbidden", 1);
		ck_assert(!outbox_return(&outbox, false, topic, sizeof(topic))); /* the network */
		take_is(&outbox, "forbidden", 1);
		ck_assert_int_eq(outbox_return(&outbox, true, topic, sizeof(topic)),
			strike == OUTBOX_STRIKES);
	}
	ck_assert_str_eq(topic, "forbi");
	ck_assert_uint_eq(outbox_count(&outbox).dropped[OUTBOX_ALERT], 1);
	ck_assert_uint_eq(outbox_count(&outbox).messages, 1);
	take_is(&outbox, "a", 1);
	outbox_finish(&outbox);
}
END_TEST

START_TEST(a_newer_state_supersedes_the_waiting_one)
{
	struct outbox outbox;
	outbox_init(&outbox, 100, 1 << 20);
	struct outbox_entry entry = {.class = OUTBOX_ALERT,
		.qos = 1,
		.retain = true,
		.replace = true,
		.topic = "state",
		.payload = "old",
		.payload_length = 3};
	outbox_put(&outbox, &entry);
	put(&outbox, OUTBOX_ALERT, "event", 4);
	entry.payload = "newer";
	entry.payload_length = 5;
	outbox_put(&outbox, &entry);
	ck_assert_uint_eq(outbox_count(&outbox).messages, 2);
	take_is(&outbox, "event", 1);
	struct outbox_message *message = outbox_take(&outbox, 0);
	ck_assert_mem_eq(message->payload, "newer", 5);
	/* In flight already: both are sent. */
	outbox_put(&outbox, &entry);
	ck_assert_uint_eq(outbox_count(&outbox).messages, 3);
	outbox_finish(&outbox);
}
END_TEST

START_TEST(a_rejected_message_is_counted)
{
	struct outbox outbox;
	outbox_init(&outbox, 100, 1 << 20);
	put(&outbox, OUTBOX_ALERT, "a1", 4);
	put(&outbox, OUTBOX_ALERT, "a2", 0);
	struct outbox_message *first = outbox_take(&outbox, 0);
	struct outbox_message *second = outbox_take(&outbox, 0);
	ck_assert_ptr_null(second->payload);
	outbox_reject(&outbox, first);
	struct outbox_counts counts = outbox_count(&outbox);
	ck_assert_uint_eq(counts.dropped[OUTBOX_ALERT], 1);
	ck_assert_uint_eq(counts.messages, 1);
	ck_assert_uint_eq(counts.in_flight, 1);
	outbox_finish(&outbox);
}
END_TEST

static int put_kept(struct outbox *outbox, const char *topic, const char *payload, bool retain)
{
	const struct outbox_entry entry = {.class = OUTBOX_ALERT,
		.qos = 1,
		.retain = retain,
		.replace = retain,
		.keep = true,
		.topic = topic,
		.payload = payload,
		.payload_length = strlen(payload)};
	return outbox_put(outbox, &entry);
}

static void *new_memory(void)
{
	return calloc(1, slots_size(OUTBOX_KEPT, OUTBOX_KEPT_SIZE));
}

START_TEST(kept_messages_outlive_the_process_until_they_are_delivered)
{
	void *memory = new_memory();
	struct outbox outbox;
	outbox_init(&outbox, 100, 1 << 20);
	ck_assert_uint_eq(outbox_restore(&outbox, memory), 0);
	ck_assert_int_eq(put_kept(&outbox, "a1", "one", false), 1);
	ck_assert_int_eq(put_kept(&outbox, "state", "old", true), 1);
	ck_assert_int_eq(put_kept(&outbox, "a2", "two", false), 1);
	ck_assert_int_eq(put_kept(&outbox, "state", "", true), 1); /* supersedes */
	ck_assert_int_eq(put(&outbox, OUTBOX_ALERT, "not kept", 4), 0);
	ck_assert_int_eq(put(&outbox, OUTBOX_SUMMARY, "s", 4), 0);
	take_is(&outbox, "a1", 1);
	take_is(&outbox, "a2", 2);
	ck_assert(outbox_answered(&outbox, 1, true));
	ck_assert_int_eq(put_kept(&outbox, "a3", "three", false), 1); /* takes the free place */
	outbox_finish(&outbox); /* as kill -9 would leave it: a2 was in flight */

	outbox_init(&outbox, 100, 1 << 20);
	ck_assert_uint_eq(outbox_restore(&outbox, memory), 3);
	ck_assert_uint_eq(outbox_count(&outbox).messages, 3);
	ck_assert_uint_eq(outbox_count(&outbox).dropped[OUTBOX_ALERT], 0);
	ck_assert_int_eq(put_kept(&outbox, "a4", "four", false), 1);
	static const struct {
		const char *topic, *payload;
		bool retain;
	} rows[] = {{"a2", "two", false}, {"state", "", true}, {"a3", "three", false},
		{"a4", "four", false}};
	for (int i = 0; i < 4; i++) {
		struct outbox_message *message = outbox_take(&outbox, 0);
		ck_assert_str_eq(message->topic, rows[i].topic);
		ck_assert_uint_eq(message->payload_length, strlen(rows[i].payload));
		ck_assert_mem_eq(message->payload ? message->payload : "", rows[i].payload,
			message->payload_length);
		ck_assert_int_eq(message->qos, 1);
		ck_assert(message->retain == rows[i].retain);
		message->mid = i + 1;
	}
	for (int i = 0; i < 4; i++) {
		ck_assert(outbox_answered(&outbox, i + 1, true));
	}
	outbox_finish(&outbox);
	outbox_init(&outbox, 100, 1 << 20);
	ck_assert_uint_eq(outbox_restore(&outbox, memory), 0);
	outbox_finish(&outbox);
	free(memory);
}
END_TEST

START_TEST(what_found_no_place_in_the_table_counts_as_dropped_by_the_next_process)
{
	void *memory = new_memory();
	struct outbox outbox;
	outbox_init(&outbox, 1000, 1 << 20);
	outbox_restore(&outbox, memory);
	static char huge[OUTBOX_KEPT_SIZE + 1];
	memset(huge, 'x', OUTBOX_KEPT_SIZE);
	ck_assert_int_eq(put_kept(&outbox, "huge", huge, false), 0);
	for (int i = 0; i < OUTBOX_KEPT; i++) {
		ck_assert_int_eq(put_kept(&outbox, "a", "x", false), 1);
	}
	ck_assert_int_eq(put_kept(&outbox, "last", "x", false), 0);
	ck_assert_uint_eq(outbox_count(&outbox).dropped[OUTBOX_ALERT], 0); /* they are still here */
	take_is(&outbox, "huge", 1);
	ck_assert(outbox_answered(&outbox, 1, true));
	outbox_finish(&outbox);

	outbox_init(&outbox, 100, 1 << 20); /* a smaller limit than before, too */
	ck_assert_uint_eq(outbox_restore(&outbox, memory), 100);
	ck_assert_uint_eq(outbox_count(&outbox).dropped[OUTBOX_ALERT], 1 + OUTBOX_KEPT - 100);
	outbox_finish(&outbox);
	outbox_init(&outbox, 1000, 1 << 20);
	ck_assert_uint_eq(outbox_restore(&outbox, memory), 100);
	ck_assert_uint_eq(outbox_count(&outbox).dropped[OUTBOX_ALERT], 0); /* told once */
	outbox_finish(&outbox);
	free(memory);
}
END_TEST

START_TEST(a_detached_table_is_not_touched)
{
	size_t size = slots_size(OUTBOX_KEPT, OUTBOX_KEPT_SIZE);
	void *memory = new_memory(), *copy = malloc(size);
	struct outbox outbox;
	outbox_init(&outbox, 100, 1 << 20);
	outbox_restore(&outbox, memory);
	put_kept(&outbox, "a1", "one", false);
	take_is(&outbox, "a1", 1);
	memcpy(copy, memory, size);
	outbox_detach(&outbox);
	ck_assert(outbox_answered(&outbox, 1, true));
	put_kept(&outbox, "a2", "two", false);
	ck_assert_mem_eq(memory, copy, size);
	outbox_finish(&outbox);
	free(memory);
	free(copy);
}
END_TEST

START_TEST(damage_of_the_table_is_left_out_and_counted)
{
	size_t size = slots_size(OUTBOX_KEPT, OUTBOX_KEPT_SIZE);
	unsigned char *memory = new_memory();
	srand(1);
	for (int round = 0; round < 2000; round++) {
		struct outbox outbox;
		memset(memory, 0, size);
		outbox_init(&outbox, 1000, 1 << 20);
		outbox_restore(&outbox, memory);
		for (int i = 0; i < 5; i++) {
			put_kept(&outbox, "topic", "payload", false);
		}
		outbox_finish(&outbox);
		/* the header, the first places; now and then everything */
		size_t within = round % 10 == 0 ? size : 64 + 64 * (size_t)(round % 100);
		for (int i = 0; i < 1 + round % 200; i++) {
			memory[(size_t)rand() % within] = (unsigned char)rand();
		}
		outbox_init(&outbox, 1000, 1 << 20);
		size_t restored = outbox_restore(&outbox, memory);
		ck_assert_uint_le(restored, 5);
		for (struct outbox_message *message; (message = outbox_take(&outbox, 0));) {
			ck_assert_str_eq(message->topic, "topic");
			ck_assert_uint_eq(message->payload_length, 7);
			message->mid = 1;
			outbox_answered(&outbox, 1, true);
		}
		outbox_finish(&outbox);
	}
	memset(memory, 0xff, size);
	struct outbox outbox;
	outbox_init(&outbox, 1000, 1 << 20);
	ck_assert_uint_eq(outbox_restore(&outbox, memory), 0);
	ck_assert_int_eq(put_kept(&outbox, "a", "x", false), 1);
	outbox_finish(&outbox);
	free(memory);
}
END_TEST
