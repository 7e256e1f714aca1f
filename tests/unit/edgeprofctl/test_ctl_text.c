/* SPDX-License-Identifier: Apache-2.0 */
/* What edgeprofctl shows: clean text, numbers with units, spans, moments, tables, sparklines. */
#include "client/edgeprofctl/template.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/term/when.h"
#include "client/edgeprofctl/term/wrap.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static void setup(void)
{
	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
}

FIXTURE(setup, NULL);

START_TEST(terminal_escapes_become_question_marks)
{
	static const struct {
		const char *in, *utf8, *ascii;
	} cases[] = {
		{"plain", "plain", "plain"},
		{"\033[2Jx", "?[2Jx", "?[2Jx"},
		{"a\nb\tc\177", "a?b?c?", "a?b?c?"},
		{"\302\233"
		 "31m",
			"?31m", "?31m"},	  /* U+009B, the one-byte CSI */
		{"x\342\200\256y", "x?y", "x?y"}, /* U+202E turns text around */
		{"\342\200\213", "?", "?"},	  /* U+200B takes no room */
		{"K\303\274che", "K\303\274che", "K?che"},
		{"\303", "?", "?"},			    /* cut short */
		{"\300\200\355\240\200", "?????", "?????"}, /* overlong, surrogate */
		{"\365\200\200\200", "????", "????"},
		{"", "", ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[64];
		snprintf(text, sizeof(text), "%s", cases[i].in);
		text_clean(text, true);
		ck_assert_str_eq(text, cases[i].utf8);
		snprintf(text, sizeof(text), "%s", cases[i].in);
		text_clean(text, false);
		ck_assert_str_eq(text, cases[i].ascii);
	}
}
END_TEST

START_TEST(decode_never_passes_the_end)
{
	for (int first = 0x80; first < 0x100; first++) {
		char text[2] = {(char)first, '\0'};
		const char *at = text;
		ck_assert_uint_eq(text_decode(&at), 0xfffd);
		ck_assert_ptr_eq(at, text + 1);
	}
}
END_TEST

START_TEST(text_is_cut_between_characters)
{
	ck_assert_uint_eq(text_fit("abc", 2), 2);
	ck_assert_uint_eq(text_fit("\303\274x", 1), 2);
	ck_assert_uint_eq(text_fit("x", 0), 0);
	ck_assert_uint_eq(text_width("\303\274x"), 2);
}
END_TEST

/* covers G4.9 (JSON carries the numbers as they are: test_answers.py) */
START_TEST(values_have_units_that_people_read)
{
	static const struct {
		double value;
		const char *unit, *text;
	} cases[] = {
		{52.34, "celsius", "52.3 °C"},
		{NAN, "celsius", "-"},
		{2.4e9, "hertz", "2.40 GHz"},
		{999960, "hertz", "1.00 MHz"},
		{0, "hertz", "0 Hz"},
		{3.7 * 1073741824.0, "bytes", "3.70 GiB"},
		{1023, "bytes", "1023 B"},
		{1048576, "bytes", "1.00 MiB"},
		{16777216, "bytes", "16.0 MiB"},
		{12345, "milliwatts", "12.35 W"},
		{1, "bool", "yes"},
		{0, "bool", "no"},
		{0.4, "bool", "40.0 %"}, /* of the time */
		{1.25, "count", "1.25"},
		{7, "count", "7"},
		{0.5, "state", "0.50"},
		{3, "state", "3"},
		{29.93, "fps", "29.9 fps"},
		{1.5, "", "1.50"},
		{1.5, "furlongs", "1.50 furlongs"},
		{120, "microseconds", "120 µs"},
		{1074015315.56, "per_second", "1.07 G/s"},
		{12345, "per_second", "12.3 k/s"},
		{999.4, "per_second", "999.4 /s"},
		{36, "per_second", "36 /s"},
		{0.25, "per_second", "0.25 /s"},
		{-1500, "per_second", "-1.50 k/s"},
		{466, "millijoules", "466 mJ"},
		{2.54, "millijoules", "2.5 mJ"},
		{12345, "millijoules", "12.3 J"},
		{4.2e6, "millijoules", "4.20 kJ"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_str_eq(
			format_value(cases[i].value, cases[i].unit, true).text, cases[i].text);
	}
	ck_assert_str_eq(format_value(52.34, "celsius", false).text, "52.3 C");
	/* a hostile number must fit as well */
	ck_assert_uint_lt(strlen(format_value(1e308, "celsius", true).text), 64);
	ck_assert_uint_lt(strlen(format_value(-1e308, "bytes", true).text), 64);
}
END_TEST

START_TEST(spans_and_counts_are_short)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = {
		{0.42, "0.4 s"},
		{12.4, "12 s"},
		{59.6, "1 min"},
		{185, "3 min 5 s"},
		{3599.7, "1 h"},
		{11112.5, "3 h 5 min"},
		{187200, "2 d 4 h"},
		{NAN, "-"},
		{1e300, "very long"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_str_eq(format_span(cases[i].seconds).text, cases[i].text);
	}
	ck_assert_str_eq(format_count(0).text, "0");
	ck_assert_str_eq(format_count(999).text, "999");
	ck_assert_str_eq(format_count(1234567).text, "1,234,567");
	ck_assert_str_eq(format_count(-123456).text, "-123,456");
	ck_assert_str_eq(format_count(INT64_MIN).text, "-9,223,372,036,854,775,808");
}
END_TEST

START_TEST(times_outside_the_calendar_are_dashes)
{
	setenv("TZ", "UTC", 1);
	ck_assert_str_eq(format_time(INT64_C(1763703625123456)).text, "2025-11-21 05:40:25");
	ck_assert_str_eq(format_clock(INT64_C(1763703625123456)).text, "05:40:25.123");
	/* where time_t has 32 bits it ends in 2038 */
	ck_assert_str_eq(format_time(INT64_C(4102444799000000)).text, "2099-12-31 23:59:59");
	ck_assert_str_eq(format_time(0).text, "-");
	ck_assert_str_eq(format_time(-1).text, "-");
	ck_assert_str_eq(format_time(INT64_MAX).text, "-");
}
END_TEST

START_TEST(spans_are_read_wholly_or_refused)
{
	static const char *const bad[] = {"", "s", "5x", "-5s", "5 s", "1e3", "1.2.3", "nan", "inf",
		"0x10", "99999999999999999999999", "5s ", "+5"};
	double seconds = 7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(when_parse_span(bad[i], &seconds), -EINVAL);
	}
	static const struct {
		const char *text;
		double seconds;
	} good[] = {{"5", 5}, {"500ms", 0.5}, {"1.5min", 90}, {"2h", 7200}, {"7d", 604800},
		{"250us", 0.00025}};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_int_eq(when_parse_span(good[i].text, &seconds), 0);
		ck_assert_double_eq_tol(seconds, good[i].seconds, 1e-12);
	}
}
END_TEST

