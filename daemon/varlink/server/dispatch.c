/*
 * The table of methods, and what is the same for all: the envelope of a call, its parameters
 * against the table, the answer's way back. A oneway call is carried out when it changes something
 * and is never answered.
 */
#include "daemon/varlink/server/dispatch.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/status/counters.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/server/access.h"
#include "daemon/varlink/server/connection.h"
#include "daemon/varlink/server/queue.h"
#include "daemon/varlink/server/state.h"

enum {
	METHOD_CHANGES = 1,    /* worth doing without an answer */
	METHOD_NEEDS_MORE = 2, /* a call without more is refused */
	METHOD_FRESH = 4,      /* wants the newest stage events first */
};

struct method {
	const char *name;
	enum api_result (*function)(struct api_call *call);
	unsigned flags;
	struct param params[PARAMS_MAX]; /* name NULL ends */
};

#define SERVICE "org.varlink.service."
#define OWN PROTO_INTERFACE_NAME "."

/* clang-format off */
static const struct method methods[] = {
	{SERVICE "GetInfo", method_get_info, 0, {{NULL, 0, false}}},
	{SERVICE "GetInterfaceDescription", method_get_interface_description, 0,
		{{"interface", PARAM_STRING, true}}},
	{OWN "GetStatus", method_get_status, METHOD_FRESH, {{"all", PARAM_BOOL, false}}},
	{OWN "GetSnapshot", method_get_snapshot, METHOD_FRESH, {{"app", PARAM_STRING, false}}},
	{OWN "ListMetrics", method_list_metrics, METHOD_FRESH, {{"glob", PARAM_STRING, false}}},
	{OWN "ListSources", method_list_sources, 0, {{NULL, 0, false}}},
	{OWN "SetSource", method_set_source, METHOD_CHANGES,
		{{"name", PARAM_STRING, true}, {"enabled", PARAM_BOOL, false},
		 {"interval_ms", PARAM_FLOAT, false}}},
	{OWN "GetHistory", method_get_history, 0,
		{{"glob", PARAM_STRING, true}, {"from_us", PARAM_INT, false},
		 {"to_us", PARAM_INT, false}, {"step_ms", PARAM_FLOAT, false},
		 {"max_points", PARAM_INT, false}}},
	{OWN "ListBoots", method_list_boots, 0, {{NULL, 0, false}}},
	{OWN "ExportTrace", method_export_trace, METHOD_NEEDS_MORE | METHOD_FRESH,
		{{"app", PARAM_STRING, false}, {"from_us", PARAM_INT, false},
		 {"to_us", PARAM_INT, false}, {"follow", PARAM_BOOL, false}}},
	{OWN "RecordNow", method_record_now, METHOD_CHANGES | METHOD_FRESH,
		{{"label", PARAM_STRING, false}, {"before_s", PARAM_FLOAT, false},
		 {"after_s", PARAM_FLOAT, false}}},
	{OWN "ListRecordings", method_list_recordings, 0, {{NULL, 0, false}}},
	{OWN "GetRecording", method_get_recording, METHOD_NEEDS_MORE,
		{{"name", PARAM_STRING, true}}},
	{OWN "ListApps", method_list_apps, METHOD_FRESH, {{"all", PARAM_BOOL, false}}},
	{OWN "ListStages", method_list_stages, METHOD_FRESH,
		{{"app", PARAM_STRING, false}, {"span", PARAM_STRING, false},
		 {"percentile_method", PARAM_STRING, false}, {"throttle", PARAM_STRING, false},
		 RUN_PARAMS, {"all", PARAM_BOOL, false}}},
	{OWN "GetFrames", method_get_frames, METHOD_FRESH,
		{{"app", PARAM_STRING, false}, {"span", PARAM_STRING, false},
		 {"percentile_method", PARAM_STRING, false}, {"throttle", PARAM_STRING, false},
		 {"slow", PARAM_BOOL, false}, {"recent", PARAM_INT, false}, RUN_PARAMS,
		 {"all", PARAM_BOOL, false}}},
	{OWN "GetReport", method_get_report, METHOD_FRESH,
		{{"app", PARAM_STRING, false}, RUN_PARAMS}},
	{OWN "ListProcesses", method_list_processes, 0, {{"threads", PARAM_BOOL, false}}},
	{OWN "WatchProcess", method_watch_process, METHOD_CHANGES,
		{{"pid", PARAM_INT, false}, {"pattern", PARAM_STRING, false},
		 {"unit", PARAM_STRING, false}, {"name", PARAM_STRING, false},
		 {"remove", PARAM_BOOL, false}}},
	{OWN "ListAlerts", method_list_alerts, 0, {{"all", PARAM_BOOL, false}}},
	{OWN "ListRules", method_list_rules, 0, {{NULL, 0, false}}},
	{OWN "AckAlert", method_ack_alert, METHOD_CHANGES,
		{{"rule", PARAM_STRING, true}, {"instance", PARAM_STRING, false},
		 {"note", PARAM_STRING, false}, {"remove", PARAM_BOOL, false}}},
	{OWN "SilenceAlert", method_silence_alert, METHOD_CHANGES,
		{{"rule", PARAM_STRING, true}, {"instance", PARAM_STRING, false},
		 {"seconds", PARAM_FLOAT, false}, {"note", PARAM_STRING, false},
		 {"remove", PARAM_BOOL, false}}},
	{OWN "ListSilences", method_list_silences, 0, {{NULL, 0, false}}},
	{OWN "GetAlertLog", method_get_alert_log, 0,
		{{"limit", PARAM_INT, false}, {"since_us", PARAM_INT, false}}},
	{OWN "TestAlert", method_test_alert, 0,
		{{"severity", PARAM_STRING, false}, {"text", PARAM_STRING, false},
		 {"seconds", PARAM_FLOAT, false}}},
	{OWN "ListEvents", method_list_events, 0,
		{{"from_serial", PARAM_INT, false}, {"limit", PARAM_INT, false}}},
	{OWN "Subscribe", method_subscribe, METHOD_NEEDS_MORE,
		{{"glob", PARAM_STRING, false}, {"metrics", PARAM_BOOL, false},
		 {"events", PARAM_BOOL, false}, {"interval_ms", PARAM_FLOAT, false},
		 {"advice", PARAM_BOOL, false}}},
	{OWN "Mark", method_mark, METHOD_CHANGES,
		{{"label", PARAM_STRING, true}, {"app", PARAM_STRING, false}}},
	{OWN "ListMarks", method_list_marks, METHOD_FRESH, {{"app", PARAM_STRING, false}}},
	{OWN "GetThrottle", method_get_throttle, 0, {{NULL, 0, false}}},
	{OWN "GetSelf", method_get_self, METHOD_FRESH, {{NULL, 0, false}}},
	{OWN "Reload", method_reload, METHOD_CHANGES, {{NULL, 0, false}}},
};
/* clang-format on */

