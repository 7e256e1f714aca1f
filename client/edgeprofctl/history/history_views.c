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

/* A plot is as wide as there are points: few points would be dots in a void. */
static void plot_init(struct plot *plot, const struct style *style, const struct rows_span *span)
{
	size_t width = style->width == 0 ? 80 : style->width;
	size_t cells = width > LABEL + 12 ? width - LABEL - 2 : 10;
	plot->across = style->utf8 ? 2 : 1;
	plot->down = style->utf8 ? 4 : 2;
	size_t wanted = (span->rows + plot->across - 1) / plot->across;
	cells = cells < CELLS_MAX ? cells : CELLS_MAX;
	plot->cells = wanted < 10 ? 10 : wanted < cells ? wanted : cells;
	plot->span = *span;
	plot->least = plot->most = NAN;
	for (size_t i = 0; i < plot->cells * plot->across; i++) {
		plot->low[i] = plot->high[i] = NAN;
	}
}

/* The column of dots or cells that a time falls into; outside of the plot their number. */
static size_t column_of(const struct plot *plot, int64_t time_us, size_t columns)
{
	double length = (double)(plot->span.to_us - plot->span.from_us) + 1;
	double share = (double)(time_us - plot->span.from_us) / length;
	return share >= 0 && share < 1 ? (size_t)(share * (double)columns) : columns;
}

static void plot_add(struct plot *plot, const struct row *row)
{
	size_t columns = plot->cells * plot->across,
	       column = column_of(plot, row->time_us, columns);
	if (column == columns) {
		return;
	}
	double one = row_value(row, plot->aggregate);
	double low = plot->aggregate ? one : fmin(row->min, row->mean);
	double high = plot->aggregate ? one : fmax(row->max, row->mean);
	plot->low[column] = fmin(plot->low[column], low);
	plot->high[column] = fmax(plot->high[column], high);
	plot->least = fmin(plot->least, plot->low[column]);
	plot->most = fmax(plot->most, plot->high[column]);
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
	for (size_t i = 1; i < plot->boots->count; i++) {
		if (column_of(plot, plot->boots->boot[i].from_us, plot->cells) == cell_x) {
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
	const struct options *options = &ctl->options;
	struct rows_span span = rows_span(reply);
	struct plot *plot = malloc(sizeof(*plot));
	if (!plot) {
		ctl_fail(ctl, CTL_OUTPUT, "out of memory");
		return;
	}
	for (const cJSON *series = json_first(reply, "series"); series; series = series->next) {
		struct rows rows = rows_begin(series);
		struct row row;
		plot_init(plot, &ctl->style, &span);
		plot->boots = boots;
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

/* A series and its next row. */
struct table_series {
	struct rows rows;
	struct row row;
	bool has_row;
	const char *unit;
};

static bool precedes(const struct row *a, const struct row *b)
{
	return a->boot != b->boot ? a->boot < b->boot : a->time_us < b->time_us;
}

/* The earliest row of the first boot that is not shown yet. */
static bool next_row(const struct table_series *series, size_t count, struct row *ret)
{
	bool found = false;
	for (size_t i = 0; i < count; i++) {
		if (series[i].has_row && (!found || precedes(&series[i].row, ret))) {
			*ret = series[i].row;
			found = true;
		}
	}
	return found;
}

static void add_row(struct ctl *ctl, struct table *table, struct table_series *series, size_t count,
	const struct row *row)
{
	const struct options *options = &ctl->options;
	table_add(table, TONE_DIM, "%s", format_time(row->time_us).text);
	for (; count > 0; count--, series++) {
		if (!series->has_row || precedes(row, &series->row)) {
			table_add(table, TONE_DIM, "-");
			continue;
		}
		table_add(table, TONE_NONE, "%s",
			format_value(row_value(&series->row, options->aggregate), series->unit,
				ctl->style.utf8)
				.text);
		series->has_row = rows_next(&series->rows, &series->row);
	}
}

void history_table(struct ctl *ctl, const cJSON *reply)
{
	const struct options *options = &ctl->options;
	struct table_series all[SERIES_MAX];
	struct column columns[SERIES_MAX + 1] = {{"TIME", false, false}};
	struct table table;
	struct row row = {0};
	uint32_t boot = 0;
	size_t count = 0, skipped = 0;
	for (const cJSON *series = json_first(reply, "series"); series; series = series->next) {
		struct table_series *next = &all[count];
		if (json_count(series, "time_us") == 0) {
			continue;
		}
		if (count == SERIES_MAX) {
			skipped++;
			continue;
		}
		next->rows = rows_begin(series);
		next->has_row = rows_next(&next->rows, &next->row);
		next->unit = row_unit(json_word(series, "unit"), options->aggregate);
		columns[++count] = (struct column){json_word(series, "name"), true, false};
	}
	table_init(&table, columns, count + 1);
	while (next_row(all, count, &row)) {
		if (boot > 0 && row.boot != boot) {
			table_add(&table, TONE_BOLD, "boot %u", (unsigned)row.boot);
			for (size_t i = 0; i < count; i++) {
				table_add(&table, TONE_NONE, "%s", "");
			}
		}
		boot = row.boot;
		add_row(ctl, &table, all, count, &row);
	}
	ctl_table(ctl, &table);
	if (skipped > 0) {
		fprintf(ctl->output.stream, "(%zu more series: a narrower GLOB, --csv or --json)\n",
			skipped);
	}
}
