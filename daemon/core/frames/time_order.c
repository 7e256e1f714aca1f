/* time_order.c: sorts begins, ends and ticks of several threads by time, with a merge sort from the
 * bottom up that needs no more memory than the caller's spare array. */
#include "daemon/core/frames/time_order.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static uint64_t time_at(const char *items, size_t index, size_t size)
{
	uint64_t t_ns;
	memcpy(&t_ns, items + index * size, sizeof(t_ns));
	return t_ns;
}

static bool is_sorted(const char *items, size_t count, size_t size)
{
	for (size_t i = 1; i < count; i++) {
		if (time_at(items, i - 1, size) > time_at(items, i, size)) {
			return false;
		}
	}
	return true;
}

/* Merges width sorted items from start on with the width behind them. */
static void merge(const char *from, char *to, size_t start, size_t width, size_t count, size_t size)
{
	size_t middle = start + width < count ? start + width : count;
	size_t end = middle + width < count ? middle + width : count;
	size_t left = start, right = middle;
	for (size_t at = start; at < end; at++) {
		bool of_left =
			right == end ||
			(left < middle && time_at(from, left, size) <= time_at(from, right, size));
		memcpy(to + at * size, from + (of_left ? left++ : right++) * size, size);
	}
}

void time_order(void *items, void *spare, size_t count, size_t size)
{
	char *from = items, *to = spare;
	if (is_sorted(items, count, size)) {
		return;
	}
	for (size_t width = 1; width < count; width *= 2) {
		for (size_t start = 0; start < count; start += 2 * width) {
			merge(from, to, start, width, count, size);
		}
		char *merged = to;
		to = from;
		from = merged;
	}
	if (from != items) {
		memcpy(items, from, count * size);
	}
}
