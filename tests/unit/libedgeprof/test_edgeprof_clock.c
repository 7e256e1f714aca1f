/* SPDX-License-Identifier: Apache-2.0 */
/* EDGEPROF_CLOCK=tsc: when the counter is read, how far it is off, and what happens when the clock
 * and the counter part. The clock is the test's: it replaces clock_gettime, counts the calls and is
 * ahead by as much as the test says. */
#include <limits.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/unit/libedgeprof/edgeprof_case.h"
#include "tests/unit/unit.h"

enum { ERROR_MAX_NS = 1000, SECOND_NS = 1000000000 };

static atomic_ullong ahead_ns;
static atomic_ulong calls;

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	calls++;
	if (syscall(SYS_clock_gettime, clock, ret) < 0) {
		return -1;
	}
	if (clock == CLOCK_MONOTONIC) {
		unsigned long long ns = (unsigned long long)ret->tv_nsec + ahead_ns;
		ret->tv_sec += (time_t)(ns / SECOND_NS);
		ret->tv_nsec = (long)(ns % SECOND_NS);
	}
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
}

/* Where the kernel itself does not use the counter there is nothing to test. */
static bool kernel_uses_tsc(void)
{
	char text[16] = "";
	FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
	if (file) {
		(void)!fgets(text, sizeof(text), file);
		fclose(file);
	}
	if (strcmp(text, "tsc\n") != 0) {
		printf("the kernel's clock is not tsc: skipped\n");
	}
	return strcmp(text, "tsc\n") == 0;
}

static void attach_with_counter(void)
{
	setenv("EDGEPROF_CLOCK", "tsc", 1);
	attach();
}

struct watch {
	uint64_t before_ns, after_ns, last_end_ns;
	uint64_t error_ns;
	bool back;
};

static void look(void *ctx, uint32_t slot, const struct proto_record *record)
{
	struct watch *w = ctx;
	(void)slot;
	uint64_t end_ns = record->start_ns + record->value;
	uint64_t early = w->before_ns > record->start_ns ? w->before_ns - record->start_ns : 0;
	uint64_t late = end_ns > w->after_ns ? end_ns - w->after_ns : 0;
	uint64_t error = early > late ? early : late;
	w->error_ns = error > w->error_ns ? error : w->error_ns;
	w->back = w->back || record->start_ns < w->last_end_ns || record->value > SECOND_NS;
	w->last_end_ns = end_ns;
}

/* Stages for so long, each compared with the clock before and after it. */
static struct watch run(int stage, uint64_t duration_ns)
{
	struct watch w = {0};
	uint64_t begin_ns = now_ns();
	fake_drain(&fake, NULL, NULL);
	do {
		w.before_ns = now_ns();
		edgeprof_end(edgeprof_begin(stage));
		w.after_ns = now_ns();
		fake_drain(&fake, look, &w);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	} while (w.after_ns - begin_ns < duration_ns);
	return w;
}

/* Of the calls of 20 stages, the fewest of some tries: one of them may be due for the look of each
 * second. */
static unsigned long calls_of_20(int stage)
{
	unsigned long least = ULONG_MAX;
	for (int i = 0; i < 5; i++) {
		unsigned long before = calls;
		for (int k = 0; k < 20; k++) {
			edgeprof_end(edgeprof_begin(stage));
		}
		least = calls - before < least ? calls - before : least;
	}
	return least;
}

/* A machine with other things to do may take more than the second. */
static void run_until_counter(int stage)
{
	for (int i = 0; i < 100 && calls_of_20(stage) != 0; i++) {
		run(stage, 200000000);
	}
	ck_assert_uint_eq(calls_of_20(stage), 0);
}

#if defined(__x86_64__) && defined(__LP64__)
static const bool has_counter = true;
#else
static const bool has_counter = false;
#endif

SKIP_UNLESS(has_counter, "the library reads the counter of x86-64 processors only");
TEST_TIMEOUT(90);
FIXTURE(NULL, finish);

/* Over the ends of seconds; and whoever replaces clock_gettime is asked. */
START_TEST(times_are_those_of_clock_gettime_unless_asked_otherwise)
{
	attach();
	int stage = edgeprof_stage("infer");
	struct watch w = run(stage, 2200000000);
	ck_assert_uint_eq(w.error_ns, 0);
	ck_assert(!w.back);
	ck_assert_uint_eq(calls_of_20(stage), 40);
}
END_TEST

START_TEST(a_compared_counter_takes_the_place_of_the_clock)
{
	if (!kernel_uses_tsc()) {
		return;
	}
	attach_with_counter();
	int stage = edgeprof_stage("infer");
	ck_assert_uint_eq(calls_of_20(stage), 40);
	run_until_counter(stage);
	struct watch w = run(stage, 4200000000);
	ck_assert_uint_le(w.error_ns, ERROR_MAX_NS);
	ck_assert(!w.back);
}
END_TEST

/* As after a suspend or a jump of the virtual machine. */
START_TEST(a_clock_that_parts_from_the_counter_is_followed)
{
	if (!kernel_uses_tsc()) {
		return;
	}
	attach_with_counter();
	int stage = edgeprof_stage("infer");
	run_until_counter(stage);
	ahead_ns += 50000000;
	struct watch w = run(stage, 1200000000); /* until the next comparison */
	ck_assert(!w.back);
	w = run(stage, 3000000000);
	ck_assert_uint_le(w.error_ns, ERROR_MAX_NS);
	ck_assert(!w.back);
	run_until_counter(stage);
	/* behind: the time of the thread stands still until the clock is there */
	ahead_ns -= 50000000;
	w = run(stage, 1200000000);
	ck_assert(!w.back);
	w = run(stage, 3000000000);
	ck_assert_uint_le(w.error_ns, ERROR_MAX_NS);
	ck_assert(!w.back);
}
END_TEST

START_TEST(an_app_that_pauses_has_the_clock)
{
	if (!kernel_uses_tsc()) {
		return;
	}
	attach_with_counter();
	int stage = edgeprof_stage("infer");
	run_until_counter(stage);
	sleep(3);
	ck_assert_uint_eq(run(stage, 0).error_ns, 0);
	ck_assert_uint_eq(calls_of_20(stage), 40);
	run_until_counter(stage);
}
END_TEST
