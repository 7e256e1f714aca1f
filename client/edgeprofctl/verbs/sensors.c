/* SPDX-License-Identifier: Apache-2.0 */
/* sensors.c: shows current values: sensors and metrics, those that match a glob; power, the rails
 * of the board, their total and the energy since the start. */
#include "client/edgeprofctl/verb.h"

#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/link/merge.h"
#include "client/edgeprofctl/listing.h"

/* A column full of ok says nothing. */
static const char state_template[] = "{~:state}[{!state=ok}{state}]";

void show_metrics(struct ctl *ctl, const cJSON *reply, bool (*wanted)(const char *name), bool zones)
{
	static const struct field fields[] = {
		{"METRIC", FIELD_LONG, "{name}"},
		{"VALUE", FIELD_NUMBER, "[{value:value}[ of {max:value}]|-]"},
		{"AGE", FIELD_NUMBER, "{~dim}{age_ms:ms}"},
		{"SOURCE", FIELD_TEXT, "{~dim}{source}"},
		{"STATE", FIELD_TEXT, state_template},
		{"NOTE", FIELD_LONG, "{~dim}{reason}"},
		{"ZONE", FIELD_NUMBER, "{zone:0}"},
	};
	struct listing listing;
	listing_begin(&listing, ctl, fields, sizeof(fields) / sizeof(fields[0]) - !zones);
	for (const cJSON *metric = json_first(reply, "metrics"); metric; metric = metric->next) {
		if (!wanted || wanted(json_word(metric, "name"))) {
			listing_add(&listing, metric);
		}
	}
	listing_end(&listing);
}

/* Without --all: what the daemon costs has its own verb, and would come first. */
static bool of_the_device(const char *name)
{
	return strncmp(name, "collector", 9) != 0 && strncmp(name, "self", 4) != 0;
}

static void show_sensors(struct ctl *ctl, const cJSON *reply)
{
	const char *glob = ctl_word(ctl, 0);
	/* A word is a search for what the device has; what has a wildcard or a '/' is meant. */
	bool complete =
		ctl->options.all || (glob && (strpbrk(glob, "*?/") || !of_the_device(glob)));
	show_metrics(ctl, reply, complete ? NULL : of_the_device, ctl->options.wide);
}

static int run_sensors(struct ctl *ctl)
{
	const char *glob = ctl_word(ctl, 0);
	return ctl_list(ctl, "ListMetrics", ctl_parameters("glob", glob), "metrics", show_sensors,
		"no metric matches '%s'; 'edgeprofctl sensors --all' lists them",
		glob ? glob : "**");
}

static const struct option_spec sensors_table[] = {
	{"all", 'a', NULL, "include what the daemon and its sources cost", option_flag,
		offsetof(struct options, all)},
	{"wide", 0, NULL, "show the numbers of thermal zones", option_flag,
		offsetof(struct options, wide)},
	{.name = NULL},
};

const struct verb verb_sensors = {"sensors", "[GLOB]", "Show current values of metrics.",
	"sensors cpu", sensors_table, run_sensors};

static void show_power(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"RAIL", FIELD_LONG, "{rail}"},
		{"VALUE", FIELD_NUMBER, "{value:value}"},
		{"SOURCE", FIELD_TEXT, "{~dim}{source}"},
		{"STATE", FIELD_TEXT, state_template},
		{"NOTE", FIELD_LONG, "{~dim}[{reason}|{origin}]"},
	};
	static const char *const sums[][2] = {{"power/total", "Total"},
		{"energy/total", "Energy since start"}, {"energy/gap_time", "Time not measured"}};
	struct listing listing;
	cJSON *metrics = cJSON_GetObjectItemCaseSensitive(reply, "metrics"), *metric;
	listing_begin(&listing, ctl, fields, sizeof(fields) / sizeof(fields[0]));
	cJSON_ArrayForEach(metric, metrics)
	{
		const char *name = json_word(metric, "name");
		if (strncmp(name, "power/", 6) == 0 && strcmp(name, sums[0][0]) != 0) {
			cJSON_AddStringToObject(metric, "rail", name + 6);
			listing_add(&listing, metric);
		}
	}
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		cJSON_ArrayForEach(metric, metrics)
		{
			/* without a gap there is nothing to report */
			if (strcmp(json_word(metric, "name"), sums[i][0]) == 0 &&
				(i < 2 || json_number(metric, "value") > 0)) {
				cJSON_AddStringToObject(metric, "rail", sums[i][1]);
				listing_add(&listing, metric);
			}
		}
	}
	listing_end(&listing);
}

static int run_power(struct ctl *ctl)
{
	cJSON *reply, *energy;
	int status = ctl_call(ctl, "ListMetrics", ctl_parameters("glob", "power/*"), true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	status = ctl_call(ctl, "ListMetrics", ctl_parameters("glob", "energy/*"), true, &energy);
	if (status != CTL_FINE) {
		cJSON_Delete(reply);
		return status;
	}
	merge_columns(reply, energy);
	cJSON_Delete(energy);
	bool empty = json_count(reply, "metrics") == 0;
	ctl_answer(ctl, reply, show_power);
	return empty ? ctl_fail(ctl, CTL_NO_DATA,
			       "no power rail is measured; 'edgeprofctl source list' shows "
			       "which sources there are")
		     : CTL_FINE;
}

const struct verb verb_power = {"power", "",
	"Show power rails, their total and the energy since the start.", "power", NULL, run_power};
