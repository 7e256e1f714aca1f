/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_daemon.c: judges what the daemon replied. What is broken is a problem; what this machine
 * merely lacks is a hint at most. */
#include "client/edgeprofctl/doctor/doctor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "proto/text.h"

/* All sources together may take this part of one CPU before doctor speaks of it. */
#define COST_SHARE_PERCENT 2.0

static bool is_state(const cJSON *row, const char *state)
{
	return strcmp(json_word(row, "state"), state) == 0;
}

/* Microseconds in each second; NAN when the source does not run. */
static double cost_of(const cJSON *source)
{
	double interval_ms = json_number(source, "interval_ms");
	bool runs =
		is_state(source, "ok") || is_state(source, "stale") || is_state(source, "error");
	return runs && interval_ms > 0 ? json_number(source, "duration_us") * 1000 / interval_ms
				       : (double)NAN;
}

cJSON *doctor_sources(const cJSON *reply)
{
	const cJSON *sources = json_get(reply, "sources");
	cJSON *rows = cJSON_IsArray(sources) ? cJSON_Duplicate(sources, true) : cJSON_CreateArray();
	for (cJSON *row = rows->child; row; row = row->next) {
		double cost = cost_of(row);
		json_add_number(row, "us_per_s", cost);
		json_add_number(row, "share_percent", cost / 1e6 * 100);
	}
	return rows;
}

/* A path in a reason that speaks of permissions, as a command that lets everybody read it. */
static bool fix_permission(const char *reason, char *ret, size_t size)
{
	const char *path = strchr(reason, '/');
	if (!path || (!strstr(reason, "ermission") && !strstr(reason, "not permitted"))) {
		return false;
	}
	size_t length = strspn(path, "/._-@abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789");
	snprintf(ret, size, "sudo chmod a+r %.*s # until the next boot", (int)length, path);
	return true;
}

static void check_source(cJSON *checks, const cJSON *source)
{
	char fix[512], name[96];
	const char *reason = json_word(source, "reason");
	bool denied = fix_permission(reason, fix, sizeof(fix));
	snprintf(name, sizeof(name), "source %.64s", json_word(source, "name"));
	if (is_state(source, "error") || is_state(source, "stale")) {
		finding_add(checks, FINDING_PROBLEM, name,
			denied ? fix : "journalctl -u edgeprofd -e", "%s: %s",
			json_word(source, "state"), reason[0] == '\0' ? "no new reading" : reason);
	} else if (is_state(source, "suspended") || cJSON_IsFalse(json_get(source, "enabled"))) {
		snprintf(fix, sizeof(fix), "edgeprofctl source enable %.64s",
			json_word(source, "name"));
		finding_add(checks, FINDING_HINT, name, fix, "switched off");
	} else if (is_state(source, "unavailable") && denied) {
		finding_add(checks, FINDING_HINT, name, fix, "%s", reason);
	}
}

static void check_sources(cJSON *checks, const cJSON *reply)
{
	int fine = 0, bad = 0, all = 0;
	double total = 0, most = 0;
	const char *dearest = "";
	for (const cJSON *source = json_first(reply, "sources"); source; source = source->next) {
		double cost = cost_of(source);
		all++;
		fine += is_state(source, "ok");
		bad += is_state(source, "error") || is_state(source, "stale");
		total += isfinite(cost) ? cost : 0;
		if (isfinite(cost) && cost > most) {
			most = cost;
			dearest = json_word(source, "name");
		}
		check_source(checks, source);
	}
	finding_add(checks, bad == 0 && fine > 0 ? FINDING_OK : FINDING_PROBLEM, "sources",
		fine > 0 ? NULL : "journalctl -u edgeprofd -e",
		"%d ok, %d broken, %d absent or off", fine, bad, all - fine - bad);
	double share = total / 1e6 * 100;
	char fix[160];
	snprintf(fix, sizeof(fix), "edgeprofctl source enable %.64s --interval 5s", dearest);
	finding_add(checks, share > COST_SHARE_PERCENT ? FINDING_HINT : FINDING_OK, "cost",
		share > COST_SHARE_PERCENT ? fix : NULL,
		"sampling takes %.0f us of each second, %.2f %% of one CPU%s%s", total, share,
		most > 0 ? ", most of it " : "", dearest);
}

/* Values are counted by the first segment of the metrics' names. */
static void check_sensors(cJSON *checks, const cJSON *reply)
{
	static const char *const wanted[] = {"temperature", "throttle", "power", "cpu", "memory"};
	char found[320], missing[96];
	struct text values = TEXT_IN(found), gone = TEXT_IN(missing);
	cJSON *kinds = cJSON_CreateObject();
	for (const cJSON *metric = json_first(reply, "metrics"); metric; metric = metric->next) {
		const char *name = json_word(metric, "name");
		char kind[64];
		snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(name, "/"), name);
		double count = json_number(kinds, kind);
		if (strcmp(kind, "self") != 0 && strcmp(kind, "collector") != 0 &&
			isfinite(json_number(metric, "value"))) {
			cJSON_DeleteItemFromObjectCaseSensitive(kinds, kind);
			cJSON_AddNumberToObject(kinds, kind, isnan(count) ? 1 : count + 1);
		}
	}
	for (const cJSON *kind = kinds->child; kind; kind = kind->next) {
		text_join(&values, ", ", "%s %.0f", kind->string, kind->valuedouble);
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (!json_get(kinds, wanted[i])) {
			text_join(&gone, ", ", "%s", wanted[i]);
		}
	}
	finding_add(checks, gone.length > 0 ? FINDING_HINT : FINDING_OK, "sensors", NULL,
		"values: %s%s%s", values.length > 0 ? found : "none",
		gone.length > 0 ? "; without any: " : "", missing);
	cJSON_Delete(kinds);
}

