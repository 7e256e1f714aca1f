/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h: what the programs of this folder share: clocks, medians, processors, and the lines
 * "KEY NUMBER" that tests/bench/run reads. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline double clock_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline double now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Time in units of its own, without a look at the kernel's clock page: what is measured may find
 * that page cold. */
static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
	_mm_lfence();
	uint64_t t = __rdtsc();
	_mm_lfence();
	return t;
#elif defined(__aarch64__)
	uint64_t t;
	__asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(t) : : "memory");
	return t;
#else
	return (uint64_t)now_ns();
#endif
}

static inline int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Sorts the values. */
static inline double median(double *values, size_t count)
{
	qsort(values, count, sizeof(values[0]), by_value);
	return values[count / 2];
}

/* True when the program only has to show that it works. */
static inline bool is_short(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[argc - 1], "short") == 0;
}

/* Which variant comes first in this round. */
static inline bool toss(void)
{
	static uint64_t state;
	state = (state ? state : (uint64_t)now_ns() | 1) * UINT64_C(6364136223846793005) + 1;
	return state >> 63;
}

/* Keeps this thread on the first processor that the process may use, or on the last one; the first
 * call must be over before there are threads, for they inherit. False when there is only one. */
static inline bool keep_on(bool last)
{
	static int first = -1, end;
	cpu_set_t set;
	if (first < 0 && sched_getaffinity(0, sizeof(set), &set) == 0) {
		for (int i = 0; i < CPU_SETSIZE; i++) {
			if (CPU_ISSET(i, &set)) {
				first = first < 0 ? i : first;
				end = i;
			}
		}
	}
	CPU_ZERO(&set);
	CPU_SET(last ? end : first, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0 && end > first;
}

static inline void result(const char *key, double value)
{
	printf("%s %.6g\n", key, value);
	fflush(stdout);
}
