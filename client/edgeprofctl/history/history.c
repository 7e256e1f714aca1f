/* history: what series did over a span of time, as a line each, a plot, a table, CSV or JSON. */
#include "client/edgeprofctl/verbs.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "client/edgeprofctl/history/history_rows.h"
#include "client/edgeprofctl/history/history_views.h"
#include "client/edgeprofctl/history/when.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/spark.h"
#include "client/edgeprofctl/term/table.h"
#include "proto/varlink.h"

static void add_series(
	struct ctl *ctl, struct table *table, const cJSON *series, const struct rows_span *span)
{
	bool utf8 = ctl->style.utf8;
	const char *unit = json_word(series, "unit");
	double last = NAN, least = NAN, most = NAN, sum = 0, samples = 0;
	struct spark spark;
	struct rows rows = rows_begin(series);
	struct row row;
	spark_init(&spark, span->from_us, span->to_us, span->rows);
	while (rows_next(&rows, &row)) {
		spark_add(&spark, row.time_us, row_value(&row, ctl->options.aggregate));
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
	for (const cJSON *series = json_first(reply, "series"); series != NULL;
		series = series->next) {
		add_series(ctl, &table, series, &span);
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
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

/* boot_seq is a column where the daemon tells it: with [history] persist. */
static void show_csv(FILE *out, const cJSON *reply)
{
	bool boots = boots_of(json_first(reply, "series")) > 0;
	fprintf(out, "name,unit,time_us,mean,min,max,count%s\n", boots ? ",boot_seq" : "");
	for (const cJSON *series = json_first(reply, "series"); series != NULL;
		series = series->next) {
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

int64_t history_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int history_time(struct ctl *ctl, const char *text, int64_t *ret_us)
{
	if (when_parse_time(text, history_now_us(), ret_us) < 0) {
		return ctl_fail(ctl, CTL_USAGE,
			"'%s' is no time: 5min (ago), 14:30, 2026-01-31 14:30, @1700000000 or now",
			text);
	}
	return CTL_FINE;
}

static int add_time(struct ctl *ctl, cJSON *parameters, const char *member, const char *text)
{
	int64_t time_us;
	if (text == NULL) {
		return CTL_FINE;
	}
	int status = history_time(ctl, text, &time_us);
	if (status == CTL_FINE) {
		cJSON_AddItemToObject(parameters, member, proto_json_integer(time_us));
	}
	return status;
}

/* A step that makes about so many lines of the span: sources with different rates share it. */
static double common_step_ms(const cJSON *parameters, double lines)
{
	double to_us = json_number(parameters, "to_us");
	double from_us = json_number(parameters, "from_us");
	to_us = isnan(to_us) ? (double)history_now_us() : to_us;
	from_us = isnan(from_us) ? to_us - 3e8 : from_us;
	double seconds = ceil((to_us - from_us) / 1e6 / lines);
	return fmin(fmax(seconds, 1), 604800) * 1000;
}

static int ask(struct ctl *ctl, cJSON **ret)
{
	const struct options *options = &ctl->options;
	cJSON *parameters = ctl_parameters("glob", ctl->words[0]);
	int status = add_time(ctl, parameters, "from_us", options->since);
	if (status == CTL_FINE) {
		status = add_time(ctl, parameters, "to_us", options->until);
	}
	if (status != CTL_FINE) {
		cJSON_Delete(parameters);
		return status;
	}
	bool thinned = (options->given & OPTION_MAX_POINTS) != 0;
	if (options->given & OPTION_STEP) {
		cJSON_AddNumberToObject(parameters, "step_ms", options->step_ms);
	} else if (options->shape == SHAPE_TABLE && !thinned) {
		cJSON_AddNumberToObject(parameters, "step_ms", common_step_ms(parameters, 30));
	}
	if (thinned) {
		cJSON_AddNumberToObject(parameters, "max_points", (double)options->max_points);
	}
	return ctl_call(ctl, "GetHistory", parameters, !thinned, ret);
}

static bool has_rows(const cJSON *reply)
{
	const cJSON *series = json_first(reply, "series");
	while (series != NULL && json_count(series, "time_us") == 0) {
		series = series->next;
	}
	return series != NULL;
}

static void show(struct ctl *ctl, cJSON *reply)
{
	struct boots boots;
	if (boots_join(reply, &boots) < 0) {
		ctl_fail(ctl, CTL_OUTPUT, "no memory");
	} else if (ctl->options.shape == SHAPE_PLOT) {
		history_plot(ctl, reply, &boots);
	} else if (ctl->options.shape == SHAPE_TABLE) {
		history_table(ctl, reply, &boots);
	} else {
		show_series(ctl, reply, &boots);
	}
}

void history_note(struct ctl *ctl, const cJSON *reply)
{
	const char *note = json_text(reply, "note");
	if (note != NULL && ctl->options.json == JSON_OFF) {
		ctl_fail(ctl, CTL_FINE, "%s", note);
	}
}

/* What excludes each other; NULL when nothing does. */
static const char *wrong_usage(const struct ctl *ctl)
{
	const uint64_t others =
		OPTION_SINCE | OPTION_UNTIL | OPTION_STEP | OPTION_MAX_POINTS | OPTION_AGGREGATE;
	const struct options *options = &ctl->options;
	uint64_t given = options->given;
	if (options->shape == SHAPE_CSV && options->json != JSON_OFF) {
		return "--csv and --json exclude each other";
	}
	if (options->span != NULL) {
		return "--span of history is a time: 5min, 30s, 2h";
	}
	if (given & OPTION_BOOTS) {
		return given != OPTION_BOOTS || ctl->word_count > 0 ? "--boots goes alone" : NULL;
	}
	if (given & OPTION_AROUND) {
		return given & (others | OPTION_SHAPE) ? "--around goes with --span and -n only"
						       : NULL;
	}
	if (given & (OPTION_SPAN | OPTION_LINES)) {
		return "--span and -n go with --around";
	}
	if ((given & OPTION_AGGREGATE) &&
		(options->shape == SHAPE_CSV || options->json != JSON_OFF)) {
		return "--csv and --json tell mean, min, max and count anyway";
	}
	return ctl->word_count == 0 ? "history needs a GLOB, or --around" : NULL;
}

int verb_history(struct ctl *ctl)
{
	const char *wrong = wrong_usage(ctl);
	if (wrong != NULL) {
		return ctl_fail(ctl, CTL_USAGE, "%s", wrong);
	}
	if (ctl->options.given & OPTION_BOOTS) {
		return history_boots(ctl);
	}
	if (ctl->options.given & OPTION_AROUND) {
		return history_around(ctl);
	}
	cJSON *reply;
	int status = ask(ctl, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	bool rows = has_rows(reply);
	history_note(ctl, reply);
	if (ctl->options.shape == SHAPE_CSV) {
		show_csv(ctl->output.stream, reply);
	} else if (!ctl_json(ctl, reply) && rows) {
		show(ctl, reply);
	}
	if (!rows) {
		status = ctl_fail(ctl, CTL_NO_DATA,
			"no history of '%s' in this span; try --since 1h, or 'edgeprofctl metrics' "
			"for names",
			ctl->words[0]);
	}
	cJSON_Delete(reply);
	return status;
}
