/* SPDX-License-Identifier: Apache-2.0 */
/* measured.c: takes from a session, recording or live app what is compared. A warm-up at its start,
 * which is slower than the rest, is skipped in all series. */
#include "client/edgeprofctl/compare/measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/compare/statistics.h"
#include "client/edgeprofctl/data/data.h"
#include "client/edgeprofctl/link/json.h"

enum { CELSIUS_BUCKET = 5, CLOCK_BUCKETS = 256, CLOCKS_MAX = 16 };

/* What is taken of one source. */
struct taking {
	const struct data *data;
	struct measured *run;
	const struct data_series *temperature, *clock[CLOCKS_MAX];
	size_t clocks;
};

void measured_finish(struct measured *run)
{
	for (size_t i = 0; i < run->series_count; i++) {
		free(run->series[i].value);
		free(run->series[i].at_s);
		free(run->series[i].condition);
	}
	free(run->series);
	free(run->error);
	free(run->incomplete);
	cJSON_Delete(run->tags);
}

struct measured_series *measured_add(struct measured *run, const char *name, size_t count)
{
	if (!run->series) {
		run->series = ctl_memory(MEASURED_SERIES_MAX, sizeof(*run->series));
	}
	if (run->series_count == MEASURED_SERIES_MAX) {
		return NULL;
	}
	struct measured_series *series = &run->series[run->series_count++];
	snprintf(series->name, sizeof(series->name), "%s", name);
	series->value = ctl_memory(count, sizeof(*series->value));
	series->at_s = ctl_memory(count, sizeof(*series->at_s));
	series->condition = ctl_memory(count, sizeof(*series->condition));
	return series;
}

const struct measured_series *measured_series(const struct measured *run, const char *name)
{
	for (size_t i = 0; i < run->series_count; i++) {
		if (strcmp(run->series[i].name, name) == 0) {
			return &run->series[i];
		}
	}
	return NULL;
}

/* Temperature in steps of 5 degrees and the fastest core's clock in steps of 10 %; a clock that no
 * sensor reports is the same for all. */
static int condition_at(const struct taking *taking, double at_s)
{
	double celsius = data_at(taking->temperature, at_s), hertz = NAN;
	for (size_t i = 0; i < taking->clocks; i++) {
		hertz = fmax(hertz, data_at(taking->clock[i], at_s));
	}
	if (!(celsius > -100 && celsius < 1000)) {
		return CONDITION_UNKNOWN;
	}
	int bucket = (int)floor((celsius + 100) / CELSIUS_BUCKET) * CLOCK_BUCKETS;
	double clock = hertz >= 1 ? 1 + log(hertz) / log(1.1) : 0;
	return bucket + (int)fmin(clock, CLOCK_BUCKETS - 1);
}

static void take(
	const struct taking *taking, struct measured_series *series, double at_s, double value)
{
	if (isfinite(value) && value >= 0) {
		series->at_s[series->count] = at_s;
		series->condition[series->count] = condition_at(taking, at_s);
		series->value[series->count++] = value;
	}
}

static void take_frames(struct taking *taking)
{
	const struct data *data = taking->data;
	bool total = !data_stage(data, "total"); /* else it is one of the stages */
	struct measured_series *times = measured_add(taking->run, "frames", data->frame_count);
	struct measured_series *totals =
		total ? measured_add(taking->run, "total", data->frame_count) : NULL;
	for (size_t i = 0; i < data->frame_count; i++) {
		const struct data_frame *frame = &data->frame[i];
		take(taking, times, frame->at_s, frame->time_ms);
		if (total) {
			take(taking, totals, frame->at_s, frame->total_ms);
		}
	}
}

static void take_stages(struct taking *taking)
{
	const struct data *data = taking->data;
	for (size_t i = 0; i < data->stage_count; i++) {
		const struct data_stage *stage = &data->stage[i];
		char name[MEASURED_NAME_SIZE];
		size_t same = 0, alike = 0; /* on several units */
		for (size_t j = 0; j < data->stage_count; j++) {
			same += strcmp(data->stage[j].name, stage->name) == 0;
			alike += strcmp(data->stage[j].shown, stage->shown) == 0;
		}
		bool unit = stage->unit[0] && same > 1, total = strcmp(stage->name, "total") == 0;
		snprintf(name, sizeof(name), "%s%s%s%s", total ? "" : "stages/",
			alike > 1 ? stage->name : stage->shown, unit ? "@" : "",
			unit ? stage->unit : "");
		struct measured_series *series = measured_add(taking->run, name, stage->count);
		for (size_t j = 0; j < stage->count; j++) {
			take(taking, series, stage->execution[j].at_s, stage->execution[j].ms);
		}
	}
}

