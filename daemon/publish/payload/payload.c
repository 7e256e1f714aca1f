/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.c: writes the payloads of MQTT as flat JSON objects. The caller puts the bytes into the
 * outbox.
 */
#include "daemon/publish/payload/payload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/diagnose/advise.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/status/recordings.h"
#include "daemon/publish/outbox/missed.h"
#include "daemon/util/sysops.h"
#include "proto/fnv.h"
#include "proto/text.h"

struct json payload_begin(size_t size)
{
	struct json json;
	char *buffer = mem_zalloc(size);
	json_init(&json, buffer, buffer ? size : 0); /* without a buffer everything overflows */
	json_open(&json, NULL, '{');
	return json;
}

char *payload_finish(struct json *json, size_t *length)
{
	json_close(json, '}');
	if (json->overflow) {
		free(json->buffer);
		return NULL;
	}
	*length = json->length;
	json->buffer[json->length] = '\0'; /* within the slack */
	char *shrunk = realloc(json->buffer, json->length + 1);
	return shrunk ? shrunk : json->buffer;
}

/* Six decimals are finer than any sensor; without rounding a mean takes 17 digits. */
static void add_number(struct json *json, const char *key, double value)
{
	json_number_opt(json, key, fabs(value) < 1e9 ? round(value * 1e6) / 1e6 : value);
}

static void add_time(struct json *json, const char *key, const char *key_ms, int64_t us)
{
	time_t seconds = (time_t)(us / 1000000);
	struct tm tm;
	char date[32], text[40];
	if (!gmtime_r(&seconds, &tm)) {
		return;
	}
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03dZ", date, (int)(us / 1000 % 1000));
	json_string(json, key, text);
	json_integer(json, key_ms, us / 1000);
}

/* t_ns: the same time since the boot; 0: it is of a boot before this one. */
static struct json begin_us(
	const char *schema, const struct core *core, int64_t time_us, uint64_t t_ns)
{
	const bool synced = wallclock_synced(core->wall);
	struct json json = payload_begin(PAYLOAD_SIZE);
	json_string(&json, "schema", schema);
	add_time(&json, "ts", "ts_ms", time_us);
	if (t_ns != 0) {
		json_integer(&json, "mono_us", (int64_t)(t_ns / 1000));
	}
	json_string_opt(&json, "boot_id", core->facts->boot_id);
	json_bool(&json, "clock_synchronized", synced);
	if (!synced) {
		json_string(&json, "clock", "unsynchronised");
	}
	return json;
}

static struct json begin(const char *schema, const struct core *core, uint64_t t_ns)
{
	return begin_us(schema, core, wallclock_us(core->wall, t_ns), t_ns);
}

char *payload_info(const struct core *core, size_t *length)
{
	const struct machine_facts *facts = core->facts;
	const uint64_t now_ns = sysops()->now_ns();
	struct json json = begin("edgeprof.info/1", core, now_ns);
	json_string_opt(&json, "version", facts->version);
	json_string_opt(&json, "hostname", facts->hostname);
	json_string_opt(&json, "model", facts->model);
	json_string_opt(&json, "os", facts->os);
	json_string_opt(&json, "kernel", facts->kernel);
	json_string_opt(&json, "arch", facts->arch);
	json_string_opt(&json, "boot_reason", facts->boot_reason);
	json_string_opt(&json, "boot_reason_detail", facts->boot_reason_detail);
	json_string_opt(&json, "reset_reason", facts->reset_reason);
	json_string_opt(&json, "config_hash", facts->config_hash);
	json_integer(&json, "cpus", facts->cpus);
	json_integer(&json, "uptime_s", (int64_t)((now_ns - facts->started_ns) / 1000000000));
	json_integer(&json, "started_ms", wallclock_us(core->wall, facts->started_ns) / 1000);
	return payload_finish(&json, length);
}

static bool names_unit(const char *text, const char *word)
{
	char end[32];
	snprintf(end, sizeof(end), "_%s", word);
	return text_ends_with(text, end);
}

/* How names abbreviate their unit. */
static const char *unit_short(enum unit unit)
{
	static const char *const words[UNIT_COUNT_OF_UNITS] = {
		[UNIT_MILLISECONDS] = "ms",
		[UNIT_MICROSECONDS] = "us",
		[UNIT_SECONDS] = "s",
		[UNIT_MILLIWATTS] = "mw",
		[UNIT_PER_SECOND] = "rate",
	};
	return words[unit] ? words[unit] : unit_name(unit);
}

void payload_key(const char *name, enum unit unit, char ret[PAYLOAD_KEY_SIZE])
{
	snprintf(ret, PAYLOAD_KEY_SIZE, "%s", name);
	for (char *byte = ret; *byte; byte++) {
		if (*byte == '/' || *byte == '.' || *byte == '-') {
			*byte = '_';
		}
	}
	const char *word = unit_name(unit);
	/* A rate named so still says of what time: "…_rate_per_second"; a bool has no unit. */
	if (word[0] == '\0' || unit == UNIT_BOOL || names_unit(ret, word) ||
		(unit != UNIT_PER_SECOND && names_unit(ret, unit_short(unit)))) {
		return;
	}
	struct text key = {.data = ret, .size = PAYLOAD_KEY_SIZE, .length = strlen(ret)};
	text_add(&key, "_%s", word);
}

