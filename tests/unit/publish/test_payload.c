/* SPDX-License-Identifier: Apache-2.0 */
/* What is said over MQTT, field by field. */
#include "daemon/publish/payload/payload.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "daemon/publish/payload/stage_pass.h"
#include "proto/varlink.h"
#include "tests/unit/publish/fake_core.h"
#include "tests/unit/unit.h"

static struct core core;
static struct source *source;

static void setup(void)
{
	fake_core_init(&core);
	ck_assert_int_eq(sources_add(core.sources, "thermal", 1000000000, &source), 0);
}

static void teardown(void)
{
	fake_core_finish(&core);
}

/* Parses, frees the text, checks what every payload has: flat, and a time. */
static cJSON *flat(char *text, size_t length, const char *schema)
{
	cJSON *object = NULL;
	const char *reason = "";
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(length, strlen(text));
	ck_assert_msg(proto_json_parse_reply(text, length, &object, &reason) == 0, "%s: %s", text,
		reason);
	free(text);
	for (const cJSON *item = object->child; item; item = item->next) {
		ck_assert_msg(cJSON_IsNumber(item) || cJSON_IsString(item) || cJSON_IsBool(item),
			"%s", item->string);
	}
	ck_assert_str_eq(
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "schema")), schema);
	ck_assert_ptr_nonnull(cJSON_GetObjectItemCaseSensitive(object, "ts"));
	ck_assert_ptr_nonnull(cJSON_GetObjectItemCaseSensitive(object, "ts_ms"));
	return object;
}

static double number(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	ck_assert_msg(cJSON_IsNumber(item), "%s", key);
	return item->valuedouble;
}

static const char *text_of(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	ck_assert_msg(cJSON_IsString(item), "%s", key);
	return item->valuestring;
}

static bool has(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key) != NULL;
}

static struct metric *metric(const char *name, enum unit unit)
{
	struct metric *metric;
	ck_assert_int_eq(metrics_add(core.metrics, source, name, unit, &metric), 0);
	return metric;
}

FIXTURE(setup, teardown);

