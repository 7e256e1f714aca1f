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
#include "proto/text.h"

enum { CELSIUS_BUCKET = 5, CLOCK_BUCKETS = 1000, CLOCKS_MAX = 16 };

/* What is taken of one source. */
struct taking {
	const struct data *data;
	struct measured *run;
	double after_s; /* what is not later belongs to the warm-up */
	const struct data_series *temperature, *clock[CLOCKS_MAX];
	size_t clocks;
	bool out_of_memory;
};

void measured_finish(struct measured *run)
{
	for (size_t i = 0; i < run->series_count; i++) {
		free(run->series[i].value);
		free(run->series[i].condition);
	}
	free(run->series);
	free(run->error);
	free(run->incomplete);
	cJSON_Delete(run->single);
	cJSON_Delete(run->environment);
	cJSON_Delete(run->tags);
}

struct measured_series *measured_add(struct measured *run, const char *name, size_t count)
{
	struct measured_series series = {.count = 0};
	struct measured_series *grown =
		run->series_count == MEASURED_SERIES_MAX
			? NULL
			: realloc(run->series, (run->series_count + 1) * sizeof(series));
	run->series = grown ? grown : run->series;
	series.value = calloc(count + 1, sizeof(*series.value));
	series.condition = calloc(count + 1, sizeof(*series.condition));
	if (!grown || !series.value || !series.condition) {
		free(series.value);
		free(series.condition);
		return NULL;
	}
	snprintf(series.name, sizeof(series.name), "%s", name);
	run->series[run->series_count] = series;
	return &run->series[run->series_count++];
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

static void find_sensors(struct taking *taking)
{
	const struct data *data = taking->data;
	taking->temperature = data_series(data, "temperature/max");
	for (size_t i = 0; i < data->series_count && taking->clocks < CLOCKS_MAX; i++) {
		if (proto_glob_match("cpu/*/frequency", data->series[i].name)) {
			taking->clock[taking->clocks++] = &data->series[i];
		}
	}
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
	return bucket + (hertz >= 1 ? 1 + (int)(log(hertz) / log(1.1)) : 0);
}

static struct measured_series *begin(struct taking *taking, const char *name, size_t count)
{
	struct measured_series *series = measured_add(taking->run, name, count);
	taking->out_of_memory = taking->out_of_memory || !series;
	return series;
}

static void take(
	const struct taking *taking, struct measured_series *series, double at_s, double value)
{
	if (series && at_s > taking->after_s && isfinite(value) && value >= 0) {
		series->condition[series->count] = condition_at(taking, at_s);
		series->value[series->count++] = value;
	}
}

static void take_frames(struct taking *taking)
{
	const struct data *data = taking->data;
	const struct data_stage *total = data_stage(data, "total");
	struct measured_series *times = begin(taking, "frames", data->frame_count);
	for (size_t i = 0; i < data->frame_count; i++) {
		take(taking, times, data->frame[i].at_s, data->frame[i].time_ms);
	}
	struct measured_series *totals = begin(taking, "total", data->frame_count);
	for (size_t i = 0; i < data->frame_count && !total; i++) {
		take(taking, totals, data->frame[i].at_s, data->frame[i].total_ms);
	}
}

static bool is_on_several_units(const struct data *data, const struct data_stage *stage)
{
	for (size_t i = 0; i < data->stage_count; i++) {
		const struct data_stage *other = &data->stage[i];
		if (other != stage && strcmp(other->name, stage->name) == 0) {
			return true;
		}
	}
	return false;
}

static void take_stages(struct taking *taking)
{
	for (size_t i = 0; i < taking->data->stage_count; i++) {
		const struct data_stage *stage = &taking->data->stage[i];
		char bytes[MEASURED_NAME_SIZE];
		struct text name = TEXT_IN(bytes);
		bool unit = stage->unit[0] && is_on_several_units(taking->data, stage);
		bool total = strcmp(stage->name, "total") == 0;
		text_add(&name, "%s%s%s%s", total ? "" : "stages/", stage->name, unit ? "@" : "",
			unit ? stage->unit : "");
		struct measured_series *series = begin(taking, bytes, stage->count);
		for (size_t j = 0; j < stage->count; j++) {
			take(taking, series, stage->execution[j].at_s, stage->execution[j].ms);
		}
	}
}

static void take_sensors(struct taking *taking)
{
	const struct data *data = taking->data;
	char energy[PROTO_PATH_SIZE], rss[PROTO_PATH_SIZE];
	struct text energy_name = TEXT_IN(energy), rss_name = TEXT_IN(rss);
	text_add(&energy_name, "frame/%s/energy_mj", data->app);
	text_add(&rss_name, "process/%s/rss", data->app);
	const char *const names[][2] = {{"power", "power/total"}, {"energy", energy}};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct data_series *from = data_series(data, names[i][1]);
		struct measured_series *to = begin(taking, names[i][0], from ? from->count : 0);
		for (size_t j = 0; from && j < from->count; j++) {
			take(taking, to, from->at_s[j], from->value[j]);
		}
	}
	const struct data_series *memory = data_series(data, rss);
	double peak = NAN;
	for (size_t i = 0; memory && i < memory->count; i++) {
		peak = fmax(peak, memory->value[i]);
	}
	json_add_number(taking->run->single, "memory/peak_bytes", peak);
}

