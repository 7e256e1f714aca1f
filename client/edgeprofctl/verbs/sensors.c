/* sensors and metrics: current values of the metrics that match a glob. */
#include "client/edgeprofctl/verbs.h"

#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"

static void add_value(struct table *table, const cJSON *metric, bool utf8)
{
	double value = json_number(metric, "value");
	double limit = json_number(metric, "max");
	const char *unit = json_word(metric, "unit");
	struct label label = format_value(value, unit, utf8);
	enum tone tone = value == value ? TONE_NONE : TONE_DIM;
	if (limit == limit && value == value) {
		table_add(
			table, tone, "%s of %s", label.text, format_value(limit, unit, utf8).text);
	} else {
		table_add(table, tone, "%s", label.text);
	}
}

void show_metrics(struct ctl *ctl, const cJSON *reply, bool (*wanted)(const char *name))
{
	static const struct column columns[] = {
		{"METRIC", false, true},
		{"VALUE", true, false},
		{"AGE", true, false},
		{"SOURCE", false, false},
		{"STATE", false, false},
		{"NOTE", false, true},
		{"ZONE", true, false},
	};
	bool zones = ctl->options.given & OPTION_WIDE;
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]) - !zones);
	for (const cJSON *metric = json_first(reply, "metrics"); metric != NULL;
		metric = metric->next) {
		const char *name = json_word(metric, "name");
		const char *state = json_word(metric, "state");
		if (wanted != NULL && !wanted(name)) {
			continue;
		}
		table_add(&table, TONE_NONE, "%s", name);
		add_value(&table, metric, ctl->style.utf8);
		table_add(&table, TONE_DIM, "%s",
			format_span(json_number(metric, "age_ms") / 1000).text);
		table_add(&table, TONE_DIM, "%s", json_word(metric, "source"));
		/* a column full of ok says nothing */
		table_add(
			&table, style_of_state(state), "%s", strcmp(state, "ok") == 0 ? "" : state);
		table_add(&table, TONE_DIM, "%s", json_word(metric, "reason"));
		if (zones) {
			table_add_number(&table, json_number(metric, "zone"), 0);
		}
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

static int ask(struct ctl *ctl, cJSON **ret)
{
	const char *glob = ctl->word_count > 0 ? ctl->words[0] : NULL;
	return ctl_call(ctl, "ListMetrics", ctl_parameters("glob", glob), true, ret);
}

static int nothing(struct ctl *ctl)
{
	return ctl_fail(ctl, CTL_NO_DATA,
		"no metric matches '%s'; 'edgeprofctl metrics' lists them",
		ctl->word_count > 0 ? ctl->words[0] : "**");
}

/* Without --all: what the daemon costs has its own verb, and would come first. */
static bool of_the_device(const char *name)
{
	return strncmp(name, "collector", 9) != 0 && strncmp(name, "self", 4) != 0;
}

int verb_sensors(struct ctl *ctl)
{
	const char *glob = ctl->word_count > 0 ? ctl->words[0] : NULL;
	/* A word is a search for what the device has; what has a wildcard or a '/' is meant. */
	bool whole = (ctl->options.given & OPTION_ALL) ||
		     (glob != NULL && (strpbrk(glob, "*?/") != NULL || !of_the_device(glob)));
	cJSON *reply;
	int status = ask(ctl, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		show_metrics(ctl, reply, whole ? NULL : of_the_device);
	}
	status = json_count(reply, "metrics") > 0 ? CTL_FINE : nothing(ctl);
	cJSON_Delete(reply);
	return status;
}

int verb_metrics(struct ctl *ctl)
{
	cJSON *reply;
	int status = ask(ctl, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		for (const cJSON *metric = json_first(reply, "metrics"); metric != NULL;
			metric = metric->next) {
			fprintf(ctl->output.stream, "%s\n", json_word(metric, "name"));
		}
	}
	status = json_count(reply, "metrics") > 0 ? CTL_FINE : nothing(ctl);
	cJSON_Delete(reply);
	return status;
}
