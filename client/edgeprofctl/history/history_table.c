/* Tables of the past: a line a step, a column a series. The rows are asked for with a step, so that
 * series of sources with different rates share their times. */
#include "client/edgeprofctl/history/history_views.h"

#include <string.h>

#include "client/edgeprofctl/history/history_rows.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"

enum { SERIES_MAX = 8 };

struct columns {
	struct rows rows[SERIES_MAX];
	struct row row[SERIES_MAX]; /* the next one of each */
	bool has[SERIES_MAX];
	const char *unit[SERIES_MAX];
	struct column column[SERIES_MAX + 1];
	size_t count;
	int left_out;
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
			columns->left_out++;
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
	if (columns.left_out > 0) {
		fprintf(ctl->output.stream, "(%d more series: a narrower GLOB, --csv or --json)\n",
			columns.left_out);
	}
}
