/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_write.c: checks that a table of fields writes each type of member. */
#include "proto/json_write.h"

#include <math.h>
#include <string.h>

#include "tests/unit/unit.h"

struct sample {
	char name[8], note[8];
	const char *reason;
	bool on;
	int signed_;
	int64_t time_us;
	unsigned id;
	uint64_t count;
	size_t size;
	double percent, limit, bytes;
	uint64_t span_ns;
};

#define FIELD(member) JSON_FIELD(struct sample, #member, member)
#define AS(type, member) JSON_FIELD_AS(type, struct sample, #member, member)
static const struct json_field fields[] = {FIELD(name), AS(JSON_STRING_OPT, note), FIELD(reason),
	FIELD(on), FIELD(signed_), FIELD(time_us), FIELD(id), FIELD(count), FIELD(size),
	FIELD(percent), AS(JSON_NUMBER, limit), AS(JSON_WHOLE_OPT, bytes), AS(JSON_S_OPT, span_ns)};

static char buffer[1024];

static const char *written(const struct sample *sample)
{
	struct json out;
	json_init(&out, buffer, sizeof(buffer));
	json_open(&out, NULL, '{');
	JSON_FIELDS(&out, fields, sample);
	json_close(&out, '}');
	buffer[out.length] = '\0';
	return buffer;
}

START_TEST(each_type_is_written_in_the_order_of_the_table)
{
	const struct sample sample = {.name = "a\"b",
		.note = "n",
		.reason = "r",
		.on = true,
		.signed_ = -7,
		.time_us = -9000000000000000,
		.id = 4294967295u,
		.count = UINT64_MAX,
		.size = 8,
		.percent = 1.5,
		.limit = 2,
		.bytes = 4096,
		.span_ns = 1500000000};
	ck_assert_str_eq(written(&sample),
		"{\"name\":\"a\\\"b\",\"note\":\"n\",\"reason\":\"r\",\"on\":true,\"signed_\":-7,"
		"\"time_us\":-9000000000000000,\"id\":4294967295,\"count\":18446744073709551615,"
		"\"size\":8,\"percent\":1.5,\"limit\":2,\"bytes\":4096,\"span_ns\":1.5}");
}
END_TEST

START_TEST(what_was_written_is_read)
{
	const struct sample samples[] = {{.name = "a\"b",
						 .note = "n\\",
						 .on = true,
						 .signed_ = -7,
						 .time_us = -9000000000000000,
						 .count = UINT64_MAX,
						 .percent = 1.5,
						 .limit = (double)NAN,
						 .bytes = 4096,
						 .span_ns = 1500000000},
		{.percent = (double)NAN, .bytes = (double)NAN}};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		char line[sizeof(buffer)];
		struct sample read = {.name = "before", .on = true, .signed_ = 1};
		strcpy(line, written(&samples[i]));
		JSON_FIELDS_READ(line, fields, &read);
		ck_assert_str_eq(written(&read), line);
	}
	char cut[3];
	ck_assert_ptr_null(json_quoted("\"abc", cut, sizeof(cut)));
	ck_assert_str_eq(json_quoted("\"abc\",", cut, sizeof(cut)), ",");
	ck_assert_str_eq(cut, "ab");
}
END_TEST

START_TEST(what_is_unknown_is_left_out_or_null)
{
	const struct sample sample = {
		.percent = (double)NAN, .limit = (double)NAN, .bytes = (double)INFINITY};
	ck_assert_str_eq(written(&sample),
		"{\"name\":\"\",\"on\":false,\"signed_\":0,\"time_us\":0,\"id\":0,\"count\":0,"
		"\"size\":0,\"limit\":null}");
}
END_TEST

START_TEST(a_number_is_repeated_only_while_it_is_there)
{
	struct json out;
	json_init(&out, buffer, sizeof(buffer));
	json_open(&out, NULL, '[');
	size_t mark = json_mark(&out);
	json_number(&out, NULL, 0.1);
	json_number(&out, NULL, 0.1);
	json_number(&out, NULL, 0.25);
	json_number(&out, NULL, 0.1);
	ck_assert_int_eq(memcmp(buffer, "[0.1,0.1,0.25,0.1", json_mark(&out)), 0);
	json_rollback(&out, mark);
	json_string(&out, NULL, "another text");
	json_number(&out, NULL, 0.1);
	ck_assert_int_eq(memcmp(buffer, "[\"another text\",0.1", json_mark(&out)), 0);
}
END_TEST
