/* The only file of the publishers that makes JSON. The caller puts the bytes into the outbox. */
#include "daemon/publish/payload/payload.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/status/recordings.h"
#include "daemon/util/sysops.h"
#include "proto/varlink.h"

struct builder {
	cJSON *object; /* NULL after a failure: the adders then do nothing */
};

static void builder_add(struct builder *builder, const char *key, cJSON *item)
{
	if (!builder->object || !item || !cJSON_AddItemToObject(builder->object, key, item)) {
		cJSON_Delete(item);
		cJSON_Delete(builder->object);
		builder->object = NULL;
	}
}

static void add_text(struct builder *builder, const char *key, const char *text)
{
	if (text[0] != '\0') {
		builder_add(builder, key, cJSON_CreateString(text));
	}
}

static void add_integer(struct builder *builder, const char *key, int64_t value)
{
	builder_add(builder, key, proto_json_integer(value));
}

static void add_flag(struct builder *builder, const char *key, bool value)
{
	builder_add(builder, key, cJSON_CreateBool(value));
}

/* Six decimals are finer than any sensor; without rounding a mean takes 17 digits. */
static void add_number(struct builder *builder, const char *key, double value)
{
	if (isfinite(value)) {
		double rounded = fabs(value) < 1e9 ? round(value * 1e6) / 1e6 : value;
		builder_add(builder, key, proto_json_number(rounded));
	}
}

static void add_time(struct builder *builder, const char *key, const char *key_ms, int64_t us)
{
	time_t seconds = (time_t)(us / 1000000);
	struct tm tm;
	char text[40];
	if (!gmtime_r(&seconds, &tm)) {
		return;
	}
	size_t used = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + used, sizeof(text) - used, ".%03dZ", (int)(us / 1000 % 1000));
	add_text(builder, key, text);
	add_integer(builder, key_ms, us / 1000);
}

static struct builder begin_us(const char *schema, const struct core *core, int64_t time_us)
{
	struct builder builder = {cJSON_CreateObject()};
	add_text(&builder, "schema", schema);
	add_time(&builder, "ts", "ts_ms", time_us);
	if (!wallclock_synced(core->wall)) {
		add_text(&builder, "clock", "unsynchronised");
	}
	return builder;
}

static struct builder begin(const char *schema, const struct core *core, uint64_t t_ns)
{
	return begin_us(schema, core, wallclock_us(core->wall, t_ns));
}

static char *finish(struct builder *builder, size_t *length)
{
	char *text = NULL;
	if (builder->object) {
		text = proto_json_print(builder->object, length);
		cJSON_Delete(builder->object);
		builder->object = NULL;
	}
	if (text) {
		*length = strlen(text);
	}
	return text;
}

char *payload_info(const struct core *core, size_t *length)
{
	const struct facts *facts = core->facts;
	struct builder builder = begin("edgeprof.info/1", core, sysops()->now_ns());
	add_text(&builder, "version", facts->version);
	add_text(&builder, "hostname", facts->hostname);
	add_text(&builder, "model", facts->model);
	add_text(&builder, "os", facts->os);
	add_text(&builder, "kernel", facts->kernel);
	add_text(&builder, "arch", facts->arch);
	add_text(&builder, "boot_id", facts->boot_id);
	add_integer(&builder, "cpus", facts->cpus);
	add_integer(&builder, "started_ms", wallclock_us(core->wall, facts->started_ns) / 1000);
	return finish(&builder, length);
}

static bool ends_in(const char *text, const char *word)
{
	size_t length = strlen(text), word_length = strlen(word);
	return length > word_length && strcmp(text + length - word_length, word) == 0 &&
	       text[length - word_length - 1] == '_';
}

/* How names abbreviate their unit. */
static const char *unit_short(enum unit unit)
{
	switch (unit) {
	case UNIT_MILLISECONDS:
		return "ms";
	case UNIT_MICROSECONDS:
		return "us";
	case UNIT_SECONDS:
		return "s";
	case UNIT_MILLIWATTS:
		return "mw";
	case UNIT_PER_SECOND:
		return "rate";
	case UNIT_NONE:
	case UNIT_CELSIUS:
	case UNIT_PERCENT:
	case UNIT_HERTZ:
	case UNIT_BYTES:
	case UNIT_MILLIJOULES:
	case UNIT_VOLTS:
	case UNIT_RPM:
	case UNIT_STATE:
	case UNIT_BOOL:
	case UNIT_COUNT:
	case UNIT_FPS:
	case UNIT_COUNT_OF_UNITS:
		break;
	}
	return unit_name(unit);
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
	if (word[0] == '\0' || unit == UNIT_BOOL || ends_in(ret, word) ||
		(unit != UNIT_PER_SECOND && ends_in(ret, unit_short(unit)))) {
		return;
	}
	size_t used = strlen(ret);
	snprintf(ret + used, PAYLOAD_KEY_SIZE - used, "_%s", word);
}

/* The keys said so far: two names may make one key (a/b and a_b), and JSON may not hold it twice.
 */
struct key_set {
	uint64_t hash[2 * PAYLOAD_SUMMARY_KEYS];
	size_t count;
};

static bool key_set_add(struct key_set *set, const char *key)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a */
	for (const char *byte = key; *byte; byte++) {
		hash = (hash ^ (unsigned char)*byte) * 1099511628211u;
	}
	hash += hash == 0;
	size_t size = sizeof(set->hash) / sizeof(set->hash[0]);
	if (set->count >= PAYLOAD_SUMMARY_KEYS) {
		return false;
	}
	size_t at = hash % size;
	for (; set->hash[at]; at = (at + 1) % size) {
		if (set->hash[at] == hash) {
			return false;
		}
	}
	set->hash[at] = hash;
	set->count++;
	return true;
}

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

