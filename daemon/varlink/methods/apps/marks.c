/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.c: answers Mark and ListMarks: labelled moments with the memory in use, and its change
 * between them.
 */
#include <math.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/runs/save.h"
#include "daemon/util/ratelimit.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

enum {
	MARK_LABEL = 0,
	MARK_APP = 1,
	MARKS_PER_SECOND = 50,
};

#define MIB (1024.0 * 1024.0)

/* Per user: one who marks without end does not affect others. */
static bool mark_allowed(struct account *account, uint64_t now_ns)
{
	static const struct ratelimit limit = {
		.interval_ns = 1000000000u / MARKS_PER_SECOND, .burst = MARKS_PER_SECOND};
	return ratelimit_take(&limit, &account->marks_due_ns, now_ns);
}

static const struct process_row *row_of(
	const struct processes *processes, const struct app_process *process)
{
	for (size_t i = 0; i < processes->rows; i++) {
		const struct process_row *row = &processes->row[i];
		if (process->pid > 0 && row->pid == process->pid &&
			row->start_ticks == process->start_ticks) {
			return row;
		}
	}
	return NULL;
}

/* The app's memory as last sampled by the process source: the sum when it has several processes. */
static void sampled_memory(
	struct app_mark *mark, const struct core *core, const struct app *app, uint64_t now_ns)
{
	double rss_bytes = 0, vms_bytes = 0;
	mark->memory_reason = app->processes == 0 ? "the app has no process" : NULL;
	for (size_t i = 0; i < app->processes; i++) {
		const struct process_row *row = row_of(core->processes, app->process[i]);
		if (!row || isnan(row->rss_bytes)) {
			mark->memory_reason = "a process of the app has not been sampled yet";
			return;
		}
		rss_bytes += row->rss_bytes;
		vms_bytes += row->vms_bytes;
		uint64_t age_ns = now_ns > row->t_ns ? now_ns - row->t_ns : 0;
		mark->memory_age_ns = age_ns > mark->memory_age_ns ? age_ns : mark->memory_age_ns;
		/* peaks of several processes were not at one time */
		mark->peak_rss_bytes = app->processes == 1 ? row->peak_rss_bytes : (double)NAN;
	}
	if (app->processes > 0) {
		mark->rss_bytes = rss_bytes;
		mark->vms_bytes = vms_bytes;
		mark->memory_source = "sample";
		mark->process = app->processes == 1 ? app_process_key(app->process[0]) : 0;
	}
}

static void of_app(struct app_mark *mark, const struct api_call *call, const char *name)
{
	proto_name_clean(name, strlen(name), mark->app);
	const struct app *app = apps_find(call->core->apps, mark->app);
	if (!app) {
		mark->memory_reason = "no app of this name has attached";
	} else if (app->uid == mark->uid || call_permitted(call)) {
		mark->uid = app->uid;
		sampled_memory(mark, call->core, app, call->now_ns);
	} else {
		mark->memory_reason = "the app is another user's";
	}
}

enum api_result method_mark(struct api_call *call)
{
	const char *label = call->value[MARK_LABEL].string;
	if (label[0] == '\0' || strlen(label) >= MARK_LABEL_SIZE) {
		return reply_invalid_parameter(call->out, "label");
	}
	if (!call_permitted(call) && !mark_allowed(call->connection->account, call->now_ns)) {
		return reply_limit(call->out, "marks a second", MARKS_PER_SECOND);
	}
	struct app_mark mark;
	app_mark_init(&mark, call->now_ns, label);
	mark.uid = call->connection->uid;
	mark.memory_reason = "the mark is of no app";
	if (call->value[MARK_APP].present) {
		of_app(&mark, call, call->value[MARK_APP].string);
	}
	json_unsigned(call->out, "serial", apps_mark(call->core->apps, &mark));
	apps_save_marks(call->core->apps);
	return API_LAST;
}

