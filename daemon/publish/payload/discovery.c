/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery.c: describes the metrics to Home Assistant. Its rules, from its documentation and
 * source (components/mqtt/schemas.py, components/sensor/const.py): dev needs ids, o a name, a
 * component p and uniq_id; other keys are an error; a device class takes certain units only (no mW,
 * no mJ), and converts them: degrees of a difference must have none. A template that yields "None"
 * makes the state unknown; yielding nothing would keep the number from before.
 */
#include "daemon/publish/payload/discovery.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/status/facts.h"
#include "daemon/publish/payload/payload.h"
#include "proto/fnv.h"

struct kind {
	const char *class, *unit, *state;
	unsigned divisor;
};

static const struct kind kinds[UNIT_COUNT_OF_UNITS] = {
	[UNIT_NONE] = {NULL, NULL, "measurement", 1},
	[UNIT_CELSIUS] = {"temperature", "°C", "measurement", 1},
	[UNIT_PERCENT] = {NULL, "%", "measurement", 1},
	[UNIT_HERTZ] = {"frequency", "Hz", "measurement", 1},
	[UNIT_BYTES] = {"data_size", "B", "measurement", 1},
	[UNIT_MILLIWATTS] = {"power", "W", "measurement", 1000},
	[UNIT_MILLIJOULES] = {"energy", "Wh", "total_increasing", 3600000},
	[UNIT_VOLTS] = {"voltage", "V", "measurement", 1},
	[UNIT_RPM] = {NULL, "rpm", "measurement", 1},
	[UNIT_STATE] = {NULL, NULL, "measurement", 1},
	[UNIT_BOOL] = {NULL, NULL, NULL, 1}, /* a binary sensor */
	[UNIT_COUNT] = {NULL, NULL, "measurement", 1},
	[UNIT_PER_SECOND] = {NULL, "1/s", "measurement", 1},
	[UNIT_MILLISECONDS] = {"duration", "ms", "measurement", 1},
	[UNIT_MICROSECONDS] = {NULL, "µs", "measurement", 1},
	[UNIT_SECONDS] = {"duration", "s", "measurement", 1},
	[UNIT_FPS] = {NULL, "fps", "measurement", 1},
};

static const struct group {
	const char *prefix;
	bool flat;	     /* nothing below */
	const char *leaf[2]; /* of these only */
	enum { AS_IT_IS, DIFFERENCE, PROBLEM, TOTAL } sense;
} groups[] = {
	{"temperature/", false, {NULL}, AS_IT_IS},
	{"headroom/", false, {NULL}, DIFFERENCE},
	{"cooling/", false, {NULL}, AS_IT_IS},
	{"fan/", false, {NULL}, AS_IT_IS},
	{"throttle/", false, {NULL}, PROBLEM},
	{"power/", false, {NULL}, AS_IT_IS},
	{"energy/", false, {NULL}, AS_IT_IS},
	{"cpu/", true, {NULL}, AS_IT_IS},
	{"memory/", false, {NULL}, AS_IT_IS},
	{"swap/", false, {NULL}, AS_IT_IS},
	{"pressure/", false, {NULL}, AS_IT_IS},
	{"gpu/", false, {NULL}, AS_IT_IS},
	{"emc/", false, {NULL}, AS_IT_IS},
	{"engine/", false, {NULL}, AS_IT_IS},
	{"tegra/", false, {NULL}, AS_IT_IS},
	{"clock/", false, {NULL}, AS_IT_IS},
	{"voltage/", false, {NULL}, AS_IT_IS},
	{"process/", false, {"rss", "cpu"}, AS_IT_IS},
	{"frame/", false, {NULL}, AS_IT_IS},
	{"gauge/", false, {NULL}, AS_IT_IS},
	{"counter/", false, {NULL}, TOTAL},
};

static bool group_has(const struct group *group, const char *name)
{
	size_t length = strlen(group->prefix);
	if (strncmp(name, group->prefix, length) != 0 ||
		(group->flat && strchr(name + length, '/'))) {
		return false;
	}
	const char *leaf = strrchr(name, '/') + 1;
	return !group->leaf[0] || strcmp(leaf, group->leaf[0]) == 0 ||
	       strcmp(leaf, group->leaf[1]) == 0;
}

