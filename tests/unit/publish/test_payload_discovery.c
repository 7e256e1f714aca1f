/* SPDX-License-Identifier: Apache-2.0 */
/* What Home Assistant is told of: classes and units, bounds, and that nothing is told twice. */
#include "daemon/publish/payload/discovery.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "tests/unit/publish/fake_core.h"
#include "tests/unit/unit.h"

static struct core core;
static struct source *source;
static struct topics topics;
static struct name_set known;
static size_t left_out;

static void setup(void)
{
	fake_core_init(&core);
	ck_assert_int_eq(sources_add(core.sources, "thermal", 1000000000, &source), 0);
	topics_init(&topics, "edgeprof", "edge-1", "host");
	known = (struct name_set){.count = 0};
}

static void teardown(void)
{
	fake_core_finish(&core);
}

static struct metric *metric(const char *name, enum unit unit)
{
	struct metric *metric;
	ck_assert_int_eq(metrics_add(core.metrics, source, name, unit, &metric), 0);
	return metric;
}

static cJSON *components(cJSON **root)
{
	size_t length = 0;
	char *text = payload_discovery(&core, &topics, &known, 30, &left_out, &length);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(length, strlen(text));
	ck_assert_uint_le(length, DISCOVERY_SIZE);
	*root = cJSON_ParseWithLength(text, length);
	ck_assert_ptr_nonnull(*root);
	free(text);
	return cJSON_GetObjectItemCaseSensitive(*root, "cmps");
}

static const char *text_of(const cJSON *components, const char *id, const char *key)
{
	const cJSON *object = cJSON_GetObjectItemCaseSensitive(components, id);
	ck_assert_msg(object != NULL, "%s", id);
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	return item ? cJSON_GetStringValue(item) : "";
}

FIXTURE(setup, teardown);

START_TEST(units_are_those_of_the_device_class)
{
	static const struct {
		const char *name;
		enum unit unit;
		const char *id, *platform, *class, *as;
	} rows[] = {
		{"temperature/max", UNIT_CELSIUS, "temperature_max_celsius", "sensor",
			"temperature", "°C"},
		/* a difference: to convert it to Fahrenheit as a temperature would be wrong */
		{"headroom/cpu", UNIT_CELSIUS, "headroom_cpu_celsius", "sensor", "", "°C"},
		{"power/total", UNIT_MILLIWATTS, "power_total_milliwatts", "sensor", "power", "W"},
		{"energy/total", UNIT_MILLIJOULES, "energy_total_millijoules", "sensor", "energy",
			"Wh"},
		{"throttle/active", UNIT_BOOL, "throttle_active", "binary_sensor", "problem", ""},
		{"memory/used", UNIT_BYTES, "memory_used_bytes", "sensor", "data_size", "B"},
		{"fan/pwm", UNIT_RPM, "fan_pwm_rpm", "sensor", "", "rpm"},
		{"frame/cam/fps", UNIT_FPS, "frame_cam_fps", "sensor", "", "fps"},
		{"frame/cam/misses", UNIT_COUNT, "frame_cam_misses_count", "sensor", "", ""},
		{"counter/cam/hits", UNIT_COUNT, "counter_cam_hits_count", "sensor", "", ""},
	};
	size_t count = sizeof(rows) / sizeof(rows[0]);
	for (size_t i = 0; i < count; i++) {
		metric_set(metric(rows[i].name, rows[i].unit), 1);
	}
	metrics_commit(core.metrics, source, 5);
	ck_assert(discovery_note(&known, &core));
	cJSON *root, *all = components(&root);
	for (size_t i = 0; i < count; i++) {
		ck_assert_str_eq(text_of(all, rows[i].id, "p"), rows[i].platform);
		ck_assert_str_eq(text_of(all, rows[i].id, "dev_cla"), rows[i].class);
		ck_assert_str_eq(text_of(all, rows[i].id, "unit_of_meas"), rows[i].as);
	}
	ck_assert_str_eq(text_of(all, "power_total_milliwatts", "val_tpl"),
		"{{ value_json['power_total_milliwatts'] / 1000 if 'power_total_milliwatts' in "
		"value_json else 'None' }}");
	ck_assert_str_eq(text_of(all, "energy_total_millijoules", "stat_cla"), "total_increasing");
	/* a sum that goes on, not one of an interval */
	ck_assert_str_eq(text_of(all, "counter_cam_hits_count", "stat_cla"), "total_increasing");
	ck_assert_str_eq(text_of(all, "frame_cam_misses_count", "stat_cla"), "measurement");
	ck_assert_str_eq(text_of(all, "throttle_active", "pl_on"), "1");
	/* two of its own: how many alerts fire, and whether one does */
	ck_assert_int_eq(cJSON_GetArraySize(all), (int)count + 2);
	cJSON_Delete(root);
}
END_TEST

