/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/publish/payload/topics.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/publish/outbox/retained.h"
#include "tests/unit/unit.h"

TEST_TIMEOUT(60);

START_TEST(topics_are_those_of_the_contract)
{
	struct topics topics;
	char topic[TOPIC_SIZE];
	topics_init(&topics, "edgeprof", "", "nano-7");
	topic_plain(&topics, "status", topic);
	ck_assert_str_eq(topic, "edgeprof/nano-7/status");
	topic_stage(&topics, "cam", "infer", topic);
	ck_assert_str_eq(topic, "edgeprof/nano-7/stage/cam/infer");
	topic_alert(&topics, "hot", "CPU-therm:x", topic);
	ck_assert_str_eq(topic, "edgeprof/nano-7/alert/hot/CPU-therm:x");
}
END_TEST

START_TEST(ids_and_prefixes_are_cleaned)
{
	static const struct {
		const char *prefix, *id, *host, *base;
	} rows[] = {
		{"edgeprof", "a.b c/d+", "h", "edgeprof/a_b_c_d_"},
		{"", "", "host.local", "edgeprof/host_local"},
		{"site/line 4/#", "id", "h", "site/line_4/_/id"},
		{"//a//", "", "", "a/_"},
		{"$SYS", "x", "h", "_SYS/x"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topics topics;
		topics_init(&topics, rows[i].prefix, rows[i].id, rows[i].host);
		ck_assert_str_eq(topics.base, rows[i].base);
	}
}
END_TEST

static uint32_t random_state = 1;

static uint32_t random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	return random_state ^= random_state << 5;
}

static void random_text(char *text, size_t size)
{
	/* Mostly short: a million of them are to be tried. */
	size_t length = random_number() % (random_number() % 16 && size > 24 ? 24 : size);
	for (size_t i = 0; i < length; i++) {
		/* The bytes that would hurt are as frequent as all others together. */
		static const char evil[] = "/+#:$\n\r\x01\x7f\"\\.";
		uint32_t number = random_number();
		text[i] = number & 1 ? evil[(number >> 1) % (sizeof(evil) - 1)]
				     : (char)(1 + (number >> 1) % 255);
	}
	text[length] = '\0';
}

static size_t slashes(const char *text)
{
	size_t count = 0;
	for (; (text = strchr(text, '/')); text++) {
		count++;
	}
	return count;
}

/* One answer for all: check writes to a pipe at every ck_assert. */
static bool topic_good(const char *topic, const char *start, size_t levels)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-:/";
	size_t length = strlen(topic);
	return topic[strspn(topic, allowed)] == '\0' && slashes(topic) == levels - 1 &&
	       !strstr(topic, "//") && topic[length - 1] != '/' && length < TOPIC_SIZE - 1 &&
	       strncmp(topic, start, strlen(start)) == 0;
}

START_TEST(no_name_whatever_breaks_out_of_its_level)
{
	struct topics topics;
	for (int i = 0; i < campaign(200000, 1000000); i++) {
		char one[300], two[300], topic[TOPIC_SIZE];
		random_text(one, sizeof(one));
		random_text(two, sizeof(two));
		if (i % 32 == 0) {
			char id[64];
			random_text(id, sizeof(id));
			topics_init(&topics, "edgeprof", id, one);
			ck_assert_ptr_null(strpbrk(topics.id, ".:/"));
		}
		char start[TOPICS_BASE + 8];
		snprintf(start, sizeof(start), "%s/%s/", topics.base, i & 1 ? "stage" : "alert");
		if (i & 1) {
			topic_stage(&topics, one, two, topic);
		} else {
			topic_alert(&topics, one, two, topic);
		}
		if (!topic_good(topic, start, 5)) {
			ck_abort_msg("%s", topic);
		}
	}
}
END_TEST

static const char *stale(const struct retained *retained)
{
	for (size_t i = 0; i < retained->count; i++) {
		if (!retained->entry[i].current) {
			return retained->entry[i].topic;
		}
	}
	return NULL;
}

START_TEST(retained_topics_become_stale_until_added_again)
{
	static struct retained retained;
	ck_assert_int_eq(retained_add(&retained, "a"), 0);
	ck_assert_int_eq(retained_add(&retained, "b"), 0);
	ck_assert_int_eq(retained_add(&retained, "a"), 0);
	ck_assert_uint_eq(retained.count, 2);
	ck_assert_ptr_null(stale(&retained));
	retained_unmark(&retained);
	retained_add(&retained, "b");
	ck_assert_str_eq(stale(&retained), "a");
	retained_remove(&retained, stale(&retained));
	ck_assert_ptr_null(stale(&retained));
	retained_expire(&retained, "b");
	ck_assert_str_eq(stale(&retained), "b");
	ck_assert_uint_eq(retained.count, 1);
	retained_remove(&retained, "absent");
	retained_finish(&retained);
}
END_TEST

START_TEST(retained_topics_are_remembered_by_the_next_process)
{
	void *memory = calloc(1, slots_size(RETAINED_KEPT, RETAINED_KEPT_SIZE));
	static struct retained before, after;
	ck_assert_uint_eq(retained_restore(&before, memory), 0);
	char topic[400];
	for (int i = 0; i < 3; i++) {
		snprintf(topic, sizeof(topic), "edgeprof/x/alert/hot/%d", i);
		ck_assert_int_eq(retained_add(&before, topic), 0);
	}
	retained_remove(&before, "edgeprof/x/alert/hot/1");
	memset(topic, 'l', 300); /* too long for the table: it is known, but not kept */
	topic[300] = '\0';
	ck_assert_int_eq(retained_add(&before, topic), 0);
	retained_finish(&before);

	ck_assert_uint_eq(retained_restore(&after, memory), 2);
	ck_assert_str_eq(stale(&after), "edgeprof/x/alert/hot/0");
	ck_assert_int_eq(retained_add(&after, "edgeprof/x/alert/hot/0"), 0);
	ck_assert_str_eq(stale(&after), "edgeprof/x/alert/hot/2");
	retained_finish(&after);
	free(memory);
}
END_TEST

START_TEST(a_topic_that_is_none_of_ours_is_not_restored)
{
	static const char *const topics[] = {
		"#", "a/+/b", "", "$SYS/x y", "a\nb", "caf\xc3\xa9", "a b"};
	void *memory = calloc(1, slots_size(RETAINED_KEPT, RETAINED_KEPT_SIZE));
	struct slots slots;
	slots_init(&slots, memory, RETAINED_KEPT, RETAINED_KEPT_SIZE);
	for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
		const struct slots_part part = {topics[i], strlen(topics[i]) + 1};
		ck_assert_int_ge(slots_add(&slots, &part, 1), 0);
	}
	const struct slots_part unended = {"abc", 3};
	slots_add(&slots, &unended, 1);
	static struct retained retained;
	ck_assert_uint_eq(retained_restore(&retained, memory), 0);
	uint64_t serial = 0;
	ck_assert_int_eq(slots_next(&slots, &serial), SLOT_NONE);
	free(memory);
}
END_TEST
