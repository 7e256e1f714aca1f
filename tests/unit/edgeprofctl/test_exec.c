/* SPDX-License-Identifier: Apache-2.0 */
#include "client/edgeprofctl/exec/exec.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

START_TEST(lists_of_cpus_are_read)
{
	static const struct {
		const char *text;
		int count, first, last;
	} cases[] = {
		{"0", 1, 0, 0},
		{"0-3", 4, 0, 3},
		{"1,3", 2, 1, 3},
		{"0-1,4-5,5", 4, 0, 5},
		{"1023", 1, 1023, 1023},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cpu_set_t cpus;
		ck_assert_int_eq(exec_parse_cpus(cases[i].text, &cpus), 0);
		ck_assert_int_eq(CPU_COUNT(&cpus), cases[i].count);
		ck_assert(CPU_ISSET((size_t)cases[i].first, &cpus));
		ck_assert(CPU_ISSET((size_t)cases[i].last, &cpus));
	}
}
END_TEST

START_TEST(other_texts_are_refused)
{
	static const char *const texts[] = {"", ",", "0,", "-1", "1-", "3-1", "0-3x", "0 1", "1024",
		"0-1024", "99999999999999999999", "all", "0--1", "0x1"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		cpu_set_t cpus;
		ck_assert_msg(exec_parse_cpus(texts[i], &cpus) == -EINVAL, "%s", texts[i]);
	}
}
END_TEST

/* The value that an option of the table stores. */
static int parse(const char *name, const char *text, struct options *ret)
{
	const struct option_spec *spec = option_find(exec_options, name, strlen(name), 0);
	ck_assert_ptr_nonnull(spec);
	return spec->parse(spec, text, (char *)ret + spec->offset);
}

START_TEST(values_of_controls_have_ranges)
{
	static const struct {
		const char *name, *good[3], *bad[6];
	} cases[] = {
		{"nice", {"0", "-20", "19"}, {"20", "-21", "", "-", "1x", "--1"}},
		{"rr", {"1", "50", "99"}, {"0", "100", "", "-1", "1x", "999999999999"}},
		{"fifo", {"1", "50", "99"}, {"0", "100", "", "-1", "1x", "1.5"}},
		{"quota", {"1", "50%", "100000"}, {"0", "100001", "", "%", "50%%", "nan"}},
		{"env", {"A=", "A=b", "A=b=c"}, {"", "=", "=b", "A", "a b", "=="}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct options options = {0};
		for (size_t j = 0; j < 3; j++) {
			ck_assert_msg(parse(cases[i].name, cases[i].good[j], &options) == 0,
				"--%s %s", cases[i].name, cases[i].good[j]);
		}
		for (size_t j = 0; j < 6; j++) {
			ck_assert_msg(parse(cases[i].name, cases[i].bad[j], &options) == -EINVAL,
				"--%s %s", cases[i].name, cases[i].bad[j]);
		}
	}
}
END_TEST

START_TEST(too_many_variables_are_refused)
{
	struct options options = {0};
	for (size_t i = 0; i < OPTION_LIST_MAX; i++) {
		ck_assert_int_eq(parse("env", "A=b", &options), 0);
	}
	ck_assert_int_eq(parse("env", "A=b", &options), -EINVAL);
}
END_TEST

/* A process that waits, and one that is gone. */
START_TEST(a_thread_that_ended_keeps_its_share)
{
	static struct exec_usage usage;
	exec_usage_init(&usage, getpid(), 0);
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	usage.run_delay_ns = usage.iodelay_ticks = 7; /* of the time before */
	exec_usage_begin(&usage);
	ck_assert_uint_eq(usage.run_delay_ns, 0);
	ck_assert_uint_eq(usage.iodelay_ticks, 0);
	ck_assert_uint_eq(usage.peak_rss_bytes, 0);
	ck_assert_uint_eq(usage.thread_count, 1);
	exec_usage_sample(&usage);
	ck_assert_uint_eq(usage.process_count, 1);
	ck_assert_uint_eq(usage.thread_count, 1);
	ck_assert_uint_gt(usage.peak_rss_bytes, 0);
	uint64_t delay_ns = usage.run_delay_ns;
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	exec_usage_sample(&usage);
	ck_assert_uint_eq(usage.thread_count, 0);
	ck_assert_uint_eq(usage.run_delay_ns, delay_ns);
	ck_assert_uint_eq(usage.threads_peak, 1);
}
END_TEST
