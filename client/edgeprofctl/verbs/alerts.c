/* alerts: what is pending or fires, with --all also what is fine, with --recent what happened. With
 * --check one line and an exit status for monitoring systems. */
#include "client/edgeprofctl/verbs.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"
#include "proto/name.h"

enum { USUAL_RECENT = 20, NAMED_IN_CHECK = 3 };

/* The rule, and the instance when it has more than one: as ack and silence take it. */
static void add_name(struct table *table, const cJSON *alert)
{
	const char *instance = json_word(alert, "instance");
	bool single = instance[0] == '\0' || strcmp(instance, "_") == 0;
	table_add(table, TONE_NONE, "%s%s%s", json_word(alert, "rule"), single ? "" : ":",
		single ? "" : instance);
}

/* "acked: note, silenced", "sent 10:05:48", "test" or nothing. */
static void add_hold(struct table *table, const cJSON *alert)
{
	bool acked = json_true(alert, "acked"), silenced = json_true(alert, "silenced");
	const char *note = acked ? json_word(alert, "ack_note") : "";
	int64_t sent_us = json_integer(alert, "sent_time_us");
	char sent[80] = "";
	if (sent_us != 0) {
		snprintf(sent, sizeof(sent), "sent %.8s", format_clock(sent_us).text);
	} else if (json_true(alert, "suppressed")) {
		snprintf(sent, sizeof(sent), "not sent");
	}
	table_add(table, TONE_NONE, "%s%s%s%s%s%s%s%s", acked ? "acked" : "",
		note[0] == '\0' ? "" : ": ", note, acked && silenced ? ", " : "",
		silenced ? "silenced" : "", json_true(alert, "test") ? "test" : "",
		sent[0] != '\0' && (acked || silenced) ? ", " : "", sent);
}

