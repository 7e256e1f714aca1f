/* SPDX-License-Identifier: Apache-2.0 */
/* history.c: shows what series did over time, as a line each, a plot, a table, CSV or JSON. */
#include "client/edgeprofctl/verb.h"

#include <math.h>
#include <time.h>

#include "client/edgeprofctl/history/history_rows.h"
#include "client/edgeprofctl/history/history_views.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"
#include "client/edgeprofctl/term/when.h"

enum { TABLE_LINES = 30 };

static void add_series(
	struct ctl *ctl, struct table *table, const cJSON *series, const struct rows_span *span)
{
	const struct options *options = &ctl->options;
	bool utf8 = ctl->style.utf8;
	const char *unit = json_word(series, "unit");
	double last = NAN, least = NAN, most = NAN, sum = 0, samples = 0;
	struct spark spark;
	struct rows rows = rows_begin(series);
	struct row row;
	spark_init(&spark, span->from_us, span->to_us, span->rows);
	while (rows_next(&rows, &row)) {
		spark_add(&spark, row.time_us, row_value(&row, options->aggregate));
		if (isfinite(row.mean) && row.count > 0) {
			sum += row.mean * row.count;
			samples += row.count;
			last = row.mean;
		}
		least = fmin(least, row.min);
		most = fmax(most, row.max);
	}
	char bars[SPARK_SIZE];
	spark_write(&spark, utf8, bars);
	double mean = samples > 0 ? sum / samples : NAN;
	table_add(table, TONE_NONE, "%s", json_word(series, "name"));
	table_add(table, TONE_GOOD, "%s", bars);
	table_add(table, TONE_BOLD, "%s", format_value(last, unit, utf8).text);
	table_add(table, TONE_NONE, "%s", format_value(least, unit, utf8).text);
	table_add(table, TONE_NONE, "%s", format_value(mean, unit, utf8).text);
	table_add(table, TONE_NONE, "%s", format_value(most, unit, utf8).text);
	table_add(table, TONE_DIM, "%.0f", samples);
}

static void show_series(struct ctl *ctl, const cJSON *reply, const struct boots *boots)
{
	static const struct column columns[] = {
		{"SERIES", false, true},
		{"OVER TIME", false, false},
		{"LAST", true, false},
		{"MIN", true, false},
		{"MEAN", true, false},
		{"MAX", true, false},
		{"SAMPLES", true, false},
	};
	struct rows_span span = rows_span(reply);
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *series = json_first(reply, "series"); series; series = series->next) {
		add_series(ctl, &table, series, &span);
	}
	ctl_table(ctl, &table);
	fprintf(ctl->output.stream, "%s%s to %s (%s)%s\n", style_on(&ctl->style, TONE_DIM),
		format_time(span.from_us).text, format_clock(span.to_us).text,
		format_span((double)(span.to_us - span.from_us) / 1e6).text,
		style_off(&ctl->style, TONE_DIM));
	boots_show(ctl, boots);
}

