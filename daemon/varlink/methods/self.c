/* SPDX-License-Identifier: Apache-2.0 */
/* self.c: answers GetSelf: what the daemon counts about itself, and what the self collector
 * measured. */
#include <unistd.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/archive/archive.h"
#include "daemon/core/frames/trace_buffer.h"
#include "daemon/core/history/history.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/status/degraded.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/status/persist_status.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

/* A tier's first bucket begins before the first sample in it, which a finer tier may still have. */
static void begin_at_samples(struct history_usage *usage)
{
	usage->oldest_ns = usage->tier[HISTORY_FULL].oldest_ns;
	for (int i = 1; i < HISTORY_TIERS; i++) {
		const uint64_t finer_ns = usage->tier[i - 1].oldest_ns;
		uint64_t *own_ns = &usage->tier[i].oldest_ns;
		if (*own_ns != 0 && finer_ns > *own_ns &&
			finer_ns - *own_ns < history_tier_step_ns((enum history_tier)i)) {
			*own_ns = finer_ns;
		}
		if (*own_ns != 0 && (usage->oldest_ns == 0 || *own_ns < usage->oldest_ns)) {
			usage->oldest_ns = *own_ns;
		}
	}
}

static void history_fields(struct json *out, const struct core *core, uint64_t now_ns)
{
	struct history_usage usage;
	history_usage(core->history, &usage);
	begin_at_samples(&usage);
	json_unsigned(out, "history_bytes", usage.size);
	json_unsigned(out, "history_used_bytes", usage.used);
	json_number_opt(out, "history_bytes_per_sample", usage.tier[HISTORY_FULL].bytes_per_sample);
	if (usage.oldest_ns != 0) {
		json_number(out, "history_span_s", row_age_ms(now_ns, usage.oldest_ns) / 1000.0);
	}
	json_open(out, "history_tiers", '[');
	for (int i = 0; i < HISTORY_TIERS; i++) {
		const struct history_tier_usage *tier = &usage.tier[i];
		json_open(out, NULL, '{');
		json_number(
			out, "step_s", (double)history_tier_step_ns((enum history_tier)i) / 1e9);
		json_unsigned(out, "samples", tier->samples);
		if (tier->oldest_ns != 0) {
			json_number(out, "span_s", row_age_ms(now_ns, tier->oldest_ns) / 1000.0);
		}
		json_number_opt(out, "bytes_per_sample", tier->bytes_per_sample);
		json_close(out, '}');
	}
	json_close(out, ']');
	json_unsigned(out, "history_samples", usage.samples);
	json_string_opt(out, "history_reason", core->facts->history_reason);
}

#define FIELD(name, member) JSON_FIELD(struct persist_status, "history_persist_" name, member)
#define OPT(type, name, member) \
	JSON_FIELD_AS(type, struct persist_status, "history_persist_" name, member)
static const struct json_field persist_fields[] = {OPT(JSON_STRING_OPT, "reason", reason),
	OPT(JSON_STRING_OPT, "path", path), FIELD("written_bytes", written_bytes)};
static const struct json_field archive_fields[] = {FIELD("bytes", file_bytes),
	FIELD("day_bytes", day_bytes), FIELD("day_limit_bytes", day_limit_bytes),
	OPT(JSON_S_OPT, "bucket_s", bucket_ns), OPT(JSON_S_OPT, "period_s", period_ns)};
#undef FIELD
#undef OPT

/* History over reboots. What a power cut costs is reported only while something is written. */
static void write_persist(struct json *out, const struct core *core)
{
	static const struct persist_status off;
	const struct persist_status *status = core->persist ? core->persist : &off;
	struct archive_span span;
	struct archive_pending pending;
	json_string(out, "history_persist_state", persist_state_name(status->state));
	JSON_FIELDS(out, persist_fields, status);
	if (!core->archive || archive_boot_seq(core->archive) == 0) {
		return;
	}
	archive_span(core->archive, &span);
	archive_pending(core->archive, &pending);
	JSON_FIELDS(out, archive_fields, status);
	if (status->loss_ns != 0 &&
		(status->state == PERSIST_OK || status->state == PERSIST_PAUSED ||
			status->state == PERSIST_IMPAIRED)) {
		json_number(out, "history_persist_loss_s", (double)status->loss_ns / 1e9);
	}
	if (span.oldest_us != 0) {
		json_integer(out, "history_persist_oldest_us", span.oldest_us);
	}
	json_unsigned(out, "history_persist_boots", span.boots);
	json_unsigned(out, "history_persist_series", span.series);
	json_unsigned(out, "history_persist_damaged_pages", span.damaged);
	json_unsigned(out, "history_persist_dropped", pending.dropped);
}

