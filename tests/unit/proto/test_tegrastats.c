/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of tegrastats: forms, also those that no sample has, bytes that are no line, limits,
 * and the two figures made of a line. */
#include "proto/tegrastats/tegrastats.h"

#include <stdio.h>

#include "tests/unit/proto/tegrastats_check.h"
#include "tests/unit/unit.h"

static struct tegrastats stats;

static int parse(const char *line)
{
	return tegrastats_parse(line, strlen(line), &stats);
}

#define NONE TEGRASTATS_NONE

/* A value behind the name of an engine; freq of several is the highest. */
static const struct {
	const char *value;
	bool taken, on;
	int64_t load, freq;
	size_t unknown;
} engines[] = {
	{"off", true, false, NONE, NONE, 0},
	{"115", true, true, NONE, 115, 0},
	{"9%", true, true, 9, NONE, 0},
	{"@0", true, true, NONE, 0, 0},
	{"0%@115", true, true, 0, 115, 0},
	{"9%@[300,305]", true, true, 9, 305, 0},
	{"@[1,2,3]", true, true, NONE, 3, 0},
	{"[12%,40%]@691", true, true, 40, 691, 0},
	{"[12%]@691", true, true, 12, 691, 0},
	{"101%@5", true, true, NONE, 5, 1},
	{"100%", true, true, 100, NONE, 0},
	{"%", false, false, 0, 0, 2},
	{"@", false, false, 0, 0, 2},
	{"9%@", false, false, 0, 0, 2},
	{"9%@[", false, false, 0, 0, 2},
	{"9%@[]", false, false, 0, 0, 2},
	{"9%@[3", false, false, 0, 0, 2},
	{"9%@[3,", false, false, 0, 0, 2},
	{"[9%@3", false, false, 0, 0, 2},
	{"[9%,]@3", false, false, 0, 0, 2},
	{"9%@3x", false, false, 0, 0, 2},
	{"-9%", false, false, 0, 0, 2},
	{"-9", false, false, 0, 0, 2},
	{"9.5%", false, false, 0, 0, 2},
	{"0x10", false, false, 0, 0, 2},
	{"1234567890123456", false, false, 0, 0, 2},
	{"OFF", false, false, 0, 0, 2},
};

START_LOOP_TEST(an_engine_is_told_by_the_form_of_its_value, 0, COUNT(engines))
{
	char line[128];
	snprintf(line, sizeof(line), "RAM 1/2MB NPU7_FREQ %s SWAP 3/4MB", engines[_i].value);
	ck_assert_int_eq(parse(line), 0);
	ck_assert_int_eq(stats.swap_total_mb, 4);
	ck_assert_uint_eq(stats.unknown, engines[_i].unknown);
	ck_assert_uint_eq(stats.engines, engines[_i].taken);
	if (engines[_i].taken) {
		ck_assert_str_eq(stats.engine[0].name, "NPU7");
		ck_assert_int_eq(stats.engine[0].on, engines[_i].on);
		ck_assert_int_eq(stats.engine[0].load_percent, engines[_i].load);
		ck_assert_int_eq(stats.engine[0].freq_mhz, engines[_i].freq);
	}
}
END_TEST

static const struct {
	const char *value;
	bool taken;
	int64_t now, average, peak;
} rails[] = {
	{"12/34", true, 12, 34, NONE},
	{"12mW", true, 12, NONE, NONE},
	{"12mW/34mW", true, 12, 34, NONE},
	{"12mW/34mW/56mW", true, 12, 34, 56},
	{"12/34/56", true, 12, 34, 56},
	{"-12mW/-3mW", true, -12, -3, NONE},
	{"0/0", true, 0, 0, NONE},
	{"12", false, 0, 0, 0},
	{"12mW/", false, 0, 0, 0},
	{"12mW/3", false, 0, 0, 0},
	{"12mW/3m", false, 0, 0, 0},
	{"/12mW", false, 0, 0, 0},
	{"12mW/34mW/56mW/78mW", false, 0, 0, 0},
	{"12W", false, 0, 0, 0},
	{"--12mW", false, 0, 0, 0},
	{"99999999999999999999mW", false, 0, 0, 0},
};

