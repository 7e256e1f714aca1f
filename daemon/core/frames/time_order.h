/* time_order.h: sorts what was read from one thread after the other by time. */
#pragma once

#include <stddef.h>

/* Sorts count items of size bytes, each of which begins with its uint64_t time, in place. Stable;
 * one pass over what is sorted already, and no order of times makes it slow. spare: as large. */
void time_order(void *items, void *spare, size_t count, size_t size);
