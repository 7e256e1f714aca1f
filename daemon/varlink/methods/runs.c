/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c: finds which run of an app a call is about, for ListStages, GetFrames and GetReport. */
#include "daemon/varlink/methods/runs.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/apps/state.h"
#include "daemon/core/runs/runs.h"
#include "daemon/varlink/methods/rows.h"
#include "proto/json_write.h"

static const char *const spans[] = {"recent", "lifetime", NULL};
static const char *const methods[] = {"linear", "nearest", NULL};
static const char *const filters[] = {"all", "throttled", "unthrottled", NULL};

/* The index of the parameter's word; usual when it is not given, -1 when it is none of them. */
static int choose(const struct value *value, const char *const *words, int usual)
{
	if (!value->present) {
		return usual;
	}
	for (int i = 0; words[i]; i++) {
		if (strcmp(words[i], value->string) == 0) {
			return i;
		}
	}
	return -1;
}

const char *window_span_choose(const struct api_call *call, bool all_runs, struct window_query *ret)
{
	/* windows are of one run */
	int span = choose(&call->value[1], spans, all_runs);
	int method = choose(&call->value[2], methods, call->core->nearest);
	int filter = choose(&call->value[3], filters, 0);
	if (span < 0 || method < 0 || filter < 0) {
		return span < 0 ? "span" : method < 0 ? "percentile_method" : "throttle";
	}
	*ret = (struct window_query){span == 1, method == 1, (enum window_filter)filter};
	return NULL;
}

void span_fields(struct json *out, struct window_query query, bool exact, const char *reason)
{
	json_string(out, "span", spans[query.lifetime]);
	json_bool(out, "exact", exact);
	json_string(out, "percentile_method", methods[query.nearest]);
	json_string(out, "throttle", filters[query.filter]);
	json_string_opt(out, "reason", reason);
}

const char *run_choose(const struct value *values, struct run_choice *ret)
{
	const struct value *run = &values[0], *all = &values[1];
	*ret = (struct run_choice){.all = all->present && all->boolean};
	if (run->present && (run->integer > 0 || run->integer < -APP_RUNS_KEPT)) {
		return "run";
	}
	if (run->present && ret->all) {
		return "all_runs";
	}
	ret->run = run->present ? (int)run->integer : 0;
	return NULL;
}

enum api_result run_not_found(struct json *out, struct run_choice choice)
{
	char text[16];
	snprintf(text, sizeof(text), "%d", choice.run);
	return choice.all ? reply_limit(out, "memory", 0) : reply_not_found(out, "run", text);
}

const struct app *run_of(
	struct apps *apps, const struct app *app, struct run_choice choice, uint64_t now_ns)
{
	return choice.all ? apps_all_runs(apps, app, now_ns) : app_run(app, choice.run);
}

void run_fields(struct json *out, const struct core *core, const struct app *app, uint64_t now_ns)
{
	json_unsigned(out, "run", app->run);
	json_string(out, "state", app_state_name(app_state(app, now_ns)));
	json_integer(out, "since_us", row_time_us(core, app->since_ns));
	if (app->processes == 0) {
		json_integer(out, "until_us", row_time_us(core, app->last_seen_ns));
	}
	if (app->covers_since_ns > 0) {
		json_integer(out, "covers_since_us", row_time_us(core, app->covers_since_ns));
	}
	if (app->missing > 0) {
		json_unsigned(out, "missing", app->missing);
	}
}
