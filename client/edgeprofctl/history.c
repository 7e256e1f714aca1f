/* history: what series did over a span of time, as a line each, as CSV or as JSON. */
#include "client/edgeprofctl/verbs.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "client/edgeprofctl/format.h"
#include "client/edgeprofctl/json.h"
#include "client/edgeprofctl/spark.h"
#include "client/edgeprofctl/table.h"
#include "client/edgeprofctl/when.h"
#include "proto/varlink.h"

/* Walks the columns of a series side by side; ends with the shortest. */
struct rows {
	const cJSON *time, *mean, *min, *max, *count;
};

struct row {
	int64_t time_us;
	double mean, min, max, count;
};

static struct rows rows_begin(const cJSON *series)
{
	return (struct rows){json_first(series, "time_us"), json_first(series, "mean"),
		json_first(series, "min"), json_first(series, "max"), json_first(series, "count")};
}

static double take(const cJSON **item)
{
	double value = cJSON_IsNumber(*item) ? (*item)->valuedouble : NAN;
	*item = (*item)->next;
	return value;
}

static bool rows_next(struct rows *rows, struct row *ret)
{
	if (rows->time == NULL || rows->mean == NULL || rows->min == NULL || rows->max == NULL ||
		rows->count == NULL) {
		return false;
	}
	double time_us = take(&rows->time);
	ret->time_us = fabs(time_us) < 9e15 ? (int64_t)time_us : 0;
	ret->mean = take(&rows->mean);
	ret->min = take(&rows->min);
	ret->max = take(&rows->max);
	ret->count = take(&rows->count);
	return true;
}

/* The time that all series cover together, and the rows of the longest. */
struct span {
	int64_t from_us, to_us;
	size_t rows;
};

static struct span find_span(const cJSON *reply)
{
	struct span span = {INT64_MAX, INT64_MIN, 0};
	for (const cJSON *series = json_first(reply, "series"); series != NULL;
		series = series->next) {
		struct rows rows = rows_begin(series);
		struct row row;
		size_t count = 0;
		while (rows_next(&rows, &row)) {
			span.from_us = row.time_us < span.from_us ? row.time_us : span.from_us;
			span.to_us = row.time_us > span.to_us ? row.time_us : span.to_us;
			count++;
		}
		span.rows = count > span.rows ? count : span.rows;
	}
	return span.rows > 0 ? span : (struct span){0};
}

static void add_series(
	struct ctl *ctl, struct table *table, const cJSON *series, const struct span *span)
{
	bool utf8 = ctl->style.utf8;
	const char *unit = json_word(series, "unit");
	double last = NAN, least = NAN, most = NAN, sum = 0, samples = 0;
	struct spark spark;
	struct rows rows = rows_begin(series);
	struct row row;
	spark_init(&spark, span->from_us, span->to_us, span->rows);
	while (rows_next(&rows, &row)) {
		spark_add(&spark, row.time_us, row.mean);
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

static void show_series(struct ctl *ctl, const cJSON *reply)
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
	struct span span = find_span(reply);
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

static void show_csv(FILE *out, const cJSON *reply)
{
	fputs("name,unit,time_us,mean,min,max,count\n", out);
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
			fputc('\n', out);
		}
	}
}

static int add_time(struct ctl *ctl, cJSON *parameters, const char *member, const char *text)
{
	struct timespec now;
	int64_t time_us;
	if (text == NULL) {
		return CTL_FINE;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
	if (when_parse_time(text, now_us, &time_us) < 0) {
		return ctl_fail(ctl, CTL_USAGE,
			"'%s' is no time: 5min (ago), 14:30, 2026-01-31 14:30, @1700000000 or now",
			text);
	}
	cJSON_AddItemToObject(parameters, member, proto_json_integer(time_us));
	return CTL_FINE;
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
	if (options->given & OPTION_STEP) {
		cJSON_AddNumberToObject(parameters, "step_ms", options->step_ms);
	}
	bool thinned = (options->given & OPTION_MAX_POINTS) != 0;
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

int verb_history(struct ctl *ctl)
{
	bool csv = (ctl->options.given & OPTION_CSV) != 0;
	if (csv && ctl->options.json != JSON_OFF) {
		return ctl_fail(ctl, CTL_USAGE, "--csv and --json exclude each other");
	}
	cJSON *reply;
	int status = ask(ctl, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	bool rows = has_rows(reply);
	if (csv) {
		show_csv(ctl->output.stream, reply);
	} else if (!ctl_json(ctl, reply) && rows) {
		show_series(ctl, reply);
	}
	if (!rows) {
		status = ctl_fail(
			ctl, CTL_NO_DATA, "no history of '%s' in this span", ctl->words[0]);
	}
	cJSON_Delete(reply);
	return status;
}