uint64_t name_hash(const char *name)
{
	uint64_t hash = fnv64_text(FNV64_BASIS, name);
	return hash + (hash == 0);
}

static size_t place_of(const struct name_set *set, uint64_t hash)
{
	size_t at = hash % NAME_SET_SIZE;
	while (set->hash[at] && set->hash[at] != hash) {
		at = (at + 1) % NAME_SET_SIZE;
	}
	return at;
}

bool name_set_has(const struct name_set *set, uint64_t hash)
{
	return set->hash[place_of(set, hash)] == hash;
}

bool name_set_add(struct name_set *set, uint64_t hash)
{
	size_t at = place_of(set, hash);
	if (set->hash[at] == hash || set->count > NAME_SET_SIZE / 2) {
		return false;
	}
	set->hash[at] = hash;
	set->count++;
	return true;
}

char *payload_summary(const struct core *core, uint64_t now_ns, size_t *length)
{
	struct json json = begin("edgeprof.summary/1", core, now_ns);
	struct name_set keys = {.count = 0}; /* two names may make one key: a/b and a_b */
	int64_t left_out = 0;
	uint32_t cursor = 0;
	for (const struct metric *metric; (metric = metrics_next(core->metrics, &cursor));) {
		if (!isfinite(metric->value) || text_starts_with(metric->name, "stage/") ||
			text_starts_with(metric->name, "collector/")) {
			continue;
		}
		char key[PAYLOAD_KEY_SIZE];
		payload_key(metric->name, metric->unit, key);
		if (keys.count < PAYLOAD_SUMMARY_KEYS && name_set_add(&keys, name_hash(key))) {
			add_number(&json, key, metric->value);
		} else {
			left_out++;
		}
	}
	json_integer(&json, "alerts_firing_count", (int64_t)alerts_firing(core->alerts));
	if (left_out > 0) {
		json_integer(&json, "left_out_count", left_out);
	}
	return payload_finish(&json, length);
}

char *payload_stage(const struct core *core, const struct app *app, const struct stage *stage,
	uint64_t events, double interval_s, uint64_t now_ns, double *scratch, size_t *length)
{
	struct json json = begin("edgeprof.stage/1", core, now_ns);
	struct proto_summary summary;
	stage_summary(stage, scratch, &summary);
	json_string_opt(&json, "app", app->name);
	json_string_opt(&json, "stage", stage->name);
	json_string_opt(&json, "category", stage->category);
	json_string_opt(&json, "unit", stage->unit);
	json_integer(&json, "events_count", (int64_t)events);
	add_number(&json, "rate_per_second", interval_s > 0 ? (double)events / interval_s : NAN);
	json_integer(&json, "total_count", (int64_t)stage->count);
	json_integer(&json, "misses_count", (int64_t)stage->misses);
	add_number(
		&json, "deadline_ms", stage->deadline_ns ? (double)stage->deadline_ns / 1e6 : NAN);
	json_integer(&json, "window_count", (int64_t)summary.count);
	add_number(&json, "mean_ms", summary.mean);
	add_number(&json, "min_ms", summary.min);
	add_number(&json, "p50_ms", summary.p50);
	add_number(&json, "p90_ms", summary.p90);
	add_number(&json, "p95_ms", summary.p95);
	add_number(&json, "p99_ms", summary.p99);
	add_number(&json, "max_ms", summary.max);
	add_number(&json, "std_ms", summary.std);
	add_number(&json, "std_sample_ms", summary.std_sample);
	return payload_finish(&json, length);
}

/* An alert may fire since a boot before this one. */
static int64_t since_us(const struct core *core, const struct alert *alert)
{
	return alert->since_us ? alert->since_us : wallclock_us(core->wall, alert->since_ns);
}

static void add_alert(struct json *json, const struct core *core, const struct alert *alert,
	enum alert_phase phase, double value)
{
	json_string_opt(json, "rule", alert->rule->name);
	json_string_opt(json, "instance", alert->instance);
	json_string_opt(json, "metric", alert->metric);
	json_string_opt(json, "state", alert_phase_name(phase));
	json_string_opt(json, "severity", alert_severity_name(alert->severity));
	add_number(json, "value", value);
	add_number(json, "threshold", alert->threshold);
	json_integer(json, "since_us", since_us(core, alert));
	json_string_opt(json, "text", alert->text);
	if (phase == ALERT_FIRING) {
		json_bool(json, "acked", alert->notifier.acked);
		json_bool(json, "silenced", alert->notifier.muted_until_ns != 0);
	}
	if (phase == ALERT_FIRING && alert->notifier.muted_until_ns != 0) {
		json_integer(json, "silenced_until_us",
			wallclock_us(core->wall, alert->notifier.muted_until_ns));
	}
	if (alert->test) {
		json_bool(json, "test", true);
	}
}