void show_alerts(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"ALERT", false, true},
		{"STATE", false, false},
		{"SEVERITY", false, false},
		{"VALUE", true, false},
		{"LIMIT", true, false},
		{"FOR", true, false},
		{"", false, true},
		{"TEXT", false, true},
	};
	bool utf8 = ctl->style.utf8;
	int64_t now_us = (int64_t)time(NULL) * 1000000;
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *alert = json_first(reply, "alerts"); alert != NULL; alert = alert->next) {
		const char *state = json_word(alert, "state");
		const char *severity = json_word(alert, "severity");
		const char *unit = json_word(alert, "unit");
		bool firing = strcmp(state, "firing") == 0;
		enum tone tone = firing ? style_of_state(severity) : style_of_state(state);
		add_name(&table, alert);
		table_add(&table, tone, "%s", state);
		table_add(&table, firing ? tone : TONE_DIM, "%s", severity);
		table_add(&table, TONE_NONE, "%s",
			format_value(json_number(alert, "value"), unit, utf8).text);
		table_add(&table, TONE_NONE, "%s",
			format_value(json_number(alert, "threshold"), unit, utf8).text);
		double seconds = (double)(now_us - json_integer(alert, "since_us")) / 1e6;
		table_add(&table, TONE_DIM, "%s", format_span(seconds > 0 ? seconds : 0).text);
		add_hold(&table, alert);
		table_add(&table, TONE_DIM, "%s", json_word(alert, "text"));
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

/* RULE, RULE:INSTANCE or METRIC. */
static bool wanted(const cJSON *alert, const char *glob)
{
	char name[PROTO_NAME_SIZE + PROTO_PATH_SIZE];
	snprintf(name, sizeof(name), "%s:%s", json_word(alert, "rule"),
		json_word(alert, "instance"));
	return proto_query_match(glob, json_word(alert, "rule")) || proto_query_match(glob, name) ||
	       proto_query_match(glob, json_word(alert, "metric"));
}

static void narrow(cJSON *reply, const char *list, const char *glob)
{
	cJSON *alerts = cJSON_GetObjectItemCaseSensitive(reply, list);
	cJSON *next;
	for (cJSON *alert = cJSON_IsArray(alerts) ? alerts->child : NULL; alert; alert = next) {
		next = alert->next;
		if (!wanted(alert, glob)) {
			cJSON_Delete(cJSON_DetachItemViaPointer(alerts, alert));
		}
	}
}

struct tally {
	int watched, pending, acked, silenced;
	int bad, critical, warnings; /* bad: what the status is about; warnings: not among them */
};

enum weight { NOT_BAD, BAD_WARNING, BAD_CRITICAL };

/* What an alert counts for the status: only what fires, and nobody has spoken about. */
static enum weight weight_of(const cJSON *alert, const char *level)
{
	const char *severity = json_word(alert, "severity");
	if (strcmp(json_word(alert, "state"), "firing") != 0 || json_true(alert, "test") ||
		json_true(alert, "silenced") || json_true(alert, "acked")) {
		return NOT_BAD;
	}
	if (strcmp(severity, "critical") == 0) {
		return BAD_CRITICAL;
	}
	bool counts = strcmp(severity, "warning") == 0 && strcmp(level, "warning") == 0;
	return counts ? BAD_WARNING : NOT_BAD;
}

static struct tally count(const cJSON *reply, const char *level)
{
	struct tally tally = {0};
	for (const cJSON *alert = json_first(reply, "alerts"); alert != NULL; alert = alert->next) {
		bool firing = strcmp(json_word(alert, "state"), "firing") == 0;
		tally.watched += !json_true(alert, "test");
		tally.pending += strcmp(json_word(alert, "state"), "pending") == 0;
		tally.acked += firing && json_true(alert, "acked");
		tally.silenced += firing && json_true(alert, "silenced");
		tally.bad += weight_of(alert, level) != NOT_BAD;
		tally.critical += weight_of(alert, level) == BAD_CRITICAL;
		tally.warnings += weight_of(alert, "warning") == BAD_WARNING &&
				  weight_of(alert, level) == NOT_BAD;
	}
	return tally;
}

/* The worst ones by name. */
static void name_bad(struct ctl *ctl, const cJSON *reply, const char *level, int bad)
{
	FILE *out = ctl->output.stream;
	int named = 0;
	for (int weight = BAD_CRITICAL; weight > NOT_BAD; weight--) {
		const cJSON *alert = json_first(reply, "alerts");
		for (; alert != NULL && named < NAMED_IN_CHECK; alert = alert->next) {
			if ((int)weight_of(alert, level) != weight) {
				continue;
			}
			const char *instance = json_word(alert, "instance");
			bool single = strcmp(instance, "_") == 0;
			double value = json_number(alert, "value");
			fprintf(out, "%s%s%s%s %s", named++ > 0 ? ", " : ": ",
				json_word(alert, "rule"), single ? "" : ":", single ? "" : instance,
				format_value(value, json_word(alert, "unit"), ctl->style.utf8)
					.text);
		}
	}
	if (bad > named) {
		fprintf(out, " and %d more", bad - named);
	}
}

/* The line of a Nagios plugin: what is wrong | numbers for graphs. */
static int check(struct ctl *ctl, const cJSON *reply)
{
	FILE *out = ctl->output.stream;
	const char *level = ctl->options.check;
	struct tally tally = count(reply, level);
	int status = tally.bad > 0 ? CTL_BAD_NEWS : tally.watched == 0 ? CTL_NO_DATA : CTL_FINE;
	if (ctl_json(ctl, reply)) {
		return status;
	}
	if (tally.watched == 0) {
		fputs("EDGEPROF UNKNOWN - no alert rule has anything to watch\n", out);
		return status;
	}
	fprintf(out, "EDGEPROF %s - ",
		tally.critical > 0 ? "CRITICAL"
		: tally.bad > 0	   ? "WARNING"
				   : "OK");
	if (tally.bad > 0) {
		fprintf(out, "%d %s", tally.bad, tally.bad == 1 ? "alert fires" : "alerts fire");
		name_bad(ctl, reply, level, tally.bad);
	} else if (strcmp(level, "critical") == 0) {
		fputs("no critical alert fires", out);
		if (tally.warnings > 0) {
			fprintf(out, "; %d %s", tally.warnings,
				tally.warnings == 1 ? "warning does" : "warnings do");
		}
		fprintf(out, ", %d watched", tally.watched);
	} else {
		fprintf(out, "no alert fires, %d watched", tally.watched);
	}
	fprintf(out,
		" | firing=%d;0;;0 critical=%d;;0;0 pending=%d;;;0 acked=%d;;;0 silenced=%d;;;0\n",
		tally.bad, tally.critical, tally.pending, tally.acked, tally.silenced);
	return status;
}

static void show_recent(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"TIME", false, false},
		{"ALERT", false, true},
		{"CHANGE", false, false},
		{"VALUE", true, false},
		{"", false, false},
		{"TEXT", false, true},
	};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	const cJSON *row = json_first(reply, "transitions");
	for (; row != NULL; row = row->next) {
		const char *severity = json_word(row, "severity"), *to = json_word(row, "to");
		bool firing = strcmp(to, "firing") == 0;
		bool step = firing && strcmp(json_word(row, "from"), "firing") == 0;
		table_add(&table, TONE_DIM, "%s", format_time(json_integer(row, "time_us")).text);
		add_name(&table, row);
		table_add(&table, firing ? style_of_state(severity) : style_of_state("ok"),
			"%s%s%s", step ? json_word(row, "from_severity") : json_word(row, "from"),
			ctl->style.utf8 ? " → " : " -> ", firing ? severity : to);
		table_add(&table, TONE_NONE, "%s",
			format_value(
				json_number(row, "value"), json_word(row, "unit"), ctl->style.utf8)
				.text);
		add_hold(&table, row);
		table_add(&table, TONE_DIM, "%s", json_word(row, "text"));
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

/* By the time at which they happened: an entry is made when the first of several suppressed changes
 * happens, and has the time of the last. */
static void sort_by_time(cJSON *reply)
{
	cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "transitions");
	for (int left = cJSON_GetArraySize(list); left > 1; left--) {
		cJSON *first = list->child, *row = first;
		for (int i = 0; i < left; i++, row = row->next) {
			first = json_integer(row, "time_us") < json_integer(first, "time_us")
					? row
					: first;
		}
		cJSON_AddItemToArray(list, cJSON_DetachItemViaPointer(list, first));
	}
	if (list != NULL && list->child != NULL) { /* the last one is still in front */
		cJSON_AddItemToArray(list, cJSON_DetachItemViaPointer(list, list->child));
	}
}

