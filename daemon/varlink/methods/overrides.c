/* SPDX-License-Identifier: Apache-2.0 */
/* overrides.c: answers AckAlert, SilenceAlert, ListSilences and GetAlertLog. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/alerts/actions.h"
#include "daemon/core/alerts/text.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

enum { RULE, INSTANCE, ACK_NOTE, ACK_REMOVE };
enum { SILENCE_SECONDS = 2, SILENCE_NOTE, SILENCE_REMOVE };
enum { LOG_LIMIT, LOG_SINCE };

static const char *text_of(const struct value *value)
{
	return value->present ? value->string : "";
}

static bool note_is_good(const char *note)
{
	return overrides_is_line(note) && strlen(note) < ALERT_NOTE;
}

static enum api_result ack_result(struct api_call *call, int r)
{
	const struct value *value = call->value;
	char name[PROTO_NAME_SIZE + PROTO_PATH_SIZE];
	if (r == -ENOENT) {
		bool remove = value[ACK_REMOVE].boolean;
		snprintf(name, sizeof(name), "%s%s%s", value[RULE].string,
			value[INSTANCE].present ? ":" : "", text_of(&value[INSTANCE]));
		return reply_not_found(
			call->out, remove ? "acknowledged alert" : "firing alert", name);
	}
	if (r < 0) {
		return reply_limit(call->out, "acknowledgements", ALERT_ACKS);
	}
	json_integer(call->out, "alerts", r);
	return API_LAST;
}

enum api_result method_ack_alert(struct api_call *call)
{
	const struct value *value = call->value;
	const char *rule = value[RULE].string, *note = text_of(&value[ACK_NOTE]);
	const char *instance = value[INSTANCE].present ? value[INSTANCE].string : NULL;
	uid_t uid = call->connection->uid;
	if (!proto_name_valid(rule)) {
		return reply_invalid_parameter(call->out, "rule");
	}
	if (instance && (instance[0] == '\0' || strlen(instance) >= PROTO_PATH_SIZE)) {
		return reply_invalid_parameter(call->out, "instance");
	}
	if (!note_is_good(note)) {
		return reply_invalid_parameter(call->out, "note");
	}
	struct alerts *alerts = call->core->alerts;
	if (!alerts_knows_rule(alerts, rule)) {
		return reply_not_found(call->out, "alert rule", rule);
	}
	return ack_result(
		call, value[ACK_REMOVE].boolean
			      ? alerts_unack(alerts, rule, instance, uid, call->now_ns)
			      : alerts_ack(alerts, rule, instance, uid, note, call->now_ns));
}

/* The name of the invalid parameter, or NULL. */
static const char *check_silence(const struct value *value)
{
	if (strchr(value[RULE].string, '/') || proto_glob_check(value[RULE].string) < 0) {
		return "rule";
	}
	if (value[INSTANCE].present &&
		(strlen(value[INSTANCE].string) >= PROTO_PATH_SIZE ||
			overrides_check_instance(value[INSTANCE].string) < 0)) {
		return "instance";
	}
	if (value[SILENCE_REMOVE].boolean == value[SILENCE_SECONDS].present) {
		return "seconds";
	}
	return note_is_good(text_of(&value[SILENCE_NOTE])) ? NULL : "note";
}

static enum api_result remove_silence(struct api_call *call)
{
	const struct value *value = call->value;
	const char *instance = text_of(&value[INSTANCE]);
	char name[2 * PROTO_PATH_SIZE];
	if (alerts_unsilence(call->core->alerts, value[RULE].string, instance,
		    call->connection->uid, call->now_ns) == 0) {
		return API_LAST;
	}
	snprintf(
		name, sizeof(name), "%s%s%s", value[RULE].string, instance[0] ? ":" : "", instance);
	return reply_not_found(call->out, "silence", name);
}

enum api_result method_silence_alert(struct api_call *call)
{
	const struct value *value = call->value;
	const char *invalid = check_silence(value);
	if (invalid) {
		return reply_invalid_parameter(call->out, invalid);
	}
	if (value[SILENCE_REMOVE].boolean) {
		return remove_silence(call);
	}
	if (!alerts_knows_rule(call->core->alerts, value[RULE].string)) {
		return reply_not_found(call->out, "alert rule", value[RULE].string);
	}
	struct alert_silence silence = {.from_ns = call->now_ns, .uid = call->connection->uid};
	silence.until_ns = call->now_ns + (uint64_t)(value[SILENCE_SECONDS].number * 1e9);
	snprintf(silence.rule, sizeof(silence.rule), "%s", value[RULE].string);
	snprintf(silence.instance, sizeof(silence.instance), "%s", text_of(&value[INSTANCE]));
	snprintf(silence.note, sizeof(silence.note), "%s", text_of(&value[SILENCE_NOTE]));
	int r = alerts_silence(call->core->alerts, &silence);
	if (r < 0) {
		return r == -EDQUOT
			       ? reply_limit(call->out, "silences of this user", ALERT_SILENCES_UID)
			       : reply_limit(call->out, "silences", ALERT_SILENCES);
	}
	json_integer(call->out, "until_us", row_time_us(call->core, silence.until_ns));
	return API_LAST;
}