START_TEST(moments_are_spans_ago_clocks_and_dates)
{
	const int64_t now = INT64_C(1763703625123456); /* 2025-11-21 05:40:25 */
	static const struct {
		const char *text;
		int64_t time_us;
	} good[] = {
		{"now", INT64_C(1763703625123456)},
		{"5min", INT64_C(1763703325123456)},
		{"@1700000000", INT64_C(1700000000000000)},
		{"2025-11-21 05:40:25", INT64_C(1763703625000000)},
		{"2025-11-21T05:40", INT64_C(1763703600000000)},
		{"2025-11-21", INT64_C(1763683200000000)},
		{"05:30", INT64_C(1763703000000000)},
		{"05:41", INT64_C(1763617260000000)}, /* of today it is still to come */
		{"23:00:01", INT64_C(1763679601000000)},
		{"today", INT64_C(1763683200000000)},
		{"yesterday", INT64_C(1763596800000000)},
		{"-5min", INT64_C(1763703325123456)},
		{"5min ago", INT64_C(1763703325123456)},
	};
	static const char *const bad[] = {"", "@", "@x", "tomorrow", "-", "--5min", "-05:30",
		" ago", "05:30 ago", "2025-13-01", "25:00", "2025-11-21 05:40:25x", "@99999999999",
		"90000000000"};
	setenv("TZ", "UTC", 1);
	int64_t time_us = 0;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_int_eq(when_parse_time(good[i].text, now, &time_us), 0);
		ck_assert_int_eq(time_us, good[i].time_us);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_eq(when_parse_time(bad[i], now, &time_us), -EINVAL);
	}
	const int64_t from = INT64_C(1763679600000000); /* 23:00 of the day before */
	ck_assert_int_eq(when_parse_end("23:30", now, from, &time_us), 0);
	ck_assert_int_eq(time_us, from + INT64_C(1800000000));
	ck_assert_int_eq(when_parse_end("05:30", now, from, &time_us), 0);
	ck_assert_int_eq(time_us, INT64_C(1763703000000000));
	ck_assert_int_eq(when_parse_end("05:50", now, from, &time_us), 0);
	ck_assert_int_eq(time_us, INT64_C(1763704200000000)); /* to come, but later than from */
	ck_assert_int_eq(when_parse_end("8h", now, from, &time_us), 0);
	ck_assert_int_eq(time_us, now - INT64_C(28800000000));
}
END_TEST

