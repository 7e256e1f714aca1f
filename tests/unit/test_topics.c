#include "daemon/publish/topics.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/publish/retained.h"

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

static void random_text(char *text, size_t size)
{
	size_t length = (size_t)rand() % size;
	for (size_t i = 0; i < length; i++) {
		/* The bytes that would hurt are as frequent as all others together. */
		static const char evil[] = "/+#:$\n\r\x01\x7f\"\\.";
		text[i] = rand() % 2 ? evil[(size_t)rand() % (sizeof(evil) - 1)]
				     : (char)(1 + rand() % 255);
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

static void check_topic(const char *topic, size_t levels)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-:/";
	ck_assert_msg(topic[strspn(topic, allowed)] == '\0', "%s", topic);
	ck_assert_uint_eq(slashes(topic), levels - 1);
	ck_assert_ptr_null(strstr(topic, "//"));
	ck_assert_int_ne(topic[strlen(topic) - 1], '/');
	ck_assert_uint_lt(strlen(topic), TOPIC_SIZE - 1);
}

START_TEST(no_name_whatever_breaks_out_of_its_level)
{
	srand(1);
	for (int i = 0; i < 100000; i++) {
		char id[64], host[64], one[300], two[300], topic[TOPIC_SIZE];
		random_text(id, sizeof(id));
		random_text(host, sizeof(host));
		random_text(one, sizeof(one));
		random_text(two, sizeof(two));
		struct topics topics;
		topics_init(&topics, "edgeprof", id, host);
		topic_stage(&topics, one, two, topic);
		check_topic(topic, 5);
		topic_alert(&topics, one, two, topic);
		check_topic(topic, 5);
		ck_assert_ptr_null(strpbrk(topics.id, ".:/"));
	}
}
END_TEST

START_TEST(retained_topics_become_stale_until_added_again)
{
	struct retained retained = {.count = 0};
	ck_assert_int_eq(retained_add(&retained, "a"), 0);
	ck_assert_int_eq(retained_add(&retained, "b"), 0);
	ck_assert_int_eq(retained_add(&retained, "a"), 0);
	ck_assert_uint_eq(retained.count, 2);
	ck_assert_ptr_null(retained_stale(&retained));
	retained_unmark(&retained);
	retained_add(&retained, "b");
	const char *stale = retained_stale(&retained);
	ck_assert_str_eq(stale, "a");
	retained_remove(&retained, stale);
	ck_assert_ptr_null(retained_stale(&retained));
	ck_assert_uint_eq(retained.count, 1);
	retained_remove(&retained, "absent");
	retained_finish(&retained);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("topics");
	TCase *tests = tcase_create("topics");
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, topics_are_those_of_the_contract);
	tcase_add_test(tests, ids_and_prefixes_are_cleaned);
	tcase_add_test(tests, no_name_whatever_breaks_out_of_its_level);
	tcase_add_test(tests, retained_topics_become_stale_until_added_again);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
