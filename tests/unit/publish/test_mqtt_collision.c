/* SPDX-License-Identifier: Apache-2.0 */
/* Two clients with one id at a real mosquitto. */
#include "daemon/core/status/broker_status.h"
#include "daemon/publish/mqtt/link.h"
#include "daemon/publish/mqtt/mqtt.h"
#include "tests/unit/publish/fake_core.h"
#include "tests/unit/publish/mosquitto_broker.h"
#include "tests/unit/unit.h"

static struct core core;
static uv_loop_t loop;
static uv_async_t other_async;
static struct mqtt *mqtt;
static struct mqtt_thread *thread, *other_thread;
static struct mqtt_link *other;
static bool closed;

#define BACKOFF_MAX_NS UINT64_C(200000000)

static void on_done(void *ctx)
{
	(void)ctx;
	closed = true;
}

static void on_other(uv_async_t *async)
{
	(void)async;
}

#define UNTIL(condition)                      \
	do {                                  \
		uv_run(&loop, UV_RUN_NOWAIT); \
		poll(NULL, 0, 1);             \
	} while (!(condition))

static void setup(void)
{
	fake_core_init(&core);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	uv_async_init(&loop, &other_async, on_other);
	broker_prepare();
	broker_start();
	const struct mqtt_options options = {.enabled = true,
		.brokers = 1,
		.broker = {{.host = "127.0.0.1"}},
		.port = broker.port,
		.topic_prefix = "edgeprof",
		.summary_interval_ns = UINT64_C(3600000000000),
		.max_messages = 512,
		.max_bytes = 1 << 20,
		.backoff_min_ns = 20000000,
		.backoff_max_ns = BACKOFF_MAX_NS};
	ck_assert_int_eq(mqtt_thread_create(&thread), 0);
	ck_assert_int_eq(mqtt_open(&loop, &core, &options, thread, NULL, &mqtt), 0);
	UNTIL(core.broker->state == BROKER_CONNECTED);
}

static void open_other(void)
{
	ck_assert_int_eq(mqtt_thread_create(&other_thread), 0);
	const struct mqtt_options broker_options = {.brokers = 1,
		.broker = {{.host = "127.0.0.1"}},
		.port = broker.port,
		.backoff_min_ns = 20000000,
		.backoff_max_ns = BACKOFF_MAX_NS,
		.max_messages = 16,
		.max_bytes = 1 << 16};
	const struct mqtt_link_options options = {.mqtt = &broker_options,
		.client_id = "edgeprof-nano-7",
		.status_topic = "edgeprof/nano-7/status",
		.thread = other_thread};
	ck_assert_int_eq(mqtt_link_start(&options, &other_async, &other), 0);
}

static void close_other(void)
{
	mqtt_link_stop(other);
	UNTIL(mqtt_link_status(other).finished);
	mqtt_link_destroy(other);
	mqtt_thread_destroy(other_thread);
	other = NULL;
}

static void teardown(void)
{
	mqtt_close(mqtt, on_done, NULL);
	uv_close((uv_handle_t *)&other_async, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert(closed);
	mqtt_thread_destroy(thread);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	broker_remove();
	fake_core_finish(&core);
}

static unsigned told(const char *part)
{
	unsigned count = 0;
	const struct timeline_entry *entry;
	for (uint64_t serial = 0; (entry = timeline_from(core.timeline, serial));
		serial = entry->serial + 1) {
		count += strstr(entry->text, part) != NULL;
	}
	return count;
}

static uint64_t connects(void)
{
	return core.broker->connects + mqtt_link_status(other).connects;
}

SKIP_UNLESS(broker_binary(), "no mosquitto on this machine");
TEST_TIMEOUT(60);
FIXTURE(setup, teardown);

START_TEST(two_clients_with_one_id_are_told_take_turns_slowly_and_recover)
{
	open_other();
	UNTIL(mqtt_link_status(other).taken && strstr(core.broker->reason, "another client uses"));
	ck_assert(strstr(core.broker->reason, "edgeprof-nano-7"));
	ck_assert_uint_eq(told("another client uses the id"), 1);
	/* Suspected: each stays away for half to all of the longest pause; of 60 s: 30 to 60 s. */
	uint64_t before = connects(), begin_ns = uv_hrtime();
	UNTIL(uv_hrtime() - begin_ns > 20 * BACKOFF_MAX_NS);
	uint64_t turns = connects() - before;
	printf("%d connects in the time of 20 longest pauses\n", (int)turns);
	ck_assert_uint_ge(turns, 1);  /* the test fails when nobody pushes anybody */
	ck_assert_uint_le(turns, 60); /* at most 40 for each one that is pushed out; never both */
	ck_assert_uint_eq(told("another client uses the id"), 1);
	ck_assert_uint_le(told("connection lost"), 6);
	ck_assert(strstr(core.broker->reason, "another client uses"));

	close_other();
	UNTIL(core.broker->state == BROKER_CONNECTED && core.broker->reason[0] == '\0');
	ck_assert_uint_eq(told("no longer has another client with this id"), 1);
}
END_TEST

START_TEST(a_broker_that_restarts_often_is_no_other_client)
{
	for (int i = 0; i < 6; i++) {
		uint64_t before = core.broker->connects;
		broker_kill(SIGKILL);
		UNTIL(strstr(core.broker->reason, "refused"));
		broker_start();
		UNTIL(core.broker->connects > before && core.broker->state == BROKER_CONNECTED);
	}
	ck_assert_uint_eq(told("another client"), 0);
}
END_TEST
