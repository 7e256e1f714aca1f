/* SPDX-License-Identifier: Apache-2.0 */
/* record_show.c: summarizes a recording on one page: what triggered it, how complete it is, the
 * slowest run of each stage, the metrics that moved, and the events around. It reads the recording
 * as `trace` does, as a format that only sums up. */
#include "client/edgeprofctl/trace/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/trace/replay.h"

enum {
	STAGES_MAX = 512,
	METRICS_MAX = 2048,
	EVENTS_MAX = 256,
	EVENTS_SHOWN = 20,
	METRICS_SHOWN = 10,
	MOVED_SAMPLES = 3, /* on each side */
};

struct stage_row {
	char app[PROTO_NAME_SIZE], stage[PROTO_NAME_SIZE];
	uint64_t count, worst_ns, worst_frame;
	bool has_frame;
	double sum_ns, worst_s; /* when, from the trigger */
};

struct metric_row {
	char name[PROTO_PATH_SIZE], unit[24];
	struct {
		double count, sum, squares;
	} side[2]; /* before, after */
};

struct event_row {
	double at_s;
	char text[320];
};

struct summary {
	uint64_t trigger_ns;
	size_t stages, metrics, events;
	uint64_t skipped;
	struct stage_row stage[STAGES_MAX];
	struct metric_row metric[METRICS_MAX];
	struct event_row event[EVENTS_MAX];
};

static double from_trigger(const struct summary *summary, uint64_t t_ns)
{
	return t_ns >= summary->trigger_ns ? (double)(t_ns - summary->trigger_ns) / 1e9
					   : -(double)(summary->trigger_ns - t_ns) / 1e9;
}

static void add_run(struct summary *summary, const struct trace_event *event)
{
	const char *name = event->kind == TRACE_FRAME ? "(frame)" : event->name;
	size_t i = 0;
	while (i < summary->stages && (strcmp(summary->stage[i].stage, name) != 0 ||
					      strcmp(summary->stage[i].app, event->app) != 0)) {
		i++;
	}
	if (i == STAGES_MAX) {
		summary->skipped++;
		return;
	}
	struct stage_row *row = &summary->stage[i];
	if (i == summary->stages) {
		summary->stages++;
		snprintf(row->app, sizeof(row->app), "%s", event->app);
		snprintf(row->stage, sizeof(row->stage), "%s", name);
	}
	row->count++;
	row->sum_ns += (double)event->duration_ns;
	if (event->duration_ns >= row->worst_ns) {
		row->worst_ns = event->duration_ns;
		row->worst_s = from_trigger(summary, event->start_ns);
		row->worst_frame = event->frame;
		row->has_frame = event->has_frame;
	}
}

/* The recorder's own work, and sums that only grow, move at each trigger. */
static bool is_noise(const char *name)
{
	static const char *const groups[] = {"process/edgeprofd/", "self/", "energy/"};
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (strncmp(name, groups[i], strlen(groups[i])) == 0) {
			return true;
		}
	}
	return false;
}

/* Samples of one series come one after the other. */
static void add_sample(struct summary *summary, const struct trace_event *event)
{
	struct metric_row *row =
		summary->metrics > 0 ? &summary->metric[summary->metrics - 1] : NULL;
	if (!row || strcmp(row->name, event->name) != 0) {
		if (summary->metrics == METRICS_MAX) {
			summary->skipped++;
			return;
		}
		row = &summary->metric[summary->metrics++];
		snprintf(row->name, sizeof(row->name), "%s", event->name);
		snprintf(row->unit, sizeof(row->unit), "%s", event->unit);
	}
	bool after = event->start_ns > summary->trigger_ns;
	row->side[after].count++;
	row->side[after].sum += event->value;
	row->side[after].squares += event->value * event->value;
}

static void add_event(struct summary *summary, const struct trace_event *event)
{
	if (summary->events == EVENTS_MAX) {
		summary->skipped++;
		return;
	}
	struct event_row *row = &summary->event[summary->events++];
	row->at_s = from_trigger(summary, event->start_ns);
	snprintf(row->text, sizeof(row->text), "%s%s%s: %s", event->word,
		event->name[0] == '\0' ? "" : " ", event->name, event->text);
}

