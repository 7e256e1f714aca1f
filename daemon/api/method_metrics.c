/* ListMetrics: the table of current values. */
#include <string.h>

#include "daemon/api/list.h"
#include "daemon/api/methods.h"
#include "daemon/api/rows.h"
#include "daemon/core/core.h"
#include "proto/name.h"

static bool metric_item(struct list_cursor *cursor, struct json *out)
{
	const struct metric *metric = metrics_next(cursor->core->metrics, &cursor->first);
	if (!metric) {
		return false;
	}
	if (cursor->pattern[0] == '\0' || proto_glob_match(cursor->pattern, metric->name)) {
		row_metric(out, cursor->core, metric, cursor->now_ns);
	}
	return true;
}

static const struct list_ops metric_list = {.field = "metrics", .item = metric_item};

enum api_result method_list_metrics(struct api_call *call)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	const struct value *glob = &call->value[0];
	if (glob->present) {
		if (strlen(glob->string) >= sizeof(cursor.pattern) ||
			proto_glob_check(glob->string) < 0) {
			return reply_invalid_parameter(call->out, "glob");
		}
		if (!strpbrk(glob->string, "*?") &&
			!metrics_find(call->core->metrics, glob->string)) {
			return reply_not_found(call->out, "metric", glob->string);
		}
		memcpy(cursor.pattern, glob->string, strlen(glob->string) + 1);
	}
	return list_start(call, &metric_list, &cursor);
}
