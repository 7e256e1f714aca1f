/*
 * Which metrics Home Assistant is told of, and how. Its rules, from its documentation and source
 * (components/mqtt/schemas.py, components/sensor/const.py): dev needs ids, o a name, a component p
 * and uniq_id; unknown keys beside them are an error; a device class takes certain units only (no
 * mW, no mJ), and converts them: degrees of a difference must have none. A template that yields
 * "None" makes the state unknown; yielding nothing would keep the number from before.
 */
#include "daemon/publish/payload/discovery.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/status/facts.h"
#include "daemon/publish/payload/payload.h"
#include "proto/varlink.h"

/* What one component takes besides its names, and the device, at most. */
enum { COMPONENT_FIXED = 272, DEVICE_FIXED = 2048 };

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
	enum { AS_IT_IS, DIFFERENCE, PROBLEM } sense;
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
	{"counter/", false, {NULL}, AS_IT_IS},
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

static uint64_t hash_on(uint64_t hash, const char *text)
{
	for (const char *byte = text; *byte; byte++) {
		hash = (hash ^ (unsigned char)*byte) * UINT64_C(1099511628211);
	}
	return hash;
}

static uint64_t hash_of(const char *text)
{
	uint64_t hash = hash_on(UINT64_C(14695981039346656037), text); /* FNV-1a */
	return hash + (hash == 0);
}

static uint64_t stage_hash(const struct app *app, const struct stage *stage)
{
	uint64_t hash = hash_on(hash_on(hash_of(app->name), "//"), stage->name);
	return hash + (hash == 0);
}

static size_t place_of(const struct discovery_known *known, uint64_t hash)
{
	size_t at = hash % DISCOVERY_KNOWN;
	while (known->hash[at] && known->hash[at] != hash) {
		at = (at + 1) % DISCOVERY_KNOWN;
	}
	return at;
}

static bool is_known(const struct discovery_known *known, uint64_t hash)
{
	return known->hash[place_of(known, hash)] == hash;
}

static bool note(struct discovery_known *known, uint64_t hash)
{
	size_t at = place_of(known, hash);
	if (known->hash[at] == hash || known->count > DISCOVERY_KNOWN / 2) {
		return false;
	}
	known->hash[at] = hash;
	known->count++;
	return true;
}

bool discovery_note(struct discovery_known *known, const struct core *core)
{
	if (known->count > DISCOVERY_KNOWN / 2) {
		*known = (struct discovery_known){.count = 0};
	}
	bool new = false;
	uint32_t cursor = 0;
	for (const struct metric *metric; (metric = metrics_next(core->metrics, &cursor));) {
		if (isfinite(metric->value) && group_of(metric->name)) {
			new = note(known, hash_of(metric->name)) || new;
		}
	}
	const struct app *app;
	for (size_t i = 0; (app = apps_at(core->apps, i)); i++) {
		for (size_t k = 0; k < app->stages; k++) {
			if (app->stage[k]->count > 0) {
				new = note(known, stage_hash(app, app->stage[k])) || new;
			}
		}
	}
	return new;
}

struct writer {
	const struct topics *topics;
	cJSON *components;
	unsigned expire_s;
	size_t count, left_out;
	size_t room; /* bytes */
	uint64_t hash[DISCOVERY_COMPONENTS];
	bool failed;
};

static void add_text(struct writer *writer, cJSON *object, const char *key, const char *text)
{
	if (text && text[0] != '\0' && !cJSON_AddStringToObject(object, key, text)) {
		writer->failed = true;
	}
}

/* Two names may make one key: the first has it, as in the summary. */
static bool key_taken(const struct writer *writer, uint64_t hash)
{
	for (size_t i = 0; i < writer->count; i++) {
		if (writer->hash[i] == hash) {
			return true;
		}
	}
	return false;
}

/* One component, with p, name, uniq_id and exp_aft in it. NULL: no room, or the key is taken. id is
 * its name at Home Assistant, key that in the payload. */
static cJSON *component(struct writer *writer, const char *platform, const char *id,
	const char *key, const char *name, unsigned divisor)
{
	char text[3 * PAYLOAD_KEY_SIZE], scale[16] = "";
	uint64_t hash = hash_of(id);
	size_t size = COMPONENT_FIXED + 2 * strlen(id) + 2 * strlen(key) + strlen(name) +
		      strlen(writer->topics->id);
	if (key_taken(writer, hash)) {
		return NULL;
	}
	if (writer->count == DISCOVERY_COMPONENTS || size > writer->room) {
		writer->left_out++;
		return NULL;
	}
	cJSON *object = cJSON_AddObjectToObject(writer->components, id);
	if (!object) {
		writer->failed = true;
		return NULL;
	}
	writer->room -= size;
	writer->hash[writer->count++] = hash;
	add_text(writer, object, "p", platform);
	char *end = stpncpy(text, name, sizeof(text) - 1);
	*end = '\0';
	for (char *byte = text; *byte; byte++) {
		if (*byte == '/' || *byte == '_') {
			*byte = ' ';
		}
	}
	add_text(writer, object, "name", text);
	snprintf(text, sizeof(text), "edgeprof_%s_%s", writer->topics->id, id);
	add_text(writer, object, "uniq_id", text);
	if (divisor > 1) {
		snprintf(scale, sizeof(scale), " / %u", divisor);
	}
	snprintf(text, sizeof(text), "{{ value_json['%s']%s if '%s' in value_json else 'None' }}",
		key, scale, key);
	add_text(writer, object, "val_tpl", text);
	if (!cJSON_AddNumberToObject(object, "exp_aft", writer->expire_s)) {
		writer->failed = true;
	}
	return object;
}