static void on_event(struct trace *trace, const struct trace_event *event)
{
	struct summary *summary = trace->user;
	if (event->kind == TRACE_COMPLETE ||
		(event->kind == TRACE_FRAME && event->duration_ns > 0)) {
		add_run(summary, event);
	} else if (event->kind == TRACE_SENSOR && isfinite(event->value) &&
		   !is_noise(event->name)) {
		add_sample(summary, event);
	} else if (event->kind == TRACE_HAPPENED) {
		add_event(summary, event);
	}
}

static void show_head(struct ctl *ctl)
{
	const cJSON *header = replay_header(ctl->replay), *end = replay_end(ctl->replay);
	int64_t more = json_integer(end, "triggers") - json_count(end, "joined") - 1;
	listing_text(ctl, "{~bold}Recording {name}", header);
	listing_text(ctl, "\n  of {hostname}, edgeprofd {version}, boot {boot_id}\n", header);
	listing_text(ctl, "  trigger  {text}\n", json_get(header, "trigger"));
	/* the end knows better when the clock was set in between */
	listing_text(ctl, "  at       {time_us:time}", end);
	listing_text(ctl, "[{!clock_synced} (the clock was not set)]\n", header);
	listing_text(ctl,
		"  span     {span_s:1} s: {before_s:1} s before, {after_s:1} s after\n"
		"  records  [{records:count}|0], lost [{lost:count}|0]\n",
		end);
	if (json_text(end, "cut")) {
		fputs("  ", ctl->output.stream);
		listing_text(ctl, "{~warn}incomplete: {cut}", end);
		fputc('\n', ctl->output.stream);
	}
	for (const cJSON *one = json_first(end, "joined"); one; one = one->next) {
		double us = (double)json_integer(one, "mono_us") -
			    (double)json_integer(header, "mono_us");
		fprintf(ctl->output.stream, "  %+8.1f s also %s\n", us / 1e6,
			json_word(one, "text"));
	}
	if (more > 0) {
		fprintf(ctl->output.stream, "  and %lld further triggers\n", (long long)more);
	}
}

static int end_table(struct ctl *ctl, struct table *table)
{
	int r = table_print(table, &ctl->style, ctl->output.stream, 2);
	table_finish(table);
	return r;
}

static int show_stages(struct ctl *ctl, struct summary *summary)
{
	static const struct column columns[] = {{"APP", false, true}, {"STAGE", false, true},
		{"RUNS", true, false}, {"MEAN ms", true, false}, {"WORST ms", true, false},
		{"AT", true, false}, {"FRAME", true, false}};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < summary->stages; i++) {
		struct stage_row *row = &summary->stage[i];
		char frame[24] = "";
		text_clean(row->app, ctl->style.utf8);
		text_clean(row->stage, ctl->style.utf8);
		if (row->has_frame) {
			snprintf(frame, sizeof(frame), "%" PRIu64, row->worst_frame);
		}
		table_add(&table, TONE_NONE, "%s", row->app);
		table_add(&table, TONE_NONE, "%s", row->stage);
		table_add(&table, TONE_NONE, "%s", format_count((int64_t)row->count).text);
		table_add_number(&table, row->sum_ns / (double)row->count / 1e6, 2);
		table_add_number(&table, (double)row->worst_ns / 1e6, 2);
		table_add(&table, TONE_NONE, "%+.2f s", row->worst_s);
		table_add(&table, TONE_NONE, "%s", frame);
	}
	if (summary->stages > 0) {
		fputs("\nStages and frames; AT is from the trigger\n", ctl->output.stream);
	}
	return end_table(ctl, &table);
}

/* How far the mean moved at the trigger, in standard deviations of the samples before it, at least
 * 1 % of their mean. */
static double moved(const struct metric_row *row)
{
	double before = row->side[0].sum / row->side[0].count;
	double after = row->side[1].sum / row->side[1].count;
	double variance = row->side[0].squares / row->side[0].count - before * before;
	double scale = sqrt(variance > 0 ? variance : 0) + fabs(before) * 0.01 + 1e-9;
	bool enough = row->side[0].count >= MOVED_SAMPLES && row->side[1].count >= MOVED_SAMPLES;
	return enough ? fabs(after - before) / scale : 0;
}

static int most_moved(const void *a, const void *b)
{
	double left = moved(a), right = moved(b);
	return (left < right) - (left > right);
}