static char *print_table(const struct style *style, const char *note)
{
	static const struct column columns[] = {{"NAME", false, true}, {"MS", true, false},
		{"EMPTY", false, false}, {"NOTE", false, true}};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct table table;
	table_init(&table, columns, 4);
	table_add(&table, TONE_NONE, "infer");
	table_add_number(&table, 12.34, 1);
	table_add(&table, TONE_NONE, "%s", "");
	table_add(&table, TONE_DIM, "%s", note);
	table_add(&table, TONE_NONE, "\303\274");
	table_add_number(&table, NAN, 1);
	table_add(&table, TONE_NONE, "%s", "");
	table_add(&table, TONE_DIM, "%s", "");
	ck_assert_int_eq(table_print(&table, style, out, 0), 0);
	table_finish(&table);
	fclose(out);
	return text;
}

START_TEST(columns_line_up_and_empty_ones_go)
{
	struct style style = {.utf8 = true};
	char *text = print_table(&style, "slow");
	ck_assert_str_eq(text, "NAME     MS  NOTE\ninfer  12.3  slow\n\303\274         -\n");
	free(text);
	style.color = true;
	text = print_table(&style, "slow");
	ck_assert_ptr_nonnull(strstr(text, "\033[2mslow\033[0m"));
	free(text);
}
END_TEST

START_TEST(long_lines_are_cut_to_the_width)
{
	struct style style = {.utf8 = true, .width = 24};
	char *text = print_table(&style, "a very long note that goes on");
	ck_assert_ptr_nonnull(strstr(text, "infer  12.3  a very lon\342\200\246\n"));
	free(text);
	style.width = 1; /* narrower than anything: nothing breaks */
	free(print_table(&style, "a very long note that goes on"));
}
END_TEST

START_TEST(a_text_without_room_goes_below_its_row)
{
	static const struct column columns[] = {
		{"A NAME THAT TAKES MOST OF THE LINE ALREADY", false, false}, {"NOTE", false, true},
		{"NEVER", false, false}};
	struct style style = {.utf8 = true, .width = 60};
	struct table table;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	ck_assert_ptr_nonnull(out);
	table_init(&table, columns, 3);
	const char *const cells[] = {
		"infer", "a note of more than fourteen columns", "", "other", "", ""};
	for (size_t i = 0; i < 6; i++) {
		table_add(&table, TONE_NONE, "%s", cells[i]);
	}
	ck_assert_int_eq(table_print(&table, &style, out, 0), 0);
	table_finish(&table);
	fclose(out);
	ck_assert_str_eq(text, "A NAME THAT TAKES MOST OF THE LINE ALREADY\n"
			       "infer\n    a note of more than fourteen columns\nother\n");
	free(text);
}
END_TEST

START_TEST(a_table_that_is_too_wide_comes_in_parts_with_its_first_column)
{
	static const struct column columns[] = {
		{"NAME", false, true}, {"FIRST", true, false}, {"SECOND", true, false}};
	struct style style = {.utf8 = true, .width = 14};
	char *shown;
	size_t size;
	struct table table;
	FILE *out = open_memstream(&shown, &size);
	table_init(&table, columns, 3);
	table_add(&table, TONE_NONE, "infer");
	table_add(&table, TONE_NONE, "1.5");
	table_add(&table, TONE_NONE, "22.5");
	ck_assert_int_eq(table_print(&table, &style, out, 0), 0);
	fclose(out);
	ck_assert_str_eq(shown, "NAME   FIRST\ninfer    1.5\n\nNAME   SECOND\ninfer    22.5\n");
	free(shown);
	table_finish(&table);
}
END_TEST

START_TEST(long_lines_continue_below_their_last_column)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"short\n", "short\n"},
		{"", ""},
		{"\n\n", "\n\n"},
		{"no newline at its end, either", "no newline at its\n    end, either"},
		{"exactly twenty wide.\n", "exactly twenty wide.\n"},
		{"name  and a text that is long\n", "name  and a text\n      that is long\n"},
		{"a  b  c that goes on and on and on\n",
			"a  b  c that goes on\n      and on and on\n"},
		{"a/path/that/has/no/blank/at/all\n", "a/path/that/has/no/blank/at/all\n"},
		{"name  a/path/that/has/no/blank x\n",
			"name\n    a/path/that/has/no/blank\n    x\n"},
		{"\303\244\303\244\303\244\303\244\303\244 "
		 "\303\244\303\244\303\244\303\244\303\244 "
		 "\303\244\303\244\303\244\303\244\303\244 x\n",
			"\303\244\303\244\303\244\303\244\303\244 "
			"\303\244\303\244\303\244\303\244\303\244 "
			"\303\244\303\244\303\244\303\244\303\244 x\n"},
		{"\033[1mbold\033[0m  a text that is long\n",
			"\033[1mbold\033[0m  a text that is\n      long\n"},
		{"  indented and longer than that\n",
			"  indented and\n      longer than\n      that\n"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *shown;
		size_t size;
		FILE *out = open_memstream(&shown, &size);
		wrap_write(cases[i].in, 20, out);
		fclose(out);
		ck_assert_str_eq(shown, cases[i].out);
		free(shown);
	}
}
END_TEST