/* NULL: nothing for a dashboard (each core, the daemon itself, the many numbers of a process). */
static const struct group *group_of(const char *name)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (group_has(&groups[i], name)) {
			return &groups[i];
		}
	}
	return NULL;
}

static uint64_t stage_hash(const struct app *app, const struct stage *stage)
{
	uint64_t hash = fnv64_text(name_hash(app->name), "//");
	hash = fnv64_text(hash, stage->name);
	return hash + (hash == 0);
}

bool discovery_note(struct name_set *known, const struct core *core)
{
	if (known->count > NAME_SET_SIZE / 2) {
		*known = (struct name_set){.count = 0};
	}
	bool new = false;
	uint32_t cursor = 0;
	for (const struct metric *metric; (metric = metrics_next(core->metrics, &cursor));) {
		if (isfinite(metric->value) && group_of(metric->name)) {
			new = name_set_add(known, name_hash(metric->name)) || new;
		}
	}
	const struct app *app;
	for (size_t i = 0; (app = apps_at(core->apps, i)); i++) {
		for (size_t k = 0; k < app->stages; k++) {
			if (app->stage[k]->count > 0) {
				new = name_set_add(known, stage_hash(app, app->stage[k])) || new;
			}
		}
	}
	return new;
}

struct writer {
	struct json json;
	const struct topics *topics;
	unsigned expire_s;
	size_t count, omitted;
	struct name_set ids;
};

/* A component: what it is called and how its state is read. */
struct component {
	const char *platform;
	const char *id;		      /* its name at Home Assistant */
	const char *key;	      /* that in the payload */
	const char *name;	      /* for people; slashes and underscores become blanks */
	const char *topic, *template; /* NULL: the summary; the value of key */
	const char *class, *unit, *state;
	unsigned divisor;
};

static void write_name(struct json *json, const char *name)
{
	char text[PAYLOAD_KEY_SIZE];
	snprintf(text, sizeof(text), "%s", name);
	for (char *byte = text; *byte; byte++) {
		if (*byte == '/' || *byte == '_') {
			*byte = ' ';
		}
	}
	json_string_opt(json, "name", text);
}

static void write_template(struct json *json, const struct component *component)
{
	char text[3 * PAYLOAD_KEY_SIZE], scale[16] = "";
	if (component->divisor > 1) {
		snprintf(scale, sizeof(scale), " / %u", component->divisor);
	}
	snprintf(text, sizeof(text), "{{ value_json['%s']%s if '%s' in value_json else 'None' }}",
		component->key, scale, component->key);
	json_string(json, "val_tpl", component->template ? component->template : text);
}

static void optional(struct json *json, const char *key, const char *text)
{
	json_string_opt(json, key, text ? text : "");
}

/* Nothing is written when the key is taken, or when the object would be too long: that is counted.
 */
static void write_component(struct writer *writer, const struct component *component)
{
	struct json *json = &writer->json;
	char text[3 * PAYLOAD_KEY_SIZE];
	uint64_t hash = name_hash(component->id);
	size_t mark = json_mark(json);
	if (name_set_has(&writer->ids, hash)) {
		return; /* two names may make one key: the first has it, as in the summary */
	}
	if (writer->count == DISCOVERY_COMPONENTS) {
		writer->omitted++;
		return;
	}
	json_open(json, component->id, '{');
	json_string(json, "p", component->platform);
	write_name(json, component->name);
	snprintf(text, sizeof(text), "edgeprof_%s_%s", writer->topics->id, component->id);
	json_string(json, "uniq_id", text);
	write_template(json, component);
	json_unsigned(json, "exp_aft", writer->expire_s);
	optional(json, "dev_cla", component->class);
	optional(json, "unit_of_meas", component->unit);
	optional(json, "stat_cla", component->state);
	optional(json, "stat_t", component->topic);
	if (strcmp(component->platform, "binary_sensor") == 0) {
		json_string(json, "pl_on", "1");
		json_string(json, "pl_off", "0");
	}
	json_close(json, '}');
	if (json->overflow) {
		json_rollback(json, mark);
		writer->omitted++;
	} else {
		name_set_add(&writer->ids, hash);
		writer->count++;
	}
}

