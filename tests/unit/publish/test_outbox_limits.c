/* SPDX-License-Identifier: Apache-2.0 */
/* What the outbox may hold: memory, not only payloads. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/publish/outbox_fixture.h"
#include "tests/unit/unit.h"

static const uint64_t S = 1000000000;

START_TEST(summaries_have_half_of_the_bytes_but_one_that_is_larger_may_wait_alone)
{
	struct outbox outbox;
	outbox_init(&outbox, 100, 8192);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(put(&outbox, OUTBOX_SUMMARY, "s", 600), 0);
		ck_assert_uint_le(outbox_count(&outbox).bytes, 4096);
	}
	ck_assert_uint_ge(outbox_count(&outbox).messages, 5);
	ck_assert_int_eq(put(&outbox, OUTBOX_ALERT, "a", 4), 0);
	ck_assert_int_eq(put(&outbox, OUTBOX_SUMMARY, "large", 4096), 0);
	ck_assert_uint_eq(outbox_count(&outbox).messages, 2);
	take_is(&outbox, "a", 1);
	take_is(&outbox, "large", 2);
	outbox_finish(&outbox);
}
END_TEST

/* What malloc gives for a message is what it counts: the limit is one of memory. */
static int put_state(struct outbox *outbox, const char *subject, int number, bool retain)
{
	char payload[16];
	snprintf(payload, sizeof(payload), "%d", number);
	const struct outbox_entry entry = {.class = OUTBOX_ALERT,
		.qos = 1,
		.retain = retain,
		.replace = retain,
		.topic = retain ? subject : "event/alert",
		.subject = subject,
		.payload = payload,
		.payload_length = strlen(payload)};
	return outbox_put(outbox, &entry);
}

START_TEST(repeated_states_make_room_and_the_newest_of_each_instance_stays)
{
	struct outbox outbox;
	outbox_init(&outbox, 6, 1 << 20);
	for (int number = 0; number < 3; number++) {
		ck_assert_int_eq(put(&outbox, OUTBOX_SUMMARY, "s", 10), 0);
	}
	ck_assert_int_eq(put_state(&outbox, "hot/cpu", 1, false), 0);
	for (int number = 1; number <= 20; number++) { /* it flaps */
		ck_assert_int_eq(put_state(&outbox, "hot/gpu", number, false), 0);
		ck_assert_int_eq(put_state(&outbox, "hot/gpu", number, true), 0);
	}
	ck_assert_int_eq(put_state(&outbox, "low/memory", 1, false), 0);
	struct outbox_counts counts = outbox_count(&outbox);
	ck_assert_uint_eq(counts.dropped[OUTBOX_SUMMARY], 3);
	ck_assert_uint_eq(counts.messages, 6);
	ck_assert_uint_eq(counts.dropped[OUTBOX_ALERT], 20 - 3);
	/* in order: the one of an instance that does not flap, the newest of the one that does */
	static const char *const left[] = {"1", "18", "19", "20", "20", "1"};
	for (size_t i = 0; i < 6; i++) {
		struct outbox_message *message = outbox_take(&outbox, 0);
		ck_assert_ptr_nonnull(message);
		ck_assert_uint_eq(message->payload_length, strlen(left[i]));
		ck_assert_int_eq(memcmp(message->payload, left[i], strlen(left[i])), 0);
	}
	outbox_finish(&outbox);
}
END_TEST