START_TEST(a_table_that_must_fit_leaves_out_columns_from_the_right)
{
	struct style style = {.utf8 = true, .width = 16, .fit = true};
	char *text = print_table(&style, "a very long note that goes on");
	ck_assert_str_eq(text, "NAME     MS\ninfer  12.3\n\303\274         -\n");
	free(text);
	style.width = 45;
	text = print_table(&style, "a very long note that goes on and on and on");
	ck_assert_ptr_nonnull(strstr(text, "infer  12.3  a very long note that goes on a"));
	free(text);
}
END_TEST

START_TEST(sparkline_shows_rise_and_gap)
{
	struct spark spark;
	char bars[SPARK_SIZE];
	spark_init(&spark, 0, SPARK_COLUMNS, 1000);
	spark_add(&spark, 0, 1);
	spark_add(&spark, 2, 8);
	spark_add(&spark, 3, NAN);
	spark_add(&spark, -1, 100); /* outside */
	spark_write(&spark, false, bars);
	ck_assert_int_eq(strncmp(bars, "_ @ ", 4), 0);
	ck_assert_uint_eq(strlen(bars), SPARK_COLUMNS);
	spark_init(&spark, 5, 5, 0);
	spark_add(&spark, 5, 3);
	spark_write(&spark, true, bars);
	ck_assert_str_eq(bars, "▁");
	/* three samples one step apart are three bars side by side */
	spark_init(&spark, 0, 2, 3);
	spark_add(&spark, 0, 1);
	spark_add(&spark, 1, 2);
	spark_add(&spark, 2, 3);
	spark_write(&spark, false, bars);
	ck_assert_str_eq(bars, "_=@");
}
END_TEST

START_TEST(templates_expand_as_their_header_says)
{
	static const char json[] = "{\"name\":\"cam\",\"state\":\"ok\",\"n\":2.5,\"zero\":0,"
				   "\"list\":[{\"a\":1},{\"a\":2}],\"none\":[],"
				   "\"in\":{\"x\":\"deep\"}}";
	static const struct {
		const char *template, *text;
	} cases[] = {
		{"{name} {n:1} {gone}{gone:1}", "cam 2.5 -"},
		{"[{gone}|[{?zero}|{n:0}]] {in.x} {list}", "2 deep 2"},
		{"[{?state=ok}yes|no][{!state=ok}yes|no][{?state=o}yes|no]", "yesnono"},
		{"[{?n>=2.5}yes|no][{?n>=2.6}yes|no][{?list>=2}yes|no][{?gone>=0}yes|no]",
			"yesnoyesno"},
		{"{*list,+}{a}{/} [{*none}{a}{/}|empty] [{*list}[{?a=x}{a}]{/}|nothing]",
			"1+2 empty nothing"},
		{"[{?gone}{, }a][{?name}{, }b][{, }c]", "b, c"},
		{"{~warn}{name}{~:state}{n:1}{~none}", "\5cam\0042.5\1"},
		{"\\[{name}\\]\\|{>}", "[cam]| -> "},
	};
	cJSON *object = cJSON_Parse(json);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char bytes[128];
		struct text text = TEXT_IN(bytes);
		template_add(&text, cases[i].template, object, false);
		ck_assert_str_eq(bytes, cases[i].text);
	}
	cJSON_Delete(object);
}
END_TEST

START_TEST(marks_become_tones)
{
	static const struct style color = {.color = true}, plain = {.color = false};
	char text[] = "a\5b\1c", *shown = NULL;
	size_t size;
	FILE *out = open_memstream(&shown, &size);
	ck_assert_ptr_nonnull(out);
	style_write(&color, out, text);
	style_write(&plain, out, text);
	fclose(out);
	ck_assert_str_eq(shown, "a\033[33mb\033[0mcabc");
	free(shown);
	ck_assert_int_eq(style_take(text, TONE_DIM), TONE_NONE);
	ck_assert_str_eq(text, "abc");
	ck_assert_int_eq(style_take(text, TONE_DIM), TONE_DIM);
	ck_assert(style_is_blank("\5\1") && !style_is_blank("\5b"));
}
END_TEST
