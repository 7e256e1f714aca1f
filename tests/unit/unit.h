/* SPDX-License-Identifier: Apache-2.0 */
/* unit.h: registers unit tests where they are defined. A file tests/unit/…/test_NAME.c is the
 * module NAME; it has no main and no list of its tests, because the runner of its layer (runner.c)
 * runs what these macros registered, in the order of the lines. They stand at file scope:
 *
 * - TEST_TIMEOUT(60): seconds per test of this file, instead of libcheck's;
 *
 * - FIXTURE(setup, teardown): runs around each test that follows, up to the next FIXTURE;
 *
 * - START_TEST(name) { … } END_TEST;
 *
 * - START_LOOP_TEST(name, from, to): once for each _i from FROM up to, not including, TO;
 *
 * - TEST_AGAIN(name, from, to): an earlier test once more, in the section that is open here;
 *
 * - SHARED_TESTS: what follows reads ../shared/fixtures, and is run by --shared;
 *
 * - SKIP_UNLESS(condition, "reason"): for the complete module;
 *
 * - PROGRAM_START(function): called with argv before anything else.
 *
 * A module that replaces a function of libc or of the daemon is linked alone: see meson.build. */
#pragma once

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

enum unit_kind { UNIT_TEST, UNIT_FIXTURE, UNIT_TIMEOUT, UNIT_SHARED, UNIT_CONDITION, UNIT_START };

struct unit_entry {
	enum unit_kind kind;
	const char *file;
	int line;
	char module[64]; /* NAME of file, set when it is registered */
	const TTest *test;
	int from, to; /* to: also the seconds of UNIT_TIMEOUT */
	void (*setup)(void), (*teardown)(void);
	bool (*condition)(void);
	const char *reason;
	void (*start)(char **argv);
	struct unit_entry *next;
};

/* Called before main, in no particular order. The entry stays the caller's. */
void unit_register(struct unit_entry *entry);

/* libcheck writes a file at each assertion that holds, which takes most of the time of a test that
 * asserts in a loop. Here each place in the code does so once: that is enough for the "(after this
 * point)" of a crash. */
#define _mark_point(file, line)                    \
	__extension__({                            \
		static bool marked_;               \
		if (!marked_) {                    \
			marked_ = true;            \
			(_mark_point)(file, line); \
		}                                  \
	})

/* How far a campaign goes: the first in ./test, the second with EDGEPROF_LONG=1. */
static inline int campaign(int quick, int complete)
{
	return getenv("EDGEPROF_LONG") ? complete : quick;
}

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

#define UNIT_JOIN_(a, b) a##b
#define UNIT_JOIN(a, b) UNIT_JOIN_(a, b)
#define UNIT_ENTRY(...)                                                                    \
	static struct unit_entry UNIT_JOIN(unit_entry_, __LINE__) = {                      \
		.file = __FILE__, .line = __LINE__, __VA_ARGS__};                          \
	__attribute__((constructor)) static void UNIT_JOIN(unit_register_, __LINE__)(void) \
	{                                                                                  \
		unit_register(&UNIT_JOIN(unit_entry_, __LINE__));                          \
	}                                                                                  \
	struct unit_entry

#define TEST_TIMEOUT(seconds) UNIT_ENTRY(.kind = UNIT_TIMEOUT, .to = (seconds))
#define FIXTURE(before, after) \
	UNIT_ENTRY(.kind = UNIT_FIXTURE, .setup = (before), .teardown = (after))
#define SHARED_TESTS UNIT_ENTRY(.kind = UNIT_SHARED)
#define PROGRAM_START(function) UNIT_ENTRY(.kind = UNIT_START, .start = (function))
#define SKIP_UNLESS(expression, why)     \
	static bool unit_condition(void) \
	{                                \
		return (expression);     \
	}                                \
	UNIT_ENTRY(.kind = UNIT_CONDITION, .condition = unit_condition, .reason = (why))

#define TEST_AGAIN(name, first, end) \
	UNIT_ENTRY(.kind = UNIT_TEST, .test = &name##_ttest, .from = (first), .to = (end))
#define START_LOOP_TEST(name, first, end)                                         \
	static void name##_fn(int _i);                                            \
	static const TTest name##_ttest = {#name, name##_fn, __FILE__, __LINE__}; \
	TEST_AGAIN(name, first, end);                                             \
	static void name##_fn(int _i CK_ATTRIBUTE_UNUSED)
#undef START_TEST
#define START_TEST(name) START_LOOP_TEST(name, 0, 1)
