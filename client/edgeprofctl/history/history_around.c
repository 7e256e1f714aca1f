/* SPDX-License-Identifier: Apache-2.0 */
/* history_around.c: shows what happened around a moment: the events of the window, and the series
 * that left the range they had in the time before (twice the window's length), in order of time. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/history/history_rows.h"
#include "client/edgeprofctl/history/history_views.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/verbs/events.h"
#include "client/edgeprofctl/term/when.h"
#include "proto/varlink.h"

enum { DEFAULT_SERIES = 12, BEFORE = 2, NAME_WIDTH = 32 };

static const double DEFAULT_SPAN_MS = 300000;
static const double MIN_SCORE = 0.25; /* of the range before: less is noise */

struct found {
	const cJSON *series;
	struct change change;
};

struct around {
	int64_t time_us, from_us, to_us;
	double step_ms; /* of the history; 0: as it was sampled */
	cJSON *events, *history;
	struct boots boots;
	struct found *found;  /* those that changed most; owned */
	size_t count;	      /* of found */
	size_t changed, seen; /* that left their range; that have rows in the window */
};

static void around_finish(struct around *around)
{
	cJSON_Delete(around->events);
	cJSON_Delete(around->history);
	free(around->found);
}

static int set_window(struct ctl *ctl, struct around *around)
{
	const struct options *options = &ctl->options;
	const char *text = options->around;
	int status = ctl_time(ctl, text, &around->time_us);
	if (status != CTL_FINE) {
		return status;
	}
	int64_t now_us = when_now_us(); /* not before "now" was read: that is in the past */
	if (around->time_us < 0 || around->time_us > now_us) {
		return ctl_fail(ctl, CTL_USAGE, "'%s' is not in the past", text);
	}
	double span_ms = options->span_ms > 0 ? options->span_ms : DEFAULT_SPAN_MS;
	int64_t half_us = llround(span_ms * 500);
	around->from_us = around->time_us > half_us ? around->time_us - half_us : 0;
	around->to_us = around->time_us + half_us < now_us ? around->time_us + half_us : now_us;
	return CTL_FINE;
}

static int fetch(struct ctl *ctl, struct around *around)
{
	double span_ms = (double)(around->to_us - around->from_us) / 1000;
	int64_t before_us = BEFORE * (around->to_us - around->from_us);
	int64_t since_us = around->from_us > before_us ? around->from_us - before_us : 0;
	double step_ms = span_ms / SPARK_COLUMNS;
	around->step_ms = step_ms < 1000 ? 0 : fmin(floor(step_ms / 1000) * 1000, 6e8);
	cJSON *parameters = ctl_parameters("glob", ctl->word_count > 0 ? ctl->words[0] : "**");
	cJSON_AddItemToObject(parameters, "from_us", proto_json_integer(since_us));
	cJSON_AddItemToObject(parameters, "to_us", proto_json_integer(around->to_us));
	cJSON_AddNumberToObject(parameters, "step_ms", around->step_ms);
	int status = ctl_call(ctl, "GetHistory", parameters, true, &around->history);
	if (status != CTL_FINE) {
		return status;
	}
	history_note(ctl, around->history);
	boots_join(around->history, &around->boots);
	return events_list(ctl, INT32_MAX, around->from_us, around->to_us, &around->events);
}

/* What the daemon does itself is asked for by name. */
static bool wanted(const struct ctl *ctl, const char *name)
{
	return ctl->word_count > 0 ||
	       (strncmp(name, "collector/", 10) != 0 && strncmp(name, "self/", 5) != 0);
}

static int by_score(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int order = (x->change.score < y->change.score) - (x->change.score > y->change.score);
	return order != 0 ? order
			  : strcmp(json_word(x->series, "name"), json_word(y->series, "name"));
}

static int by_time(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int order =
		(x->change.time_us > y->change.time_us) - (x->change.time_us < y->change.time_us);
	return order != 0 ? order : by_score(a, b);
}

