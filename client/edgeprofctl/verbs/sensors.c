/* SPDX-License-Identifier: Apache-2.0 */
/* sensors.c: shows current values: sensors and metrics, those that match a glob; power, the rails
 * of the board, their total and the energy since the start. */
#include "client/edgeprofctl/verb.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/term/format.h"

/* A column full of ok says nothing. */
static void add_state(struct table *table, const cJSON *metric)
{
	const char *state = json_word(metric, "state");
	table_add(table, style_of_state(state), "%s", strcmp(state, "ok") == 0 ? "" : state);
}

void show_metrics(struct ctl *ctl, const cJSON *reply, bool (*wanted)(const char *name), bool zones)
{
	static const struct field fields[] = {
		{"METRIC", FIELD_LONG, "{name}", TONE_NONE, NULL, NULL},
		{"VALUE", FIELD_NUMBER, "[{value:value}[ of {max:value}]|-]", TONE_NONE, NULL,
			NULL},
		{"AGE", FIELD_NUMBER, "{age_ms:ms}", TONE_DIM, NULL, NULL},
		{"SOURCE", FIELD_TEXT, "{source}", TONE_DIM, NULL, NULL},
		{"STATE", FIELD_TEXT, NULL, TONE_NONE, NULL, add_state},
		{"NOTE", FIELD_LONG, "{reason}", TONE_DIM, NULL, NULL},
		{"ZONE", FIELD_NUMBER, "{zone:0}", TONE_NONE, NULL, NULL},
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

struct sensors_options {
	bool all, wide;
};

static int list(struct ctl *ctl, void (*show)(struct ctl *ctl, const cJSON *reply))
{
	const char *glob = ctl_word(ctl, 0);
	return ctl_list(ctl, "ListMetrics", ctl_parameters("glob", glob), "metrics", show,
		"no metric matches '%s'; 'edgeprofctl metrics' lists them", glob ? glob : "**");
}

/* Without --all: what the daemon costs has its own verb, and would come first. */
static bool of_the_device(const char *name)
{
	return strncmp(name, "collector", 9) != 0 && strncmp(name, "self", 4) != 0;
}

static void show_sensors(struct ctl *ctl, const cJSON *reply)
{
	const struct sensors_options *options = ctl->verb_options;
	const char *glob = ctl_word(ctl, 0);
	/* A word is a search for what the device has; what has a wildcard or a '/' is meant. */
	bool complete = options->all || (glob && (strpbrk(glob, "*?/") || !of_the_device(glob)));
	show_metrics(ctl, reply, complete ? NULL : of_the_device, options->wide);
}

static int run_sensors(struct ctl *ctl)
{
	return list(ctl, show_sensors);
}

static void show_names(struct ctl *ctl, const cJSON *reply)
{
	for (const cJSON *metric = json_first(reply, "metrics"); metric; metric = metric->next) {
		fprintf(ctl->output.stream, "%s\n", json_word(metric, "name"));
	}
}

static int run_metrics(struct ctl *ctl)
{
	return list(ctl, show_names);
}

static const struct option_spec sensors_table[] = {
	{"all", 'a', NULL, "include what the daemon and its sources cost", option_flag,
		offsetof(struct sensors_options, all)},
	{"wide", 0, NULL, "show the numbers of thermal zones", option_flag,
		offsetof(struct sensors_options, wide)},
	{.name = NULL},
};

const struct verb verb_sensors = {"sensors", "[GLOB]", "Show current values of metrics.",
	"sensors cpu", sensors_table, sizeof(struct sensors_options), run_sensors};

const struct verb verb_metrics = {"metrics", "[GLOB]", "List the names of metrics.",
	"metrics 'stage/**'", NULL, 0, run_metrics};

static void add_row(struct ctl *ctl, struct table *table, const char *name, const cJSON *metric)
{
	table_add(table, TONE_NONE, "%s", name);
	listing_cell(ctl, table, "{value:value}", metric, TONE_NONE);
	listing_cell(ctl, table, "{source}", metric, TONE_DIM);
	add_state(table, metric);
	listing_cell(ctl, table, "[{reason}|{origin}]", metric, TONE_DIM);
}

static void show_power(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"RAIL", false, true},
		{"VALUE", true, false},
		{"SOURCE", false, false},
		{"STATE", false, false},
		{"NOTE", false, true},
	};
	/* What the rails add up to comes below them. */
	static const struct {
		const char *metric, *name;
	} sums[] = {
		{"power/total", "Total"},
		{"energy/total", "Energy since start"},
		{"energy/gap_time", "Time not measured"},
	};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *metric = json_first(reply, "metrics"); metric; metric = metric->next) {
		const char *name = json_word(metric, "name");
		if (strncmp(name, "power/", 6) == 0 && strcmp(name, sums[0].metric) != 0) {
			add_row(ctl, &table, name + 6, metric);
		}
	}
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		for (const cJSON *metric = json_first(reply, "metrics"); metric;
			metric = metric->next) {
			/* without a gap there is nothing to report */
			if (strcmp(json_word(metric, "name"), sums[i].metric) == 0 &&
				(i < 2 || json_number(metric, "value") > 0)) {
				add_row(ctl, &table, sums[i].name, metric);
			}
		}
	}
	ctl_table(ctl, &table);
}

/* Moves the metrics of one answer behind those of the other. */
static void append(cJSON *to, cJSON *from)
{
	cJSON *all = cJSON_GetObjectItemCaseSensitive(to, "metrics");
	cJSON *more = cJSON_GetObjectItemCaseSensitive(from, "metrics");
	while (cJSON_IsArray(all) && cJSON_IsArray(more) && more->child) {
		cJSON_AddItemToArray(all, cJSON_DetachItemFromArray(more, 0));
	}
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
	append(reply, energy);
	cJSON_Delete(energy);
	bool empty = json_count(reply, "metrics") == 0;
	if (!ctl_json(ctl, reply) && !empty) {
		show_power(ctl, reply);
	}
	cJSON_Delete(reply);
	return empty ? ctl_fail(ctl, CTL_NO_DATA,
			       "no power rail is measured; 'edgeprofctl source list' shows "
			       "which sources there are")
		     : CTL_FINE;
}

const struct verb verb_power = {"power", "",
	"Show power rails, their total and the energy since the start.", "power", NULL, 0,
	run_power};
