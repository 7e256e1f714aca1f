/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a QoS 1 message costs between the main loop and the broker's acknowledgement: through the
 * outbox, the table that outlives the process and the thread, against a bare libmosquitto loop with
 * as many messages in flight. Run by mqtt.py with a broker's port.
 */
#include <mosquitto.h>

#include "daemon/publish/mqtt/link.h"
#include "tests/bench/bench.h"

enum { MESSAGES_MAX = 20000, QUEUE = 512, PAYLOAD = 300 };

static char payload[PAYLOAD];
static unsigned messages = MESSAGES_MAX;

static void on_publish(struct mosquitto *mosq, void *userdata, int mid)
{
	(void)mosq;
	(void)mid;
	++*(unsigned *)userdata;
}

static int bare(int port)
{
	unsigned sent = 0, delivered = 0;
	struct mosquitto *mosq = mosquitto_new("bench-bare", true, &delivered);
	mosquitto_publish_callback_set(mosq, on_publish);
	mosquitto_int_option(mosq, MOSQ_OPT_TCP_NODELAY, 1);
	int r = mosquitto_connect(mosq, "127.0.0.1", port, 60);
	double cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	while (!r && delivered < messages) {
		for (; sent < messages && sent - delivered < OUTBOX_IN_FLIGHT; sent++) {
			mosquitto_publish(mosq, NULL, "bench/bare", PAYLOAD, payload, 1, false);
		}
		r = mosquitto_loop(mosq, 1000, 1);
	}
	result("mqtt.message.floor", (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e3 / delivered);
	mosquitto_destroy(mosq);
	return r;
}

static void on_async(uv_async_t *async)
{
	(void)async;
}

static int ours(int port)
{
	uv_loop_t loop;
	uv_async_t async;
	struct mqtt_link *link;
	void *memory = calloc(1, slots_size(OUTBOX_KEPT, OUTBOX_KEPT_SIZE));
	struct mqtt_thread *thread;
	if (mqtt_thread_create(&thread) < 0) {
		return -1;
	}
	const struct mqtt_options mqtt = {.brokers = 1,
		.broker = {{.host = "127.0.0.1", .port = port}},
		.backoff_min_ns = 1000000,
		.backoff_max_ns = 1000000,
		.max_messages = QUEUE,
		.max_bytes = 1 << 20};
	const struct mqtt_link_options options = {.mqtt = &mqtt,
		.client_id = "bench-ours",
		.status_topic = "bench/status",
		.kept = memory,
		.thread = thread};
	uv_loop_init(&loop);
	uv_async_init(&loop, &async, on_async);
	int r = mqtt_link_start(&options, &async, &link);
	if (r < 0) {
		return r;
	}
	struct outbox *outbox = mqtt_link_outbox(link);
	const struct outbox_entry entry = {.class = OUTBOX_ALERT,
		.qos = 1,
		.keep = true,
		.topic = "bench/ours",
		.payload = payload,
		.payload_length = PAYLOAD};
	while (mqtt_link_status(link).state != LINK_CONNECTED) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	double cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	unsigned put = 0;
	while (outbox_count(outbox).delivered < messages) {
		size_t room = OUTBOX_KEPT - outbox_count(outbox).messages;
		for (; room > 0 && put < messages; room--, put++) {
			outbox_put(outbox, &entry);
		}
		mqtt_link_wake(link);
		uv_run(&loop, UV_RUN_ONCE);
	}
	result("mqtt.message", (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e3 / (double)messages);
	mqtt_link_stop(link);
	while (!mqtt_link_status(link).finished) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	mqtt_link_destroy(link);
	mqtt_thread_destroy(thread);
	uv_close((uv_handle_t *)&async, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	free(memory);
	return 0;
}

int main(int argc, char **argv)
{
	int port = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
	messages = is_short(argc, argv) ? 200 : MESSAGES_MAX;
	memset(payload, 'x', sizeof(payload));
	mosquitto_lib_init();
	int r = bare(port);
	r = r ? r : ours(port);
	mosquitto_lib_cleanup();
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