START_LOOP_TEST(a_rail_needs_its_unit_or_its_average, 0, COUNT(rails))
{
	char line[128];
	snprintf(line, sizeof(line), "RAM 1/2MB VDD_X %s SWAP 3/4MB", rails[_i].value);
	ck_assert_int_eq(parse(line), 0);
	ck_assert_int_eq(stats.swap_total_mb, 4);
	ck_assert_uint_eq(stats.engines, 0);
	ck_assert_uint_eq(stats.rails, rails[_i].taken);
	ck_assert_uint_eq(stats.unknown, rails[_i].taken ? 0 : 2);
	if (rails[_i].taken) {
		ck_assert_int_eq(stats.rail[0].now_mw, rails[_i].now);
		ck_assert_int_eq(stats.rail[0].average_mw, rails[_i].average);
		ck_assert_int_eq(stats.rail[0].peak_mw, rails[_i].peak);
	}
}
END_TEST

static const struct {
	const char *word;
	double celsius, peak; /* -1: no temperature at all */
} temps[] = {
	{"cpu@45.5C", 45.5, NAN},
	{"cpu@45C/52.9C", 45, 52.9},
	{"cpu@-0.5C", -0.5, NAN},
	{"cpu@44.562C", 44.562, NAN},
	{"cpu@-256C", NAN, NAN},
	{"cpu@-200C", NAN, NAN},
	{"cpu@-199.9C", -199.9, NAN},
	{"cpu@30C/-256C", 30, NAN},
	{"cpu@1e9C", -1, 0},
	{"cpu@C", -1, 0},
	{"cpu@.5C", -1, 0},
	{"cpu@5.C", -1, 0},
	{"cpu@45C/", -1, 0},
	{"cpu@45C/5", -1, 0},
	{"cpu@45", -1, 0},
	{"@45C", -1, 0},
	{"cpu@nanC", -1, 0},
	{"cpu@99999999999999999C", -1, 0},
};

START_LOOP_TEST(a_temperature_is_a_number_or_offline, 0, COUNT(temps))
{
	char line[128];
	snprintf(line, sizeof(line), "RAM 1/2MB %s SWAP 3/4MB", temps[_i].word);
	ck_assert_int_eq(parse(line), 0);
	ck_assert_int_eq(stats.swap_total_mb, 4);
	bool taken = !(temps[_i].celsius == -1);
	ck_assert_uint_eq(stats.temps, taken);
	ck_assert_uint_eq(stats.unknown, taken ? 0 : 1);
	if (taken) {
		double celsius = stats.temp[0].celsius, peak = stats.temp[0].peak_celsius;
		ck_assert(isnan(temps[_i].celsius) ? isnan(celsius) : celsius == temps[_i].celsius);
		ck_assert(isnan(temps[_i].peak) ? isnan(peak) : peak == temps[_i].peak);
	}
}
END_TEST

/* Mistake 3 of the guides. */
START_TEST(an_off_core_does_not_lose_the_others)
{
	ck_assert_int_eq(parse("CPU [5%@1224,off,??,7%,200%@3, 9%@10 ]"), 0);
	ck_assert_uint_eq(stats.cpus, 6);
	ck_assert_uint_eq(stats.unknown, 2);
	ck_assert(stats.cpu[0].online && stats.cpu[0].freq_mhz == 1224);
	ck_assert(!stats.cpu[1].online && stats.cpu[1].load_percent == NONE);
	ck_assert(stats.cpu[2].load_percent == NONE);
	ck_assert(stats.cpu[3].load_percent == 7 && stats.cpu[3].freq_mhz == NONE);
	ck_assert(stats.cpu[4].load_percent == NONE && stats.cpu[4].freq_mhz == 3);
	ck_assert(stats.cpu[5].load_percent == 9 && stats.cpu[5].freq_mhz == 10);
	ck_assert_double_eq(tegrastats_cpu_average_percent(&stats), 7);
}
END_TEST

START_TEST(a_core_list_without_an_end_is_no_list)
{
	static const char *const lists[] = {"CPU [5%@1224,6%@12 EMC_FREQ 3%@7", "CPU [5%@12",
		"CPU [5%,[6%] EMC_FREQ 3%@7", "CPU [ EMC_FREQ 3%@7",
		"CPU [5%,6% 7%] EMC_FREQ 3%@7"};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		char line[128];
		snprintf(line, sizeof(line), "RAM 1/2MB %s", lists[i]);
		ck_assert_int_eq(parse(line), 0);
		ck_assert_uint_eq(stats.cpus, 0);
		ck_assert_uint_gt(stats.unknown, 0);
		ck_assert(i == 1 || tegrastats_fastest_mhz(&stats.emc) == 7);
	}
}
END_TEST

