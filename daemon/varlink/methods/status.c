/* SPDX-License-Identifier: Apache-2.0 */
/* status.c: answers GetStatus: the state of the device, in one reply that always fits. */
#include <inttypes.h>
#include <string.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/apps/state.h"
#include "daemon/core/archive/archive.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/sources.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/broker_status.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/status/degraded.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/status/modes.h"
#include "daemon/core/status/persist_status.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"
#include "proto/text.h"

/* When less room than this is left, the apps' processes, then apps and sources, are omitted:
 * ListApps and ListSources have them all. */
enum { STATUS_ROOM = 16 * 1024, STATUS_REASONS = 16 };

static void facts_fields(struct json *out, const struct core *core, uint64_t now_ns)
{
#define FIELD(name) JSON_FIELD(struct machine_facts, #name, name)
#define OPT(name) JSON_FIELD_AS(JSON_STRING_OPT, struct machine_facts, #name, name)
	static const struct json_field fields[] = {FIELD(version), FIELD(hostname), OPT(model),
		OPT(os), FIELD(kernel), FIELD(arch), FIELD(boot_id), FIELD(cpus),
		JSON_FIELD(struct machine_facts, "page_bytes", page_size), FIELD(run_dir)};
#undef FIELD
#undef OPT
	const struct machine_facts *facts = core->facts;
	JSON_FIELDS(out, fields, facts);
	if (core->archive && archive_boot_seq(core->archive) > 0) {
		json_unsigned(out, "boot_seq", archive_boot_seq(core->archive));
	}
	json_integer(out, "time_us", row_time_us(core, now_ns));
	json_unsigned(out, "mono_us", now_ns / 1000);
	json_bool(out, "clock_synced", wallclock_synced(core->wall));
	json_number(out, "uptime_s", row_age_ms(now_ns, facts->started_ns) / 1000.0);
}

/* Omits what is unknown or not available on this machine. */
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

/* True when one of them is bad. */
static bool sources_fields(struct json *out, const struct core *core, uint64_t now_ns)
{
	const struct source *source;
	size_t ok = 0;
	bool bad = false;
	for (size_t i = 0; (source = sources_at(core->sources, i)); i++) {
		ok += source_state_at(source, now_ns) == SOURCE_OK;
		bad = bad || is_bad(source, now_ns);
	}
	json_unsigned(out, "sources", sources_count(core->sources));
	json_unsigned(out, "sources_ok", ok);
	json_open(out, "sources_bad", '[');
	for (size_t i = 0; bad && (source = sources_at(core->sources, i)); i++) {
		if (is_bad(source, now_ns) && json_room(out) > STATUS_ROOM) {
			row_source(out, NULL, source, now_ns);
		}
	}
	json_close(out, ']');
	return bad;
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
		if (alert->phase != ALERT_FIRING) {
			continue;
		}
		size_t mark = json_mark(out);
		row_alert(out, core, alert);
		if (json_room(out) < STATUS_ROOM / 2) {
			json_rollback(out, mark);
			break;
		}
	}
	json_close(out, ']');
}

static void broker_field(struct json *out, const struct core *core)
{
#define FIELD(name) JSON_FIELD(struct broker_status, #name, name)
	static const struct json_field fields[] = {FIELD(connects), FIELD(queued), FIELD(delivered),
		FIELD(dropped), FIELD(dropped_alerts)};
#undef FIELD
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
	JSON_FIELDS(out, fields, broker);
	json_close(out, '}');
}

/* Stages whose events went into __other__, the last few by name. */
static void put_other_stages(struct json *out, const struct apps *apps)
{
	char buffer[512];
	struct text text = TEXT_IN(buffer);
	const char *name = apps_other_name(apps, 0);
	if (!name) {
		return;
	}
	text_add(&text, "%" PRIu64 " stages beyond the limits went into %s:",
		apps_counts(apps)->stages_refused, APP_STAGE_OTHER);
	for (size_t i = 0; (name = apps_other_name(apps, i)); i++) {
		if (text.length + strlen(name) + 2 < text.size) {
			text_add(&text, "%s %s", i ? "," : "", name);
		}
	}
	json_string(out, NULL, buffer);
}

/* One sentence of the list. */
__attribute__((format(printf, 2, 3))) static void put_sentence(
	struct json *out, const char *format, ...)
{
	char buffer[512];
	struct text text = TEXT_IN(buffer);
	va_list arguments;
	va_start(arguments, format);
	text_vadd(&text, format, arguments);
	va_end(arguments);
	json_string(out, NULL, buffer);
}

static void put_broker(struct json *out, const struct broker_status *broker)
{
	if (broker->state == BROKER_AWAY) {
		put_sentence(out, "MQTT broker %s:%d is away: %s", broker->host, broker->port,
			broker->reason);
	} else if (broker->state == BROKER_CONNECTED && broker->reason[0] != '\0') {
		put_sentence(out, "MQTT, connected: %s", broker->reason);
	} else if (broker->state == BROKER_OFF && broker->reason[0] != '\0') {
		put_sentence(out, "MQTT is off: %s", broker->reason);
	}
}

static void degraded_field(struct json *out, const struct core *core, bool bad, uint64_t now_ns)
{
	const struct degraded *degraded = core->degraded;
	const struct persist_status *persist = core->persist;
	const struct source *source;
	int count = 0;
	json_open(out, "degraded", '[');
	for (size_t i = 0; degraded && i < degraded->count; i++) {
		put_sentence(out, "%s/%s: %s", core->facts->run_dir, degraded->row[i].file,
			degraded->row[i].reason);
	}
	if (persist && persist_is_degraded(persist)) {
		put_sentence(out, "history: not persistent: %s", persist->reason);
	}
	if (persist && persist->state == PERSIST_IMPAIRED) {
		put_sentence(out, "history: impaired: %s", persist->reason);
	}
	put_broker(out, core->broker);
	if (core->counters->statsd_reason[0] != '\0') {
		put_sentence(out, "no datagrams: %s", core->counters->statsd_reason);
	}
	put_other_stages(out, core->apps);
	for (size_t i = 0; bad && (source = sources_at(core->sources, i)); i++) {
		if (is_bad(source, now_ns) && count++ < STATUS_REASONS) {
			put_sentence(out, "source %s is %s: %s", source->name,
				source_state_name(source_state_at(source, now_ns)),
				source_reason_at(source, now_ns));
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
	const bool bad = sources_fields(out, core, call->now_ns);
	json_unsigned(out, "metrics", metrics_count(core->metrics));
	apps_field(call);
	alerts_field(out, core);
	broker_field(out, core);
	json_number_opt(
		out, "temperature_celsius", row_current(core, "temperature/max", call->now_ns));
	json_number_opt(out, "cpu_percent", row_current(core, "cpu/utilization", call->now_ns));
	json_number_opt(
		out, "memory_percent", row_current(core, "memory/used_percent", call->now_ns));
	degraded_field(out, core, bad, call->now_ns);
	return API_LAST;
}
