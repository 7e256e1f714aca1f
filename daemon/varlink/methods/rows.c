/* The types that several methods share. What is not known is left out; value alone is null. */
#include "daemon/varlink/methods/rows.h"

#include <math.h>

#include "daemon/core/alerts/actions.h"
#include "daemon/core/alerts/text.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/runs/state.h"
#include "daemon/varlink/methods/apps/runs.h"
#include "daemon/varlink/server/api.h"
#include "proto/json_write.h"

int64_t row_time_us(const struct core *core, uint64_t t_ns)
{
	return wallclock_us(core->wall, t_ns);
}

double row_age_ms(uint64_t now_ns, uint64_t t_ns)
{
	return now_ns > t_ns ? (double)((now_ns - t_ns) / 1000) / 1000.0 : 0.0;
}

double row_current(const struct core *core, const char *name, uint64_t now_ns)
{
	const struct metric *metric = metrics_find(core->metrics, name);
	return metric && source_state_at(metric->source, now_ns) == SOURCE_OK ? metric->value
									      : (double)NAN;
}

void row_metric(
	struct json *out, const struct core *core, const struct metric *metric, uint64_t now_ns)
{
	json_open(out, NULL, '{');
	json_string(out, "name", metric->name);
	json_number(out, "value", metric->value);
	json_string(out, "unit", unit_name(metric->unit));
	if (metric->t_ns != 0) {
		json_integer(out, "time_us", row_time_us(core, metric_time_ns(metric)));
		json_number(out, "age_ms", row_age_ms(now_ns, metric_time_ns(metric)));
	}
	json_string(out, "source", metric->source->name);
	json_string(out, "state", source_state_name(source_state_at(metric->source, now_ns)));
	if (metric->zone >= 0) {
		json_integer(out, "zone", metric->zone);
	}
	json_number_opt(out, "max", metric->unit == UNIT_STATE ? metric->limit : NAN);
	json_string_opt(out, "origin", metric->origin);
	if (!isfinite(metric->value)) {
		json_string_opt(out, "reason", metric_reason(metric, now_ns).text);
	}
	json_close(out, '}');
}

void row_source(struct json *out, const char *name, const struct source *source, uint64_t now_ns)
{
	json_open(out, name, '{');
	json_string(out, "name", source->name);
	json_string(out, "state", source_state_name(source_state_at(source, now_ns)));
	json_string_opt(out, "reason", source_reason_at(source, now_ns));
	json_number(out, "interval_ms", (double)(source->interval_ns / 1000) / 1000.0);
	if (source->last_ok_ns != 0) {
		json_number(out, "age_ms", row_age_ms(now_ns, source->last_ok_ns));
	}
	json_unsigned(out, "ticks", source->ticks);
	json_unsigned(out, "errors", source->errors);
	json_unsigned(out, "duration_us", source->duration_us);
	json_bool(out, "enabled", source->wanted);
	json_unsigned(out, "metrics", source->metrics);
	json_close(out, '}');
}

static void hold_fields(struct json *out, const struct core *core, const struct alert *alert)
{
	const struct overrides *holds = alerts_overrides(core->alerts);
	const struct alert_ack *ack =
		alert->notifier.acked ? overrides_ack(holds, alert->rule->name, alert->instance)
				      : NULL;
	uint64_t until_ns = alert->test ? 0 : overrides_muted_until(holds, alert, alert->t_ns);
	json_bool(out, "acked", ack != NULL);
	if (ack) {
		json_integer(out, "acked_us", row_time_us(core, ack->t_ns));
		json_integer(out, "acked_by_uid", ack->uid);
		json_string_opt(out, "ack_note", ack->note);
	}
	json_bool(out, "silenced", until_ns != 0);
	if (until_ns != 0) {
		json_integer(out, "silenced_until_us", row_time_us(core, until_ns));
	}
	json_bool(out, "test", alert->test);
}

void row_alert(struct json *out, const struct core *core, const struct alert *alert)
{
	char unit[ALERT_UNIT];
	alert_unit(alert->unit, alert->rule->kind == ALERT_SLOPE, unit);
	json_open(out, NULL, '{');
	json_string(out, "rule", alert->rule->name);
	json_string(out, "instance", alert->instance);
	json_string(out, "metric", alert->metric);
	json_string(out, "unit", unit);
	json_string(out, "state", alert_phase_name(alert->phase));
	json_string(out, "severity", alert_severity_name(alert->severity));
	json_number(out, "value", alert->value);
	json_number_opt(out, "threshold", alert->threshold);
	json_integer(out, "since_us",
		alert->since_us ? alert->since_us : row_time_us(core, alert->since_ns));
	json_string(out, "text", alert->text);
	hold_fields(out, core, alert);
	json_close(out, '}');
}