START_TEST(the_mean_load_is_of_cores_that_are_on)
{
	ck_assert_int_eq(parse("CPU [10%@1,off,off,20%@1]"), 0);
	ck_assert_double_eq(tegrastats_cpu_average_percent(&stats), 15);
	ck_assert_int_eq(parse("CPU [off,off]"), 0);
	ck_assert(isnan(tegrastats_cpu_average_percent(&stats)));
	ck_assert_int_eq(parse("RAM 1/2MB"), 0);
	ck_assert(isnan(tegrastats_cpu_average_percent(&stats)));
}
END_TEST

/* Mistake 4 of the guides. */
static const struct {
	const char *rails, *source;
	double total;
} totals[] = {
	{"VDD_IN 4067/4000 VDD_CPU_GPU_CV 738/700 VDD_SOC 1353/1300", "VDD_IN", 4067},
	{"POM_5V_GPU 40/57 POM_5V_IN 1997/2089 POM_5V_CPU 203/289", "POM_5V_IN", 1997},
	{"VDD_GPU 1mW/1mW VIN_SYS_5V0 5mW/5mW VIN 19780mW/1mW", "VIN", 19780},
	{"VDD_IN 9000mW/1mW VDD_SOC 1353mW/1mW VIN 19780mW/1mW", "VIN", 19780},
	{"GPU 1/9 CPU 311/9 SOC 932/9 CV -2/9 VDDRQ 621/9 SYS5V 1482/9", "sum", 3345},
	{"VDD_GPU_SOC 2340mW/1mW VDD_CPU_CV 390mW/1mW VIN_SYS_5V0 4025mW/1mW NC 7mW/1mW "
	 "VDDQ_VDD2_1V8AO 301mW/1mW NC 9mW/1mW",
		"sum", 6755},
	{"VDD_GPU 5mW VDD_CPU_SOC_MSS 6mW VIN_SYS_5V0 7mW", "sum", 18},
	{"NC 0mW/0mW", NULL, NAN},
	{"", NULL, NAN},
};

/* covers G0.14 */
START_LOOP_TEST(a_supply_is_never_added_to_what_it_feeds, 0, COUNT(totals))
{
	char line[512];
	const char *source = "";
	snprintf(line, sizeof(line), "RAM 1/2MB %s", totals[_i].rails);
	ck_assert_int_eq(parse(line), 0);
	double total = tegrastats_total_mw(&stats, &source);
	ck_assert_pstr_eq(source, totals[_i].source);
	ck_assert(isnan(totals[_i].total) ? isnan(total) : total == totals[_i].total);
}
END_TEST

START_TEST(the_same_name_again_gets_a_number)
{
	ck_assert_int_eq(parse("RAM 1/2MB NC 1mW NC 2mW NC 3mW VIC 1 VIC 2 a@1C a@2C "
			       "VDD_012345678901234567890123456789 4mW "
			       "VDD_012345678901234567890123456789 5mW"),
		0);
	ck_assert_str_eq(stats.rail[1].name, "NC#2");
	ck_assert_str_eq(stats.rail[2].name, "NC#3");
	ck_assert_str_eq(stats.engine[1].name, "VIC#2");
	ck_assert_str_eq(stats.temp[1].name, "a#2");
	ck_assert_str_eq(stats.rail[3].name, "VDD_012345678901234567890123456");
	ck_assert_str_eq(stats.rail[4].name, "VDD_0123456789012345678901234#2");
}
END_TEST

START_TEST(what_a_logger_prepends_is_not_counted)
{
	static const char *const prefixes[] = {"[2018-08-23 16:30:36] : ",
		"Nov 21 06:00:00 nano tegrastats[812]: ", "A 1/2 B 3 ", "2026-11-21T06:00:00Z "};
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		char line[256];
		snprintf(line, sizeof(line), "%s11-21-2026 06:00:00 RAM 1/2MB cpu@3C", prefixes[i]);
		for (int time = 1; time >= 0; time--) {
			ck_assert_int_eq(parse(line), 0);
			ck_assert_int_eq(stats.ram_used_mb, 1);
			ck_assert_uint_eq(stats.temps, 1);
			ck_assert_uint_eq(stats.unknown + stats.engines + stats.rails, 0);
			ck_assert_str_eq(stats.timestamp, time ? "11-21-2026 06:00:00" : "");
			snprintf(line, sizeof(line), "%sRAM 1/2MB cpu@3C", prefixes[i]);
		}
	}
}
END_TEST