static void check_history(cJSON *checks, const cJSON *status, const cJSON *self)
{
	const char *reason = json_word(self, "history_reason");
	const char *run_dir = json_word(status, "run_dir");
	char fix[256];
	if (!self) {
		return;
	}
	double span = json_number(self, "history_span_s");
	if (reason[0] == '\0') {
		finding_add(checks, FINDING_OK, "history", NULL, "in %s, outlives the daemon%s%s",
			run_dir, isnan(span) ? "" : "; reaches back ",
			isnan(span) ? "" : format_span(span).text);
		return;
	}
	snprintf(fix, sizeof(fix),
		"df -h %.160s # make room, then: sudo systemctl restart edgeprofd", run_dir);
	finding_add(checks, FINDING_HINT, "history", fix,
		"only in memory, gone with the daemon: %s", reason);
}

static void check_degraded(cJSON *checks, const cJSON *status, const cJSON *self)
{
	const char *run_dir = json_word(status, "run_dir");
	const char *state = json_word(self, "history_persist_state");
	char fix[256];
	for (const cJSON *row = json_first(self, "degraded"); row; row = row->next) {
		snprintf(fix, sizeof(fix),
			"ls -l %.128s/%.24s # put right, then: sudo systemctl restart edgeprofd",
			run_dir, json_word(row, "file"));
		finding_add(checks, FINDING_HINT, "run files", fix, "%s: %s",
			json_word(row, "file"), json_word(row, "reason"));
	}
	if (strcmp(state, "degraded") == 0 || strcmp(state, "stuck") == 0 ||
		strcmp(state, "impaired") == 0) {
		snprintf(fix, sizeof(fix), "df -h %.200s", json_word(self, "history_persist_path"));
		finding_add(checks, FINDING_PROBLEM, "history", fix, "on disk, %s: %s", state,
			json_word(self, "history_persist_reason"));
	}
}

static void check_broker(cJSON *checks, const cJSON *broker)
{
	const char *reason = json_word(broker, "reason");
	const char *host = json_word(broker, "host");
	long long port = json_integer(broker, "port");
	char fix[256];
	if (is_state(broker, "off") || json_word(broker, "state")[0] == '\0') {
		finding_add(checks, reason[0] == '\0' ? FINDING_OK : FINDING_PROBLEM, "mqtt",
			reason[0] == '\0' ? NULL : "edgeprofd --check-config",
			reason[0] == '\0' ? "off: no broker is configured%s" : "off: %s", reason);
	} else if (is_state(broker, "connected") && reason[0] != '\0') {
		finding_add(checks, FINDING_PROBLEM, "mqtt",
			"sudo editor /etc/edgeprofd/edgeprofd.conf # [mqtt] device_id",
			"connected, not for long: %s", reason);
	} else if (is_state(broker, "connected")) {
		finding_add(checks, FINDING_OK, "mqtt", NULL, "connected to %s:%lld", host, port);
	} else {
		snprintf(fix, sizeof(fix), "mosquitto_sub -h %.128s -p %lld -t '#' -C 1 -W 10",
			host, port);
		finding_add(checks, is_state(broker, "away") ? FINDING_PROBLEM : FINDING_HINT,
			"mqtt", fix, "%s: %s:%lld%s%s", json_word(broker, "state"), host, port,
			reason[0] == '\0' ? "" : ": ", reason);
	}
}

static void check_limits(cJSON *checks, const cJSON *self, const cJSON *apps)
{
	static const struct {
		const char *member, *what;
	} refused[] = {
		{"metrics_refused", "metrics"},
		{"stages_refused", "stages"},
		{"api_refused", "connections"},
		{"alerts_refused", "alerts"},
	};
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		int64_t times = json_integer(self, refused[i].member);
		if (times > 0) {
			finding_add(checks, FINDING_HINT, "limits", "edgeprofctl self",
				"%s were refused %s times: a limit is reached", refused[i].what,
				format_count(times).text);
		}
	}
	for (const cJSON *row = json_first(apps, "refused"); row; row = row->next) {
		const char *app = json_word(row, "app");
		finding_add(checks, FINDING_HINT, "app", NULL, "%s was refused: %s",
			app[0] == '\0' ? "a process" : app, json_word(row, "reason"));
	}
}

void doctor_daemon(cJSON *checks, const cJSON *replies)
{
	const cJSON *status = json_get(replies, "GetStatus"), *self = json_get(replies, "GetSelf");
	const cJSON *sources = json_get(replies, "ListSources");
	const cJSON *metrics = json_get(replies, "ListMetrics");
	const char *version = json_word(status, "version");
	if (strcmp(version, EDGEPROF_VERSION) != 0) {
		finding_add(checks, FINDING_HINT, "version", "sudo systemctl restart edgeprofd",
			"the daemon is %s, edgeprofctl is " EDGEPROF_VERSION, version);
	}
	if (sources) {
		check_sources(checks, sources);
	}
	if (metrics) {
		check_sensors(checks, metrics);
	}
	check_history(checks, status, self);
	check_degraded(checks, status, self);
	check_broker(checks, json_get(status, "broker"));
	check_limits(checks, self, json_get(replies, "ListApps"));
}