char *payload_summary(const struct core *core, uint64_t now_ns, size_t *length)
{
	struct builder builder = begin("edgeprof.summary/1", core, now_ns);
	struct key_set keys = {.count = 0};
	int64_t left_out = 0;
	uint32_t cursor = 0;
	for (const struct metric *metric; (metric = metrics_next(core->metrics, &cursor));) {
		if (!isfinite(metric->value) || has_prefix(metric->name, "stage/") ||
			has_prefix(metric->name, "collector/")) {
			continue;
		}
		char key[PAYLOAD_KEY_SIZE];
		payload_key(metric->name, metric->unit, key);
		if (key_set_add(&keys, key)) {
			add_number(&builder, key, metric->value);
		} else {
			left_out++;
		}
	}
	add_integer(&builder, "alerts_firing_count", (int64_t)alerts_firing(core->alerts));
	if (left_out > 0) {
		add_integer(&builder, "left_out_count", left_out);
	}
	return finish(&builder, length);
}

char *payload_stage(const struct core *core, const struct app *app, const struct stage *stage,
	uint64_t events, double interval_s, uint64_t now_ns, double *scratch, size_t *length)
{
	struct builder builder = begin("edgeprof.stage/1", core, now_ns);
	struct proto_summary summary;
	stage_summary(stage, scratch, &summary);
	add_text(&builder, "app", app->name);
	add_text(&builder, "stage", stage->name);
	add_text(&builder, "category", stage->category);
	add_text(&builder, "unit", stage->unit);
	add_integer(&builder, "events_count", (int64_t)events);
	add_number(&builder, "rate_per_second", interval_s > 0 ? (double)events / interval_s : NAN);
	add_integer(&builder, "total_count", (int64_t)stage->count);
	add_integer(&builder, "misses_count", (int64_t)stage->misses);
	add_number(&builder, "deadline_ms",
		stage->deadline_ns ? (double)stage->deadline_ns / 1e6 : NAN);
	add_integer(&builder, "window_count", (int64_t)summary.count);
	add_number(&builder, "mean_ms", summary.mean);
	add_number(&builder, "min_ms", summary.min);
	add_number(&builder, "p50_ms", summary.p50);
	add_number(&builder, "p90_ms", summary.p90);
	add_number(&builder, "p95_ms", summary.p95);
	add_number(&builder, "p99_ms", summary.p99);
	add_number(&builder, "max_ms", summary.max);
	add_number(&builder, "std_ms", summary.std);
	return finish(&builder, length);
}

/* An alert may fire since a boot before this one. */
static int64_t since_us(const struct core *core, const struct alert *alert)
{
	return alert->since_us ? alert->since_us : wallclock_us(core->wall, alert->since_ns);
}

static void add_alert(struct builder *builder, const struct core *core, const struct alert *alert,
	enum alert_phase phase, double value)
{
	add_text(builder, "rule", alert->rule->name);
	add_text(builder, "instance", alert->instance);
	add_text(builder, "metric", alert->metric);
	add_text(builder, "state", alert_phase_name(phase));
	add_text(builder, "severity", alert_severity_name(alert->severity));
	add_number(builder, "value", value);
	add_number(builder, "threshold", alert->threshold);
	add_integer(builder, "since_us", since_us(core, alert));
	add_text(builder, "text", alert->text);
	if (phase == ALERT_FIRING) {
		add_flag(builder, "acked", alert->acked);
		add_flag(builder, "silenced", alert->silenced_until_ns != 0);
	}
	if (phase == ALERT_FIRING && alert->silenced_until_ns != 0) {
		add_integer(builder, "silenced_until_us",
			wallclock_us(core->wall, alert->silenced_until_ns));
	}
	if (alert->test) {
		add_flag(builder, "test", true);
	}
}

char *payload_alert(const struct core *core, const struct alert *alert, size_t *length)
{
	struct builder builder = begin_us("edgeprof.alert/1", core, since_us(core, alert));
	add_alert(&builder, core, alert, alert->phase, alert->value);
	return finish(&builder, length);
}

char *payload_alert_event(
	const struct core *core, const struct alert_transition *transition, size_t *length)
{
	const struct alert *alert = transition->alert;
	const bool before = transition->t_ns == alert->since_ns && alert->since_us;
	struct builder builder = begin_us("edgeprof.alert/1", core,
		before ? alert->since_us : wallclock_us(core->wall, transition->t_ns));
	if (transition->sent_ns != 0) {
		add_time(&builder, "sent_ts", "sent_ts_ms",
			wallclock_us(core->wall, transition->sent_ns));
	}
	add_alert(&builder, core, alert, transition->to, transition->value);
	add_text(&builder, "from", alert_phase_name(transition->from));
	if (transition->from == ALERT_FIRING) {
		add_text(&builder, "from_severity", alert_severity_name(transition->from_severity));
	}
	return finish(&builder, length);
}

char *payload_recording(const struct core *core, const struct recording *recording, size_t *length)
{
	uint64_t t_ns = wallclock_mono_ns(core->wall, recording->time_us);
	struct builder builder = begin("edgeprof.recording_event/1", core, t_ns);
	add_text(&builder, "name", recording->name);
	add_text(&builder, "trigger", recording->trigger);
	add_integer(&builder, "triggers_count", (int64_t)recording->triggers);
	add_number(&builder, "span_s", recording->span_s);
	add_number(&builder, "before_s", recording->before_s);
	add_number(&builder, "after_s", recording->after_s);
	add_integer(&builder, "size_bytes", (int64_t)recording->bytes);
	add_integer(&builder, "records_count", (int64_t)recording->records);
	add_integer(&builder, "lost_count", (int64_t)recording->lost);
	add_text(&builder, "cut", recording->cut);
	return finish(&builder, length);
}
