/* SPDX-License-Identifier: Apache-2.0 */
/* table.c: prints aligned tables: cells are collected, widths measured, then every line is written
 * once. */
#include "client/edgeprofctl/term/table.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/term/text.h"

enum {
	COLUMNS_MAX = 16,
	COLUMN_MIN = 6,
	GAP = 2,
	TEXT_MIN = 24, /* a last column with less room than that goes to lines of its own */
	TEXT_INDENT = 4,
	WIDTH_MIN = 60,	    /* of the terminal for that */
	WIDTH_MIN_FIT = 40, /* of one that must not be exceeded */
};

struct table_cell {
	char *text;
	enum tone tone;
};

void table_init(struct table *table, const struct column *columns, size_t column_count)
{
	memset(table, 0, sizeof(*table));
	table->columns = columns;
	table->column_count = column_count < COLUMNS_MAX ? column_count : COLUMNS_MAX;
}

void table_finish(struct table *table)
{
	for (size_t i = 0; i < table->cell_count; i++) {
		free(table->cells[i].text);
	}
	free(table->cells);
	table->cells = NULL;
	table->cell_count = 0;
}

static struct table_cell *next_cell(struct table *table)
{
	if (table->cell_count == table->cell_capacity) {
		size_t capacity = table->cell_capacity == 0 ? 64 : table->cell_capacity * 2;
		struct table_cell *cells = reallocarray(table->cells, capacity, sizeof(*cells));
		if (!cells) {
			return NULL;
		}
		table->cells = cells;
		table->cell_capacity = capacity;
	}
	return &table->cells[table->cell_count];
}

void table_add(struct table *table, enum tone tone, const char *format, ...)
{
	struct table_cell *cell = next_cell(table);
	if (!cell) {
		table->out_of_memory = true;
		return;
	}
	va_list arguments;
	va_start(arguments, format);
	int r = vasprintf(&cell->text, format, arguments);
	va_end(arguments);
	if (r < 0) {
		table->out_of_memory = true;
		return;
	}
	cell->tone = tone;
	table->cell_count++;
}

void table_add_number(struct table *table, double value, int decimals)
{
	if (isnan(value)) {
		table_add(table, TONE_DIM, "-");
	} else {
		table_add(table, TONE_NONE, "%.*f", decimals, value);
	}
}

static size_t total_width(const struct table *table, unsigned indent, const size_t widths[])
{
	size_t total = indent;
	for (size_t c = 0; c < table->column_count; c++) {
		total += widths[c] == 0 ? 0 : widths[c] + (total > indent ? GAP : 0);
	}
	return total;
}

/* Removes the excess width from the columns that may shrink, the last one first. */
static void fit_widths(const struct table *table, const struct style *style, unsigned indent,
	size_t widths[COLUMNS_MAX])
{
	size_t total = total_width(table, indent, widths);
	for (size_t c = table->column_count; c > 0 && style->width > 0 && total > style->width;
		c--) {
		size_t *width = &widths[c - 1];
		if (!table->columns[c - 1].shrink || *width <= COLUMN_MIN) {
			continue;
		}
		size_t less = total - style->width;
		if (less > *width - COLUMN_MIN) {
			less = *width - COLUMN_MIN;
		}
		*width -= less;
		total -= less;
	}
}

/* The last column when it is text that its room would cut to a word: it goes below the rows then,
 * and the others have the room. COLUMNS_MAX: there is none. */
static size_t text_below(const struct table *table, const struct style *style, unsigned indent,
	size_t widths[COLUMNS_MAX])
{
	size_t last = table->column_count - 1, natural[COLUMNS_MAX];
	while (last > 0 && widths[last] == 0) {
		last--;
	}
	if (!table->columns[last].shrink || widths[last] <= TEXT_MIN ||
		style->width < (style->fit ? WIDTH_MIN_FIT : WIDTH_MIN)) {
		return COLUMNS_MAX;
	}
	memcpy(natural, widths, sizeof(natural));
	fit_widths(table, style, indent, widths);
	if (widths[last] >= TEXT_MIN) {
		return COLUMNS_MAX;
	}
	memcpy(widths, natural, sizeof(natural));
	widths[last] = 0;
	return last;
}

/* Drops columns from the right, never the first two, until the rest fits with its texts cut to
 * a legible length. */
static void drop_columns(const struct table *table, const struct style *style, unsigned indent,
	size_t widths[COLUMNS_MAX])
{
	for (size_t last = table->column_count; last > 2; last--) {
		size_t total = indent;
		for (size_t c = 0; c < last; c++) {
			size_t width = widths[c];
			if (table->columns[c].shrink && width > TEXT_MIN) {
				width = TEXT_MIN;
			}
			total += width == 0 ? 0 : width + (total > indent ? GAP : 0);
		}
		if (total <= style->width) {
			return;
		}
		widths[last - 1] = 0;
	}
}

