/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c: answers ListMetrics: the table of current values. */
#include <stdio.h>
#include <string.h>

#include "daemon/core/metrics/metrics.h"
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
