/* SPDX-License-Identifier: Apache-2.0 */
/* apps.c: answers ListApps, and holds what the lists of one app share. */
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/apps/state.h"
#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/core/runs/runs.h"
#include "daemon/core/status/counters.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"
#include "daemon/varlink/methods/runs.h"

#define FIELD(name) JSON_FIELD(struct app_accounting, #name, name)
static const struct json_field accounting_fields[] = {
	FIELD(sent), FIELD(received), FIELD(dropped), FIELD(in_ring), FIELD(invalid)};
#undef FIELD

/* The numbers of a container are not those of the host. */
static void pid_fields(struct json *out, const struct app_process *process)
{
	if (process->pid != 0) {
		json_integer(out, "pid", process->pid);
	} else {
		json_string(out, "pid_reason", "in a process namespace that is not seen from here");
	}
	if (process->ns_pid != 0 && process->ns_pid != process->pid) {
		json_integer(out, "ns_pid", process->ns_pid);
	}
}

static void tid_fields(
	struct json *out, const struct app_process *process, const struct app_open_stage *open)
{
	if (open->tid != 0) {
		json_unsigned(out, "tid", open->tid);
	} else if (open->ns_tid != 0) {
		json_string(out, "tid_reason",
			process->pid != 0 ? "not found among the process's threads"
					  : "in a process namespace that is not seen from here");
	}
	if (open->ns_tid != 0 && open->ns_tid != open->tid) {
		json_unsigned(out, "ns_tid", open->ns_tid);
	}
}

static void process_item(struct json *out, const struct core *core,
	const struct app_process *process, uint64_t now_ns)
{
	const uint32_t slots = sizeof(process->open) / sizeof(process->open[0]);
	json_open(out, NULL, '{');
	pid_fields(out, process);
	json_integer(out, "attached_us", row_time_us(core, process->attached_ns));
	json_unsigned(out, "mapping_bytes", process->mapping_size);
	json_unsigned(out, "threads", process->threads);
	JSON_FIELDS(out, accounting_fields, &process->accounting);
	json_open(out, "open", '[');
	for (uint32_t i = 0; i < process->open_count && i < slots; i++) {
		const struct app_open_stage *open = &process->open[i];
		json_open(out, NULL, '{');
		json_string(out, "stage", open->stage);
		if (open->frame <= INT64_MAX) {
			json_unsigned(out, "frame", open->frame);
		}
		json_number(out, "open_ms", row_age_ms(now_ns, open->start_ns));
		tid_fields(out, process, open);
		json_close(out, '}');
	}
	json_close(out, ']');
	json_close(out, '}');
}

void row_app(
	struct json *out, struct api *api, const struct app *app, bool processes, uint64_t now_ns)
{
	struct app_accounting accounting;
	app_accounting(app, &accounting);
	json_open(out, NULL, '{');
	json_string(out, "name", app->name);
	json_unsigned(out, "uid", app->uid);
	run_fields(out, api->core, app, now_ns);
	json_unsigned(out, "stages", app->stages);
	if (app->frames) {
		row_rate(out, app, &app->frames->pulse, frames_fps(app->frames), now_ns);
	}
	const uint64_t last_ns = app_last_event_ns(app);
	if (last_ns > 0) {
		json_number(out, "age_ms", row_age_ms(now_ns, last_ns));
	}
	JSON_FIELDS(out, accounting_fields, &accounting);
	json_unsigned(out, "restarts", app->restarts);
	json_string_opt(out, "last_words", app->last_words);
	json_bool(out, "hung", app->hangs.count > 0);
	json_unsigned(out, "hangs", app->hangs.total);
	json_unsigned(out, "values", app->values ? app->values->count : 0);
	json_unsigned(out, "values_refused", app->values ? app->values->refused : 0);
	json_unsigned(out, "marks_refused", app_marks_refused(app));
	if (app->processes > 0) {
		const char *diagnosis = diagnoses_summary(api->core->diagnoses, app, now_ns);
		json_string_opt(out, "diagnosis", diagnosis ? diagnosis : "");
		row_advice(out, api->core, app, "advice");
	}
	json_open(out, "processes", '[');
	for (size_t i = 0; processes && i < app->processes; i++) {
		process_item(out, api->core, app->process[i], now_ns);
	}
	json_close(out, ']');
	json_close(out, '}');
}

/* The app that was asked for, else those that run or ended a moment ago, or all. */
static bool is_wanted(const struct list_cursor *cursor, const struct app *app)
{
	return cursor->pattern[0] == '\0' ? cursor->all || app_live(app, cursor->now_ns)
					  : strcmp(cursor->pattern, app->name) == 0;
}

static bool app_item(struct list_cursor *cursor, struct json *out)
{
	const struct app *app = apps_at(cursor->core->apps, cursor->first);
	if (!app) {
		return false;
	}
	cursor->first++;
	if (!is_wanted(cursor, app)) {
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
	return list_answer(call, &app_list);
}

bool list_narrow(struct list_cursor *cursor, const struct api_call *call)
{
	if (!call->value[0].present) {
		return true;
	}
	/* as the app itself was named: any name finds its app */
	const char *text = call->value[0].string;
	proto_name_clean(text, strlen(text), cursor->pattern);
	return apps_find(call->core->apps, cursor->pattern) != NULL;
}

enum api_result list_of_run(
	struct api_call *call, const struct list_ops *ops, uint32_t choice, const struct value *run)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	cursor.choice = choice;
	bool all_runs = run[1].present && run[1].boolean;
	const char *wrong = window_span_choose(call, all_runs, &cursor.query);
	wrong = wrong ? wrong : run_choose(run, &cursor.run);
	if (wrong) {
		return reply_invalid_parameter(call->out, wrong);
	}
	/* a request for another run includes apps that have ended */
	cursor.all = (run[2].present && run[2].boolean) || cursor.run.run != 0 || cursor.run.all;
	if (!list_narrow(&cursor, call)) {
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
	*ret = app && is_wanted(cursor, app) ? run_of(apps, app, cursor->run, cursor->now_ns)
					     : NULL;
	return app != NULL;
}