static bool silence_item(struct list_cursor *cursor, struct json *out)
{
	if (cursor->first >= ALERT_SILENCES) {
		return false;
	}
	const struct alert_silence *silence =
		&alerts_overrides(cursor->core->alerts)->silence[cursor->first++];
	if (silence->serial == 0 || silence->until_ns <= cursor->now_ns) {
		return true;
	}
	json_open(out, NULL, '{');
	json_string(out, "rule", silence->rule);
	json_string_opt(out, "instance", silence->instance);
	json_integer(out, "from_us", row_time_us(cursor->core, silence->from_ns));
	json_integer(out, "until_us", row_time_us(cursor->core, silence->until_ns));
	json_integer(out, "left_s", (int64_t)((silence->until_ns - cursor->now_ns) / 1000000000u));
	json_integer(out, "uid", silence->uid);
	json_string_opt(out, "note", silence->note);
	json_close(out, '}');
	return true;
}

static const struct list_ops silence_list = {.field = "silences", .item = silence_item};

enum api_result method_list_silences(struct api_call *call)
{
	return list_answer(call, &silence_list);
}

static void record_row(struct json *out, const struct core *core, const struct alert_record *record)
{
	char unit[ALERT_UNIT];
	alert_unit((enum unit)record->unit, (record->flags & RECORD_PER_MINUTE) != 0, unit);
	json_open(out, NULL, '{');
	json_unsigned(out, "serial", record->serial);
	json_integer(out, "time_us", row_time_us(core, record->t_ns));
	if (record->sent_ns != 0) {
		json_integer(out, "sent_time_us", row_time_us(core, record->sent_ns));
	}
	json_unsigned(out, "mono_us", record->t_ns / 1000);
	json_string(out, "rule", record->rule);
	json_string(out, "instance", record->instance);
	json_string(out, "metric", record->metric);
	json_string(out, "unit", unit);
	json_string(out, "from", alert_phase_name((enum alert_phase)record->from));
	json_string(out, "to", alert_phase_name((enum alert_phase)record->to));
	json_string(out, "severity", alert_severity_name((enum alert_severity)record->severity));
	json_string(out, "from_severity",
		alert_severity_name((enum alert_severity)record->from_severity));
	json_number(out, "value", record->value);
	json_number_opt(out, "threshold", record->threshold);
	json_string(out, "text", record->text);
	json_bool(out, "silenced", (record->flags & RECORD_SILENCED) != 0);
	json_bool(out, "acked", (record->flags & RECORD_ACKED) != 0);
	json_bool(out, "suppressed", (record->flags & RECORD_SUPPRESSED) != 0);
	json_bool(out, "test", (record->flags & RECORD_TEST) != 0);
	json_close(out, '}');
}

static bool record_item(struct list_cursor *cursor, struct json *out)
{
	const struct alert_record *record =
		overrides_logged(alerts_overrides(cursor->core->alerts), cursor->first);
	if (!record) {
		return false;
	}
	record_row(out, cursor->core, record);
	cursor->first = (uint32_t)record->serial + 1;
	return true;
}

static const struct list_ops record_list = {.field = "transitions", .item = record_item};

enum api_result method_get_alert_log(struct api_call *call)
{
	const struct value *limit = &call->value[LOG_LIMIT], *since = &call->value[LOG_SINCE];
	const struct overrides *overrides = alerts_overrides(call->core->alerts);
	const struct alert_record *record;
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	uint64_t count = limit->present ? (uint64_t)limit->integer : ALERT_RECORDS / 2;
	uint64_t from = overrides->records > count ? overrides->records - count + 1 : 1;
	while (since->present && (record = overrides_logged(overrides, from)) &&
		row_time_us(call->core, record->t_ns) < since->integer) {
		from = record->serial + 1;
	}
	cursor.first = (uint32_t)from;
	return list_start(call, &record_list, &cursor);
}