/* A step bears the time of its start, which may be before the event that changed the series: its
 * finest rows are in the order of what happened. */
static void refine(struct ctl *ctl, const struct around *around, struct found *found)
{
	const char *name = json_word(found->series, "name");
	int64_t from_us = found->change.time_us;
	cJSON *reply, *parameters = ctl_parameters("glob", name);
	cJSON_AddItemToObject(parameters, "from_us", proto_json_integer(from_us));
	cJSON_AddItemToObject(
		parameters, "to_us", proto_json_integer(from_us + llround(around->step_ms * 1000)));
	if (ctl_try(ctl, "GetHistory", parameters, &reply) != CTL_FINE) {
		return;
	}
	for (const cJSON *series = json_first(reply, "series"); series; series = series->next) {
		if (strcmp(json_word(series, "name"), name) == 0) {
			found->change.time_us = change_time(series, &found->change);
		}
	}
	cJSON_Delete(reply);
}

static void find_changes(struct ctl *ctl, struct around *around)
{
	size_t capacity = (size_t)json_count(around->history, "series");
	around->found = ctl_memory(capacity, sizeof(around->found[0]));
	for (const cJSON *series = json_first(around->history, "series");
		series && around->seen < capacity; series = series->next) {
		struct found *found = &around->found[around->count];
		found->series = series;
		if (wanted(ctl, json_word(series, "name")) &&
			change_find(series, around->from_us, around->to_us, &found->change)) {
			around->seen++;
			around->count += found->change.score >= MIN_SCORE;
		}
	}
	const struct options *options = &ctl->options;
	size_t most = options->lines > 0 ? (size_t)options->lines : DEFAULT_SERIES;
	qsort(around->found, around->count, sizeof(around->found[0]), by_score);
	around->changed = around->count;
	around->count = around->count < most ? around->count : most;
	for (size_t i = 0; i < around->count && around->step_ms > 0; i++) {
		refine(ctl, around, &around->found[i]);
	}
	if (ctl->options.json == JSON_OFF) {
		qsort(around->found, around->count, sizeof(around->found[0]), by_time);
	}
}

static void show_change(
	struct ctl *ctl, const struct around *around, const struct found *found, int width)
{
	const struct change *change = &found->change;
	bool utf8 = ctl->style.utf8, fresh = change->before.rows == 0;
	const char *unit = json_word(found->series, "unit");
	const char *name = json_word(found->series, "name");
	bool up = fresh || change->extreme > change->before.most;
	bool down = !fresh && change->extreme < change->before.least;
	const char *arrow = !up && !down ? "~" : utf8 ? (up ? "▲" : "▼") : up ? "^" : "v";
	char bars[SPARK_SIZE];
	struct spark spark;
	struct rows rows = rows_begin(found->series);
	struct row row;
	spark_init(&spark, around->from_us, around->to_us, change->within.rows);
	while (rows_next(&rows, &row)) {
		spark_add(&spark, row.time_us, row.mean);
	}
	spark_write(&spark, utf8, bars);
	int pad = width - (int)text_width(name);
	int short_of = SPARK_COLUMNS - (int)spark.columns;
	fprintf(ctl->output.stream, "%s%s%s  %s%s %s%s%*s  %s%s%s%*s  ",
		style_on(&ctl->style, TONE_DIM), format_clock(change->time_us).text,
		style_off(&ctl->style, TONE_DIM), style_on(&ctl->style, TONE_BOLD), arrow, name,
		style_off(&ctl->style, TONE_BOLD), pad > 0 ? pad : 0, "",
		style_on(&ctl->style, TONE_GOOD), bars, style_off(&ctl->style, TONE_GOOD),
		short_of > 0 ? short_of : 0, "");
	fprintf(ctl->output.stream, "%s, then %s (%s",
		format_value(change->extreme, unit, utf8).text,
		format_value(change->within.last, unit, utf8).text,
		fresh ? "nothing before" : "before: ");
	if (!fresh && change->before.most > change->before.least) {
		fprintf(ctl->output.stream, "%s to ",
			format_value(change->before.least, unit, utf8).text);
	}
	fprintf(ctl->output.stream, "%s)\n",
		fresh ? "" : format_value(change->before.most, unit, utf8).text);
}

