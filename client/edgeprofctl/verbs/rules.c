/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c: shows the alert rules, and passes on what people say about their alerts: ack and
 * silence. */

#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/verb.h"
#include "client/edgeprofctl/term/when.h"
#include "proto/name.h"

static void show_rules(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"RULE", FIELD_TEXT, "{rule}"},
		{"STATE", FIELD_TEXT, "[{?state=firing}{~:severity}|{~:state}]{state}"},
		{"SEVERITY", FIELD_TEXT, "{~dim}{severity}"},
		{"METRIC", FIELD_TEXT, "{metric}"},
		{"CONDITION", FIELD_LONG,
			"[{?condition=slope_above}grows by more than|{condition}]"
			"[{?unit}[ {threshold:value}][, critical {critical:value}]|"
			"[ {threshold:g}][{?condition=slope_above} per minute]"
			"[, critical {critical:g}]][{?for_s}, for {for_s:s}]"},
		{"INSTANCES", FIELD_NUMBER, "{instances:count}"},
		{"FROM", FIELD_TEXT, "{~dim}{origin}"},
	};
	listing_show(ctl, reply, "rules", fields, sizeof(fields) / sizeof(fields[0]));
}

static bool wanted(const cJSON *rule, const char *glob)
{
	return !glob || proto_query_match(glob, json_word(rule, "rule")) ||
	       proto_query_match(glob, json_word(rule, "metric"));
}

/* A rule's glob has the unit of what it watches: nothing, no unit. */
static void add_units(struct ctl *ctl, cJSON *reply)
{
	cJSON *alerts, *rule;
	if (ctl_call(ctl, "ListAlerts", ctl_add_flag(NULL, "all", true), true, &alerts) !=
		CTL_FINE) {
		return;
	}
	cJSON_ArrayForEach(rule, cJSON_GetObjectItemCaseSensitive(reply, "rules"))
	{
		const cJSON *alert = json_first(alerts, "alerts");
		while (alert && strcmp(json_word(alert, "rule"), json_word(rule, "rule")) != 0) {
			alert = alert->next;
		}
		ctl_add_text(rule, "unit", alert ? json_word(alert, "unit") : NULL);
	}
	cJSON_Delete(alerts);
}

static int run_rules(struct ctl *ctl)
{
	const char *glob = ctl_word(ctl, 0);
	cJSON *reply;
	int status = ctl_call(ctl, "ListRules", NULL, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (listing_narrow(reply, "rules", wanted, glob) == 0 && glob) {
		cJSON_Delete(reply);
		return ctl_unknown(
			ctl, CTL_NO_DATA, "alert rule", glob, "no alert rule matches '%s'", glob);
	}
	if (ctl->options.json == JSON_OFF) {
		add_units(ctl, reply);
	}
	return ctl_answer(ctl, reply, show_rules);
}

const struct verb verb_rules = {"rules", "[RULE]",
	"List the alert rules: condition, state and origin.", "rules temperature", NULL, run_rules};

/* RULE[:INSTANCE], the note and --remove as parameters. */
static cJSON *parameters_of(const struct ctl *ctl, const char *name)
{
	const char *colon = strchr(name, ':');
	char rule[256]; /* a longer one is none: cut, the daemon refuses it */
	snprintf(rule, sizeof(rule), "%.*s", (int)strcspn(name, ":"), name);
	cJSON *parameters = ctl_parameters("rule", rule);
	ctl_add_text(parameters, "instance", colon ? colon + 1 : NULL);
	ctl_add_text(parameters, "note", ctl->options.note);
	return ctl_add_flag(parameters, "remove", ctl->options.remove);
}

static void show_ack(struct ctl *ctl, const cJSON *reply)
{
	long long alerts = (long long)json_integer(reply, "alerts");
	fprintf(ctl->output.stream, "%lld %s %s.\n", alerts, alerts == 1 ? "alert" : "alerts",
		ctl->options.remove ? "no longer acknowledged" : "acknowledged");
}

static int run_ack(struct ctl *ctl)
{
	return ctl_show(ctl, "AckAlert", parameters_of(ctl, ctl->words[0]), false, show_ack);
}

static void show_silences(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"SILENCED", FIELD_LONG, "{rule}[:{instance}]"},
		{"LEFT", FIELD_NUMBER, "{left_s:s}"},
		{"UNTIL", FIELD_TEXT, "{~dim}{until_us:time}"},
		{"UID", FIELD_NUMBER, "{uid:0}"},
		{"NOTE", FIELD_LONG, "{note}"},
	};
	if (json_count(reply, "silences") == 0) {
		fputs("No silences. 'edgeprofctl silence RULE 2h' adds one.\n", ctl->output.stream);
	}
	listing_show(ctl, reply, "silences", fields, sizeof(fields) / sizeof(fields[0]));
}

static void show_silence(struct ctl *ctl, const cJSON *reply)
{
	int64_t until_us = json_integer(reply, "until_us");
	if (until_us != 0) {
		fprintf(ctl->output.stream, "%s is silenced until %s.\n", ctl->words[0],
			format_time(until_us).text);
	} else {
		fprintf(ctl->output.stream, "%s is no longer silenced.\n", ctl->words[0]);
	}
}

static int run_silence(struct ctl *ctl)
{
	double seconds = 0;
	if (ctl->word_count == 0) {
		return ctl->options.remove || ctl->options.note
			       ? ctl_fail(ctl, CTL_USAGE,
					 "silence requires RULE[:INSTANCE] with these options")
			       : ctl_show(ctl, "ListSilences", NULL, true, show_silences);
	}
	if (ctl->options.remove && ctl->word_count > 1) {
		return ctl_fail(ctl, CTL_USAGE, "--remove cannot be combined with a span");
	}
	if (!ctl->options.remove && ctl->word_count < 2) {
		return ctl_fail(ctl, CTL_USAGE, "silence requires a span, such as 30min, 2h or 7d");
	}
	if (!ctl->options.remove && (when_parse_span(ctl->words[1], &seconds) < 0 || seconds < 1 ||
					    seconds > 366 * 86400.0)) {
		return ctl_fail(ctl, CTL_USAGE, "invalid span '%s'; use 1s to 366d", ctl->words[1]);
	}
	cJSON *parameters = parameters_of(ctl, ctl->words[0]);
	if (!ctl->options.remove) {
		cJSON_AddNumberToObject(parameters, "seconds", seconds);
	}
	return ctl_show(ctl, "SilenceAlert", parameters, false, show_silence);
}

static const struct option_spec override_table[] = {
	{"note", 'm', "TEXT", "attach a note for others", option_text,
		offsetof(struct options, note)},
	{"remove", 0, NULL, "remove the acknowledgement or silence", option_flag,
		offsetof(struct options, remove)},
	{.name = NULL},
};

const struct verb verb_ack = {"ack", "RULE[:INSTANCE]",
	"Acknowledge an alert: no notification until it gets worse.",
	"ack temperature -m 'fan ordered'", override_table, run_ack};

const struct verb verb_silence = {"silence", "[RULE[:INSTANCE] SPAN]",
	"Mute notifications for a time; without arguments: list silences.",
	"silence temperature 2h", override_table, run_silence};
