/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c: writes the types that several methods share. What is unknown is omitted; only a value is
 * null. */
#include "daemon/varlink/methods/rows.h"

#include <math.h>

#include "daemon/core/alerts/actions.h"
#include "daemon/core/alerts/text.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/apps/state.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/util/sysops.h"
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

void row_deadline(struct json *out, const struct row_deadline *deadline)
{
	if (deadline->deadline_ns != 0) {
		json_number(out, "deadline_ms", (double)deadline->deadline_ns / 1e6);
		json_string(
			out, "deadline_source", deadline->configured ? "configured" : "declared");
	}
	json_unsigned(out, "misses", deadline->misses);
	if (deadline->judged > 0) {
		json_number(out, "miss_rate", (double)deadline->misses / (double)deadline->judged);
		json_unsigned(out, "consecutive_misses", deadline->consecutive_misses);
		json_unsigned(out, "longest_consecutive_misses", deadline->longest_misses);
	}
	if (deadline->worst_ns > 0) {
		json_number(out, "worst_ms", (double)deadline->worst_ns / 1e6);
	}
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
#define FIELD(name, member) JSON_FIELD(struct source, name, member)
	static const struct json_field fields[] = {FIELD("ticks", ticks), FIELD("errors", errors),
		FIELD("duration_us", duration_us), FIELD("enabled", wanted)};
#undef FIELD
	json_open(out, name, '{');
	json_string(out, "name", source->name);
	json_string(out, "state", source_state_name(source_state_at(source, now_ns)));
	json_string_opt(out, "reason", source_reason_at(source, now_ns));
	const uint64_t wanted_ns = source->wanted_interval_ns;
	const uint64_t interval_ns = wanted_ns != 0 ? wanted_ns : source->interval_ns;
	json_number(out, "interval_ms", (double)(interval_ns / 1000) / 1000.0);
	if (source->last_ok_ns != 0) {
		json_number(out, "age_ms", row_age_ms(now_ns, source->last_ok_ns));
	}
	JSON_FIELDS(out, fields, source);
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

/* Of one that continues from before a reboot only the wall clock knows. */
static double alert_age_ms(const struct core *core, const struct alert *alert)
{
	const uint64_t now_ns = sysops()->now_ns();
	return alert->since_us
		       ? fmax((double)(row_time_us(core, now_ns) - alert->since_us) / 1e3, 0)
		       : row_age_ms(now_ns, alert->since_ns);
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
	json_number(out, "age_ms", alert_age_ms(core, alert));
	/* while it is pending, the text is still that of its last end */
	json_string(out, "text", alert->phase == ALERT_PENDING ? "" : alert->text);
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

void row_attributes(struct json *out, const struct stage *stage)
{
	const struct app_attributes *all = stage->attributes;
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
	bool is_now = app_has_rate(app, pulse, now_ns, &reason);
	json_number(out, "fps", is_now ? fps : (double)NAN); /* null */
	if (is_now) {
		json_string_opt(out, "fps_reason",
			isnan(fps) ? "fewer than 2 frames since the start, a pause, or a loss of "
				     "events"
				   : "");
		return;
	}
	json_string(out, "fps_reason", reason.text);
	json_number_opt(out, "last_fps", fps);
	if (last_ns > 0) {
		json_number(out, "idle_ms", row_age_ms(now_ns, last_ns));
	}
}
