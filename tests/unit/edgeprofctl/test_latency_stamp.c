/* SPDX-License-Identifier: Apache-2.0 */
#include "client/edgeprofctl/mqtt/mqtt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#define US 1795309546123456.0

static enum stamp stamp_of(const char *text, const char *key, double *us)
{
	bool unsynchronised;
	/* as a heap block, so that ASan sees a read behind the end */
	size_t length = strlen(text);
	char *bytes = malloc(length + (length == 0));
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, text, length);
	enum stamp stamp = latency_stamp(bytes, length, key, us, &unsynchronised);
	free(bytes);
	return stamp;
}

START_TEST(the_convention_and_keys_are_found)
{
	static const struct {
		const char *text, *key;
		double us;
	} cases[] = {
		{"{\"capture_us\":1795309546123456}", NULL, US},
		{"{\"capture_ts_ms\":1795309546123}", NULL, 1795309546123000.0},
		{"{\"schema\":\"x\",\"ts_ms\":1795309546123}", NULL, 1795309546123000.0},
		{"{\"ts_ms\":1,\"capture_us\":1795309546123456}", NULL, US},
		{"{\"capture_us\":\"soon\",\"ts_ms\":1795309546123}", NULL, 1795309546123000.0},
		{"{\"a\":{\"b\":{\"t_s\":1795309546.5}}}", "a.b.t_s", 1795309546500000.0},
		{"{\"t\":1795309546.5}", "t", 1795309546500000.0},
		{"{\"t\":1795309546123}", "t", 1795309546123000.0},
		{"{\"t\":1795309546123456}", "t", US},
		{"{\"t\":1795309546123456000}", "t", US},
		{"{\"t_ns\":1795309546123456000}", "t_ns", US},
		{"1795309546123456", NULL, US},
		{"1795309546.5\n", NULL, 1795309546500000.0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double us = NAN;
		ck_assert_msg(stamp_of(cases[i].text, cases[i].key, &us) == STAMP_FOUND, "%s",
			cases[i].text);
		ck_assert_double_eq_tol(us, cases[i].us, 0.5);
	}
}
END_TEST

START_TEST(what_is_none_is_none)
{
	static const struct {
		const char *text, *key;
		enum stamp stamp;
	} cases[] = {
		{"", NULL, STAMP_MALFORMED},
		{"{}", NULL, STAMP_NONE},
		{"{\"capture_us\":null}", NULL, STAMP_NONE},
		{"{\"capture_us\":1e999}", NULL, STAMP_NONE},
		{"{\"capture_us\":NaN}", NULL, STAMP_MALFORMED},
		{"{\"capture_us\":1}garbage", NULL, STAMP_MALFORMED},
		{"{\"capture_us\":1,\"capture_us\":2}", NULL, STAMP_MALFORMED},
		{"[1795309546123456]", NULL, STAMP_MALFORMED},
		{"nan", NULL, STAMP_MALFORMED},
		{"inf", NULL, STAMP_MALFORMED},
		{"0x1p50", NULL, STAMP_MALFORMED},
		{"1.2.3", NULL, STAMP_MALFORMED},
		{"42", NULL, STAMP_NONE}, /* no time in any unit */
		{"99999999999999999999999999999999", NULL, STAMP_NONE},
		{"online", NULL, STAMP_MALFORMED},
		{"\xff\xfe", NULL, STAMP_MALFORMED},
		{"{\"a\":1}", "a.b", STAMP_NONE},
		{"{\"a\":{}}", "a.b.c", STAMP_NONE},
		{"{\"a\":{}}", ".", STAMP_NONE},
		{"{\"t\":-1795309546123}", "t", STAMP_NONE},
		{"1795309546123456", "t", STAMP_MALFORMED},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double us = NAN;
		ck_assert_msg(stamp_of(cases[i].text, cases[i].key, &us) == cases[i].stamp, "%s",
			cases[i].text);
	}
}
END_TEST

START_TEST(huge_and_deep_payloads_are_refused_unread)
{
	double us;
	char *text = malloc(STAMP_PAYLOAD_MAX + 2);
	ck_assert_ptr_nonnull(text);
	memset(text, ' ', STAMP_PAYLOAD_MAX + 1);
	text[STAMP_PAYLOAD_MAX + 1] = '\0';
	memcpy(text, "{\"ts_ms\":1795309546123}", 23);
	ck_assert_int_eq(stamp_of(text, NULL, &us), STAMP_TOO_LARGE);
	text[STAMP_PAYLOAD_MAX] = '\0';
	ck_assert_int_eq(stamp_of(text, NULL, &us), STAMP_FOUND);
	memset(text, '[', STAMP_PAYLOAD_MAX);
	memcpy(text, "{\"a\":", 5);
	ck_assert_int_eq(stamp_of(text, NULL, &us), STAMP_MALFORMED);
	free(text);
}
END_TEST

START_TEST(a_sender_that_says_its_clock_is_wrong_is_heard)
{
	double us;
	bool unsynchronised = false;
	const char *text = "{\"ts_ms\":1795309546123,\"clock\":\"unsynchronised\"}";
	ck_assert_int_eq(
		latency_stamp(text, strlen(text), NULL, &us, &unsynchronised), STAMP_FOUND);
	ck_assert(unsynchronised);
}
END_TEST
