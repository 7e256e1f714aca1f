/* SPDX-License-Identifier: Apache-2.0 */
/* session_numbers.c: adds to a session what its file says of stages and of the total of a frame. */
#include "client/edgeprofctl/sessions/sessions.h"

#include "client/edgeprofctl/data/data.h"
#include "client/edgeprofctl/link/json.h"

static void add_row(
	cJSON *stages, const char *name, const char *unit, const struct data_numbers *ms)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "stage", name);
	if (unit[0] != '\0') {
		cJSON_AddStringToObject(row, "unit", unit);
	}
	json_add_number(row, "count", (double)ms->count);
	json_add_number(row, "mean_ms", ms->mean);
	json_add_number(row, "median_ms", ms->p50);
	json_add_number(row, "p95_ms", ms->p95);
	json_add_number(row, "p99_ms", ms->p99);
	json_add_number(row, "min_ms", ms->min);
	json_add_number(row, "max_ms", ms->max);
	cJSON_AddItemToArray(stages, row);
}

void session_add_stages(struct ctl *ctl, const char *name, cJSON *reply)
{
	struct data data;
	ctl->quiet = true;
	int status = data_is_file(name) ? CTL_NO_DATA : data_read(ctl, name, NULL, &data);
	ctl->quiet = false;
	if (status != CTL_FINE) {
		return; /* not written yet, or gone by now: the row is all there is */
	}
	/* without a row it is an app of that name that was read */
	cJSON *stages = data.about ? cJSON_AddArrayToObject(reply, "stages") : NULL;
	for (size_t i = 0; stages && i < data.stage_count; i++) {
		if (!data.stage[i].left_out) {
			add_row(stages, data.stage[i].name, data.stage[i].unit, &data.stage[i].ms);
		}
	}
	if (stages) {
		add_row(stages, "total", "", &data.total_ms);
	}
	data_finish(&data);
}
