/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_tsc.c: reads the time from the processor's counter, EDGEPROF_CLOCK=tsc. Once a second the
 * counter is compared with the kernel's clock. The line through the last two comparisons counts up
 * to the next whole second, when the next one is due, bent so that it starts where the line before
 * it ends and meets the kernel's clock a second later. Whatever is not as it should be (the first
 * second, a pause, a suspend, a kernel that slews its clock, a counter that is not the same on all
 * processors) costs a second on the kernel's clock.
 */
#include "client/libedgeprof/private.h"

#if defined(__x86_64__) && defined(__LP64__)

#include <cpuid.h>
#include <fcntl.h>
#include <unistd.h>
#include <x86intrin.h>

enum {
	SAMPLES = 5,	     /* the one that took least is the best */
	ERROR_MAX_NS = 1000, /* of a line that goes on */
	SECOND_NS = 1000000000,
	PERIOD_MIN_NS = 500000000,  /* between two comparisons */
	PERIOD_MAX_NS = 1500000000, /* of those that a line goes through */
	SUSPEND_NS = 1000000,	    /* less is the time between two readings */
};

__extension__ typedef unsigned __int128 wide;

struct sample {
	uint64_t ticks, ns;
	int64_t suspended_ns; /* since the boot */
};

static struct {
	/* read by every stage, under the sequence: odd while it changes */
	_Alignas(64) uint32_t sequence;
	uint64_t ticks, ns; /* where the line begins */
	uint64_t slope;	    /* ns << 32 of a tick */
	uint64_t ticks_max; /* so far it counts; 0: not at all */
	clock_fn *kernel;   /* NULL: the counter is not in use */
	/* under the channel's lock */
	struct sample last;
} counter;

static __thread uint64_t latest_ns __attribute__((tls_model("initial-exec")));

#define LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

static uint64_t along(uint64_t ticks, uint64_t slope)
{
	return (uint64_t)((wide)ticks * slope >> 32);
}

/* False: no line, or one that is just changing. */
static inline bool read_line(uint64_t *ret)
{
	uint32_t sequence = __atomic_load_n(&counter.sequence, __ATOMIC_ACQUIRE);
	uint64_t ticks_max = LOAD(&counter.ticks_max);
	if (UNLIKELY(ticks_max == 0)) {
		return false;
	}
	uint64_t ticks = __rdtsc() - LOAD(&counter.ticks);
	*ret = LOAD(&counter.ns) + along(ticks, LOAD(&counter.slope));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return ticks < ticks_max && !(sequence & 1) && LOAD(&counter.sequence) == sequence;
}

/* No thread sees the time go back, from one line to the next or to the kernel's clock. */
static inline uint64_t forward(uint64_t now_ns)
{
	now_ns = now_ns > latest_ns ? now_ns : latest_ns;
	latest_ns = now_ns;
	return now_ns;
}

static uint64_t read_kernel(clockid_t clock)
{
	struct timespec ts;
	counter.kernel(clock, &ts);
	return timespec_ns(&ts);
}

static __attribute__((noinline, cold)) int without_line(struct timespec *ret)
{
	uint64_t now_ns = forward(read_kernel(CLOCK_MONOTONIC));
	ret->tv_sec = (time_t)(now_ns / SECOND_NS);
	ret->tv_nsec = (long)(now_ns % SECOND_NS);
	return 0;
}

/* On a line the seconds are part of the nanoseconds: it ends before a comparison is due. */
static int counter_gettime(clockid_t clock, struct timespec *ret)
{
	uint64_t now_ns;
	(void)clock;
	if (UNLIKELY(!read_line(&now_ns))) {
		return without_line(ret);
	}
	ret->tv_sec = 0;
	ret->tv_nsec = (long)forward(now_ns);
	return 0;
}

static struct sample take_sample(void)
{
	struct sample best = {0, 0, 0};
	uint64_t least = UINT64_MAX;
	unsigned processor;
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t before = __rdtscp(&processor);
		uint64_t ns = read_kernel(CLOCK_MONOTONIC);
		uint64_t took = __rdtscp(&processor) - before;
		if (took < least) {
			least = took;
			/* the difference of the two clocks, as of the quickest try */
			int64_t suspended_ns = (int64_t)(read_kernel(CLOCK_BOOTTIME) - ns);
			best = (struct sample){before + took / 2, ns, suspended_ns};
		}
	}
	return best;
}

/* Two comparisons that a line can go through. */
static bool is_steady(const struct sample *from, const struct sample *to)
{
	uint64_t period_ns = to->ns - from->ns;
	int64_t suspended_ns = to->suspended_ns - from->suspended_ns;
	return from->ns != 0 && period_ns <= PERIOD_MAX_NS && to->ticks > from->ticks &&
	       suspended_ns < SUSPEND_NS && suspended_ns > -SUSPEND_NS;
}

static void set_line(uint64_t ticks, uint64_t ns, uint64_t slope, uint64_t ticks_max)
{
	/* a child of a fork may find it odd */
	uint32_t writing = LOAD(&counter.sequence) | 1;
	STORE(&counter.sequence, writing);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	STORE(&counter.ticks, ticks);
	STORE(&counter.ns, ns);
	STORE(&counter.slope, slope);
	STORE(&counter.ticks_max, ticks_max);
	__atomic_store_n(&counter.sequence, writing + 1, __ATOMIC_RELEASE);
}

void clock_calibrate(void)
{
	if (!counter.kernel) {
		return;
	}
	struct sample last = counter.last, now = take_sample();
	if (now.ns - last.ns < PERIOD_MIN_NS) {
		return; /* an edgeprof_init between the seconds */
	}
	counter.last = now;
	uint64_t ticks = now.ticks - last.ticks, ns = now.ns;
	if (counter.ticks_max != 0) {
		ns = counter.ns + along(now.ticks - counter.ticks, counter.slope);
	}
	int64_t error_ns = (int64_t)(now.ns - ns);
	if (!is_steady(&last, &now) || error_ns > ERROR_MAX_NS || error_ns < -ERROR_MAX_NS) {
		set_line(0, 0, 0, 0);
		return;
	}
	uint64_t second_ns = now.ns - last.ns; /* so long the next one will be, too */
	uint64_t slope = (uint64_t)(((wide)(second_ns + (uint64_t)error_ns) << 32) / ticks);
	uint64_t left_ns = SECOND_NS - now.ns % SECOND_NS;
	set_line(now.ticks, ns, slope, (uint64_t)((wide)ticks * left_ns / second_ns));
}

void clock_forget(void)
{
	counter.last = (struct sample){0, 0, 0};
	set_line(0, 0, 0, 0);
}

/* The kernel trusts it, and it runs at one rate in all states of the processor. */
static bool is_usable(void)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	const unsigned invariant = 1u << 8, rdtscp = 1u << 27;
	unsigned a, b, c, d;
	char text[8] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	bool kernel = read(fd, text, sizeof(text) - 1) == 4 && strcmp(text, "tsc\n") == 0;
	close(fd);
	return kernel && __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & invariant) &&
	       __get_cpuid(0x80000001, &a, &b, &c, &d) && (d & rdtscp);
}

clock_fn *clock_counter(clock_fn *kernel)
{
	if (!is_usable()) {
		return kernel;
	}
	counter.kernel = kernel;
	return counter_gettime;
}

#else /* no such counter */

clock_fn *clock_counter(clock_fn *kernel)
{
	return kernel;
}

void clock_calibrate(void)
{
}

void clock_forget(void)
{
}

#endif
