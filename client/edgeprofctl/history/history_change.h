/* How far a series left the range it had before: pure reckoning over rows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* Least and largest value, mean of the means, first and last mean; NAN when there is no row. */
struct range {
	double least, most, mean, first, last;
	int64_t first_us, last_us;
	unsigned rows;
};

struct change {
	struct range before, within;
	double score; /* excess over the range before, in widths of that range; 0 = stayed in it */
	double extreme;	 /* the value that went furthest */
	int64_t time_us; /* of the row that left the range first */
};

/* Rows before from_us are what it is compared with. False: no row lies in from_us … to_us. A series
 * without rows before is new: its score is what it moved by. Counters are judged by how fast they
 * grow. */
bool change_find(const cJSON *series, int64_t from_us, int64_t to_us, struct change *ret);