static void describe(struct writer *writer, cJSON *object, const struct kind *kind, bool class)
{
	add_text(writer, object, "dev_cla", class ? kind->class : NULL);
	add_text(writer, object, "unit_of_meas", kind->unit);
	add_text(writer, object, "stat_cla", kind->state);
}

static void describe_binary(struct writer *writer, cJSON *object, bool problem)
{
	add_text(writer, object, "dev_cla", problem ? "problem" : NULL);
	add_text(writer, object, "pl_on", "1");
	add_text(writer, object, "pl_off", "0");
}

static void add_metric(
	struct writer *writer, const struct metric *metric, const struct group *group)
{
	char key[PAYLOAD_KEY_SIZE];
	payload_key(metric->name, metric->unit, key);
	bool binary = metric->unit == UNIT_BOOL;
	const struct kind *kind = &kinds[metric->unit];
	cJSON *object = component(
		writer, binary ? "binary_sensor" : "sensor", key, key, metric->name, kind->divisor);
	if (object && binary) {
		describe_binary(writer, object, group->sense == PROBLEM);
	} else if (object) {
		describe(writer, object, kind, group->sense != DIFFERENCE);
	}
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
		snprintf(path, sizeof(path), "stage/%s/%s/%s", app->name, stage->name,
			leaves[i].word);
		payload_key(path, leaves[i].unit, id);
		cJSON *object = component(writer, "sensor", id, leaves[i].key, path, 1);
		if (object) {
			describe(writer, object, &kinds[leaves[i].unit], true);
			add_text(writer, object, "stat_t", topic);
			writer->room -= strlen(topic) < writer->room ? strlen(topic) : writer->room;
		}
	}
}

static void add_alerts(struct writer *writer)
{
	static const char key[] = "alerts_firing_count";
	cJSON *count = component(writer, "sensor", key, key, "alerts/firing", 1);
	if (count) {
		describe(writer, count, &kinds[UNIT_COUNT], true);
	}
	cJSON *problem = component(writer, "binary_sensor", "alert", key, "alert", 1);
	if (problem) {
		describe_binary(writer, problem, true);
		cJSON_DeleteItemFromObjectCaseSensitive(problem, "val_tpl");
		add_text(writer, problem, "val_tpl",
			"{{ 1 if value_json['alerts_firing_count'] > 0 else 0 }}");
	}
}

static void add_components(
	struct writer *writer, const struct core *core, const struct discovery_known *known)
{
	add_alerts(writer);
	uint32_t cursor = 0;
	for (const struct metric *metric; (metric = metrics_next(core->metrics, &cursor));) {
		const struct group *group = group_of(metric->name);
		if (group && is_known(known, hash_of(metric->name))) {
			add_metric(writer, metric, group);
		}
	}
	const struct app *app;
	for (size_t i = 0; (app = apps_at(core->apps, i)); i++) {
		for (size_t k = 0; k < app->stages; k++) {
			if (is_known(known, stage_hash(app, app->stage[k]))) {
				add_stage(writer, app, app->stage[k]);
			}
		}
	}
}

/* What all components share. */
static void add_device(struct writer *writer, cJSON *root, const struct facts *facts)
{
	char text[TOPIC_SIZE];
	cJSON *device = cJSON_AddObjectToObject(root, "dev");
	snprintf(text, sizeof(text), "edgeprof_%s", writer->topics->id);
	add_text(writer, device, "ids", text);
	add_text(writer, device, "name", writer->topics->id);
	add_text(writer, device, "mf", "edgeprof");
	add_text(writer, device, "mdl", facts->model);
	add_text(writer, device, "sw", facts->version);
	cJSON *origin = cJSON_AddObjectToObject(root, "o");
	add_text(writer, origin, "name", "edgeprofd");
	add_text(writer, origin, "sw", facts->version);
	topic_plain(writer->topics, "summary", text);
	add_text(writer, root, "stat_t", text);
	topic_plain(writer->topics, "status", text);
	add_text(writer, root, "avty_t", text);
	writer->components = cJSON_AddObjectToObject(root, "cmps");
	writer->failed = writer->failed || !writer->components;
}

char *payload_discovery(const struct core *core, const struct topics *topics,
	const struct discovery_known *known, unsigned expire_s, size_t *left_out, size_t *length)
{
	struct writer writer = {
		.topics = topics, .expire_s = expire_s, .room = DISCOVERY_SIZE - DEVICE_FIXED};
	char *text = NULL;
	cJSON *root = cJSON_CreateObject();
	if (root) {
		add_device(&writer, root, core->facts);
	}
	if (root && !writer.failed) {
		add_components(&writer, core, known);
	}
	if (root && !writer.failed) {
		text = proto_json_print(root, length);
	}
	cJSON_Delete(root);
	*left_out = writer.left_out;
	if (text) {
		*length = strlen(text);
	}
	return text;
}
