/* Which run of an app a call is about: ListStages, GetFrames and GetReport ask here. */
#include "daemon/varlink/methods/runs.h"

#include <stdio.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/runs/runs.h"
#include "daemon/core/runs/state.h"
#include "daemon/varlink/methods/rows.h"
#include "proto/json_write.h"

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