START_TEST(an_event_makes_room_when_its_state_is_there_and_no_state_is_ever_lost)
{
	struct outbox outbox;
	char subject[16];
	outbox_init(&outbox, 8, 1 << 20);
	for (int i = 0; i < 8; i++) {
		snprintf(subject, sizeof(subject), "hot/%d", i);
		ck_assert_int_eq(put_state(&outbox, subject, i, false), 0);
		ck_assert_int_eq(put_state(&outbox, subject, i, true), 0);
	}
	ck_assert_uint_eq(outbox_count(&outbox).dropped[OUTBOX_ALERT], 8);
	/* eight states of eight instances: there is nothing that could go for a ninth */
	ck_assert_int_eq(put_state(&outbox, "hot/8", 8, true), -ENOSPC);
	ck_assert_int_eq(put_state(&outbox, "hot/3", 33, true), 0);
	ck_assert_uint_eq(outbox_count(&outbox).messages, 8);
	for (int i = 0; i < 8; i++) {
		ck_assert(outbox_take(&outbox, 0)->retain);
	}
	outbox_finish(&outbox);
}
END_TEST

static void put_event(struct outbox *outbox, const char *subject, uint64_t t_ns)
{
	const struct outbox_entry entry = {.class = OUTBOX_ALERT,
		.qos = 1,
		.keep = true,
		.t_ns = t_ns,
		.topic = "event/alert",
		.subject = subject};
	outbox_put(outbox, &entry);
}

START_TEST(what_is_given_up_is_counted_by_rule_once_and_survives_the_process)
{
	struct outbox outbox;
	struct missed memory = {.alerts = 0}, missed;
	void *slots = calloc(1, slots_size(OUTBOX_KEPT, OUTBOX_KEPT_SIZE));
	outbox_init(&outbox, 2, 1 << 20);
	outbox_restore_missed(&outbox, &memory);
	outbox_restore(&outbox, slots);
	ck_assert(!outbox_take_missed(&outbox, &missed));
	put_event(&outbox, "p/alert/x/alert/hot/cpu", 30);
	put_event(&outbox, "p/alert/x/alert/hot/cpu", 40);
	put_event(&outbox, "p/alert/x/alert/hot/cpu", 50);  /* the first goes */
	put_event(&outbox, "p/alert/x/alert/low/disk", 60); /* the second */
	ck_assert_uint_eq(memory.first_ns, 30);
	outbox_finish(&outbox);
	outbox_init(&outbox, 2, 1 << 20); /* killed: what waits, and its times, are there */
	memory.rule[1].name[0] = '/';
	outbox_restore_missed(&outbox, &memory);
	ck_assert_uint_eq(outbox_restore(&outbox, slots), 2);
	put_event(&outbox, "p/alert/x/alert/low/disk", 70);
	ck_assert(outbox_take_missed(&outbox, &missed));
	ck_assert_uint_eq(missed.first_ns, 30);
	ck_assert_uint_eq(missed.last_ns, 60);
	ck_assert_uint_eq(missed.alerts, 3);
	ck_assert_uint_eq(missed.summaries + missed.others, 0);
	ck_assert_str_eq(missed.rule[0].name, "hot");
	ck_assert_uint_eq(missed.rule[0].count, 2);
	ck_assert_str_eq(missed.rule[1].name, "low");
	ck_assert_uint_eq(missed.rule[1].count, 1);
	ck_assert_str_eq(missed.rule[2].name, "");
	while (outbox_take(&outbox, 0)) {
	}
	ck_assert(outbox_answered(&outbox, 0, true)); /* delivered: not missed */
	ck_assert(!outbox_take_missed(&outbox, &missed));
	outbox_finish(&outbox);
	free(slots);
}
END_TEST

START_TEST(a_refused_report_of_what_was_missed_is_not_missed)
{
	struct outbox outbox;
	struct missed missed;
	const struct outbox_entry entry = {
		.class = OUTBOX_ALERT, .qos = 1, .t_ns = 30, .topic = "edgeprof/x/missed"};
	outbox_init(&outbox, 2, 1 << 20);
	ck_assert_int_eq(outbox_put(&outbox, &entry), 0);
	struct outbox_message *message = outbox_take(&outbox, 0);
	ck_assert_ptr_nonnull(message);
	message->mid = 7;
	ck_assert(outbox_answered(&outbox, 7, false));
	ck_assert(!outbox_take_missed(&outbox, &missed));
	outbox_finish(&outbox);
}
END_TEST

