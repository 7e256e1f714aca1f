/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a QoS 1 message costs between the main loop and the broker's acknowledgement: through the
 * outbox and the thread, with and without the table that outlives the process, against a bare
 * libmosquitto loop with as many messages in flight. Run by bench_mqtt.py with a broker's port.
 */
#include <errno.h>
#include <mosquitto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/publish/mqtt/link.h"

enum { MESSAGES = 20000, QUEUE = 512, PAYLOAD = 300 };

static char payload[PAYLOAD];

static double seconds(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void print(const char *name, double wall_s, double cpu_s, unsigned delivered)
{
	printf("%-28s %6u delivered of %d, %8.0f messages/s, %6.2f us CPU per message\n", name,
		delivered, MESSAGES, delivered / wall_s, cpu_s / delivered * 1e6);
}

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
	double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	while (!r && delivered < MESSAGES) {
		for (; sent < MESSAGES && sent - delivered < OUTBOX_IN_FLIGHT; sent++) {
			mosquitto_publish(mosq, NULL, "bench/bare", PAYLOAD, payload, 1, false);
		}
		r = mosquitto_loop(mosq, 1000, 1);
	}
	print("bare libmosquitto loop", seconds(CLOCK_MONOTONIC) - wall,
		seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, delivered);
	mosquitto_destroy(mosq);
	return r;
}

static void on_async(uv_async_t *async)
{
	(void)async;
}

static int ours(int port, const char *name, bool keep)
{
	uv_loop_t loop;
	uv_async_t async;
	struct mqtt_link *link;
	void *memory = keep ? calloc(1, slots_size(OUTBOX_KEPT, OUTBOX_KEPT_SIZE)) : NULL;
	struct mqtt_thread *thread;
	if (mqtt_thread_create(&thread) < 0) {
		return -1;
	}
	const struct mqtt_options mqtt = {.host = "127.0.0.1",
		.port = port,
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
		.keep = keep,
		.topic = "bench/ours",
		.payload = payload,
		.payload_length = PAYLOAD};
	while (mqtt_link_status(link).state != LINK_CONNECTED) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	unsigned put = 0;
	while (outbox_count(outbox).delivered < MESSAGES) {
		size_t room = (keep ? OUTBOX_KEPT : QUEUE) - outbox_count(outbox).messages;
		for (; room > 0 && put < MESSAGES; room--, put++) {
			outbox_put(outbox, &entry);
		}
		mqtt_link_wake(link);
		uv_run(&loop, UV_RUN_ONCE);
	}
	print(name, seconds(CLOCK_MONOTONIC) - wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu,
		(unsigned)outbox_count(outbox).delivered);
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
	memset(payload, 'x', sizeof(payload));
	mosquitto_lib_init();
	int r = bare(port);
	r = r ? r : ours(port, "outbox and thread", false);
	r = r ? r : ours(port, "and the table that survives", true);
	mosquitto_lib_cleanup();
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
