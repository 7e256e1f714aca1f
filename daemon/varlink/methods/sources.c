/* SPDX-License-Identifier: Apache-2.0 */
/* sources.c: answers ListMetrics, the table of current values, and ListSources, SetSource and
 * Reload: what is sampled, and requests to change it. */
#include <stdio.h>
#include <string.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/sources.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"
#include "proto/name.h"

static bool metric_item(struct list_cursor *cursor, struct json *out)
{
	const struct metric *metric = metrics_next(cursor->core->metrics, &cursor->first);
	if (!metric) {
		return false;
	}
	if (cursor->pattern[0] == '\0' || proto_query_match(cursor->pattern, metric->name)) {
		row_metric(out, cursor->core, metric, cursor->now_ns);
	}
	return true;
}

static bool any_matches(struct metrics *metrics, const char *query)
{
	uint32_t next = 0;
	const struct metric *metric = metrics_next(metrics, &next);
	while (metric && !proto_query_match(query, metric->name)) {
		metric = metrics_next(metrics, &next);
	}
	return metric != NULL;
}

static const struct list_ops metric_list = {.field = "metrics", .item = metric_item};

enum api_result method_list_metrics(struct api_call *call)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	const struct value *glob = &call->value[0];
	if (glob->present) {
		if (strlen(glob->string) >= PROTO_PATH_SIZE || proto_glob_check(glob->string) < 0) {
			return reply_invalid_parameter(call->out, "glob");
		}
		bool exact = metrics_find(call->core->metrics, glob->string) != NULL;
		snprintf(cursor.pattern, sizeof(cursor.pattern), "%s%s", exact ? "=" : "",
			glob->string);
		if (!exact && !strpbrk(glob->string, "*?") &&
			!any_matches(call->core->metrics, glob->string)) {
			return reply_not_found(call->out, "metric", glob->string);
		}
	}
	return list_start(call, &metric_list, &cursor);
}

enum { SOURCE_NAME, SOURCE_ENABLED, SOURCE_INTERVAL };

enum api_result method_list_sources(struct api_call *call)
{
	const struct source *source;
	json_open(call->out, "sources", '[');
	for (size_t i = 0; (source = sources_at(call->core->sources, i)); i++) {
		row_source(call->out, NULL, source, call->now_ns);
	}
	json_close(call->out, ']');
	return API_LAST;
}

enum api_result method_set_source(struct api_call *call)
{
	const struct value *value = call->value;
	struct source *source = sources_find(call->core->sources, value[SOURCE_NAME].string);
	if (!source) {
		return reply_not_found(call->out, "source", value[SOURCE_NAME].string);
	}
	uint64_t interval_ns = (uint64_t)(value[SOURCE_INTERVAL].number * 1e6);
	bool wanted =
		value[SOURCE_ENABLED].present ? value[SOURCE_ENABLED].boolean : source->wanted;
	if (value[SOURCE_ENABLED].present || interval_ns != 0) {
		source_request(source, wanted, interval_ns);
	}
	row_source(call->out, "source", source, call->now_ns);
	return API_LAST;
}

enum api_result method_reload(struct api_call *call)
{
	const struct api_options *options = &call->api->options;
	if (!options->reload) {
		return reply_service_error(call->out, "org.varlink.service.MethodNotImplemented",
			"method", call->method);
	}
	char text[1024] = "";
	int r = options->reload(options->ctx, text, sizeof(text));
	if (r < 0) {
		reply_error(call->out, PROTO_INTERFACE_NAME ".ReloadFailed");
		json_string(call->out, "text", text[0] != '\0' ? text : strerror(-r));
	} else if (text[0] != '\0') {
		json_string(call->out, "restart", text);
	}
	return API_LAST;
}
