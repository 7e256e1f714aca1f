/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a long span costs per event: adding lognormal durations to a histogram, beside a loop that
 * only loads them (the floor) and one that appends them to an array of floats (what it replaces).
 * In turns in the same run, medians of many rounds. Then what is asked once: four percentiles, a
 * merge, a difference; and the sort of a window of 1024 against qsort.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/histogram.h"
#include "proto/percentile.h"
#include "tests/bench/bench.h"

enum { VALUES = 16384, ROUNDS = 301, WINDOW = 1024 };

static uint64_t values[VALUES];
static float array[VALUES];
static struct proto_histogram histogram, part, rest;
static double sorted[WINDOW];

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

static void percentiles(void)
{
	static const double p[] = {50, 90, 95, 99};
	double ret[4];
	proto_histogram_percentiles(&histogram, p, ret, 4);
	keep(ret);
}

static void merge(void)
{
	rest = part;
	proto_histogram_add_all(&rest, &part);
	keep(&rest);
}

static void subtract(void)
{
	proto_histogram_subtract(&histogram, &part, &rest);
	keep(&rest);
}

/* Another part of the values each round: one order again and again is learnt by the processor. */
static void new_window(void)
{
	static size_t at;
	for (size_t i = 0; i < WINDOW; i++) {
		sorted[i] = (double)values[(at + i) % VALUES];
	}
	at += 999;
}

static void only_window(void)
{
	new_window();
	keep(sorted);
}

static void ours(void)
{
	new_window();
	proto_sort(sorted, WINDOW);
	keep(sorted);
}

static void theirs(void)
{
	new_window();
	qsort(sorted, WINDOW, sizeof(sorted[0]), by_value);
	keep(sorted);
}

static double gauss(void)
{
	double sum = -6;
	for (int i = 0; i < 12; i++) {
		sum += (double)rand() / RAND_MAX;
	}
	return sum;
}

int main(void)
{
	static void (*const runs[])(void) = {
		load, append, add, percentiles, merge, subtract, only_window, ours, theirs};
	enum { LOAD, APPEND, ADD, PERCENTILES, MERGE, SUBTRACT, COPY, OURS, THEIRS, RUNS };
	static double ns[RUNS][ROUNDS], median[RUNS];
	srand(1);
	for (size_t i = 0; i < VALUES; i++) {
		values[i] = (uint64_t)(8e6 * exp(0.6 * gauss()));
	}
	proto_histogram_init(&histogram);
	proto_histogram_init(&part);
	for (size_t i = 0; i < VALUES / 2; i++) {
		proto_histogram_add(&part, values[i]);
	}
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < RUNS; i++) {
			double start = now_ns();
			runs[i]();
			ns[i][r] = now_ns() - start;
		}
	}
	for (int i = 0; i < RUNS; i++) {
		qsort(ns[i], ROUNDS, sizeof(double), by_value);
		median[i] = ns[i][ROUNDS / 2];
	}
	double floor_ns = median[LOAD] / VALUES, add_ns = median[ADD] / VALUES;
	double append_ns = median[APPEND] / VALUES;
	printf("histogram: %.2f KiB, add %.2f ns (load alone %.2f ns: ratio %.1f; float append "
	       "%.2f ns: ratio %.1f)\n",
		(double)sizeof(histogram) / 1024, add_ns, floor_ns, add_ns / floor_ns, append_ns,
		add_ns / append_ns);
	printf("histogram: 4 percentiles %.2f us, merge %.2f us, difference %.2f us\n",
		median[PERCENTILES] / 1e3, median[MERGE] / 1e3, median[SUBTRACT] / 1e3);
	printf("sort of %d: %.1f us, qsort %.1f us\n", WINDOW, (median[OURS] - median[COPY]) / 1e3,
		(median[THEIRS] - median[COPY]) / 1e3);
	return histogram.count != (uint64_t)VALUES * ROUNDS;
}
