/* GetReport: an app's report as text, made when asked for: of a living app, or of one that is gone
 * as long as its place was not needed. */
#include <stdlib.h>
#include <string.h>

#include "daemon/api/methods.h"
#include "daemon/api/rows.h"
#include "daemon/api/runs.h"
#include "daemon/core/app_report.h"
#include "daemon/util/seam.h"
#include "proto/name.h"

/* Who is meant when nobody is named: the last that went, else the only one; NULL: several run. */
static const struct app *choose(struct apps *apps)
{
	const struct app *app, *gone = NULL, *only = NULL;
	for (size_t i = 0; (app = apps_at(apps, i)); i++) {
		if (app->processes == 0 && app_report_worth(app) &&
			(!gone || app->last_seen_ns >= gone->last_seen_ns)) {
			gone = app;
		}
		only = i == 0 ? app : NULL;
	}
	return gone ? gone : only;
}

static const struct app *find(const struct api_call *call)
{
	const struct value *name = &call->value[0];
	if (!name->present) {
		return choose(call->core->apps);
	}
	char clean[PROTO_NAME_SIZE];
	proto_name_clean(name->string, strlen(name->string), clean);
	return apps_find(call->core->apps, clean);
}

enum api_result method_get_report(struct api_call *call)
{
	struct run_choice choice;
	const char *wrong = run_choose(&call->value[1], &choice);
	const struct app *app = find(call);
	if (wrong) {
		return reply_invalid_parameter(call->out, wrong);
	}
	if (!app) {
		return reply_not_found(
			call->out, "app", call->value[0].present ? call->value[0].string : "");
	}
	app = run_of(call->core->apps, app, choice, call->now_ns);
	if (!app) {
		return run_not_found(call->out, choice);
	}
	char *text = mem_zalloc(APP_REPORT_SIZE);
	if (!text || app_report_write(call->core, app, call->now_ns, text, APP_REPORT_SIZE) < 0) {
		free(text);
		return reply_too_large(call->out);
	}
	char summary[APP_REPORT_SUMMARY];
	app_report_summary(app, call->now_ns, summary);
	bool running = app->processes > 0;
	json_string(call->out, "app", app->name);
	run_fields(call->out, call->core, app, call->now_ns);
	json_string_opt(call->out, "last_words", app->last_words);
	json_integer(call->out, "time_us",
		row_time_us(call->core, running ? call->now_ns : app->last_seen_ns));
	json_string(call->out, "summary", summary);
	json_string(call->out, "text", text);
	free(text);
	return API_LAST;
}