START_TEST(a_second_line_behind_the_first_is_left_out)
{
	const char *source;
	ck_assert_int_eq(parse("RAM 1/2MB GPU 10/10 CPU 20/20 x 11-15-2024 08:38:09 RAM 3/4MB GPU "
			       "30/30 CPU 40/40"),
		0);
	ck_assert_int_eq(stats.ram_used_mb, 1);
	ck_assert_double_eq(tegrastats_total_mw(&stats, &source), 30);
	ck_assert_int_eq(parse("RAM 1/2MB GPU 10/10RAM 3/4MB GPU 30/30"), 0);
	ck_assert_int_eq(stats.ram_used_mb, 1);
}
END_TEST

START_TEST(other_programs_lines_are_ebadmsg_with_their_words)
{
	static const char *const lines[] = {"bash: tegrastats: command not found",
		"Error: failed to open /sys/kernel/debug: Permission denied", "Killed process 1234",
		"step 3/5 off", "disk 95%", "lorem @@@@ %%%% [[[[ //// mW/mW C@C RAM / MB %@"};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		ck_assert_int_eq(parse(lines[i]), -EBADMSG);
		ck_assert_uint_gt(stats.unknown, 1);
		ck_assert_ptr_null(tegrastats_check(-EBADMSG, &stats));
	}
	ck_assert_int_eq(parse(""), -EBADMSG);
	ck_assert_int_eq(parse(" \t\r\n"), -EBADMSG);
	ck_assert_uint_eq(stats.unknown, 0);
	ck_assert_int_eq(tegrastats_parse("RAM 1/2MB", 0, &stats), -EBADMSG);
}
END_TEST

/* More of everything than there is room for, and more than TEGRASTATS_LINE bytes. */
START_TEST(limits_hold_and_what_is_beyond_is_counted)
{
	static char line[2 * TEGRASTATS_LINE];
	size_t length = (size_t)snprintf(line, sizeof(line), "RAM 1/2MB CPU [0%%");
	for (int i = 1; i < 200; i++) {
		length += (size_t)snprintf(line + length, sizeof(line) - length, ",%d%%", i % 100);
	}
	length += (size_t)snprintf(line + length, sizeof(line) - length, "]");
	for (int i = 0; length < TEGRASTATS_LINE + 100; i++) {
		length += (size_t)snprintf(line + length, sizeof(line) - length,
			" z%d@%dC E%d 5%%@%d R%d %dmW ?%d", i, i, i, i, i, i, i);
	}
	ck_assert_int_eq(tegrastats_parse(line, length, &stats), 0);
	ck_assert_ptr_null(tegrastats_check(0, &stats));
	ck_assert_uint_eq(stats.cpus, TEGRASTATS_CPUS);
	ck_assert_uint_eq(stats.temps, TEGRASTATS_TEMPS);
	ck_assert_uint_eq(stats.engines, TEGRASTATS_ENGINES);
	ck_assert_uint_eq(stats.rails, TEGRASTATS_RAILS);
	ck_assert_uint_gt(stats.unknown, 1000);

	memset(line, ' ', sizeof(line));
	memcpy(line, "RAM 1/2MB", 9);
	memcpy(line + TEGRASTATS_LINE - 9, "APE 12345", 9);
	ck_assert_int_eq(tegrastats_parse(line, sizeof(line), &stats), 0);
	ck_assert_int_eq(stats.engine[0].freq_mhz, 12345);
	line[TEGRASTATS_LINE] = '6';
	ck_assert_int_eq(tegrastats_parse(line, sizeof(line), &stats), 0);
	ck_assert_uint_eq(stats.engines, 0);
}
END_TEST

START_TEST(any_byte_in_a_word_is_survived)
{
	static const char line[] = "RAM 1/2MB VI\0C o\xff\x1b[0m \xe2\x82\xac@3C APE 5";
	ck_assert_int_eq(tegrastats_parse(line, sizeof(line) - 1, &stats), 0);
	ck_assert_int_eq(stats.engine[0].freq_mhz, 5);
	ck_assert_uint_eq(stats.unknown, 3);
	ck_assert_str_eq(stats.unknown_word[0], "VI?C");
	ck_assert_str_eq(stats.unknown_word[1], "o??[0m");
	ck_assert_str_eq(stats.unknown_word[2], "???@3C");
}
END_TEST