bool call_permitted(const struct api_call *call)
{
	const struct api *api = call->api;
	uid_t uid = call->connection->uid;
	return uid == 0 || uid == geteuid() ||
	       (api->has_admin_gid && access_peer_in_group(call->connection->fd, api->admin_gid));
}

enum api_result call_not_permitted(const struct api_call *call)
{
	const char *method = strrchr(call->method, '.');
	return reply_not_permitted(
		call->out, method ? method + 1 : call->method, call->api->admin_name);
}

static const struct method *method_find(const char *name)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(methods[i].name, name) == 0) {
			return &methods[i];
		}
	}
	return NULL;
}

/* No such method: is it the interface that is unknown? */
static enum api_result method_unknown(struct json *out, const char *name)
{
	const char *dot = strrchr(name, '.');
	size_t length = dot ? (size_t)(dot - name) : strlen(name);
	bool known = (length == strlen(PROTO_INTERFACE_NAME) &&
			     strncmp(name, PROTO_INTERFACE_NAME, length) == 0) ||
		     (length + 1 == strlen(SERVICE) && strncmp(name, SERVICE, length) == 0);
	if (known) {
		return reply_service_error(out, SERVICE "MethodNotFound", "method", name);
	}
	reply_error(out, SERVICE "InterfaceNotFound");
	json_string_cut(out, "interface", name, length < 256 ? length : 256);
	return API_LAST;
}

