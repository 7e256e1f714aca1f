/* SPDX-License-Identifier: Apache-2.0 */
/* When Home Assistant is told, against a real mosquitto: news in time, never more often than
 * agreed, and births once however many come. */
#include "daemon/core/status/broker_status.h"
#include "daemon/publish/mqtt/mqtt.h"
#include "daemon/util/sysops.h"
#include "tests/unit/publish/fake_core.h"
#include "tests/unit/publish/mosquitto_broker.h"
#include "tests/unit/unit.h"

#define CONFIG "homeassistant/device/edgeprof_nano-7/config"
#define PAUSE_NS UINT64_C(300000000)

static struct core core;
static struct source *source;
static uv_loop_t loop;
static struct mqtt *mqtt;
static struct mqtt_thread *thread;
static struct mqtt_options options;
static unsigned metrics_made;

static void setup(void)
{
	fake_core_init(&core);
	ck_assert_int_eq(sources_add(core.sources, "thermal", 1000000000, &source), 0);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	options = (struct mqtt_options){.enabled = true,
		.brokers = 1,
		.broker = {{.host = "127.0.0.1"}},
		.topic_prefix = "edgeprof",
		.summary_interval_ns = 20000000,
		.home_assistant = true,
		.discovery_pause_ns = PAUSE_NS,
		.birth_pause_ns = 50000000,
		.max_messages = 512,
		.max_bytes = 768 << 10,
		.backoff_min_ns = 20000000,
		.backoff_max_ns = 100000000};
	metrics_made = 0;
	broker_prepare();
	broker_start();
	subscriber_open("homeassistant/#", true);
	options.port = broker.port;
	ck_assert_int_eq(mqtt_thread_create(&thread), 0);
	ck_assert_int_eq(mqtt_open(&loop, &core, &options, thread, NULL, &mqtt), 0);
}

static void teardown(void)
{
	mqtt_close(mqtt, NULL, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	mqtt_thread_destroy(thread);
	subscriber_close();
	broker_remove();
	fake_core_finish(&core);
}

static void make_metric(void)
{
	char name[32];
	struct metric *metric;
	snprintf(name, sizeof(name), "fan/%u", metrics_made++);
	ck_assert_int_eq(metrics_add(core.metrics, source, name, UNIT_RPM, &metric), 0);
	metric_set(metric, 1000);
	metrics_commit(core.metrics, source, sysops()->now_ns());
}

static unsigned told(void)
{
	unsigned count = 0;
	for (size_t i = 0; i < subscriber.count; i++) {
		count += strcmp(subscriber.heard[i].topic, CONFIG) == 0;
	}
	return count;
}

static void turn(void)
{
	uv_run(&loop, UV_RUN_NOWAIT);
	subscriber_pump();
	poll(NULL, 0, 1);
}

SKIP_UNLESS(broker_binary(), "no mosquitto on this machine");
TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_TEST(news_are_collected)
{
	uint64_t begin_ns = sysops()->now_ns();
	unsigned before = metrics_made;
	while (told() < 4) {
		if (metrics_made < 400) {
			make_metric();
		}
		turn();
	}
	ck_assert_uint_ge(sysops()->now_ns() - begin_ns, 3 * PAUSE_NS);
	ck_assert_uint_gt(metrics_made, before + 4);
}
END_TEST

START_TEST(births_are_answered_together)
{
	make_metric();
	while (told() < 1) {
		turn();
	}
	for (unsigned round = 2; round < 5; round++) {
		for (int i = 0; i < 100; i++) {
			mosquitto_publish(subscriber.mosq, NULL, "homeassistant/status", 6,
				"online", 0, false);
		}
		while (told() < round) {
			turn();
		}
	}
	ck_assert_uint_lt(told(), 30); /* of 300 that may come in pieces */
}
END_TEST