static void memory_fields(struct json *out, const struct app_mark *mark, bool permitted)
{
#define BYTES(name) JSON_FIELD_AS(JSON_WHOLE_OPT, struct app_mark, #name, name)
	static const struct json_field memory[] = {BYTES(rss_bytes), BYTES(vms_bytes),
		BYTES(peak_rss_bytes), JSON_FIELD(struct app_mark, "memory_source", memory_source)};
#undef BYTES
	if (!permitted) {
		json_string(out, "memory_reason", "the app is another user's");
		return;
	}
	JSON_FIELDS(out, memory, mark);
	if (mark->memory_source) {
		json_number(out, "memory_age_ms", (double)(mark->memory_age_ns / 1000) / 1000);
	}
	json_string_opt(out, "memory_reason", mark->memory_reason ? mark->memory_reason : "");
}

static void delta_fields(struct json *out, const struct app_mark *mark,
	const struct app_mark *before, bool permitted)
{
	int64_t elapsed_ns = (int64_t)(mark->t_ns - before->t_ns);
	json_number(out, "since_previous_ms", (double)(elapsed_ns / 1000) / 1000);
	/* one reading for both says nothing about the time between them */
	bool two_readings =
		mark->t_ns + mark->system_delay_ns != before->t_ns + before->system_delay_ns;
	json_whole_opt(out, "system_available_delta_bytes",
		two_readings ? mark->system_available_bytes - before->system_available_bytes
			     : (double)NAN);
	if (permitted) {
		json_whole_opt(out, "rss_delta_bytes", mark->rss_bytes - before->rss_bytes);
		json_whole_opt(out, "vms_delta_bytes", mark->vms_bytes - before->vms_bytes);
		json_whole_opt(
			out, "peak_rss_delta_bytes", mark->peak_rss_bytes - before->peak_rss_bytes);
		json_number_opt(
			out, "runtime_memory_mb", (mark->rss_bytes - before->rss_bytes) / MIB);
	}
}

static void attribute_fields(struct json *out, const struct app_mark *mark)
{
	json_open(out, "attributes", '[');
	for (size_t i = 0; i < mark->attributes; i++) {
		json_open(out, NULL, '{');
		json_string(out, "name", mark->attribute[i].name);
		json_number(out, "value", mark->attribute[i].value);
		json_close(out, '}');
	}
	json_close(out, ']');
	if (mark->attributes_refused > 0) {
		json_unsigned(out, "attributes_refused", mark->attributes_refused);
	}
}

static bool mark_item(struct list_cursor *cursor, struct json *out)
{
	const struct apps *apps = cursor->core->apps;
	const struct app_mark *mark = apps_mark_at(apps, cursor->first);
	if (!mark) {
		return false;
	}
	const struct app_mark *before = apps_mark_before(apps, cursor->first++);
	if (cursor->pattern[0] != '\0' && strcmp(cursor->pattern, mark->app) != 0) {
		return true;
	}
	bool permitted = cursor->permitted || mark->uid == cursor->uid;
	json_open(out, NULL, '{');
	json_unsigned(out, "serial", mark->serial);
	json_string_opt(out, "app", mark->app);
	json_string(out, "label", mark->label);
	json_integer(out, "time_us", row_time_us(cursor->core, mark->t_ns));
	json_unsigned(out, "mono_us", mark->t_ns / 1000);
	if (mark->frame <= INT64_MAX) {
		json_unsigned(out, "frame", mark->frame);
	}
	memory_fields(out, mark, permitted);
	json_whole_opt(out, "system_total_bytes", mark->system_total_bytes);
	json_whole_opt(out, "system_available_bytes", mark->system_available_bytes);
	json_number_opt(out, "system_percent_used", mark->system_used_percent);
	if (isnan(mark->system_available_bytes)) {
		json_string(out, "system_memory_reason", "/proc/meminfo cannot be read");
	} else {
		json_number(out, "system_memory_delay_ms",
			(double)(mark->system_delay_ns / 1000) / 1000);
	}
	if (before) {
		delta_fields(out, mark, before, permitted);
	}
	attribute_fields(out, mark);
	json_close(out, '}');
	return true;
}

static const struct list_ops mark_list = {.field = "marks", .item = mark_item};

/* Marks may be of an app that has not attached: what there is none of is an empty list. */
enum api_result method_list_marks(struct api_call *call)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	if (call->value[0].present) {
		const char *text = call->value[0].string;
		proto_name_clean(text, strlen(text), cursor.pattern);
	}
	return list_start(call, &mark_list, &cursor);
}
