/* ListApps: who is instrumented, and what the lists of one app share. */
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/runs/runs.h"
#include "daemon/core/runs/state.h"
#include "daemon/core/status/counters.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

static bool app_item(struct list_cursor *cursor, struct json *out)
{
	const struct app *app = apps_at(cursor->core->apps, cursor->first);
	if (!app) {
		return false;
	}
	cursor->first++;
	if (!list_app_wanted(cursor, app)) {
		return true;
	}
	bool own = cursor->permitted || app->uid == cursor->uid;
	row_app(out, cursor->api, app, own, cursor->now_ns);
	return true;
}

static void refused_item(
	struct json *out, const struct core *core, const struct rejected_attach *entry)
{
	json_open(out, NULL, '{');
	json_string_opt(out, "app", entry->app);
	json_unsigned(out, "uid", entry->uid);
	if (entry->pid > 0) {
		json_integer(out, "pid", entry->pid);
	}
	json_string(out, "reason", entry->reason);
	json_unsigned(out, "count", entry->count);
	json_integer(out, "last_us", row_time_us(core, entry->last_ns));
	json_close(out, '}');
}

static void apps_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
	const struct rejected_attaches *rejected = &cursor->core->counters->rejected_attaches;
	json_open(out, "refused", '[');
	for (size_t i = 0; last && i < rejected->count; i++) {
		const struct rejected_attach *entry = &rejected->entry[i];
		if (cursor->permitted || entry->uid == cursor->uid) {
			refused_item(out, cursor->core, entry);
		}
	}
	json_close(out, ']');
}

static const struct list_ops app_list = {.field = "apps", .item = app_item, .tail = apps_tail};

enum api_result method_list_apps(struct api_call *call)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	cursor.all = call->value[0].present && call->value[0].boolean;
	return list_start(call, &app_list, &cursor);
}

bool list_app_wanted(const struct list_cursor *cursor, const struct app *app)
{
	return cursor->pattern[0] == '\0' ? cursor->all || app_live(app, cursor->now_ns)
					  : strcmp(cursor->pattern, app->name) == 0;
}

/* Narrows the list to the app that the call names. False: there is none. */
static bool narrow(struct list_cursor *cursor, const struct api_call *call)
{
	if (!call->value[0].present) {
		return true;
	}
	/* as the app itself was named: any name finds its app */
	const char *text = call->value[0].string;
	proto_name_clean(text, strlen(text), cursor->pattern);
	return apps_find(call->core->apps, cursor->pattern) != NULL;
}

enum api_result list_of_app(struct api_call *call, const struct list_ops *ops)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	return narrow(&cursor, call) ? list_start(call, ops, &cursor)
				     : reply_not_found(call->out, "app", call->value[0].string);
}

enum api_result list_of_run(
	struct api_call *call, const struct list_ops *ops, uint32_t choice, const struct value *run)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	cursor.choice = choice;
	const char *wrong = run_choose(run, &cursor.run);
	if (wrong) {
		return reply_invalid_parameter(call->out, wrong);
	}
	/* who asks for another run does not ask for what is going on */
	cursor.all = (run[2].present && run[2].boolean) || cursor.run.run != 0 || cursor.run.all;
	if (!narrow(&cursor, call)) {
		return reply_not_found(call->out, "app", call->value[0].string);
	}
	const struct app *app = apps_find(call->core->apps, cursor.pattern);
	if (app && !app_run(app, cursor.run.run)) {
		return run_not_found(call->out, cursor.run);
	}
	return list_start(call, ops, &cursor);
}

bool list_app_at(const struct list_cursor *cursor, size_t index, const struct app **ret)
{
	struct apps *apps = cursor->core->apps;
	const struct app *app = apps_at(apps, index);
	*ret = app && list_app_wanted(cursor, app) ? run_of(apps, app, cursor->run, cursor->now_ns)
						   : NULL;
	return app != NULL;
}