static enum api_result call_run(
	struct api_call *call, const struct method *method, const struct cJSON *parameters)
{
	size_t count = 0;
	while (count < PARAMS_MAX && method->params[count].name) {
		count++;
	}
	const char *bad = params_read(parameters, method->params, count, call->value);
	if (bad) {
		return reply_invalid_parameter(call->out, bad);
	}
	if ((method->flags & METHOD_NEEDS_MORE) != 0 && !call->more) {
		reply_error(call->out, SERVICE "ExpectedMore");
		return API_LAST;
	}
	const struct api_options *options = &call->api->options;
	if ((method->flags & METHOD_FRESH) != 0 && options->refresh) {
		options->refresh(options->ctx, call->now_ns);
	}
	return method->function(call);
}

/* An optional bool of the envelope. False when it is something else. */
static bool envelope_bool(const struct cJSON *message, const char *name, bool *ret)
{
	const struct cJSON *item = cJSON_GetObjectItemCaseSensitive(message, name);
	*ret = cJSON_IsTrue(item);
	return !item || cJSON_IsBool(item) || cJSON_IsNull(item);
}

static void call_answer(struct api_call *call, enum api_result result)
{
	struct api *api = call->api;
	switch (result) {
	case API_LAST:
	case API_CHUNK:
		api->core->counters->api_errors += reply_is_error(call->out);
		reply_finish(call->out, result == API_CHUNK);
		queue_send(call->connection, call->out->buffer, call->out->length);
		return;
	case API_YIELD:
	case API_WAIT:
		/* the stream answers in its own turns */
		return;
	}
}

static int call_message(
	struct api_connection *connection, const struct cJSON *message, const char **reason)
{
	struct api *api = connection->api;
	const char *name =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "method"));
	bool more, oneway, upgrade;
	if (!name) {
		*reason = "a message without a method";
		return -EBADMSG;
	}
	if (!envelope_bool(message, "more", &more) || !envelope_bool(message, "oneway", &oneway) ||
		!envelope_bool(message, "upgrade", &upgrade)) {
		*reason = "a flag that is no bool";
		return -EBADMSG;
	}
	api->core->counters->api_calls++;
	struct api_call call = {
		.api = api,
		.connection = connection,
		.core = api->core,
		.method = name,
		.more = more && !oneway,
		.now_ns = sysops()->now_ns(),
		.out = &api->out,
	};
	reply_begin(call.out);
	const struct method *method = method_find(name);
	const struct cJSON *parameters = cJSON_GetObjectItemCaseSensitive(message, "parameters");
	if (oneway) {
		if (method && (method->flags & METHOD_CHANGES) != 0) {
			call_run(&call, method, parameters);
		}
		return 0;
	}
	enum api_result result;
	if (!method) {
		result = method_unknown(call.out, name);
	} else if (upgrade) {
		result = reply_service_error(
			call.out, SERVICE "MethodNotImplemented", "method", name);
	} else {
		result = call_run(&call, method, parameters);
	}
	call_answer(&call, result);
	return 0;
}

int dispatch_frame(
	struct api_connection *connection, const char *text, size_t length, const char **reason)
{
	struct cJSON *message;
	int r = proto_json_parse(text, length, &message, reason);
	if (r < 0) {
		return r;
	}
	r = call_message(connection, message, reason);
	cJSON_Delete(message);
	return r;
}