static int show_metrics_moved(struct ctl *ctl, struct summary *summary)
{
	static const struct column columns[] = {{"METRIC", false, true}, {"BEFORE", true, false},
		{"AFTER", true, false}, {"CHANGE", true, false}};
	struct table table;
	size_t shown = 0;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	qsort(summary->metric, summary->metrics, sizeof(summary->metric[0]), most_moved);
	for (; shown < summary->metrics && shown < METRICS_SHOWN; shown++) {
		struct metric_row *row = &summary->metric[shown];
		if (moved(row) < 2) {
			break;
		}
		double before = row->side[0].sum / row->side[0].count;
		double after = row->side[1].sum / row->side[1].count;
		bool utf8 = ctl->style.utf8;
		text_clean(row->name, utf8);
		text_clean(row->unit, utf8);
		table_add(&table, TONE_NONE, "%s", row->name);
		table_add(&table, TONE_NONE, "%s", format_value(before, row->unit, utf8).text);
		table_add(&table, TONE_NONE, "%s", format_value(after, row->unit, utf8).text);
		if (fabs(before) > 1e-9) {
			table_add(&table, TONE_NONE, "%+.0f%%", (after / before - 1) * 100);
		} else {
			table_add(&table, TONE_NONE, "%s", "");
		}
	}
	if (shown > 0) {
		fputs("\nMetrics that moved at the trigger (means)\n", ctl->output.stream);
	}
	return end_table(ctl, &table);
}

static void show_events_around(struct ctl *ctl, struct summary *summary)
{
	FILE *out = ctl->output.stream;
	size_t nearest = 0;
	for (size_t i = 0; i < summary->events; i++) {
		nearest = fabs(summary->event[i].at_s) < fabs(summary->event[nearest].at_s)
				  ? i
				  : nearest;
	}
	size_t first = nearest > EVENTS_SHOWN / 2 ? nearest - EVENTS_SHOWN / 2 : 0;
	size_t last =
		first + EVENTS_SHOWN < summary->events ? first + EVENTS_SHOWN : summary->events;
	if (summary->events > 0) {
		fputs("\nWhat happened\n", out);
	}
	for (size_t i = first; i < last; i++) {
		text_clean(summary->event[i].text, ctl->style.utf8);
		fprintf(out, "  %+8.2f s  %s\n", summary->event[i].at_s, summary->event[i].text);
	}
	if (last - first < summary->events) {
		fprintf(out, "  (%zu further ones: record export)\n",
			summary->events - (last - first));
	}
}

static int show_json(struct ctl *ctl, enum json_mode mode)
{
	cJSON *whole = cJSON_CreateObject();
	cJSON_AddItemToObject(whole, "header", cJSON_Duplicate(replay_header(ctl->replay), true));
	cJSON_AddItemToObject(whole, "end", cJSON_Duplicate(replay_end(ctl->replay), true));
	json_write(ctl->output.stream, whole, mode == JSON_PRETTY);
	cJSON_Delete(whole);
	return CTL_FINE;
}

int record_show(struct ctl *ctl)
{
	static const struct trace_format format = {NULL, NULL, on_event, NULL, NULL};
	if (ctl->options.json != JSON_OFF) {
		return show_json(ctl, ctl->options.json);
	}
	struct summary *summary = ctl_memory(1, sizeof(*summary));
	summary->trigger_ns = (uint64_t)json_integer(replay_header(ctl->replay), "mono_us") * 1000;
	ctl->options.sensors = "**";
	int status = trace_run(ctl, &format, summary);
	status = status == CTL_NO_DATA ? CTL_FINE : status;
	if (status == CTL_FINE) {
		json_clean((cJSON *)(uintptr_t)replay_header(ctl->replay), ctl->style.utf8);
		json_clean((cJSON *)(uintptr_t)replay_end(ctl->replay), ctl->style.utf8);
		show_head(ctl);
		int r = show_stages(ctl, summary);
		r = r < 0 ? r : show_metrics_moved(ctl, summary);
		show_events_around(ctl, summary);
		status = r < 0 ? ctl_fail(ctl, CTL_OUTPUT, "out of memory") : CTL_FINE;
	}
	free(summary);
	return status;
}