/* A value of the run as a whole. */
static void add_single(struct measured *run, const char *name, double value)
{
	if (isfinite(value) && value >= 0 && !measured_series(run, name)) {
		struct measured_series *series = measured_add(run, name, 1);
		series->at_s[0] = INFINITY;
		series->condition[0] = CONDITION_NONE;
		series->value[series->count++] = value;
	}
}

static void take_series(struct taking *taking, const char *name, const struct data_series *from)
{
	size_t count = from ? from->count : 0;
	struct measured_series *to = measured_add(taking->run, name, count);
	for (size_t i = 0; i < count; i++) {
		take(taking, to, from->at_s[i], from->value[i]);
	}
}

static void take_sensors(struct taking *taking)
{
	const struct data *data = taking->data;
	char energy[PROTO_PATH_SIZE], rss[PROTO_PATH_SIZE];
	snprintf(energy, sizeof(energy), "frame/%.*s/energy_mj", PROTO_NAME_SIZE - 1, data->app);
	snprintf(rss, sizeof(rss), "process/%.*s/rss", PROTO_NAME_SIZE - 1, data->app);
	take_series(taking, "power", data_series(data, "power/total"));
	take_series(taking, "energy", data_series(data, energy));
	const struct data_series *memory = data_series(data, rss);
	double peak = NAN;
	for (size_t i = 0; memory && i < memory->count; i++) {
		peak = fmax(peak, memory->value[i]);
	}
	add_single(taking->run, "memory/peak_bytes", peak);
}

/* The environment and tags of a session; else the facts that the daemon knows. Numbers that people
 * attach as tags are values. */
static void take_tags(struct measured *run, const struct data *data)
{
	static const char *const lists[] = {"environment", "tags"};
	static const char *const facts[] = {
		"model", "kernel", "os", "power_mode", "governor", "version"};
	static const char *const numbers[][2] = {{"size_mb", "model/size_mb"},
		{"model_size_mb", "model/size_mb"}, {"accuracy", "accuracy"}};
	run->tags = cJSON_CreateObject();
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (const cJSON *item = json_first(data->about, lists[i]); item;
			item = item->next) {
			const char *name = json_word(item, "name");
			cJSON_DeleteItemFromObjectCaseSensitive(run->tags, name);
			cJSON_AddStringToObject(run->tags, name, json_word(item, "value"));
		}
	}
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		if (!json_get(run->tags, facts[i])) {
			ctl_add_text(run->tags, facts[i], json_text(data->device, facts[i]));
		}
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const char *text = json_word(run->tags, numbers[i][0]);
		char *end;
		double value = strtod(text, &end);
		add_single(run, numbers[i][1], end != text && *end == '\0' ? value : (double)NAN);
	}
}

/* Skips a warm-up: where it ends in the series that shows it best. */
static void skip_warmup(struct measured *run)
{
	const struct measured_series *total = measured_series(run, "total"),
				     *frames = measured_series(run, "frames");
	const struct measured_series *of = total && total->count > 0 ? total : frames;
	run->warmup = warmup_length(of->value, of->count);
	double after_s = run->warmup > 0 ? of->at_s[run->warmup - 1] : -INFINITY;
	for (size_t i = 0; i < run->series_count; i++) {
		struct measured_series *series = &run->series[i];
		size_t skipped = 0;
		while (skipped < series->count && series->at_s[skipped] <= after_s) {
			skipped++;
		}
		series->count -= skipped;
		memmove(series->value, series->value + skipped,
			series->count * sizeof(*series->value));
		memmove(series->condition, series->condition + skipped,
			series->count * sizeof(*series->condition));
	}
}

int measured_read(struct ctl *ctl, const char *what, struct measured *ret)
{
	struct data data;
	struct taking taking = {.data = &data, .run = ret};
	int status = data_read(ctl, what, ctl->options.app, &data);
	if (status != CTL_FINE) {
		return status;
	}
	const char *error = json_text(data.about, "error");
	const char *name = data.name[0] ? data.name : data.app[0] ? data.app : what;
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	ret->error = error ? strdup(error) : NULL;
	ret->incomplete = data.incomplete ? strdup(data.incomplete) : NULL;
	for (size_t i = 0; i < data.series_count && taking.clocks < CLOCKS_MAX; i++) {
		if (proto_glob_match("cpu/*/frequency", data.series[i].name)) {
			taking.clock[taking.clocks++] = &data.series[i];
		}
	}
	if (!error) {
		taking.temperature = data_series(&data, "temperature/max");
		take_frames(&taking);
		take_stages(&taking);
		take_sensors(&taking);
		skip_warmup(ret);
	}
	take_tags(ret, &data);
	data_finish(&data);
	return CTL_FINE;
}
