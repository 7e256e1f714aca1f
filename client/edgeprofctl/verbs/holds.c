/* ack, silence: what people say about alerts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/history/when.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"
#include "client/edgeprofctl/verbs.h"

/* RULE[:INSTANCE], the note and --remove as parameters. */
static cJSON *parameters_of(const struct ctl *ctl, const char *name)
{
	cJSON *parameters = cJSON_CreateObject();
	const char *colon = strchr(name, ':');
	char rule[256]; /* a longer one is none: cut, the daemon refuses it */
	size_t length = colon ? (size_t)(colon - name) : strlen(name);
	length = length < sizeof(rule) ? length : sizeof(rule) - 1;
	memcpy(rule, name, length);
	rule[length] = '\0';
	cJSON_AddStringToObject(parameters, "rule", rule);
	if (colon) {
		cJSON_AddStringToObject(parameters, "instance", colon + 1);
	}
	if (ctl->options.note) {
		cJSON_AddStringToObject(parameters, "note", ctl->options.note);
	}
	if (ctl->options.given & OPTION_REMOVE) {
		cJSON_AddTrueToObject(parameters, "remove");
	}
	return parameters;
}

int verb_ack(struct ctl *ctl)
{
	cJSON *reply;
	bool remove = (ctl->options.given & OPTION_REMOVE) != 0;
	int status = ctl_call(ctl, "AckAlert", parameters_of(ctl, ctl->words[0]), false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		long long alerts = (long long)json_integer(reply, "alerts");
		fprintf(ctl->output.stream, "%lld %s %s.\n", alerts,
			alerts == 1 ? "alert" : "alerts",
			remove ? "no longer acknowledged" : "acknowledged");
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}

static void show_silences(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"SILENCED", false, true},
		{"LEFT", true, false},
		{"UNTIL", false, false},
		{"UID", true, false},
		{"NOTE", false, true},
	};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	const cJSON *row = json_first(reply, "silences");
	for (; row != NULL; row = row->next) {
		const char *instance = json_word(row, "instance");
		table_add(&table, TONE_NONE, "%s%s%s", json_word(row, "rule"),
			instance[0] == '\0' ? "" : ":", instance);
		table_add(&table, TONE_NONE, "%s", format_span(json_number(row, "left_s")).text);
		table_add(&table, TONE_DIM, "%s", format_time(json_integer(row, "until_us")).text);
		table_add(&table, TONE_NONE, "%lld", (long long)json_integer(row, "uid"));
		table_add(&table, TONE_NONE, "%s", json_word(row, "note"));
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

static int list(struct ctl *ctl)
{
	cJSON *reply;
	int status = ctl_call(ctl, "ListSilences", NULL, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		if (json_count(reply, "silences") == 0) {
			fputs("No silences. 'edgeprofctl silence RULE 2h' makes one.\n",
				ctl->output.stream);
		} else {
			show_silences(ctl, reply);
		}
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}

static int change(struct ctl *ctl, cJSON *parameters)
{
	cJSON *reply;
	int status = ctl_call(ctl, "SilenceAlert", parameters, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		int64_t until_us = json_integer(reply, "until_us");
		if (until_us != 0) {
			fprintf(ctl->output.stream, "%s is silenced until %s.\n", ctl->words[0],
				format_time(until_us).text);
		} else {
			fprintf(ctl->output.stream, "%s is no longer silenced.\n", ctl->words[0]);
		}
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}

int verb_silence(struct ctl *ctl)
{
	bool remove = (ctl->options.given & OPTION_REMOVE) != 0;
	double seconds = 0;
	if (ctl->word_count == 0) {
		return remove || ctl->options.note
			       ? ctl_fail(ctl, CTL_USAGE, "which rule? RULE[:INSTANCE], globs")
			       : list(ctl);
	}
	if (remove && ctl->word_count > 1) {
		return ctl_fail(ctl, CTL_USAGE, "--remove takes no time");
	}
	if (!remove && (ctl->word_count < 2 || when_parse_span(ctl->words[1], &seconds) < 0 ||
			       seconds < 1 || seconds > 366 * 86400.0)) {
		return ctl_fail(ctl, CTL_USAGE, "for how long? 1s to 366d, as 30min, 2h, 7d");
	}
	cJSON *parameters = parameters_of(ctl, ctl->words[0]);
	if (!remove) {
		cJSON_AddNumberToObject(parameters, "seconds", seconds);
	}
	return change(ctl, parameters);
}
