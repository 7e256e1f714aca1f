/* SPDX-License-Identifier: Apache-2.0 */
/* plot.h: computes filled graphs and bars out of characters: braille, blocks, or ASCII. */
#pragma once

#include <stddef.h>

enum plot_style { PLOT_BRAILLE, PLOT_BLOCKS, PLOT_ASCII };

enum { PLOT_CELL = 4 };

/* One character with its left and its right half filled from below, 0 to 4 quarters each. Blocks
 * and ASCII show the fuller half. */
const char *plot_cell(enum plot_style style, unsigned left, unsigned right, char ret[PLOT_CELL]);

/* Quarters of that row (0 is the lowest) of a graph of `rows` rows between low and high; NAN is 0,
 * every other value fills a quarter of the lowest row at least. */
unsigned plot_fill(double value, double low, double high, unsigned row, unsigned rows);

/* Divides `width` columns among parts such that their sum is never more, and a part above 0 gets a
 * column while there are enough. `full` is what the width stands for. Returns the columns in use.
 */
unsigned plot_divide(const double *parts, size_t count, double full, unsigned width, unsigned *ret);
