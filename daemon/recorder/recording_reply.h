/* What the flight recorder must know of a reply of the daemon's own interface. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool reply_starts(const char *frame, size_t length, const char *with);
/* Do others follow? */
bool reply_continues(const char *frame, size_t length);
/* The number behind the last key of that name; 0: there is none. */
uint64_t reply_last_number(const char *frame, const char *key);
/* The rows of a chunk of records. */
uint64_t reply_count_rows(const char *frame);
