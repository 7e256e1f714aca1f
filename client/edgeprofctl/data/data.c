/* SPDX-License-Identifier: Apache-2.0 */
/* data.c: answers questions about what was measured. */
#include "client/edgeprofctl/data/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"

enum { INTERVALS = 5 /* so long a value holds */ };

struct proto_summary data_numbers_of(double *values, size_t count)
{
	struct proto_summary ret;
	proto_summarize(values, count, &ret);
	return ret;
}

double data_frame_ms(const struct data_frame *frame)
{
	return isnan(frame->total_ms) ? frame->time_ms : frame->total_ms;
}

bool data_is_outermost(const struct data_stage *stage, const struct data_execution *one)
{
	return !stage->left_out && !one->inside;
}

const struct data_stage *data_stage(const struct data *data, const char *name)
{
	for (size_t i = 0; i < data->stage_count; i++) {
		if (strcmp(data->stage[i].name, name) == 0) {
			return &data->stage[i];
		}
	}
	return NULL;
}

const struct data_series *data_series(const struct data *data, const char *name)
{
	for (size_t i = 0; i < data->series_count; i++) {
		if (strcmp(data->series[i].name, name) == 0) {
			return &data->series[i];
		}
	}
	return NULL;
}

double data_at(const struct data_series *series, double at_s)
{
	size_t low = 0, high = series ? series->count : 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		bool later = series->at_s[middle] > at_s;
		low = later ? low : middle + 1;
		high = later ? middle : high;
	}
	if (low == 0) {
		return NAN;
	}
	double age_s = at_s - series->at_s[low - 1];
	double span_s = series->at_s[series->count - 1] - series->at_s[0];
	double interval_s = series->count > 1 ? span_s / (double)(series->count - 1) : INFINITY;
	return age_s <= INTERVALS * interval_s ? series->value[low - 1] : (double)NAN;
}

const char *data_tag(const struct data *data, const char *name)
{
	static const char *const lists[] = {"tags", "environment"};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (const cJSON *tag = json_first(data->about, lists[i]); tag; tag = tag->next) {
			if (strcmp(json_word(tag, "name"), name) == 0) {
				return json_text(tag, "value");
			}
		}
	}
	return NULL;
}

void data_finish(struct data *data)
{
	for (size_t i = 0; i < data->stage_count; i++) {
		free(data->stage[i].execution);
	}
	for (size_t i = 0; i < data->series_count; i++) {
		free(data->series[i].at_s);
		free(data->series[i].value);
	}
	free(data->frame);
	free(data->stage);
	free(data->series);
	free(data->happening);
	cJSON_Delete(data->about);
	cJSON_Delete(data->device);
	cJSON_Delete(data->notes);
}
