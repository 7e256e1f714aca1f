/* SPDX-License-Identifier: Apache-2.0 */
/* history_views.c: draws plots for the terminal, braille cells of 2 x 4 dots or 1 x 2 in ASCII, and
 * prints tables, a line per step and a column per series. Each column of dots of a plot covers the
 * range of the values of its time, so that a short peak is not lost in a mean. */
#include "client/edgeprofctl/history/history_views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/history/history_rows.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"
#include "client/edgeprofctl/term/text.h"

enum { HEIGHT = 8, LABEL = 12, CELLS_MAX = 200, DOTS_MAX = 2 * CELLS_MAX };

struct plot {
	size_t cells, across, down; /* dots in a cell */
	struct rows_span span;
	const struct boots *boots;
	const char *aggregate; /* NULL: from the minimum to the maximum */
	double least, most;
	double low[DOTS_MAX], high[DOTS_MAX];
};

static void plot_init(struct plot *plot, const struct style *style, const struct rows_span *span,
	const struct boots *boots)
{
	size_t width = style->width == 0 ? 80 : style->width;
	size_t cells = width > LABEL + 12 ? width - LABEL - 2 : 10;
	plot->cells = cells < CELLS_MAX ? cells : CELLS_MAX;
	plot->across = style->utf8 ? 2 : 1;
	plot->down = style->utf8 ? 4 : 2;
	plot->span = *span;
	plot->boots = boots;
	plot->least = plot->most = NAN;
	for (size_t i = 0; i < plot->cells * plot->across; i++) {
		plot->low[i] = plot->high[i] = NAN;
	}
}

static void plot_add(struct plot *plot, const struct row *row)
{
	double length = (double)(plot->span.to_us - plot->span.from_us) + 1;
	double share = (double)(row->time_us - plot->span.from_us) / length;
	if (!(share >= 0 && share < 1)) {
		return;
	}
	size_t column = (size_t)(share * (double)(plot->cells * plot->across));
	double one = row_value(row, plot->aggregate);
	double low = plot->aggregate ? one : fmin(row->min, row->mean);
	double high = plot->aggregate ? one : fmax(row->max, row->mean);
	plot->low[column] = fmin(plot->low[column], low);
	plot->high[column] = fmax(plot->high[column], high);
	plot->least = fmin(plot->least, plot->low[column]);
	plot->most = fmax(plot->most, plot->high[column]);
}

/* A plot is as wide as there are points: few points would be dots in a void. */
static void plot_narrow(struct plot *plot, size_t rows)
{
	size_t cells = (rows + plot->across - 1) / plot->across;
	plot->cells = cells < 10 ? 10 : cells < plot->cells ? cells : plot->cells;
}

/* The row of dots, from below, that a value falls into. */
static size_t level(const struct plot *plot, double value)
{
	double range = plot->most - plot->least;
	size_t last = HEIGHT * plot->down - 1;
	double share = range > 0 ? (value - plot->least) / range : 0;
	return (size_t)llround(share * (double)last);
}

/* The dots of one cell, bit x + across * y, y from above. */
static unsigned cell(const struct plot *plot, size_t cell_x, size_t cell_y)
{
	unsigned dots = 0;
	for (size_t x = 0; x < plot->across; x++) {
		size_t column = cell_x * plot->across + x;
		if (!isfinite(plot->low[column]) || !isfinite(plot->high[column])) {
			continue;
		}
		size_t low = level(plot, plot->low[column]), high = level(plot, plot->high[column]);
		for (size_t y = 0; y < plot->down; y++) {
			size_t at = (HEIGHT - cell_y) * plot->down - 1 - y;
			dots |= (at >= low && at <= high) ? 1U << (x + plot->across * y) : 0;
		}
	}
	return dots;
}

static void put_cell(FILE *out, unsigned dots, bool utf8)
{
	/* The bits of U+2800 count down the left column, then the right one, the last row apart. */
	static const unsigned braille[8] = {0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80};
	static const char ascii[4] = {' ', '\'', '.', ':'};
	if (!utf8) {
		fputc(ascii[dots & 3], out);
		return;
	}
	unsigned bits = 0;
	for (unsigned i = 0; i < 8; i++) {
		bits |= (dots >> i & 1) != 0 ? braille[i] : 0;
	}
	if (bits == 0) {
		fputc(' ', out);
		return;
	}
	fprintf(out, "\xe2%c%c", (char)(0xa0 + (bits >> 6)), (char)(0x80 + (bits & 0x3f)));
}

static void put_label(FILE *out, const char *text)
{
	size_t width = text_width(text);
	fprintf(out, "%*s%s ", width < LABEL ? (int)(LABEL - width) : 0, "", text);
}

/* Does a boot begin in this cell? */
static bool boot_begins(const struct plot *plot, size_t cell_x)
{
	double length = (double)(plot->span.to_us - plot->span.from_us) + 1;
	for (size_t i = 1; i < plot->boots->count; i++) {
		double share = (double)(plot->boots->boot[i].from_us - plot->span.from_us) / length;
		if (share >= 0 && (size_t)(share * (double)plot->cells) == cell_x) {
			return true;
		}
	}
	return false;
}

static void put_boot(struct ctl *ctl)
{
	fprintf(ctl->output.stream, "%s%s%s%s", style_off(&ctl->style, TONE_GOOD),
		style_on(&ctl->style, TONE_DIM), ctl->style.utf8 ? "┆" : "!",
		style_off(&ctl->style, TONE_DIM));
	fputs(style_on(&ctl->style, TONE_GOOD), ctl->output.stream);
}

