/* SPDX-License-Identifier: Apache-2.0 */
/* html_lines.c: reduces values over time to columns, and draws them. */
#include <math.h>
#include <string.h>

#include "client/edgeprofctl/report/html.h"

void line_init(struct line *line, double span_s)
{
	memset(line, 0, sizeof(*line));
	line->span_s = span_s;
	line->low = INFINITY;
	line->high = -INFINITY;
}

void line_add(struct line *line, double at_s, double value)
{
	double at = at_s / line->span_s;
	if (!isfinite(value) || fabs(value) > 1e15 || !(at >= 0 && at <= 1)) {
		return;
	}
	struct line_column *column =
		&line->column[at < 1 ? (size_t)(at * LINE_COLUMNS) : LINE_COLUMNS - 1];
	column->low = column->count == 0 ? value : fmin(column->low, value);
	column->high = column->count == 0 ? value : fmax(column->high, value);
	column->sum += value;
	column->count++;
	line->low = fmin(line->low, value);
	line->high = fmax(line->high, value);
	line->points++;
}

/* Columns without a value up to which a line goes on. */
static size_t gap_of(const struct line *line)
{
	size_t gap = line->points > 0 ? 5 * LINE_COLUMNS / line->points : 0;
	return gap > 2 ? gap : 2;
}

double line_mean(const struct line *line, double from, double to, double *most)
{
	double sum = 0;
	size_t count = 0, first = (size_t)(from * LINE_COLUMNS);
	*most = NAN;
	for (size_t i = first; i < LINE_COLUMNS && (double)i < to * LINE_COLUMNS - 0.5; i++) {
		if (line->column[i].count > 0) {
			sum += line->column[i].sum;
			count += line->column[i].count;
			*most = fmax(*most, line->column[i].high); /* fmax ignores NAN */
		}
	}
	/* a slow sensor: its last value is still in force */
	for (size_t back = 1; count == 0 && back <= gap_of(line) && back <= first; back++) {
		sum = line->column[first - back].sum;
		count = line->column[first - back].count;
	}
	return count > 0 ? sum / (double)count : NAN;
}

static void draw(FILE *out, const struct line *line, bool means, double bottom, double top)
{
	size_t last = LINE_COLUMNS, gap = gap_of(line);
	for (size_t i = 0; i < LINE_COLUMNS; i++) {
		const struct line_column *column = &line->column[i];
		double mean = column->sum / (double)column->count;
		double values[] = {means ? mean : column->low, means ? mean : column->high};
		for (size_t k = 0; column->count > 0 && k < 1 + (values[0] < values[1]); k++) {
			bool begins = last == LINE_COLUMNS || i - last > gap;
			double y = 1000 - html_percent(values[k] - bottom, top - bottom) * 10;
			html(out, "%s%d,%.0f%s", begins ? "M" : "L",
				(int)((2 * i + 1) * 500 / LINE_COLUMNS), y, begins ? "h1" : "");
			last = i;
		}
	}
	fputs("\"/>", out);
}

void line_write(FILE *out, const struct line *line, int color, double bottom, double top)
{
	bool many = line->points > 2 * LINE_COLUMNS;
	html(out, "<path class=\"l%d%s\" d=\"", color, many ? " band" : "");
	draw(out, line, false, bottom, top);
	if (many) {
		html(out, "<path class=\"l%d\" d=\"", color);
		draw(out, line, true, bottom, top);
	}
}