/* Numbers that people attach to a session as tags. */
static void take_tags(struct measured *run)
{
	static const char *const names[][2] = {{"size_mb", "model/size_mb"},
		{"model_size_mb", "model/size_mb"}, {"accuracy", "accuracy"}};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = json_text(run->tags, names[i][0]);
		char *end;
		double value = text ? strtod(text, &end) : (double)NAN;
		if (text && end != text && *end == '\0' && !json_get(run->single, names[i][1])) {
			json_add_number(run->single, names[i][1], value);
		}
	}
}

static cJSON *texts_of(const cJSON *about, const char *list)
{
	cJSON *object = cJSON_CreateObject();
	for (const cJSON *item = json_first(about, list); item; item = item->next) {
		cJSON_DeleteItemFromObjectCaseSensitive(object, json_word(item, "name"));
		cJSON_AddStringToObject(object, json_word(item, "name"), json_word(item, "value"));
	}
	return object;
}

/* Of what is not a session, the facts that the daemon knows. */
static void add_facts(cJSON *environment, const cJSON *device)
{
	static const char *const names[] = {
		"model", "kernel", "os", "power_mode", "governor", "version"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = json_text(device, names[i]);
		if (text && !json_get(environment, names[i])) {
			cJSON_AddStringToObject(environment, names[i], text);
		}
	}
}

/* Skips a warm-up: where it ends in the series that shows it best. */
static void skip_warmup(struct taking *taking)
{
	const struct data *data = taking->data;
	const struct data_stage *total = data_stage(data, "total");
	size_t count = total ? total->count : data->frame_count, used = 0;
	double *values = calloc(count + 1, sizeof(*values));
	double *at_s = calloc(count + 1, sizeof(*at_s));
	for (size_t i = 0; i < count && values && at_s; i++) {
		const struct data_frame *frame = total ? NULL : &data->frame[i];
		double value = total			? total->execution[i].ms
			       : isnan(frame->total_ms) ? frame->time_ms
							: frame->total_ms;
		at_s[used] = total ? total->execution[i].at_s : frame->at_s;
		values[used] = value;
		used += isfinite(value);
	}
	if (values && at_s) {
		size_t skipped = warmup_length(values, used);
		taking->run->warmup = skipped;
		taking->after_s = skipped > 0 ? at_s[skipped - 1] : taking->after_s;
	}
	free(values);
	free(at_s);
}

static int take_all(
	struct ctl *ctl, const struct data *data, const char *what, struct measured *run)
{
	struct taking taking = {.data = data, .run = run, .after_s = -INFINITY};
	const char *error = json_text(data->about, "error");
	snprintf(run->name, sizeof(run->name), "%s",
		data->name[0]  ? data->name
		: data->app[0] ? data->app
			       : what);
	run->error = error ? strdup(error) : NULL;
	run->incomplete = data->incomplete ? strdup(data->incomplete) : NULL;
	run->single = cJSON_CreateObject();
	run->environment = texts_of(data->about, "environment");
	run->tags = texts_of(data->about, "tags");
	add_facts(run->environment, data->device);
	find_sensors(&taking);
	if (!error) {
		skip_warmup(&taking);
		take_frames(&taking);
		take_stages(&taking);
		take_sensors(&taking);
	}
	take_tags(run);
	return taking.out_of_memory ? ctl_fail(ctl, CTL_OUTPUT, "out of memory") : CTL_FINE;
}

int measured_read(struct ctl *ctl, const char *what, struct measured *ret)
{
	struct data data;
	struct measured run = {.series_count = 0};
	int status = data_read(ctl, what, ctl->options.app, &data);
	if (status != CTL_FINE) {
		return status;
	}
	status = take_all(ctl, &data, what, &run);
	data_finish(&data);
	if (status == CTL_FINE) {
		*ret = run;
	} else {
		measured_finish(&run);
	}
	return status;
}
