/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c: shows what is pending or fires, with --all also what is fine, with --recent what
 * happened. With
 * --check one line and an exit status for monitoring systems. */
#include "client/edgeprofctl/verb.h"

#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "proto/name.h"

enum { USUAL_RECENT = 20, NAMED_IN_CHECK = 3 };

/* The rule, and the instance when it has more than one: as ack and silence take it. */
#define ALERT_NAME "{rule}[{?instance}{!instance=_}:{instance}]"

/* "acked: note, silenced", "test, sent 10:05:48" or nothing. */
static const char override_template[] =
	"[{?acked}acked[: {ack_note}]][{?silenced}{, }silenced][{?test}{, }test]"
	"[{?sent_time_us}{, }sent {sent_time_us:clock}|{?suppressed}{, }not sent]";

void show_alerts(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"ALERT", FIELD_LONG, ALERT_NAME},
		{"STATE", FIELD_TEXT, "[{?state=firing}{~:severity}|{~:state}]{state}"},
		{"SEVERITY", FIELD_TEXT, "[{?state=firing}{~:severity}|{~dim}]{severity}"},
		{"VALUE", FIELD_NUMBER, "{value:value}"},
		{"LIMIT", FIELD_NUMBER, "{threshold:value}"},
		{"FOR", FIELD_NUMBER, "{~dim}{age_ms:ms}"},
		{"", FIELD_LONG, override_template},
		{"TEXT", FIELD_LONG, "{~dim}{text}"},
	};
	listing_show(ctl, reply, "alerts", fields, sizeof(fields) / sizeof(fields[0]));
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
	for (const cJSON *alert = json_first(reply, "alerts"); alert; alert = alert->next) {
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
	int named = 0;
	for (int weight = BAD_CRITICAL; weight > NOT_BAD; weight--) {
		const cJSON *alert = json_first(reply, "alerts");
		for (; alert && named < NAMED_IN_CHECK; alert = alert->next) {
			if ((int)weight_of(alert, level) != weight) {
				continue;
			}
			fputs(named++ > 0 ? ", " : ": ", ctl->output.stream);
			listing_text(ctl, ALERT_NAME " {value:value}", alert);
		}
	}
	if (bad > named) {
		fprintf(ctl->output.stream, " and %d more", bad - named);
	}
}

/* The line of a Nagios plugin: what is wrong | numbers for graphs. */
static int check(struct ctl *ctl, const cJSON *reply, const char *level)
{
	FILE *out = ctl->output.stream;
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

/* What has changed is in CHANGE: "ok -> firing (warning)", "firing (critical) -> ok". */
static void show_recent(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"TIME", FIELD_TEXT, "{~dim}{time_us:time}"},
		{"ALERT", FIELD_LONG, ALERT_NAME},
		{"CHANGE", FIELD_TEXT,
			"[{?to=firing}{~:severity}|{~good}]{from}[{?from=firing} ({from_severity})]"
			"{>}{to}[{?to=firing} ({severity})]"},
		{"VALUE", FIELD_NUMBER, "{value:value}"},
		{"", FIELD_TEXT, override_template},
		{"TEXT", FIELD_LONG, "{~dim}{text}"},
	};
	if (json_count(reply, "transitions") == 0) {
		fputs("No alert has changed its state; --all lists them.\n", ctl->output.stream);
	}
	listing_show(ctl, reply, "transitions", fields, sizeof(fields) / sizeof(fields[0]));
}

/* In the order in which they happened, also if the wall clock was set back in between: an entry is
 * made when the first of several suppressed changes happens, and has the time of the last. */
static void sort(cJSON *reply)
{
	cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "transitions");
	for (int left = cJSON_GetArraySize(list); left > 1; left--) {
		cJSON *first = list->child, *row = first;
		for (int i = 0; i < left; i++, row = row->next) {
			first = json_integer(row, "mono_us") < json_integer(first, "mono_us")
					? row
					: first;
		}
		cJSON_AddItemToArray(list, cJSON_DetachItemViaPointer(list, first));
	}
	if (list && list->child) { /* the last one is still in front */
		cJSON_AddItemToArray(list, cJSON_DetachItemViaPointer(list, list->child));
	}
}

/* Nothing matched: fails unless there are alerts or rules that do, which are quiet then. */
static int check_known(struct ctl *ctl, const char *glob)
{
	static const char *const lists[][2] = {{"ListRules", "rules"}, {"ListAlerts", "alerts"}};
	for (size_t i = 0; i < 2; i++) {
		cJSON *reply;
		int status =
			ctl_call(ctl, lists[i][0], ctl_add_flag(NULL, "all", i > 0), true, &reply);
		bool known = status == CTL_FINE && listing_narrow(reply, lists[i][1], wanted, glob);
		cJSON_Delete(status == CTL_FINE ? reply : NULL);
		if (status != CTL_FINE || known) {
			return status;
		}
	}
	return ctl_unknown(
		ctl, CTL_NO_DATA, "alert rule", glob, "no alert or rule matches '%s'", glob);
}

static int recent(struct ctl *ctl, const char *glob)
{
	cJSON *parameters = cJSON_CreateObject();
	long limit = ctl->options.recent > 0 ? ctl->options.recent : USUAL_RECENT;
	cJSON_AddNumberToObject(parameters, "limit", (double)(limit > 128 ? 128 : limit));
	cJSON *reply;
	int status = ctl_call(ctl, "GetAlertLog", parameters, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	sort(reply);
	if (glob && listing_narrow(reply, "transitions", wanted, glob) == 0) {
		status = check_known(ctl, glob);
	}
	if (status != CTL_FINE) {
		cJSON_Delete(reply);
		return status;
	}
	return ctl_answer(ctl, reply, show_recent);
}

static int run(struct ctl *ctl)
{
	const char *glob = ctl_word(ctl, 0);
	if (ctl->options.all + (ctl->options.check != NULL) + (ctl->options.recent != 0) > 1) {
		return ctl_fail(ctl, CTL_USAGE, "--all, --check and --recent exclude each other");
	}
	if (ctl->options.recent != 0) {
		return recent(ctl, glob);
	}
	cJSON *reply;
	int status = ctl_call(ctl, "ListAlerts",
		ctl_add_flag(NULL, "all", ctl->options.all || ctl->options.check), true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (glob && listing_narrow(reply, "alerts", wanted, glob) == 0 && !ctl->options.check) {
		status = check_known(ctl, glob);
	}
	if (status != CTL_FINE) {
		/* what was asked for does not exist */
	} else if (ctl->options.check) {
		status = check(
			ctl, reply, ctl->options.check[0] == '\0' ? "warning" : ctl->options.check);
	} else if (!ctl_json(ctl, reply)) {
		if (json_count(reply, "alerts") == 0) {
			fputs(ctl->options.all ? "No metric is watched.\n"
					       : "No alert is pending or firing; --all lists those "
						 "that are ok.\n",
				ctl->output.stream);
		}
		show_alerts(ctl, reply);
	}
	cJSON_Delete(reply);
	return status;
}

static const struct option_spec options[] = {
	{"all", 'a', NULL, "include the alerts that are ok", option_flag,
		offsetof(struct options, all)},
	{"check", 0, "[warning|critical]",
		"print one line; exit status 1 while such an alert is firing", option_word,
		offsetof(struct options, check)},
	{"recent", 0, "[N]", "show the last N changes of state, newest last; default: 20",
		option_count, offsetof(struct options, recent)},
	{.name = NULL},
};

const struct verb verb_alerts = {"alerts", "[RULE]",
	"Show alerts that are firing or pending, or recent changes.", "alerts --check=critical",
	options, run};
