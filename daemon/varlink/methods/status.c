/* GetStatus: how things are, in one reply that always fits. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/archive/archive.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/sources.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/runs/state.h"
#include "daemon/core/status/broker_status.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/status/degraded.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/status/modes.h"
#include "daemon/core/status/persist_status.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

/* Beyond this the apps' processes, then apps and sources, are left out: ListApps has them all. */
enum { STATUS_ROOM = 16 * 1024, STATUS_REASONS = 16 };

static void facts_fields(struct json *out, const struct core *core, uint64_t now_ns)
{
	const struct facts *facts = core->facts;
	json_string(out, "version", facts->version);
	json_string(out, "hostname", facts->hostname);
	json_string_opt(out, "model", facts->model);
	json_string_opt(out, "os", facts->os);
	json_string(out, "kernel", facts->kernel);
	json_string(out, "arch", facts->arch);
	json_string(out, "boot_id", facts->boot_id);
	if (core->archive && archive_boot_seq(core->archive) > 0) {
		json_unsigned(out, "boot_seq", archive_boot_seq(core->archive));
	}
	json_unsigned(out, "cpus", facts->cpus);
	json_unsigned(out, "page_bytes", facts->page_size);
	json_integer(out, "time_us", row_time_us(core, now_ns));
	json_unsigned(out, "mono_us", now_ns / 1000);
	json_bool(out, "clock_synced", wallclock_synced(core->wall));
	json_number(out, "uptime_s", row_age_ms(now_ns, facts->started_ns) / 1000.0);
	json_string(out, "run_dir", facts->run_dir);
}

/* Left out: what this machine does not have or does not tell. */
static void modes_fields(struct json *out, const struct modes *modes)
{
	if (!modes) {
		return;
	}
	if (modes->have_power_mode) {
		json_integer(out, "power_mode", modes->power_mode);
	}
	json_string_opt(out, "power_mode_name", modes->power_mode_name);
	json_string_opt(out, "governor", modes->governor);
	json_string_opt(out, "gpu_governor", modes->gpu_governor);
	if (modes->clocks != CLOCKS_UNKNOWN) {
		json_bool(out, "jetson_clocks", modes->clocks == CLOCKS_PINNED);
	}
}

static bool is_bad(const struct source *source, uint64_t now_ns)
{
	enum source_state state = source_state_at(source, now_ns);
	return state == SOURCE_ERROR || state == SOURCE_STALE;
}

static void sources_fields(struct json *out, const struct core *core, uint64_t now_ns)
{
	const struct source *source;
	size_t ok = 0;
	for (size_t i = 0; (source = sources_at(core->sources, i)); i++) {
		ok += source_state_at(source, now_ns) == SOURCE_OK;
	}
	json_unsigned(out, "sources", sources_count(core->sources));
	json_unsigned(out, "sources_ok", ok);
	json_open(out, "sources_bad", '[');
	for (size_t i = 0; (source = sources_at(core->sources, i)); i++) {
		if (is_bad(source, now_ns) && json_room(out) > STATUS_ROOM) {
			row_source(out, NULL, source, now_ns);
		}
	}
	json_close(out, ']');
}

static void apps_field(struct api_call *call)
{
	struct json *out = call->out;
	bool permitted = call_permitted(call);
	const struct app *app;
	json_open(out, "apps", '[');
	bool all = call->value[0].present && call->value[0].boolean;
	for (size_t i = 0; (app = apps_at(call->core->apps, i)); i++) {
		size_t mark = json_mark(out);
		if (!all && !app_live(app, call->now_ns)) {
			continue;
		}
		bool own = permitted || app->uid == call->connection->uid;
		row_app(out, call->api, app, own, call->now_ns);
		if (json_room(out) < STATUS_ROOM) {
			json_rollback(out, mark);
			row_app(out, call->api, app, false, call->now_ns);
		}
		if (json_room(out) < STATUS_ROOM) {
			json_rollback(out, mark);
			break;
		}
	}
	json_close(out, ']');
}

static void alerts_field(struct json *out, const struct core *core)
{
	const struct alert *alert;
	json_open(out, "alerts", '[');
	for (size_t i = 0; (alert = alerts_at(core->alerts, i)); i++) {
		size_t mark = json_mark(out);
		if (alert->phase == ALERT_FIRING) {
			row_alert(out, core, alert);
		}
		if (json_room(out) < STATUS_ROOM / 2) {
			json_rollback(out, mark);
			break;
		}
	}
	json_close(out, ']');
}