START_TEST(what_an_earlier_process_left_makes_room_for_newer_states)
{
	struct outbox outbox;
	void *memory = calloc(1, slots_size(OUTBOX_KEPT, OUTBOX_KEPT_SIZE));
	outbox_init(&outbox, 4, 1 << 20);
	outbox_restore(&outbox, memory);
	for (int i = 0; i < 4; i++) {
		const struct outbox_entry entry = {.class = OUTBOX_ALERT,
			.qos = 1,
			.keep = true,
			.topic = "event/alert",
			.subject = "hot/cpu"};
		ck_assert_int_eq(outbox_put(&outbox, &entry), 1);
	}
	outbox_finish(&outbox);
	outbox_init(&outbox, 4, 1 << 20);
	ck_assert_uint_eq(outbox_restore(&outbox, memory), 4);
	ck_assert_int_eq(put_state(&outbox, "hot/cpu", 5, false), 0);
	ck_assert_int_eq(put_state(&outbox, "hot/cpu", 6, true), 0);
	ck_assert_uint_eq(outbox_count(&outbox).dropped[OUTBOX_ALERT], 2);
	outbox_finish(&outbox);
	free(memory);
}
END_TEST

START_TEST(sizes_are_those_of_the_allocator)
{
	struct outbox outbox;
	outbox_init(&outbox, 300, 1 << 20);
	size_t bytes = 0;
	for (size_t length = 0; length < 200; length++) {
		put(&outbox, OUTBOX_ALERT, "a", length);
		const struct outbox_message *message =
			TAILQ_LAST(&outbox.waiting[OUTBOX_ALERT].head, outbox_head);
		bytes += malloc_usable_size((void *)message) + sizeof(size_t);
	}
	/* a sanitizer's allocator tells of less: only what was asked for */
	ck_assert_uint_ge(outbox_count(&outbox).bytes, bytes - 200 * sizeof(size_t));
	ck_assert_uint_le(outbox_count(&outbox).bytes, bytes + 200 * 2 * sizeof(size_t));
	outbox_finish(&outbox);
}
END_TEST

START_TEST(few_bytes_are_in_flight_but_a_large_message_flies_alone)
{
	static char large[OUTBOX_FLIGHT_BYTES + 1];
	struct outbox outbox;
	outbox_init(&outbox, 100, 1 << 20);
	const struct outbox_entry entry = {.class = OUTBOX_ALERT,
		.qos = 1,
		.topic = "large",
		.payload = large,
		.payload_length = sizeof(large)};
	ck_assert(!outbox_count(&outbox).ready);
	ck_assert_int_eq(outbox_put(&outbox, &entry), 0);
	put(&outbox, OUTBOX_ALERT, "a", 4);
	ck_assert(outbox_count(&outbox).ready);
	take_is(&outbox, "large", 1);
	ck_assert_ptr_null(outbox_take(&outbox, 0)); /* libmosquitto holds its copy */
	ck_assert(!outbox_count(&outbox).ready);     /* so that nobody asks again and again */
	ck_assert(outbox_answered(&outbox, 1, true));
	ck_assert(outbox_count(&outbox).ready);
	take_is(&outbox, "a", 2);
	for (int i = 0; i < OUTBOX_IN_FLIGHT; i++) {
		put(&outbox, OUTBOX_ALERT, "a", 4000);
	}
	while (outbox_take(&outbox, 0)) {
		ck_assert_uint_le(outbox.flying.bytes, OUTBOX_FLIGHT_BYTES);
	}
	outbox_return(&outbox, false, NULL, 0);
	ck_assert_uint_eq(outbox.flying.bytes + outbox.flying.messages, 0);
	ck_assert_uint_eq(outbox.waiting[OUTBOX_ALERT].messages, OUTBOX_IN_FLIGHT + 1);
	ck_assert_uint_eq(outbox.waiting[OUTBOX_ALERT].bytes, outbox_count(&outbox).bytes);
	outbox_finish(&outbox);
}
END_TEST

