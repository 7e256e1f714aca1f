/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes into lines, in whatever pieces they come. */
#include "daemon/collect/lib/lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/alloc_faults.h"
#include "tests/unit/unit.h"

enum { CAPACITY = 8 };

static struct lines lines;
static size_t bytes;   /* of all lines */
static char seen[256]; /* "line|line|" */

static void setup(void)
{
	seen[0] = '\0';
	bytes = 0;
	ck_assert_int_eq(lines_init(&lines, CAPACITY), 0);
}

static void teardown(void)
{
	lines_finish(&lines);
}

static void on_line(void *ctx, const char *line, size_t length)
{
	ck_assert_ptr_eq(ctx, &lines);
	size_t used = strlen(seen);
	bytes += length;
	snprintf(seen + used, sizeof(seen) - used, "%.*s|", (int)length, line);
}

static void feed(const char *text)
{
	lines_feed(&lines, text, strlen(text), on_line, &lines);
}

static const struct {
	const char *text, *lines;
	unsigned cut;
} streams[] = {
	{"", "", 0},
	{"one", "", 0},
	{"one\ntwo\n", "one|two|", 0},
	{"one\r\n\r\n\n", "one|||", 0},
	{"a\rb\n", "a\rb|", 0},
	{"12345678\n", "12345678|", 0},
	{"123456789\nnext\n", "next|", 1},
	{"1234567890123456789\n1234567890\nnext\nhalf", "next|", 2},
	{"\377\200\001\n", "\377\200\001|", 0},
};

FIXTURE(setup, teardown);

START_LOOP_TEST(a_stream_is_the_same_lines_in_whatever_pieces, 0, COUNT(streams))
{
	size_t length = strlen(streams[_i].text);
	for (size_t piece = 1; piece <= length + 1; piece++) {
		lines_finish(&lines);
		setup();
		for (size_t at = 0; at < length; at += piece) {
			size_t n = length - at < piece ? length - at : piece;
			lines_feed(&lines, streams[_i].text + at, n, on_line, &lines);
		}
		ck_assert_str_eq(seen, streams[_i].lines);
		ck_assert_uint_eq(lines.cut, streams[_i].cut);
	}
}
END_TEST

START_TEST(nul_is_a_byte_like_others)
{
	lines_feed(&lines, "a\0b", 3, on_line, &lines);
	lines_feed(&lines, "\n", 1, on_line, &lines);
	ck_assert_uint_eq(bytes, 3);
	ck_assert_uint_eq(lines.cut, 0);
}
END_TEST

START_TEST(a_stream_without_newline_is_one_cut_line)
{
	for (int i = 0; i < 1000; i++) {
		feed("xxxxxxx");
	}
	ck_assert_str_eq(seen, "");
	ck_assert_uint_eq(lines.cut, 1);
	feed("\nok\n");
	ck_assert_str_eq(seen, "ok|");
}
END_TEST

START_TEST(a_reset_forgets_the_half_line)
{
	feed("half");
	lines_reset(&lines);
	feed("new\n");
	feed("123456789");
	lines_reset(&lines);
	feed("next\n");
	ck_assert_str_eq(seen, "new|next|");
}
END_TEST

START_TEST(no_memory_is_enomem)
{
	struct lines other;
	alloc_faults_start(1);
	int r = lines_init(&other, CAPACITY);
	alloc_faults_stop();
	ck_assert_int_eq(r, -ENOMEM);
	lines_finish(&other);
}
END_TEST