/* What the app that goes back furthest covers. */
static void record_fields(struct json *out, const struct core *core, uint64_t now_ns)
{
	struct trace_usage usage;
	apps_trace_usage(core->apps, &usage);
	json_unsigned(out, "records_bytes", usage.bytes);
	json_unsigned(out, "records_used_bytes", usage.used_bytes);
	json_unsigned(out, "records", usage.count);
	json_unsigned(out, "records_overwritten", usage.overwritten);
	if (usage.oldest_ns != 0) {
		json_number(out, "records_span_s", row_age_ms(now_ns, usage.oldest_ns) / 1000.0);
	}
}

#define FIELD(name) JSON_FIELD(struct counters, #name, name)
#define REASON(name) JSON_FIELD_AS(JSON_STRING_OPT, struct counters, #name, name)
static const struct json_field counter_fields[] = {FIELD(events_received), FIELD(events_dropped),
	FIELD(events_invalid), FIELD(attaches), FIELD(attaches_refused),
	REASON(attach_refused_reason), FIELD(statsd_datagrams), FIELD(statsd_lines),
	FIELD(statsd_bad_lines), REASON(statsd_bad_reason), FIELD(statsd_unsupported),
	FIELD(statsd_refused), FIELD(statsd_truncated), FIELD(statsd_lost), REASON(statsd_reason),
	FIELD(api_connections), FIELD(api_refused), FIELD(api_calls), FIELD(api_errors),
	FIELD(loop_lag_max_us)};
#undef FIELD
#undef REASON

static void degraded_fields(struct json *out, const struct degraded *degraded)
{
	json_open(out, "degraded", '[');
	for (size_t i = 0; degraded && i < degraded->count; i++) {
		json_open(out, NULL, '{');
		json_string(out, "file", degraded->row[i].file);
		json_string(out, "reason", degraded->row[i].reason);
		json_close(out, '}');
	}
	json_close(out, ']');
}

static void loop_fields(struct json *out, struct loop_load *load, uint64_t now_ns)
{
	json_unsigned(out, "turn_max_us", load->longest_us);
	json_unsigned(out, "turn_max_minute_us", loop_load_minute(load, now_ns));
	json_open(out, "turn_bounds_us", '[');
	for (int i = 0; i < LOOP_BOUNDS; i++) {
		json_unsigned(out, NULL, loop_bound_us[i]);
	}
	json_close(out, ']');
	json_open(out, "turns", '[');
	for (int i = 0; i <= LOOP_BOUNDS; i++) {
		json_unsigned(out, NULL, load->count[i]);
	}
	json_close(out, ']');
}

static void limit_fields(struct json *out, const struct core *core)
{
	limits_sample(core);
	json_open(out, "pools", '[');
	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit *limit = &core->counters->limits[i];
		if (limit->max == 0) {
			continue;
		}
		json_open(out, NULL, '{');
		json_string(out, "name", limit_name((enum limit_id)i));
		json_string(out, "unit", unit_name(limit_unit((enum limit_id)i)));
		json_unsigned(out, "used", limit->used);
		json_unsigned(out, "high_water", limit->high_water);
		json_unsigned(out, "limit", limit->max);
		json_close(out, '}');
	}
	json_close(out, ']');
}

enum api_result method_get_self(struct api_call *call)
{
	struct json *out = call->out;
	const struct core *core = call->core;
	json_integer(out, "pid", getpid());
	json_number(out, "uptime_s", row_age_ms(call->now_ns, core->facts->started_ns) / 1000.0);
	json_whole_opt(out, "rss_bytes", metrics_value(core->metrics, "self/rss"));
	json_whole_opt(out, "anonymous_bytes", metrics_value(core->metrics, "self/anonymous"));
	json_number_opt(out, "cpu_percent", metrics_value(core->metrics, "self/cpu"));
	history_fields(out, core, call->now_ns);
	write_persist(out, core);
	json_unsigned(out, "metrics", metrics_count(core->metrics));
	json_unsigned(out, "metrics_max", METRICS_OWN_MAX);
	json_unsigned(out, "metrics_refused", metrics_refused(core->metrics));
	record_fields(out, core, call->now_ns);
	json_unsigned(out, "stages", apps_counts(core->apps)->stages);
	json_unsigned(out, "stages_max", STAGES_MAX);
	json_unsigned(out, "stages_refused", apps_counts(core->apps)->stages_refused);
	JSON_FIELDS(out, counter_fields, core->counters);
	loop_fields(out, &core->counters->load, call->now_ns);
	limit_fields(out, core);
	degraded_fields(out, core->degraded);
	json_unsigned(out, "clock_steps", core->wall->steps);
	json_unsigned(out, "alerts_refused", alerts_refused(core->alerts));
	return API_LAST;
}