START_TEST(what_the_broker_refused_is_dropped_not_delivered)
{
	struct outbox outbox;
	outbox_init(&outbox, 100, 1 << 20);
	put(&outbox, OUTBOX_ALERT, "a", 4);
	put(&outbox, OUTBOX_ALERT, "b", 4);
	take_is(&outbox, "a", 1);
	take_is(&outbox, "b", 2);
	ck_assert(outbox_answered(&outbox, 1, false));
	ck_assert(!outbox_answered(&outbox, 1, false));
	ck_assert(outbox_answered(&outbox, 2, true));
	struct outbox_counts counts = outbox_count(&outbox);
	ck_assert_uint_eq(counts.delivered, 1);
	ck_assert_uint_eq(counts.dropped[OUTBOX_ALERT], 1);
	ck_assert_uint_eq(counts.messages + counts.bytes + counts.in_flight, 0);
	outbox_finish(&outbox);
}
END_TEST

/* Takes and delivers what may be sent at this time: how many messages. */
static unsigned send_at(struct outbox *outbox, uint64_t now_ns)
{
	unsigned sent = 0;
	for (struct outbox_message *message; (message = outbox_take(outbox, now_ns)); sent++) {
		message->mid = 1;
		ck_assert(outbox_answered(outbox, 1, true));
	}
	return sent;
}

static void fill(struct outbox *outbox, unsigned messages)
{
	outbox_init(outbox, messages, 1 << 20);
	for (unsigned i = 0; i < messages; i++) {
		ck_assert_int_eq(put(outbox, OUTBOX_ALERT, "a", 4), 0);
	}
	outbox_pace(outbox);
}

START_TEST(what_waited_goes_out_evenly_after_the_first_few)
{
	struct outbox outbox;
	uint64_t now_ns = 1000 * S;
	fill(&outbox, 512);
	unsigned sent = 0, in_second[60] = {0};
	for (uint64_t begin_ns = now_ns; sent < 512; now_ns += 1000000) {
		unsigned more = send_at(&outbox, now_ns);
		in_second[(now_ns - begin_ns) / S] += more;
		sent += more;
	}
	ck_assert_uint_le(in_second[0], OUTBOX_PACE_AT_ONCE + OUTBOX_PACE_PER_S);
	ck_assert_uint_ge(in_second[0], OUTBOX_PACE_AT_ONCE + OUTBOX_PACE_PER_S - 1);
	for (int i = 1; i < 60; i++) {
		ck_assert_uint_le(in_second[i], OUTBOX_PACE_PER_S);
	}
	ck_assert_uint_le((now_ns - 1000 * S) / S, 26);
	/* what comes later is not held up */
	put(&outbox, OUTBOX_ALERT, "a", 4);
	put(&outbox, OUTBOX_ALERT, "a", 4);
	ck_assert_uint_eq(outbox_count(&outbox).ready_ns, 0);
	ck_assert_uint_eq(send_at(&outbox, now_ns), 2);
	outbox_finish(&outbox);
}
END_TEST

START_TEST(a_pause_saves_no_burst_up)
{
	struct outbox outbox;
	fill(&outbox, 100);
	ck_assert_uint_eq(outbox_count(&outbox).ready_ns, 0);
	ck_assert_uint_eq(send_at(&outbox, S), OUTBOX_PACE_AT_ONCE);
	ck_assert_uint_eq(outbox_count(&outbox).ready_ns, S + S / OUTBOX_PACE_PER_S);
	ck_assert_uint_eq(send_at(&outbox, 60 * S), 1);
	ck_assert_uint_eq(outbox_count(&outbox).ready_ns, 60 * S + S / OUTBOX_PACE_PER_S);
	outbox_finish(&outbox);
}
END_TEST