START_TEST(what_is_for_no_dashboard_is_left_alone)
{
	metric_set(metric("cpu/0/utilization", UNIT_PERCENT), 1);
	metric_set(metric("self/wakeups", UNIT_COUNT), 1);
	metric_set(metric("collector/thermal/errors", UNIT_COUNT), 1);
	metric_set(metric("process/app/threads", UNIT_COUNT), 1);
	metric_set_null(metric("temperature/cpu", UNIT_CELSIUS), "broken");
	metrics_commit(core.metrics, source, 5);
	ck_assert(!discovery_note(&known, &core));
	cJSON *root, *all = components(&root);
	ck_assert_int_eq(cJSON_GetArraySize(all), 2);
	cJSON_Delete(root);
}
END_TEST

START_TEST(a_sensor_that_fell_silent_stays_and_is_no_news)
{
	struct metric *temperature = metric("temperature/cpu", UNIT_CELSIUS);
	metric_set(temperature, 50);
	metrics_commit(core.metrics, source, 5);
	ck_assert(discovery_note(&known, &core));
	metric_set_null(temperature, "broken");
	metrics_commit(core.metrics, source, 6);
	ck_assert(!discovery_note(&known, &core));
	metric_set(temperature, 51);
	metrics_commit(core.metrics, source, 7);
	ck_assert(!discovery_note(&known, &core));
	cJSON *root, *all = components(&root);
	ck_assert_str_eq(text_of(all, "temperature_cpu_celsius", "p"), "sensor");
	cJSON_Delete(root);
}
END_TEST

START_TEST(one_key_is_announced_once)
{
	metric_set(metric("gauge/a/b_c", UNIT_NONE), 1);
	metric_set(metric("gauge/a_b/c", UNIT_NONE), 2);
	metric_set(metric("gauge/a.b/c", UNIT_NONE), 3);
	metrics_commit(core.metrics, source, 5);
	ck_assert(discovery_note(&known, &core));
	cJSON *root, *all = components(&root);
	ck_assert_int_eq(cJSON_GetArraySize(all), 3);
	ck_assert_str_eq(text_of(all, "gauge_a_b_c", "name"), "gauge a b c");
	cJSON_Delete(root);
}
END_TEST

START_TEST(the_payload_is_bounded)
{
	char longest[PROTO_NAME_SIZE];
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (int i = 0; i < 400; i++) {
		char name[PROTO_PATH_SIZE];
		snprintf(name, sizeof(name), "gauge/%.48s/%.44s%04d", longest, longest, i);
		metric_set(metric(name, UNIT_MILLIJOULES), i);
	}
	metrics_commit(core.metrics, source, 5);
	ck_assert(discovery_note(&known, &core));
	cJSON *root, *all = components(&root); /* and within 64 KiB */
	int told = cJSON_GetArraySize(all);
	ck_assert_int_gt(told, 60);
	ck_assert_uint_eq(left_out, (size_t)(400 + 2 - told));
	cJSON_Delete(root);
}
END_TEST

START_TEST(names_that_come_and_go_never_fill_it_for_good)
{
	uint64_t t_ns = 5;
	for (int i = 0; i < 3 * NAME_SET_SIZE; i++) {
		char name[64];
		snprintf(name, sizeof(name), "gauge/app/%d", i);
		struct metric *gone = metric(name, UNIT_NONE);
		metric_set(gone, 1);
		metrics_commit(core.metrics, source, t_ns++);
		ck_assert_msg(discovery_note(&known, &core), "%d", i);
		ck_assert_uint_lt(known.count, NAME_SET_SIZE);
		metrics_retire(core.metrics, gone);
	}
}
END_TEST