char *payload_alert(const struct core *core, const struct alert *alert, size_t *length)
{
	struct json json = begin_us("edgeprof.alert/1", core, since_us(core, alert),
		alert->since_us ? 0 : alert->since_ns);
	add_alert(&json, core, alert, alert->phase, alert->value);
	return payload_finish(&json, length);
}

char *payload_alert_event(
	const struct core *core, const struct alert_transition *transition, size_t *length)
{
	const struct alert *alert = transition->alert;
	const bool before = transition->t_ns == alert->since_ns && alert->since_us;
	struct json json = begin_us("edgeprof.alert/1", core,
		before ? alert->since_us : wallclock_us(core->wall, transition->t_ns),
		before ? 0 : transition->t_ns);
	if (transition->sent_ns != 0) {
		add_time(&json, "sent_ts", "sent_ts_ms",
			wallclock_us(core->wall, transition->sent_ns));
	}
	add_alert(&json, core, alert, transition->to, transition->value);
	json_string_opt(&json, "from", alert_phase_name(transition->from));
	if (transition->from == ALERT_FIRING) {
		json_string_opt(
			&json, "from_severity", alert_severity_name(transition->from_severity));
	}
	return payload_finish(&json, length);
}

char *payload_diagnosis(
	const struct core *core, const char *app, const struct diagnosis *diagnosis, size_t *length)
{
	struct json json = begin("edgeprof.diagnosis/1", core, diagnosis->t_ns);
	json_string(&json, "app", app);
	json_string(&json, "status", diagnosis_state_name(diagnosis->state));
	json_string(&json, "summary", diagnosis->summary);
	if (diagnosis->state != DIAGNOSIS_FINDINGS) {
		return payload_finish(&json, length);
	}
	const struct finding *finding = &diagnosis->finding[0];
	char key[32];
	json_string(&json, "cause", cause_name(finding->cause));
	json_string(&json, "confidence", confidence_name(finding_confidence(finding)));
	add_number(&json, "score", finding->score);
	json_string_opt(&json, "symptom", finding->symptom);
	add_number(&json, "explained_ms", finding->explained_ms);
	for (size_t i = 0; i < finding->evidence_count; i++) {
		snprintf(key, sizeof(key), "evidence_%zu", i + 1);
		json_string(&json, key, finding->evidence[i]);
	}
	for (size_t i = 0; i < sizeof(finding->advice) / sizeof(finding->advice[0]); i++) {
		snprintf(key, sizeof(key), "advice_%zu", i + 1);
		json_string_opt(&json, key, finding->advice[i] ? finding->advice[i] : "");
	}
	return payload_finish(&json, length);
}

char *payload_recording(const struct core *core, const struct recording *recording, size_t *length)
{
	uint64_t t_ns = wallclock_mono_ns(core->wall, recording->time_us);
	struct json json = begin("edgeprof.recording_event/1", core, t_ns);
	json_string_opt(&json, "name", recording->name);
	json_string_opt(&json, "trigger", recording->trigger);
	json_integer(&json, "triggers_count", (int64_t)recording->triggers);
	add_number(&json, "span_s", recording->span_s);
	add_number(&json, "before_s", recording->before_s);
	add_number(&json, "after_s", recording->after_s);
	json_integer(&json, "size_bytes", (int64_t)recording->bytes);
	json_integer(&json, "records_count", (int64_t)recording->records);
	json_integer(&json, "lost_count", (int64_t)recording->lost);
	json_string_opt(&json, "cut", recording->cut);
	return payload_finish(&json, length);
}

char *payload_missed(const struct core *core, const struct missed *missed, size_t *length)
{
	struct json json = begin("edgeprof.missed/1", core, sysops()->now_ns());
	if (missed->first_ns != 0) {
		add_time(&json, "first_ts", "first_ts_ms",
			wallclock_us(core->wall, missed->first_ns));
		json_integer(&json, "first_mono_us", (int64_t)(missed->first_ns / 1000));
		add_time(&json, "last_ts", "last_ts_ms", wallclock_us(core->wall, missed->last_ns));
		json_integer(&json, "last_mono_us", (int64_t)(missed->last_ns / 1000));
	}
	json_integer(&json, "alerts_count", (int64_t)missed->alerts);
	json_integer(&json, "summaries_count", (int64_t)missed->summaries);
	json_integer(&json, "others_count", (int64_t)missed->others);
	for (size_t i = 0; i < MISSED_RULES && missed->rule[i].name[0] != '\0'; i++) {
		char key[32];
		snprintf(key, sizeof(key), "rule_%zu", i + 1);
		json_string(&json, key, missed->rule[i].name);
		snprintf(key, sizeof(key), "rule_%zu_count", i + 1);
		json_integer(&json, key, (int64_t)missed->rule[i].count);
	}
	return payload_finish(&json, length);
}
