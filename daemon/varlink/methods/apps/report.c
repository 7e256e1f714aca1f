/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c: answers GetReport: an app's report as text, made on request, of a running app or of one
 * that has ended and is still known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/apps/state.h"
#include "daemon/core/report/report.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"
#include "daemon/varlink/methods/runs.h"
#include "proto/name.h"

/* The default: the app that ended last, else the only one; NULL: several run. */
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

/* The file that was written when a run ended of which nothing else is left. */
static enum api_result past_report(
	struct api_call *call, const char *app, char *text, struct run_choice choice)
{
	const struct past_reports *past = call->core->past_reports;
	struct past_report report = {.run = 0};
	int r = past && !choice.all ? past->read(past->ctx, app, text, APP_REPORT_SIZE, &report)
				    : -ENOENT;
	if (r <= 0) {
		return choice.run < 0 ? run_not_found(call->out, choice)
				      : reply_not_found(call->out, "app", app ? app : "");
	}
	json_string(call->out, "app", report.app);
	json_unsigned(call->out, "run", report.run);
	json_string(call->out, "state", app_state_name(report.state));
	json_integer(call->out, "since_us", report.since_us);
	json_integer(call->out, "until_us", report.until_us);
	json_string_opt(call->out, "last_words", report.last_words);
	json_integer(call->out, "time_us", report.until_us);
	json_string(call->out, "summary", "written when the run ended");
	json_string(call->out, "text", text);
	return API_LAST;
}

static enum api_result live_report(struct api_call *call, const struct app *app, char *text)
{
	char summary[APP_REPORT_SUMMARY];
	bool running = app->processes > 0;
	if (app_report_write(call->core, app, call->now_ns, text, APP_REPORT_SIZE) < 0) {
		return reply_too_large(call->out);
	}
	app_report_summary(app, call->now_ns, summary);
	json_string(call->out, "app", app->name);
	run_fields(call->out, call->core, app, call->now_ns);
	json_string_opt(call->out, "last_words", app->last_words);
	json_integer(call->out, "time_us",
		row_time_us(call->core, running ? call->now_ns : app->last_seen_ns));
	json_string(call->out, "summary", summary);
	json_string(call->out, "text", text);
	return API_LAST;
}

enum api_result method_get_report(struct api_call *call)
{
	struct run_choice choice;
	char name[PROTO_NAME_SIZE];
	const char *wrong = run_choose(&call->value[1], &choice), *named = NULL;
	if (wrong) {
		return reply_invalid_parameter(call->out, wrong);
	}
	if (call->value[0].present) {
		proto_name_clean(call->value[0].string, strlen(call->value[0].string), name);
		named = name;
	}
	const struct app *app =
		named ? apps_find(call->core->apps, named) : choose(call->core->apps);
	const struct app *of_run = app ? run_of(call->core->apps, app, choice, call->now_ns) : NULL;
	/* what the daemon never saw is the run before the first, too, while that goes on */
	bool unseen = !app ? choice.run == 0 && (named || !apps_at(call->core->apps, 0))
			   : choice.run == -1 && app->runs == 0 && app->processes > 0;
	char *text = mem_zalloc(APP_REPORT_SIZE);
	enum api_result result;
	if (!text) {
		result = reply_too_large(call->out);
	} else if (of_run) {
		result = live_report(call, of_run, text);
	} else if (unseen) {
		result = past_report(call, app ? app->name : named, text, choice);
	} else {
		result = app ? run_not_found(call->out, choice)
			     : reply_not_found(call->out, "app",
				       call->value[0].present ? call->value[0].string : "");
	}
	free(text);
	return result;
}