START_TEST(keys_carry_their_unit_once)
{
	static const struct {
		const char *name;
		enum unit unit;
		const char *key;
	} rows[] = {
		{"temperature/max", UNIT_CELSIUS, "temperature_max_celsius"},
		{"cpu/utilization", UNIT_PERCENT, "cpu_utilization_percent"},
		{"memory/used_percent", UNIT_PERCENT, "memory_used_percent"},
		{"frame/cam/frame_time_p95_ms", UNIT_MILLISECONDS, "frame_cam_frame_time_p95_ms"},
		{"frame/cam/fps", UNIT_FPS, "frame_cam_fps"},
		{"cpu/load1", UNIT_NONE, "cpu_load1"},
		{"throttle/active", UNIT_BOOL, "throttle_active"},
		{"throttle/oc1_rate", UNIT_PER_SECOND, "throttle_oc1_rate_per_second"},
		{"temperature/PMIC-Die.2", UNIT_CELSIUS, "temperature_PMIC_Die_2_celsius"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char key[PAYLOAD_KEY_SIZE];
		payload_key(rows[i].name, rows[i].unit, key);
		ck_assert_str_eq(key, rows[i].key);
	}
}
END_TEST

START_TEST(a_summary_leaves_out_what_is_unknown)
{
	metric_set(metric("temperature/max", UNIT_CELSIUS), 61.23456789);
	metric_set_null(metric("temperature/cpu", UNIT_CELSIUS), "broken");
	metric_set(metric("stage/cam/infer/rate", UNIT_PER_SECOND), 30);
	metric_set(metric("collector/thermal/errors", UNIT_COUNT), 1);
	metric_set(metric("a/b", UNIT_NONE), 1);
	metric_set(metric("a_b", UNIT_NONE), 2);
	metrics_commit(core.metrics, source, 5);
	size_t length;
	char *text = payload_summary(&core, 1500000000, &length);
	cJSON *object = flat(text, length, "edgeprof.summary/1");
	ck_assert_double_eq_tol(number(object, "temperature_max_celsius"), 61.234568, 1e-9);
	ck_assert(!has(object, "temperature_cpu_celsius"));
	ck_assert(!has(object, "stage_cam_infer_rate_per_second"));
	ck_assert(!has(object, "collector_thermal_errors_count"));
	ck_assert(!has(object, "clock"));
	ck_assert_double_eq(number(object, "a_b"), 1);
	ck_assert_double_eq(number(object, "left_out_count"), 1);
	ck_assert_str_eq(text_of(object, "ts"), "2024-02-29T12:00:01.750Z");
	ck_assert_double_eq(number(object, "ts_ms"), 1709208001750.0);
	cJSON_Delete(object);
}
END_TEST

START_TEST(a_summary_is_bounded)
{
	for (int i = 0; i < 2000; i++) {
		char name[64];
		snprintf(name, sizeof(name), "process/p%d/cpu", i);
		metric_set(metric(name, UNIT_PERCENT), i);
	}
	metrics_commit(core.metrics, source, 5);
	size_t length;
	char *text = payload_summary(&core, 6, &length);
	cJSON *object = flat(text, length, "edgeprof.summary/1");
	ck_assert_int_le(cJSON_GetArraySize(object), PAYLOAD_SUMMARY_KEYS + 8);
	ck_assert_double_eq(number(object, "left_out_count"), 2000 - PAYLOAD_SUMMARY_KEYS);
	cJSON_Delete(object);
}
END_TEST

START_TEST(an_unset_clock_is_said)
{
	wallclock_init(&fake_wall);
	wallclock_note(&fake_wall, 0, 1000000000, false);
	size_t length;
	char *text = payload_info(&core, &length);
	cJSON *object = flat(text, length, "edgeprof.info/1");
	ck_assert_str_eq(text_of(object, "clock"), "unsynchronised");
	ck_assert_str_eq(text_of(object, "version"), "0.1.0");
	ck_assert_str_eq(text_of(object, "boot_id"), "0f0e");
	ck_assert(!has(object, "arch"));
	cJSON_Delete(object);
}
END_TEST

static cJSON *event;
static void on_transition(void *ctx, const struct alert_transition *transition)
{
	(void)ctx;
	size_t length;
	char *text = payload_alert_event(&core, transition, &length);
	event = flat(text, length, "edgeprof.alert/1");
}

START_TEST(an_alert_has_the_fields_of_the_contract_and_its_own_time)
{
	ck_assert_int_eq(alerts_observe(NULL, on_transition, &core), 0);
	fake_transition("cpu:0", ALERT_FIRING, "too \"hot\"\n", 2000000000);
	ck_assert_str_eq(text_of(event, "rule"), "hot");
	ck_assert_str_eq(text_of(event, "instance"), "cpu:0");
	ck_assert_str_eq(text_of(event, "metric"), "temperature/cpu:0");
	ck_assert_str_eq(text_of(event, "state"), "firing");
	ck_assert_str_eq(text_of(event, "from"), "ok");
	ck_assert_str_eq(text_of(event, "severity"), "warning");
	ck_assert_str_eq(text_of(event, "text"), "too \"hot\"\n");
	ck_assert_double_eq(number(event, "value"), 81.5);
	ck_assert_double_eq(number(event, "threshold"), 80);
	ck_assert_double_eq(number(event, "since_us"), 1709208002250000.0);
	ck_assert_double_eq(number(event, "ts_ms"), 1709208002250.0);
	cJSON_Delete(event);
	struct alert *alert = fake_alert("cpu:0");
	alert->value = NAN;
	size_t length;
	char *text = payload_alert(&core, alert, &length);
	cJSON *state = flat(text, length, "edgeprof.alert/1");
	ck_assert(!has(state, "value"));
	ck_assert(!has(state, "from"));
	ck_assert_double_eq(number(state, "ts_ms"), 1709208002250.0);
	cJSON_Delete(state);
	alerts_unobserve(NULL, &core);
}
END_TEST

START_TEST(an_event_that_is_sent_later_says_when_it_happened_and_when_it_was_sent)
{
	struct alert *alert = fake_alert("cpu");
	alert->phase = ALERT_FIRING;
	alert->value = 99;
	alert->since_ns = 2000000000;
	struct alert_transition transition = {.alert = alert,
		.to = ALERT_FIRING,
		.t_ns = 2000000000,
		.sent_ns = 406000000000,
		.value = 85};
	on_transition(NULL, &transition);
	ck_assert_double_eq(number(event, "ts_ms"), 1709208002250.0);
	ck_assert_double_eq(number(event, "sent_ts_ms"), 1709208406250.0);
	ck_assert_str_eq(text_of(event, "sent_ts"), "2024-02-29T12:06:46.250Z");
	ck_assert_double_eq(number(event, "value"), 85); /* of then */
	cJSON_Delete(event);
	transition.sent_ns = 0;
	on_transition(NULL, &transition);
	ck_assert(!has(event, "sent_ts") && !has(event, "sent_ts_ms"));
	cJSON_Delete(event);
}
END_TEST

START_TEST(a_pass_publishes_each_stage_with_events_once)
{
	struct app app = {.name = "cam", .stages = 2};
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(stage_create(i ? "infer" : "idle", 16, &app.stage[i]), 0);
		app.stage[i]->serial = (uint32_t)i + 1;
	}
	fake.app = &app;
	for (uint64_t i = 1; i <= 4; i++) {
		struct stage_run run = stage_run_of(i, i * 1000000, PROTO_NO_FRAME);
		stage_event(app.stage[1], &run);
	}
	struct stage_pass pass;
	stage_pass_init(&pass, &core, 0);
	for (int round = 0; round < 2; round++) {
		stage_pass_begin(&pass, 2000000000u * (unsigned)(round + 1));
		int told = 0;
		while (pass.running) {
			const struct app *of;
			const struct stage *stage;
			size_t length;
			char *text = stage_pass_next(&pass, &of, &stage, &length);
			if (!text) {
				continue;
			}
			told++;
			cJSON *object = flat(text, length, "edgeprof.stage/1");
			ck_assert_str_eq(text_of(object, "app"), "cam");
			ck_assert_str_eq(text_of(object, "stage"), "infer");
			ck_assert_double_eq(number(object, "events_count"), 4);
			ck_assert_double_eq(number(object, "rate_per_second"), 2);
			ck_assert_double_eq(number(object, "mean_ms"), 2.5);
			ck_assert_double_eq(number(object, "max_ms"), 4);
			ck_assert_double_eq_tol(number(object, "std_ms"), 1.118034, 1e-6);
			ck_assert_double_eq_tol(number(object, "std_sample_ms"), 1.290994, 1e-6);
			ck_assert(!has(object, "deadline_ms"));
			cJSON_Delete(object);
		}
		ck_assert_int_eq(told, round == 0 ? 1 : 0);
	}
	stage_pass_finish(&pass);
	stage_destroy(app.stage[0]);
	stage_destroy(app.stage[1]);
}
END_TEST