static void measure(const struct table *table, size_t widths[COLUMNS_MAX])
{
	bool used[COLUMNS_MAX] = {false};
	memset(widths, 0, COLUMNS_MAX * sizeof(widths[0]));
	for (size_t i = 0; i < table->cell_count; i++) {
		size_t c = i % table->column_count;
		size_t width = text_width(table->cells[i].text);
		used[c] = used[c] || width > 0;
		widths[c] = width > widths[c] ? width : widths[c];
	}
	for (size_t c = 0; c < table->column_count; c++) {
		const char *title = table->columns[c].title;
		size_t width = !title ? 0 : text_width(title);
		if (used[c] && width > widths[c]) {
			widths[c] = width;
		}
	}
}

static void print_cell(const struct style *style, FILE *out, const char *text, enum tone tone,
	size_t width, bool right, bool last)
{
	size_t columns = text_width(text);
	size_t bytes = strlen(text);
	const char *tail = "";
	if (columns > width) {
		tail = style->utf8 ? "…" : "~";
		bytes = text_fit(text, width - 1);
		columns = width;
	}
	int pad = (int)(width - columns);
	fprintf(out, "%*s%s%.*s%s%s", right ? pad : 0, "", style_on(style, tone), (int)bytes, text,
		tail, style_off(style, tone));
	if (!right && !last) {
		fprintf(out, "%*s", pad, "");
	}
}

static void print_line(const struct table *table, const struct style *style, FILE *out,
	unsigned indent, const size_t widths[COLUMNS_MAX], size_t row)
{
	size_t last = 0;
	for (size_t c = 0; c < table->column_count; c++) {
		const char *text = row == SIZE_MAX
					   ? table->columns[c].title
					   : table->cells[row * table->column_count + c].text;
		last = widths[c] > 0 && text && text[0] != '\0' ? c : last;
	}
	fprintf(out, "%*s", (int)indent, "");
	bool first = true;
	for (size_t c = 0; c <= last; c++) {
		if (widths[c] == 0) {
			continue;
		}
		fprintf(out, "%*s", first ? 0 : GAP, "");
		first = false;
		const char *text = table->columns[c].title;
		enum tone tone = TONE_DIM;
		if (row != SIZE_MAX) {
			const struct table_cell *cell =
				&table->cells[row * table->column_count + c];
			text = cell->text;
			tone = cell->tone;
		}
		print_cell(style, out, !text ? "" : text, tone, widths[c], table->columns[c].right,
			c == last);
	}
	fputc('\n', out);
}

static void print_below(
	const struct style *style, FILE *out, unsigned indent, const struct table_cell *cell)
{
	size_t width = text_width(cell->text);
	size_t room = style->width > indent + TEXT_MIN ? style->width - indent : TEXT_MIN;
	if (width == 0) {
		return;
	}
	fprintf(out, "%*s", (int)indent, "");
	print_cell(style, out, cell->text, cell->tone, width < room ? width : room, false, true);
	fputc('\n', out);
}

static void print_lines(const struct table *table, const struct style *style, FILE *out,
	unsigned indent, const size_t widths[COLUMNS_MAX], size_t below)
{
	size_t rows = table->cell_count / table->column_count;
	if (rows > 0 && table->columns[0].title) {
		print_line(table, style, out, indent, widths, SIZE_MAX);
	}
	for (size_t row = 0; row < rows; row++) {
		print_line(table, style, out, indent, widths, row);
		if (below < COLUMNS_MAX) {
			print_below(style, out, indent + TEXT_INDENT,
				&table->cells[row * table->column_count + below]);
		}
	}
}

/* A table that is too wide, one part below the other: each begins with the first column. */
static void print_parts(const struct table *table, const struct style *style, FILE *out,
	unsigned indent, const size_t widths[COLUMNS_MAX], size_t below)
{
	size_t count = table->column_count, first = 0;
	while (first + 1 < count && widths[first] == 0) {
		first++;
	}
	for (size_t from = first + 1; from < count;) {
		size_t part[COLUMNS_MAX] = {0}, to = from;
		part[first] = widths[first];
		for (; to < count; to++) {
			part[to] = widths[to];
			if (to > from && total_width(table, indent, part) > style->width) {
				part[to] = 0;
				break;
			}
		}
		if (from > first + 1) {
			fputc('\n', out);
		}
		print_lines(table, style, out, indent, part, to == count ? below : COLUMNS_MAX);
		from = to;
	}
}

int table_print(const struct table *table, const struct style *style, FILE *out, unsigned indent)
{
	if (table->out_of_memory) {
		return -ENOMEM;
	}
	size_t widths[COLUMNS_MAX], natural[COLUMNS_MAX];
	measure(table, widths);
	size_t below = text_below(table, style, indent, widths);
	if (style->fit && style->width > 0) {
		drop_columns(table, style, indent, widths);
	}
	memcpy(natural, widths, sizeof(natural));
	fit_widths(table, style, indent, widths);
	bool wide = style->width > 0 && total_width(table, indent, widths) > style->width;
	if (wide && !style->fit && table->columns[0].title) {
		print_parts(table, style, out, indent, natural, below);
	} else {
		print_lines(table, style, out, indent, widths, below);
	}
	return 0;
}