void row_event(struct json *out, const struct core *core, const struct timeline_entry *entry)
{
	json_open(out, NULL, '{');
	json_unsigned(out, "serial", entry->serial);
	if (entry->boot_seq > 0) {
		json_integer(out, "time_us", entry->time_us);
		json_unsigned(out, "boot_seq", entry->boot_seq);
	} else {
		json_integer(out, "time_us", row_time_us(core, entry->t_ns));
		json_unsigned(out, "mono_us", entry->t_ns / 1000);
	}
	json_string(out, "kind", timeline_kind_name(entry->kind));
	json_string(out, "severity", timeline_level_name(entry->level));
	json_string(out, "subject", entry->subject);
	json_string(out, "text", entry->text);
	json_close(out, '}');
}

static void accounting_fields(struct json *out, const struct app_accounting *accounting)
{
	json_unsigned(out, "sent", accounting->sent);
	json_unsigned(out, "received", accounting->received);
	json_unsigned(out, "dropped", accounting->dropped);
	json_unsigned(out, "in_ring", accounting->in_ring);
	json_unsigned(out, "invalid", accounting->invalid);
}

/* Numbers of a container are not ours. */
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
	const uint32_t places = sizeof(process->open) / sizeof(process->open[0]);
	json_open(out, NULL, '{');
	pid_fields(out, process);
	json_integer(out, "attached_us", row_time_us(core, process->attached_ns));
	json_unsigned(out, "mapping_bytes", process->mapping_size);
	json_unsigned(out, "threads", process->threads);
	accounting_fields(out, &process->accounting);
	json_open(out, "open", '[');
	for (uint32_t i = 0; i < process->open_count && i < places; i++) {
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

void row_attributes(struct json *out, const struct stage *stage)
{
	const struct app_attributes *all = app_attributes_of(stage);
	if (!all) {
		return;
	}
	json_open(out, "attributes", '[');
	for (size_t i = 0; i < all->count; i++) {
		const struct app_attribute *attribute = &all->attribute[i];
		json_open(out, NULL, '{');
		json_string(out, "name", attribute->name);
		json_unsigned(out, "count", attribute->count);
		json_number(out, "last", attribute->last);
		json_number(out, "mean", app_attribute_mean(attribute));
		json_number(out, "min", attribute->min);
		json_number(out, "max", attribute->max);
		json_close(out, '}');
	}
	json_close(out, ']');
}

void row_advice(struct json *out, const struct core *core, const struct app *app, const char *name)
{
	const struct advice *advice = &app->advice;
	json_open(out, name, '{');
	json_string(out, "app", app->name);
	if (advice->level != PROTO_ADVICE_NONE) {
		json_string(out, "level", advice_level_name(advice->level));
		json_number_opt(
			out, "target_fps", advice->target_fps > 0 ? advice->target_fps : NAN);
		json_unsigned(out, "skip_frames", advice->skip_frames);
		json_unsigned(out, "of_frames", advice->of_frames);
		json_integer(out, "since_us", row_time_us(core, advice->since_ns));
	}
	json_string(out, "reason", advice->reason);
	json_close(out, '}');
}

void row_rate(struct json *out, const struct app *app, const struct pulse *pulse, double fps,
	uint64_t now_ns)
{
	struct app_rate_reason reason;
	uint64_t last_ns = pulse_last_ns(pulse);
	if (app_has_rate(app, pulse, now_ns, &reason)) {
		json_number_opt(out, "fps", fps);
		return;
	}
	json_number(out, "fps", NAN); /* null */
	json_string(out, "fps_reason", reason.text);
	json_number_opt(out, "last_fps", fps);
	if (last_ns > 0) {
		json_number(out, "idle_ms", row_age_ms(now_ns, last_ns));
	}
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
		double *scratch = api_scratch(api, 2 * app->frames->window);
		struct frames_stats stats;
		if (scratch) {
			frames_stats(app->frames, scratch, &stats);
			row_rate(out, app, &app->frames->pulse, stats.fps, now_ns);
		}
	}
	if (app_last_event_ns(app) > 0) {
		json_number(out, "age_ms", row_age_ms(now_ns, app_last_event_ns(app)));
	}
	accounting_fields(out, &accounting);
	json_unsigned(out, "restarts", app->restarts);
	json_string_opt(out, "last_words", app->last_words);
	json_bool(out, "hung", app_hung(&app->hangs) > 0);
	json_unsigned(out, "hangs", app->hangs.total);
	json_unsigned(out, "values", app->values ? app->values->count : 0);
	json_unsigned(out, "values_refused", app->values ? app->values->refused : 0);
	json_unsigned(out, "marks_refused", app_marks_refused(app));
	if (app->processes > 0) {
		row_advice(out, api->core, app, "advice");
	}
	json_open(out, "processes", '[');
	for (size_t i = 0; processes && i < app->processes; i++) {
		process_item(out, api->core, app->process[i], now_ns);
	}
	json_close(out, ']');
	json_close(out, '}');
}