static int name_width(const struct around *around)
{
	size_t width = 8;
	for (size_t i = 0; i < around->count; i++) {
		size_t its = text_width(json_word(around->found[i].series, "name"));
		width = its > width ? its : width;
	}
	return width > NAME_WIDTH ? NAME_WIDTH : (int)width;
}

static void show(struct ctl *ctl, const struct around *around)
{
	FILE *out = ctl->output.stream;
	int width = name_width(around);
	size_t next = 0;
	char to[64];
	snprintf(to, sizeof(to), "%s", format_clock(around->to_us).text);
	int events = json_count(around->events, "events");
	fprintf(out, "Around %s (%s to %s): %d event%s, %zu of %zu series left their range",
		format_time(around->time_us).text, format_clock(around->from_us).text, to, events,
		events == 1 ? "" : "s", around->changed, around->seen);
	if (around->count < around->changed) {
		fprintf(out, ", the %zu that changed most are shown (-n)", around->count);
	}
	fputc('\n', out);
	for (const cJSON *event = json_first(around->events, "events"); event;
		event = event->next) {
		int64_t time_us = json_integer(event, "time_us");
		while (next < around->count && around->found[next].change.time_us <= time_us) {
			show_change(ctl, around, &around->found[next++], width);
		}
		events_show(ctl, event, false);
	}
	while (next < around->count) {
		show_change(ctl, around, &around->found[next++], width);
	}
}

/* The daemon's series as it is, and the judgement. */
static cJSON *change_json(const struct found *found)
{
	const struct change *change = &found->change;
	cJSON *series = cJSON_Duplicate(found->series, true);
	json_add_number(series, "score", change->score);
	cJSON_AddNumberToObject(series, "change_us", (double)change->time_us);
	json_add_number(series, "extreme", change->extreme);
	json_add_number(series, "before_min", change->before.least);
	json_add_number(series, "before_max", change->before.most);
	json_add_number(series, "last", change->within.last);
	return series;
}

static bool show_json(struct ctl *ctl, const struct around *around)
{
	if (ctl->options.json == JSON_OFF) {
		return false;
	}
	cJSON *whole = cJSON_CreateObject();
	cJSON *changes = cJSON_CreateArray();
	cJSON_AddNumberToObject(whole, "around_us", (double)around->time_us);
	cJSON_AddNumberToObject(whole, "from_us", (double)around->from_us);
	cJSON_AddNumberToObject(whole, "to_us", (double)around->to_us);
	cJSON_AddNumberToObject(whole, "series_seen", (double)around->seen);
	cJSON_AddNumberToObject(whole, "series_changed", (double)around->changed);
	cJSON_AddItemToObject(
		whole, "events", cJSON_Duplicate(json_get(around->events, "events"), true));
	for (size_t i = 0; i < around->count; i++) {
		cJSON_AddItemToArray(changes, change_json(&around->found[i]));
	}
	cJSON_AddItemToObject(whole, "series", changes);
	if (around->boots.count > 0) {
		cJSON_AddItemToObject(whole, "boots", boots_json(&around->boots));
	}
	ctl_json(ctl, whole);
	cJSON_Delete(whole);
	return true;
}

int history_around(struct ctl *ctl)
{
	struct around around = {0};
	int status = set_window(ctl, &around);
	status = status == CTL_FINE ? fetch(ctl, &around) : status;
	if (status == CTL_FINE) {
		find_changes(ctl, &around);
		if (!show_json(ctl, &around)) {
			show(ctl, &around);
		}
		if (around.seen == 0 && json_count(around.events, "events") == 0) {
			status =
				ctl_fail(ctl, CTL_NO_DATA, "no history and no events of that time");
		}
	}
	around_finish(&around);
	return status;
}
