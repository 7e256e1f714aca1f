/* SPDX-License-Identifier: Apache-2.0 */
/* A broker that is away for a simulated week: what waits, what is kept, what it costs, and what the
 * broker gets when it is back. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/publish/mqtt/link.h"
#include "tests/unit/unit.h"

#define S UINT64_C(1000000000)

enum {
	WEEK_S = 7 * 24 * 3600,
	SUMMARY_S = 10,
	ALERT_S = 3600, /* fires and ends each hour */
	BYTES = 768 << 10,
	MESSAGES = 512,
};

static struct outbox outbox;
static void *memory;

static void setup(void)
{
	memory = calloc(1, slots_size(OUTBOX_KEPT, OUTBOX_KEPT_SIZE));
	outbox_init(&outbox, MESSAGES, BYTES);
	outbox_restore(&outbox, memory);
}

static void teardown(void)
{
	outbox_finish(&outbox);
	free(memory);
}

static int put(enum outbox_class class, unsigned second)
{
	char payload[700];
	memset(payload, ' ', sizeof(payload));
	int used = snprintf(payload, sizeof(payload), "{\"ts_ms\":%u000", second);
	payload[used] = '}';
	const struct outbox_entry entry = {.class = class,
		.qos = class == OUTBOX_ALERT,
		.keep = class == OUTBOX_ALERT,
		.topic = class == OUTBOX_ALERT ? "edgeprof/n/event/alert" : "edgeprof/n/summary",
		.payload = payload,
		.payload_length = sizeof(payload)};
	return outbox_put(&outbox, &entry);
}

static double cpu_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static unsigned seconds_of(const struct outbox_message *message)
{
	return (unsigned)(strtoull((const char *)message->payload + strlen("{\"ts_ms\":"), NULL,
				  10) /
			  1000);
}

TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_TEST(a_week_away_is_bounded_and_ends_in_order)
{
	unsigned alerts = 0, summaries = 0;
	double begin_s = cpu_s(), first_day_s = 0;
	for (unsigned second = SUMMARY_S; second <= WEEK_S; second += SUMMARY_S) {
		summaries++;
		put(OUTBOX_SUMMARY, second);
		if (second % ALERT_S == 0) {
			alerts += 2;
			ck_assert_int_ge(put(OUTBOX_ALERT, second), 0);
			ck_assert_int_ge(put(OUTBOX_ALERT, second + 1), 0);
		}
		struct outbox_counts counts = outbox_count(&outbox);
		ck_assert_uint_le(counts.messages, MESSAGES);
		ck_assert_uint_le(counts.bytes, BYTES);
		if (second == 24 * 3600) {
			first_day_s = cpu_s() - begin_s;
		}
	}
	double all_s = cpu_s() - begin_s;
	struct outbox_counts counts = outbox_count(&outbox);
	printf("a week: %u summaries, %u alerts, %zu messages wait in %zu bytes, %" PRIu64
	       " summaries dropped, table %zu bytes, %.1f us a message\n",
		summaries, alerts, counts.messages, counts.bytes, counts.dropped[OUTBOX_SUMMARY],
		slots_size(OUTBOX_KEPT, OUTBOX_KEPT_SIZE), all_s * 1e6 / (summaries + alerts));
	ck_assert_uint_eq(counts.messages, MESSAGES);
	ck_assert_uint_eq(counts.dropped[OUTBOX_ALERT], 0);
	ck_assert_uint_eq(counts.dropped[OUTBOX_SUMMARY], summaries + alerts - MESSAGES);
	ck_assert_uint_eq(outbox.unkept, alerts - OUTBOX_KEPT); /* told if the process dies */
	/* the seventh day costs what the first did: nothing is walked that grows */
	ck_assert_msg(all_s < 7 * first_day_s * 3 + 0.5, "%f %f", first_day_s, all_s);

	/* back: every alert first, then the newest summaries, all at their own time */
	unsigned hour = 0, got = 0, last = 0;
	int mid = 1;
	for (struct outbox_message *message; (message = outbox_take(&outbox, 0)); got++) {
		if (got < alerts) {
			hour += got % 2 == 0;
			ck_assert_int_eq(message->class, OUTBOX_ALERT);
			ck_assert_uint_eq(seconds_of(message), hour * ALERT_S + got % 2);
		} else {
			ck_assert_int_eq(message->class, OUTBOX_SUMMARY);
			ck_assert_uint_gt(seconds_of(message), last);
			last = seconds_of(message);
		}
		message->mid = mid;
		ck_assert(outbox_answered(&outbox, mid++, true));
	}
	ck_assert_uint_eq(got, MESSAGES);
	ck_assert_uint_eq(last, WEEK_S);
	counts = outbox_count(&outbox);
	ck_assert_uint_eq(counts.delivered, alerts);
	ck_assert_uint_eq(counts.messages + counts.bytes, 0);
	ck_assert_uint_eq(outbox.unkept, 0);
}
END_TEST

START_TEST(alerts_beyond_the_limit_are_counted_not_kept)
{
	for (unsigned i = 0; i < 10000; i++) {
		put(OUTBOX_ALERT, i);
	}
	struct outbox_counts counts = outbox_count(&outbox);
	ck_assert_uint_eq(counts.messages, MESSAGES);
	ck_assert_uint_eq(counts.dropped[OUTBOX_ALERT], 10000 - MESSAGES);
	ck_assert_uint_eq(seconds_of(outbox_take(&outbox, 0)), 0); /* the oldest is the cause */
}
END_TEST

START_TEST(a_week_of_attempts_is_about_twenty_thousand)
{
	uint64_t t_ns = 0;
	unsigned attempts = 0, first_minute = 0;
	while (t_ns < WEEK_S * S) {
		t_ns += mqtt_link_backoff_ns(S, 60 * S, attempts < 32 ? attempts : 32);
		attempts++;
		first_minute += t_ns < 60 * S;
	}
	printf("a week: %u attempts to connect, %u in the first minute\n", attempts, first_minute);
	ck_assert_uint_ge(attempts, 19000);
	ck_assert_uint_le(attempts, 21500); /* 30 s is the mean of 0..60 */
	ck_assert_uint_le(first_minute, 40);
}
END_TEST