static void csv_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text != '\0'; text++) {
		fputs(*text == '"' ? "\"" : "", out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void csv_number(FILE *out, double value)
{
	if (isfinite(value)) {
		fprintf(out, ",%.10g", value);
	} else {
		fputc(',', out);
	}
}

/* boot_seq is a column when the reply contains it: with [history] persist. */
static void show_csv(FILE *out, const cJSON *reply)
{
	bool boots = boots_of(json_first(reply, "series")) > 0;
	fprintf(out, "name,unit,time_us,mean,min,max,count%s\n", boots ? ",boot_seq" : "");
	for (const cJSON *series = json_first(reply, "series"); series; series = series->next) {
		struct rows rows = rows_begin(series);
		struct row row;
		while (rows_next(&rows, &row)) {
			csv_text(out, json_word(series, "name"));
			fputc(',', out);
			csv_text(out, json_word(series, "unit"));
			fprintf(out, ",%lld", (long long)row.time_us);
			csv_number(out, row.mean);
			csv_number(out, row.min);
			csv_number(out, row.max);
			csv_number(out, row.count);
			if (boots) {
				fprintf(out, ",%u", (unsigned)boots_of(series));
			}
			fputc('\n', out);
		}
	}
}

/* A step that divides the span of a table into about TABLE_LINES. Sources with different rates
 * share it.
 */
static double common_step_ms(const cJSON *parameters)
{
	double to_us = json_number(parameters, "to_us");
	double from_us = json_number(parameters, "from_us");
	to_us = isnan(to_us) ? (double)when_now_us() : to_us;
	from_us = isnan(from_us) ? to_us - 3e8 : from_us;
	double seconds = ceil((to_us - from_us) / 1e6 / TABLE_LINES);
	return fmin(fmax(seconds, 1), 604800) * 1000;
}

static int ask(struct ctl *ctl, cJSON **ret)
{
	const struct options *options = &ctl->options;
	cJSON *parameters = ctl_parameters("glob", ctl->words[0]);
	int status = ctl_add_times(ctl, parameters, options->since, options->until);
	if (status != CTL_FINE) {
		return status;
	}
	bool thinned = options->max_points > 0;
	if (options->step_ms > 0) {
		cJSON_AddNumberToObject(parameters, "step_ms", options->step_ms);
	} else if (options->table && !thinned) {
		cJSON_AddNumberToObject(parameters, "step_ms", common_step_ms(parameters));
	}
	if (thinned) {
		cJSON_AddNumberToObject(parameters, "max_points", (double)options->max_points);
	}
	return ctl_call(ctl, "GetHistory", parameters, !thinned, ret);
}

static bool has_rows(const cJSON *reply)
{
	const cJSON *series = json_first(reply, "series");
	while (series && json_count(series, "time_us") == 0) {
		series = series->next;
	}
	return series;
}

static void show(struct ctl *ctl, cJSON *reply)
{
	const struct options *options = &ctl->options;
	struct boots boots;
	boots_join(reply, &boots);
	if (options->plot) {
		history_plot(ctl, reply, &boots);
	} else if (options->table) {
		history_table(ctl, reply);
	} else {
		show_series(ctl, reply, &boots);
	}
}

void history_note(struct ctl *ctl, const cJSON *reply)
{
	const char *note = json_text(reply, "note");
	if (note && ctl->options.json == JSON_OFF) {
		ctl_fail(ctl, CTL_FINE, "%s", note);
	}
}

/* What cannot be combined; NULL when everything can. */
static const char *wrong_usage(const struct ctl *ctl)
{
	const struct options *options = &ctl->options;
	bool json = ctl->options.json != JSON_OFF;
	bool shape = options->csv || options->plot || options->table;
	bool series = options->since || options->until || options->step_ms > 0 ||
		      options->max_points > 0 || options->aggregate || shape;
	bool window = options->span_ms > 0 || options->lines > 0;
	if (options->csv + options->plot + options->table > 1) {
		return "--csv, --plot and --table exclude each other";
	}
	if (options->csv && json) {
		return "--csv and --json exclude each other";
	}
	if (options->boots) {
		bool alone = !series && !window && !options->around && ctl->word_count == 0;
		return alone ? NULL : "--boots cannot be combined with other options";
	}
	if (options->around) {
		return series ? "--around can be combined with --span and --lines only" : NULL;
	}
	if (window) {
		return "--span and --lines require --around";
	}
	if (options->aggregate && (options->csv || json)) {
		return "--aggregate has no effect with --csv and --json";
	}
	return ctl->word_count == 0 ? "history requires a GLOB, or --around" : NULL;
}

static int run(struct ctl *ctl)
{
	const struct options *options = &ctl->options;
	const char *wrong = wrong_usage(ctl);
	if (wrong) {
		return ctl_fail(ctl, CTL_USAGE, "%s", wrong);
	}
	if (options->boots) {
		return history_boots(ctl);
	}
	if (options->around) {
		return history_around(ctl);
	}
	cJSON *reply;
	int status = ask(ctl, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	bool rows = has_rows(reply);
	history_note(ctl, reply);
	if (options->csv) {
		ctl->output.style = NULL;
		show_csv(ctl->output.stream, reply);
	} else if (!ctl_json(ctl, reply) && rows) {
		show(ctl, reply);
	}
	if (!rows) {
		status = ctl_fail(ctl, CTL_NO_DATA,
			"no history of '%s' in this span; try --since 1h, or 'edgeprofctl sensors "
			"--all' for names",
			ctl->words[0]);
	}
	cJSON_Delete(reply);
	return status;
}

static const struct option_spec options[] = {
	{"since", 0, "TIME", "start: 5min (ago), 14:30, '2026-01-31 14:30' or @UNIX", option_text,
		offsetof(struct options, since)},
	{"until", 0, "TIME", "end; default: now", option_text, offsetof(struct options, until)},
	{"step", 0, "SPAN", "average over each SPAN, such as 10s; default: the finest there is",
		option_ms, offsetof(struct options, step_ms)},
	{"max-points", 0, "N", "return at most N rows in all", option_count,
		offsetof(struct options, max_points)},
	{"aggregate", 0, "mean|min|max|count", "which value of a row to show", option_word,
		offsetof(struct options, aggregate)},
	{"csv", 0, NULL, "print comma-separated rows", option_flag, offsetof(struct options, csv)},
	{"plot", 0, NULL, "draw a diagram of each metric", option_flag,
		offsetof(struct options, plot)},
	{"table", 0, NULL, "print a line per step and a column per metric", option_flag,
		offsetof(struct options, table)},
	{"around", 0, "TIME", "show what changed around a moment", option_text,
		offsetof(struct options, around)},
	{"span", 0, "SPAN", "with --around: the window, with TIME in its middle; default: 5min",
		option_ms, offsetof(struct options, span_ms)},
	{"lines", 'n', "N", "with --around: the N metrics that changed most; default: 12",
		option_count, offsetof(struct options, lines)},
	{"boots", 0, NULL, "list the boots that are in the history", option_flag,
		offsetof(struct options, boots)},
	{.name = NULL},
};

const struct verb verb_history = {"history", "[GLOB]",
	"Show metrics over time, or what happened around a moment.",
	"history 'stage/cam/*/p95_ms' --since 10min --plot", options, run};
