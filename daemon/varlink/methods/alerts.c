/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c: answers ListAlerts, ListRules and ListEvents. */
#include <string.h>

#include "daemon/core/alerts/actions.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

enum {
	EVENTS_FROM = 0,
	EVENTS_LIMIT = 1,
	EVENTS_DEFAULT = 200,
};

static bool alert_item(struct list_cursor *cursor, struct json *out)
{
	const struct alert *alert = alerts_at(cursor->core->alerts, cursor->first);
	if (!alert) {
		return false;
	}
	cursor->first++;
	if (cursor->all || alert->phase != ALERT_OK) {
		row_alert(out, cursor->core, alert);
	}
	return true;
}

static const struct list_ops alert_list = {.field = "alerts", .item = alert_item};

enum api_result method_list_alerts(struct api_call *call)
{
	return list_answer(call, &alert_list);
}

static const char *rule_state(
	const struct alert_rule *rule, const struct alert_tally *tally, bool silenced)
{
	return !rule->enabled			 ? "disabled"
	       : silenced			 ? "silenced"
	       : tally->firing > tally->silenced ? "firing"
	       : tally->firing > 0		 ? "silenced"
	       : tally->pending > 0		 ? "pending"
						 : "ok";
}

static void rule_row(
	struct json *out, const struct list_cursor *cursor, const struct alert_rule *rule)
{
	const struct alerts *alerts = cursor->core->alerts;
	const struct alert_tally tally = alerts_count(alerts, rule, cursor->now_ns);
	const bool silenced = overrides_mute_rule(alerts_overrides(alerts), rule, cursor->now_ns);
	json_open(out, NULL, '{');
	json_string(out, "rule", rule->name);
	json_string(out, "metric", rule->metric);
	json_string(out, "condition", alert_kind_name(rule->kind));
	if (rule->kind != ALERT_ABSENT) {
		json_number(out, "threshold", rule->threshold);
		json_number_opt(out, "critical", rule->critical);
		json_number_opt(out, "clear", rule->clear);
	}
	json_number(out, "for_s", (double)rule->for_ns / 1e9);
	json_number(out, "clear_for_s", (double)rule->clear_for_ns / 1e9);
	if (rule->kind == ALERT_SLOPE) {
		json_number(out, "over_s", (double)rule->over_ns / 1e9);
	}
	json_string(out, "severity", alert_severity_name(rule->severity));
	json_unsigned(out, "max_per_hour", rule->max_per_hour);
	json_string(out, "state", rule_state(rule, &tally, silenced));
	json_unsigned(out, "instances", tally.instances);
	json_unsigned(out, "pending", tally.pending);
	json_unsigned(out, "firing", tally.firing);
	json_unsigned(out, "silenced", tally.silenced);
	json_string(out, "origin", rule->configured ? "config" : "built-in");
	json_close(out, '}');
}

static bool rule_item(struct list_cursor *cursor, struct json *out)
{
	const struct alert_rule *rule = alerts_rule_at(cursor->core->alerts, cursor->first);
	if (!rule) {
		return false;
	}
	cursor->first++;
	rule_row(out, cursor, rule);
	return true;
}

static const struct list_ops rule_list = {.field = "rules", .item = rule_item};

enum api_result method_list_rules(struct api_call *call)
{
	return list_answer(call, &rule_list);
}

/* Where to start so that the newest entries fit: their texts at their longest in JSON. */
static uint64_t newest_from(const struct timeline *timeline, uint64_t last, uint64_t limit)
{
	size_t bytes = 0;
	uint64_t from = last + 1;
	const struct timeline_entry *entry;
	for (; limit > 0 && (entry = timeline_back(timeline, from - 1)); limit--) {
		bytes += 192 + 2 * (strlen(entry->text) + strlen(entry->subject));
		if (bytes > PROTO_FRAME_MAX - 1024) {
			break;
		}
		from = entry->serial;
	}
	return from;
}

enum api_result method_list_events(struct api_call *call)
{
	const struct timeline *timeline = call->core->timeline;
	const struct value *from = &call->value[EVENTS_FROM], *limit = &call->value[EVENTS_LIMIT];
	uint64_t count = limit->present ? (uint64_t)limit->integer : EVENTS_DEFAULT;
	uint64_t last = timeline_last_serial(timeline);
	uint64_t serial =
		from->present ? (uint64_t)from->integer : newest_from(timeline, last, count);
	const struct timeline_entry *entry;
	json_open(call->out, "events", '[');
	for (; count > 0 && (entry = timeline_from(timeline, serial)); count--) {
		size_t mark = json_mark(call->out);
		row_event(call->out, call->core, entry);
		if (json_room(call->out) < 64) {
			json_rollback(call->out, mark);
			break;
		}
		serial = entry->serial + 1;
	}
	json_close(call->out, ']');
	json_unsigned(call->out, "last_serial", last);
	return API_LAST;
}
