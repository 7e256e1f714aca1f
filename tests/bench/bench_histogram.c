/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a long span costs per event: adding lognormal durations to a histogram, beside a loop that
 * only loads them (the floor) and one that appends them to an array of floats (what it replaces).
 * In random order in the same run, medians of many rounds.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/histogram.h"
#include "tests/bench/bench.h"

enum { VALUES = 16384, ROUNDS_MAX = 101 };

static uint64_t values[VALUES];
static float array[VALUES];
static struct proto_histogram histogram;

/* The compiler must take memory for changed: each value is loaded one by one in every loop. */
static inline void keep(const void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

static void load(void)
{
	for (size_t i = 0; i < VALUES; i++) {
		uint64_t value = values[i];
		__asm__ volatile("" : : "r"(value));
	}
}

static void append(void)
{
	for (size_t i = 0; i < VALUES; i++) {
		array[i] = (float)values[i];
		keep(array);
	}
}

static void add(void)
{
	for (size_t i = 0; i < VALUES; i++) {
		proto_histogram_add(&histogram, values[i]);
		keep(&histogram);
	}
}

/* The largest error of a percentile, in percent. */
static double error_percent(void)
{
	static const double p[] = {50, 90, 95, 99};
	static double exact[VALUES];
	double got[4], largest = 0;
	for (size_t i = 0; i < VALUES; i++) {
		exact[i] = (double)values[i];
	}
	qsort(exact, VALUES, sizeof(exact[0]), by_value);
	proto_histogram_percentiles(&histogram, p, got, 4);
	for (size_t k = 0; k < 4; k++) {
		double value = exact[(size_t)(p[k] / 100 * (VALUES - 1))];
		largest = fmax(largest, 100 * fabs(got[k] / value - 1));
	}
	return largest;
}

static double gauss(void)
{
	double sum = -6;
	for (int i = 0; i < 12; i++) {
		sum += (double)rand() / RAND_MAX;
	}
	return sum;
}

int main(int argc, char **argv)
{
	static void (*const runs[])(void) = {load, append, add};
	enum { LOAD, APPEND, ADD, RUNS };
	static double ns[RUNS][ROUNDS_MAX];
	size_t rounds = is_short(argc, argv) ? 3 : ROUNDS_MAX;
	srand(1);
	for (size_t i = 0; i < VALUES; i++) {
		values[i] = (uint64_t)(8e6 * exp(0.6 * gauss()));
	}
	proto_histogram_init(&histogram, calloc);
	for (size_t r = 0; r < rounds; r++) {
		int first = toss() + toss();
		for (int i = 0; i < RUNS; i++) {
			double start = now_ns();
			runs[(first + i) % RUNS]();
			ns[(first + i) % RUNS][r] = (now_ns() - start) / VALUES;
		}
	}
	double loop_ns = median(ns[LOAD], rounds);
	result("histogram.add", median(ns[ADD], rounds) - loop_ns);
	result("histogram.add.floor", median(ns[APPEND], rounds) - loop_ns);
	result("histogram.size", (double)PROTO_HISTOGRAM_BYTES / 1024);
	result("histogram.error", error_percent());
	return histogram.count != (uint64_t)VALUES * rounds;
}
