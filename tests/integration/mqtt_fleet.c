/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many publishers in one process, each with the daemon's own link and outbox and nothing else: what
 * a fleet does to a broker. usage: mqtt-fleet PORT COUNT. Lines from the standard input: "fill N":
 * each device puts N messages, every fourth of them an alert; "tell": one line with how many are
 * connected, how many messages wait, were acknowledged and dropped. Ends with its input.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/publish/mqtt/link.h"
#include "daemon/util/sysops.h"

enum { DEVICES = 64 };

static struct mqtt_link *links[DEVICES];
static unsigned serials[DEVICES];
static struct mqtt_thread *threads[DEVICES];
static uv_async_t async;

static void on_async(uv_async_t *handle)
{
	(void)handle;
}

static int start(unsigned device, int port)
{
	char client_id[32], status_topic[48];
	snprintf(client_id, sizeof(client_id), "edgeprof-n%u", device);
	snprintf(status_topic, sizeof(status_topic), "edgeprof/n%u/status", device);
	int r = mqtt_thread_create(&threads[device]);
	if (r < 0) {
		return r;
	}
	const struct mqtt_options mqtt = {.brokers = 1,
		.broker = {{.host = "127.0.0.1"}},
		.port = port,
		.backoff_min_ns = UINT64_C(1000000000),
		.backoff_max_ns = UINT64_C(60000000000),
		.max_messages = 512,
		.max_bytes = 768 << 10};
	const struct mqtt_link_options options = {.mqtt = &mqtt,
		.client_id = client_id,
		.status_topic = status_topic,
		.thread = threads[device]};
	return mqtt_link_start(&options, &async, &links[device]);
}

static void fill(unsigned device, unsigned messages)
{
	for (unsigned i = 0; i < messages; i++) {
		bool alert = i % 4 == 0;
		char topic[64], payload[300];
		snprintf(topic, sizeof(topic), "edgeprof/n%u/%s", device,
			alert ? "event/alert" : "summary");
		memset(payload, '.', sizeof(payload));
		snprintf(payload, sizeof(payload), "%u", serials[device]++);
		const struct outbox_entry entry = {.class = alert ? OUTBOX_ALERT : OUTBOX_SUMMARY,
			.qos = alert,
			.topic = topic,
			.payload = payload,
			.payload_length = strlen(payload)};
		outbox_put(mqtt_link_outbox(links[device]), &entry);
	}
	mqtt_link_wake(links[device]);
}

static void tell(unsigned count)
{
	unsigned connected = 0;
	uint64_t connects = 0, delivered = 0, dropped = 0, dropped_alerts = 0;
	size_t waiting = 0;
	for (unsigned i = 0; i < count; i++) {
		struct mqtt_link_status status = mqtt_link_status(links[i]);
		struct outbox_counts counts = outbox_count(mqtt_link_outbox(links[i]));
		connected += status.state == LINK_CONNECTED;
		connects += status.connects;
		waiting += counts.messages;
		delivered += counts.delivered;
		dropped += counts.dropped[OUTBOX_SUMMARY];
		dropped_alerts += counts.dropped[OUTBOX_ALERT];
	}
	printf("%u %" PRIu64 " %zu %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", connected, connects,
		waiting, delivered, dropped, dropped_alerts);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[64];
	int port = argc == 3 ? (int)strtol(argv[1], NULL, 10) : 0;
	unsigned count = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	if (port <= 0 || count == 0 || count > DEVICES) {
		fprintf(stderr, "usage: %s PORT COUNT\n", argv[0]);
		return 64;
	}
	uv_async_init(uv_default_loop(), &async, on_async);
	for (unsigned i = 0; i < count; i++) {
		if (start(i, port) < 0) {
			return 1;
		}
	}
	while (fgets(line, sizeof(line), stdin) != NULL) {
		unsigned messages =
			strncmp(line, "fill ", 5) == 0 ? (unsigned)strtoul(line + 5, NULL, 10) : 0;
		for (unsigned i = 0; messages > 0 && i < count; i++) {
			fill(i, messages);
		}
		tell(count);
	}
	for (unsigned i = 0; i < count; i++) {
		mqtt_link_stop(links[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		mqtt_thread_destroy(threads[i]);
		mqtt_link_destroy(links[i]);
	}
	uv_close((uv_handle_t *)&async, NULL);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	return uv_loop_close(uv_default_loop()) == 0 ? 0 : 1;
}
