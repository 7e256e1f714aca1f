/* SPDX-License-Identifier: Apache-2.0 */
/* plot.c: turns numbers into the characters of graphs and bars; it draws nothing. */
#include "client/edgeprofctl/term/plot.h"

#include <math.h>
#include <stdio.h>

const char *plot_cell(enum plot_style style, unsigned left, unsigned right, char ret[PLOT_CELL])
{
	/* the dots of a column from below, in the numbering of Unicode's U+2800 */
	static const unsigned char left_dots[] = {0, 0x40, 0x44, 0x46, 0x47};
	static const unsigned char right_dots[] = {0, 0x80, 0xa0, 0xb0, 0xb8};
	static const char *const blocks[] = {" ", "▂", "▄", "▆", "█"};
	static const char *const ascii[] = {" ", ".", ":", "|", "#"};
	unsigned more = left > right ? left : right;
	if (style == PLOT_BRAILLE && more > 0) {
		unsigned dots = left_dots[left] | (unsigned)right_dots[right];
		ret[0] = (char)0xe2;
		ret[1] = (char)(0xa0 | dots >> 6);
		ret[2] = (char)(0x80 | (dots & 0x3f));
		ret[3] = '\0';
	} else {
		snprintf(ret, PLOT_CELL, "%s", style == PLOT_ASCII ? ascii[more] : blocks[more]);
	}
	return ret;
}

unsigned plot_fill(double value, double low, double high, unsigned row, unsigned rows)
{
	if (!isfinite(value)) {
		return 0;
	}
	double share = high > low ? (value - low) / (high - low) : 0;
	double quarters = round(fmin(fmax(share, 0), 1) * 4 * rows);
	double left = fmax(quarters, 1) - 4.0 * row;
	return (unsigned)fmin(fmax(left, 0), 4);
}

unsigned plot_divide(const double *parts, size_t count, double full, unsigned width, unsigned *ret)
{
	double sum = 0;
	unsigned used = 0;
	for (size_t i = 0; i < count; i++) {
		double part = isfinite(parts[i]) && parts[i] > 0 ? parts[i] : 0;
		sum += part;
		double end = full > 0 ? round(fmin(sum / full, 1) * width) : 0;
		unsigned columns = end > used ? (unsigned)end - used : 0;
		columns = columns == 0 && part > 0 && used < width ? 1 : columns;
		ret[i] = columns;
		used += columns;
	}
	return used;
}