static void add_metric(
	struct writer *writer, const struct metric *metric, const struct group *group)
{
	const struct kind *kind = &kinds[metric->unit];
	char key[PAYLOAD_KEY_SIZE];
	payload_key(metric->name, metric->unit, key);
	struct component component = {.platform = "sensor",
		.id = key,
		.key = key,
		.name = metric->name,
		.class = group->sense != DIFFERENCE ? kind->class : NULL,
		.unit = kind->unit,
		.state = group->sense == TOTAL ? "total_increasing" : kind->state,
		.divisor = kind->divisor};
	if (metric->unit == UNIT_BOOL) {
		component.platform = "binary_sensor";
		component.class = group->sense == PROBLEM ? "problem" : NULL;
	}
	write_component(writer, &component);
}

static void add_stage(struct writer *writer, const struct app *app, const struct stage *stage)
{
	static const struct {
		const char *key, *word;
		enum unit unit;
	} leaves[] = {
		{"rate_per_second", "rate", UNIT_PER_SECOND},
		{"p95_ms", "p95_ms", UNIT_MILLISECONDS},
	};
	char topic[TOPIC_SIZE], path[PAYLOAD_KEY_SIZE], id[PAYLOAD_KEY_SIZE];
	topic_stage(writer->topics, app->name, stage->name, topic);
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
		const struct kind *kind = &kinds[leaves[i].unit];
		snprintf(path, sizeof(path), "stage/%s/%s/%s", app->name, stage->name,
			leaves[i].word);
		payload_key(path, leaves[i].unit, id);
		write_component(writer, &(struct component){.platform = "sensor",
						.id = id,
						.key = leaves[i].key,
						.name = path,
						.topic = topic,
						.class = kind->class,
						.unit = kind->unit,
						.state = kind->state});
	}
}

static void add_alerts(struct writer *writer)
{
	static const struct component firing[] = {
		{.platform = "sensor",
			.id = "alerts_firing_count",
			.key = "alerts_firing_count",
			.name = "alerts/firing",
			.state = "measurement"},
		{.platform = "binary_sensor",
			.id = "alert",
			.name = "alert",
			.class = "problem",
			.template = "{{ 1 if value_json['alerts_firing_count'] > 0 else 0 }}"},
	};
	write_component(writer, &firing[0]);
	write_component(writer, &firing[1]);
}

static void add_components(
	struct writer *writer, const struct core *core, const struct name_set *known)
{
	add_alerts(writer);
	uint32_t cursor = 0;
	for (const struct metric *metric; (metric = metrics_next(core->metrics, &cursor));) {
		const struct group *group = group_of(metric->name);
		if (group && name_set_has(known, name_hash(metric->name))) {
			add_metric(writer, metric, group);
		}
	}
	const struct app *app;
	for (size_t i = 0; (app = apps_at(core->apps, i)); i++) {
		for (size_t k = 0; k < app->stages; k++) {
			if (name_set_has(known, stage_hash(app, app->stage[k]))) {
				add_stage(writer, app, app->stage[k]);
			}
		}
	}
}

/* What all components share. */
static void add_device(struct writer *writer, const struct machine_facts *facts)
{
	struct json *json = &writer->json;
	char text[TOPIC_SIZE];
	json_open(json, "dev", '{');
	snprintf(text, sizeof(text), "edgeprof_%s", writer->topics->id);
	json_string(json, "ids", text);
	json_string(json, "name", writer->topics->id);
	json_string(json, "mf", "edgeprof");
	json_string_opt(json, "mdl", facts->model);
	json_string(json, "sw", facts->version);
	json_close(json, '}');
	json_open(json, "o", '{');
	json_string(json, "name", "edgeprofd");
	json_string(json, "sw", facts->version);
	json_close(json, '}');
	topic_plain(writer->topics, "summary", text);
	json_string(json, "stat_t", text);
	topic_plain(writer->topics, "status", text);
	json_string(json, "avty_t", text);
}

char *payload_discovery(const struct core *core, const struct topics *topics,
	const struct name_set *known, unsigned expire_s, size_t *omitted, size_t *length)
{
	struct writer writer = {
		.json = payload_begin(DISCOVERY_SIZE), .topics = topics, .expire_s = expire_s};
	add_device(&writer, core->facts);
	json_open(&writer.json, "cmps", '{');
	if (!writer.json.overflow) {
		add_components(&writer, core, known);
	}
	json_close(&writer.json, '}');
	*omitted = writer.omitted;
	return payload_finish(&writer.json, length);
}