static int recent(struct ctl *ctl, const char *glob)
{
	cJSON *parameters = ctl_parameters("", NULL);
	long limit = ctl->options.recent > 0 ? ctl->options.recent : USUAL_RECENT;
	cJSON_AddNumberToObject(parameters, "limit", (double)(limit > 128 ? 128 : limit));
	cJSON *reply;
	int status = ctl_call(ctl, "GetAlertLog", parameters, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	sort_by_time(reply);
	if (glob != NULL) {
		narrow(reply, "transitions", glob);
	}
	if (!ctl_json(ctl, reply)) {
		if (json_count(reply, "transitions") == 0) {
			fputs("No alert has changed its state; --all lists them.\n",
				ctl->output.stream);
		}
		show_recent(ctl, reply);
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}

int verb_alerts(struct ctl *ctl)
{
	uint64_t given = ctl->options.given & (OPTION_ALL | OPTION_CHECK | OPTION_RECENT);
	const char *glob = ctl->word_count > 0 ? ctl->words[0] : NULL;
	if ((given & (given - 1)) != 0) {
		return ctl_fail(ctl, CTL_USAGE, "--all, --check and --recent: one of them");
	}
	if (given & OPTION_RECENT) {
		return recent(ctl, glob);
	}
	cJSON *parameters = ctl_parameters("", NULL);
	if (given != 0) {
		cJSON_AddTrueToObject(parameters, "all");
	}
	cJSON *reply;
	int status = ctl_call(ctl, "ListAlerts", parameters, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (glob != NULL) {
		narrow(reply, "alerts", glob);
	}
	if (given & OPTION_CHECK) {
		status = check(ctl, reply);
	} else if (!ctl_json(ctl, reply)) {
		if (json_count(reply, "alerts") == 0) {
			fputs("No alert is pending or firing; --all lists those that are ok.\n",
				ctl->output.stream);
		}
		show_alerts(ctl, reply);
	}
	cJSON_Delete(reply);
	return status;
}