static void broker_field(struct json *out, const struct core *core)
{
	const struct broker_status *broker = core->broker;
	json_open(out, "broker", '{');
	json_string(out, "state", broker_state_name(broker->state));
	json_string_opt(out, "host", broker->host);
	if (broker->host[0] != '\0') {
		json_integer(out, "port", broker->port);
	}
	json_string_opt(out, "reason", broker->reason);
	if (broker->since_ns != 0) {
		json_integer(out, "since_us", row_time_us(core, broker->since_ns));
	}
	json_unsigned(out, "connects", broker->connects);
	json_unsigned(out, "queued", broker->queued);
	json_unsigned(out, "delivered", broker->delivered);
	json_unsigned(out, "dropped", broker->dropped);
	json_unsigned(out, "dropped_alerts", broker->dropped_alerts);
	json_close(out, '}');
}

/* Stages whose events went into __other__, the last few by name. */
static void other_stages(struct json *out, const struct apps *apps)
{
	char text[512];
	int at = snprintf(text, sizeof(text),
		"%" PRIu64 " stages beyond the limits went into %s:", apps_stages_refused(apps),
		APP_STAGE_OTHER);
	const char *name;
	for (size_t i = 0; (name = apps_other_name(apps, i)); i++) {
		int n = snprintf(text + at, sizeof(text) - (size_t)at, "%s %s", i ? "," : "", name);
		if (n < 0 || n >= (int)sizeof(text) - at) {
			text[at] = '\0';
			break;
		}
		at += n;
	}
	if (apps_other_name(apps, 0)) {
		json_string(out, NULL, text);
	}
}

static void degraded_field(struct json *out, const struct core *core, uint64_t now_ns)
{
	const struct broker_status *broker = core->broker;
	const struct source *source;
	char text[512];
	int told = 0;
	json_open(out, "degraded", '[');
	for (size_t i = 0; core->degraded && i < core->degraded->count; i++) {
		snprintf(text, sizeof(text), "%s/%s: %s", core->facts->run_dir,
			core->degraded->row[i].file, core->degraded->row[i].reason);
		json_string(out, NULL, text);
	}
	if (core->persist && persist_is_degraded(core->persist)) {
		snprintf(text, sizeof(text), "history: not persistent: %s", core->persist->reason);
		json_string(out, NULL, text);
	}
	if (core->persist && core->persist->state == PERSIST_IMPAIRED) {
		snprintf(text, sizeof(text), "history: impaired: %s", core->persist->reason);
		json_string(out, NULL, text);
	}
	if (broker->state == BROKER_AWAY) {
		snprintf(text, sizeof(text), "MQTT broker %s:%d is away: %s", broker->host,
			broker->port, broker->reason);
		json_string(out, NULL, text);
	}
	if (broker->state == BROKER_CONNECTED && broker->reason[0] != '\0') {
		snprintf(text, sizeof(text), "MQTT, connected: %s", broker->reason);
		json_string(out, NULL, text);
	}
	if (broker->state == BROKER_OFF && broker->reason[0] != '\0') {
		snprintf(text, sizeof(text), "MQTT is off: %s", broker->reason);
		json_string(out, NULL, text);
	}
	if (core->counters->statsd_reason[0] != '\0') {
		snprintf(text, sizeof(text), "no datagrams: %s", core->counters->statsd_reason);
		json_string(out, NULL, text);
	}
	other_stages(out, core->apps);
	for (size_t i = 0; (source = sources_at(core->sources, i)); i++) {
		if (is_bad(source, now_ns) && told++ < STATUS_REASONS) {
			snprintf(text, sizeof(text), "source %s is %s: %s", source->name,
				source_state_name(source_state_at(source, now_ns)),
				source_reason_at(source, now_ns));
			json_string(out, NULL, text);
		}
	}
	json_close(out, ']');
}

enum api_result method_get_status(struct api_call *call)
{
	struct json *out = call->out;
	const struct core *core = call->core;
	facts_fields(out, core, call->now_ns);
	modes_fields(out, core->modes);
	sources_fields(out, core, call->now_ns);
	json_unsigned(out, "metrics", metrics_count(core->metrics));
	apps_field(call);
	alerts_field(out, core);
	broker_field(out, core);
	json_number_opt(
		out, "temperature_celsius", row_current(core, "temperature/max", call->now_ns));
	json_number_opt(out, "cpu_percent", row_current(core, "cpu/utilization", call->now_ns));
	json_number_opt(
		out, "memory_percent", row_current(core, "memory/used_percent", call->now_ns));
	degraded_field(out, core, call->now_ns);
	return API_LAST;
}