static void draw(struct ctl *ctl, const struct plot *plot, const char *unit)
{
	FILE *out = ctl->output.stream;
	for (size_t y = 0; y < HEIGHT; y++) {
		struct label label = {""};
		if (y == 0 && plot->most > plot->least) {
			label = format_value(plot->most, unit, ctl->style.utf8);
		} else if (y == HEIGHT - 1) {
			label = format_value(plot->least, unit, ctl->style.utf8);
		}
		put_label(out, label.text);
		fprintf(out, "%s%s", ctl->style.utf8 ? "│" : "|", style_on(&ctl->style, TONE_GOOD));
		for (size_t x = 0; x < plot->cells; x++) {
			if (boot_begins(plot, x)) {
				put_boot(ctl);
			} else {
				put_cell(out, cell(plot, x, y), ctl->style.utf8);
			}
		}
		fprintf(out, "%s\n", style_off(&ctl->style, TONE_GOOD));
	}
	char from[64], to[64];
	snprintf(from, sizeof(from), "%s", format_time(plot->span.from_us).text);
	snprintf(to, sizeof(to), "%s", format_clock(plot->span.to_us).text);
	put_label(out, "");
	int rest = (int)plot->cells - (int)strlen(from);
	fprintf(out, " %s%s%*s%s\n", style_on(&ctl->style, TONE_DIM), from,
		rest > (int)strlen(to) ? rest : (int)strlen(to) + 2, to,
		style_off(&ctl->style, TONE_DIM));
}

void history_plot(struct ctl *ctl, const cJSON *reply, const struct boots *boots)
{
	const struct history_options *options = ctl->verb_options;
	struct rows_span span = rows_span(reply);
	struct plot *plot = malloc(sizeof(*plot));
	if (!plot) {
		ctl_fail(ctl, CTL_OUTPUT, "out of memory");
		return;
	}
	for (const cJSON *series = json_first(reply, "series"); series; series = series->next) {
		struct rows rows = rows_begin(series);
		struct row row;
		plot_init(plot, &ctl->style, &span, boots);
		plot_narrow(plot, span.rows);
		plot->aggregate = options->aggregate;
		while (rows_next(&rows, &row)) {
			plot_add(plot, &row);
		}
		if (isnan(plot->least)) {
			continue;
		}
		fprintf(ctl->output.stream, "%s%s%s\n", style_on(&ctl->style, TONE_BOLD),
			json_word(series, "name"), style_off(&ctl->style, TONE_BOLD));
		draw(ctl, plot, row_unit(json_word(series, "unit"), plot->aggregate));
	}
	boots_show(ctl, boots);
	free(plot);
}

enum { SERIES_MAX = 8 };

struct columns {
	struct rows rows[SERIES_MAX];
	struct row row[SERIES_MAX]; /* the next one of each */
	bool has[SERIES_MAX];
	const char *unit[SERIES_MAX];
	struct column column[SERIES_MAX + 1];
	size_t count;
	int skipped;
};

static void columns_begin(struct columns *columns, const cJSON *reply, const char *aggregate)
{
	memset(columns, 0, sizeof(*columns));
	columns->column[0] = (struct column){"TIME", false, false};
	for (const cJSON *series = json_first(reply, "series"); series; series = series->next) {
		size_t i = columns->count;
		if (json_count(series, "time_us") == 0) {
			continue;
		}
		if (i == SERIES_MAX) {
			columns->skipped++;
			continue;
		}
		columns->rows[i] = rows_begin(series);
		columns->has[i] = rows_next(&columns->rows[i], &columns->row[i]);
		columns->unit[i] = row_unit(json_word(series, "unit"), aggregate);
		columns->column[i + 1] = (struct column){json_word(series, "name"), true, false};
		columns->count++;
	}
}

/* The earliest time that is not shown yet. */
static bool next_time(const struct columns *columns, int64_t *ret_us)
{
	bool found = false;
	for (size_t i = 0; i < columns->count; i++) {
		if (columns->has[i] && (!found || columns->row[i].time_us < *ret_us)) {
			*ret_us = columns->row[i].time_us;
			found = true;
		}
	}
	return found;
}

/* A line of its own where a boot begins. */
static void boot_line(
	struct table *table, const struct columns *columns, const struct boots *boots, size_t *next)
{
	table_add(table, TONE_BOLD, "boot %u", (unsigned)boots->boot[(*next)++].seq);
	for (size_t i = 0; i < columns->count; i++) {
		table_add(table, TONE_NONE, "%s", "");
	}
}

void history_table(struct ctl *ctl, const cJSON *reply, const struct boots *boots)
{
	const struct history_options *options = ctl->verb_options;
	const char *aggregate = options->aggregate;
	struct columns columns;
	struct table table;
	int64_t time_us = 0;
	size_t boot = 1;
	columns_begin(&columns, reply, aggregate);
	table_init(&table, columns.column, columns.count + 1);
	while (next_time(&columns, &time_us)) {
		while (boot < boots->count && boots->boot[boot].from_us <= time_us) {
			boot_line(&table, &columns, boots, &boot);
		}
		table_add(&table, TONE_DIM, "%s", format_time(time_us).text);
		for (size_t i = 0; i < columns.count; i++) {
			if (!columns.has[i] || columns.row[i].time_us != time_us) {
				table_add(&table, TONE_DIM, "-");
				continue;
			}
			table_add(&table, TONE_NONE, "%s",
				format_value(row_value(&columns.row[i], aggregate), columns.unit[i],
					ctl->style.utf8)
					.text);
			columns.has[i] = rows_next(&columns.rows[i], &columns.row[i]);
		}
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
	if (columns.skipped > 0) {
		fprintf(ctl->output.stream, "(%d more series: a narrower GLOB, --csv or --json)\n",
			columns.skipped);
	}
}
