/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many devices in one process, each with the daemon's own publisher, thread and alerts: what a
 * fleet does to a broker. They share one set of metrics, of which temperature/max has an alert.
 * usage: mqtt-fleet PORT COUNT [FIRST INTERVAL_MS]: devices nFIRST and up (0), a summary each
 * interval (none). Lines from the standard input: "fill N": each device puts N messages, every
 * fourth of them an alert; "heat N": all have that temperature; "tell". Each is answered by one
 * line: how many are connected, how many messages wait, were acknowledged and dropped. Ends with
 * its input.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/metrics/sources.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/broker_status.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/status/facts.h"
#include "daemon/publish/mqtt/private.h"
#include "daemon/util/sysops.h"

enum { METRICS = 64, SAMPLE_MS = 1000 }; /* a board with a camera has about so many */

static struct device {
	struct core core;
	struct broker_status broker;
	struct mqtt_thread *thread;
	struct mqtt *mqtt;
	unsigned serial;
} * devices;
static unsigned count;
static uv_loop_t *loop;
static uv_timer_t sampling;
static uv_poll_t input;
static struct source *source;
static struct metric *metrics[METRICS];
static double temperature = 50;
static struct wallclock wall;
static struct counters counters;
static struct machine_facts facts = {.version = "0", .hostname = "n", .boot_id = "0f0e", .cpus = 4};
static struct core shared = {.wall = &wall, .counters = &counters, .facts = &facts};

static void sample(uv_timer_t *timer)
{
	(void)timer;
	uint64_t now_ns = sysops()->now_ns();
	for (unsigned i = 0; i < METRICS; i++) {
		metric_set(metrics[i], i == 0 ? temperature : temperature - i * 0.37);
	}
	metrics_commit(shared.metrics, source, now_ns);
	for (unsigned i = 0; i < count; i++) {
		alerts_commit(devices[i].core.alerts, source, now_ns);
	}
}

static int share(void)
{
	static const struct apps_options options = {.stage_window = 16, .frame_window = 16};
	char name[PROTO_PATH_SIZE] = "temperature/max";
	loop = uv_default_loop();
	wallclock_init(&wall);
	wallclock_note(&wall, sysops()->now_ns(), sysops()->wall_ns(), true);
	int r = sources_create(&shared.sources);
	r = r < 0 ? r
		  : sources_add(shared.sources, "thermal", SAMPLE_MS * UINT64_C(1000000), &source);
	r = r < 0 ? r : metrics_create(&shared.metrics);
	r = r < 0 ? r : timeline_create(64, &shared.timeline);
	r = r < 0 ? r
		  : apps_create(shared.metrics, source, shared.timeline, &options, &shared.apps);
	for (unsigned i = 0; r >= 0 && i < METRICS; i++) {
		r = metrics_add(shared.metrics, source, name, UNIT_CELSIUS, &metrics[i]);
		snprintf(name, sizeof(name), "temperature/zone%u", i + 1);
	}
	return r;
}

static int start(struct device *device, unsigned number, int port, unsigned interval_ms)
{
	const struct alert_rule rule = {.name = "temperature",
		.metric = "temperature/max",
		.threshold = 75,
		.critical = NAN,
		.clear = NAN,
		.severity = ALERT_WARNING,
		.enabled = true};
	struct mqtt_options options = {.enabled = true,
		.brokers = 1,
		.broker = {{.host = "127.0.0.1"}},
		.port = port,
		.topic_prefix = "edgeprof",
		.summary_interval_ns = interval_ms * UINT64_C(1000000),
		.max_messages = 512,
		.max_bytes = 768 << 10};
	snprintf(options.device_id, sizeof(options.device_id), "n%u", number);
	device->core = shared;
	device->core.broker = &device->broker;
	int r = alerts_create(shared.metrics, shared.timeline, &device->core.alerts);
	r = r < 0 ? r : alerts_set_rules(device->core.alerts, &rule, 1, sysops()->now_ns());
	r = r < 0 ? r : mqtt_thread_create(&device->thread);
	return r < 0 ? r
		     : mqtt_open(
			       loop, &device->core, &options, device->thread, NULL, &device->mqtt);
}

static void fill(struct device *device, unsigned number, unsigned messages)
{
	for (unsigned i = 0; i < messages; i++) {
		bool alert = i % 4 == 0;
		char topic[64], payload[16];
		snprintf(topic, sizeof(topic), "edgeprof/n%u/%s", number,
			alert ? "event/alert" : "summary");
		snprintf(payload, sizeof(payload), "%u", device->serial++);
		const struct outbox_entry entry = {.class = alert ? OUTBOX_ALERT : OUTBOX_SUMMARY,
			.qos = alert,
			.topic = topic,
			.payload = payload,
			.payload_length = strlen(payload)};
		outbox_put(device->mqtt->outbox, &entry);
	}
	mqtt_link_wake(device->mqtt->link);
}

static void tell(void)
{
	unsigned connected = 0;
	uint64_t connects = 0, delivered = 0, dropped = 0, dropped_alerts = 0;
	size_t waiting = 0;
	for (unsigned i = 0; i < count; i++) {
		struct mqtt_link_status status = mqtt_link_status(devices[i].mqtt->link);
		struct outbox_counts counts = outbox_count(devices[i].mqtt->outbox);
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

static void on_input(uv_poll_t *poll, int status, int events)
{
	(void)events;
	char line[64];
	if (status < 0 || !fgets(line, sizeof(line), stdin)) {
		uv_close((uv_handle_t *)poll, NULL);
		uv_close((uv_handle_t *)&sampling, NULL);
		for (unsigned i = 0; i < count; i++) {
			mqtt_close(devices[i].mqtt, NULL, NULL);
		}
		return;
	}
	unsigned number = line[0] ? (unsigned)strtoul(line + strcspn(line, " \n"), NULL, 10) : 0;
	if (strncmp(line, "heat ", 5) == 0) {
		temperature = number;
		sample(NULL);
	}
	for (unsigned i = 0; strncmp(line, "fill ", 5) == 0 && i < count; i++) {
		fill(&devices[i], i, number);
	}
	tell();
}

int main(int argc, char **argv)
{
	int port = argc >= 3 ? (int)strtol(argv[1], NULL, 10) : 0;
	unsigned wanted = argc >= 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	unsigned first = argc == 5 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	unsigned interval_ms = argc == 5 ? (unsigned)strtoul(argv[4], NULL, 10) : 86400000;
	if (port <= 0 || wanted == 0 || interval_ms == 0) {
		fprintf(stderr, "usage: %s PORT COUNT [FIRST INTERVAL_MS]\n", argv[0]);
		return 64;
	}
	devices = calloc(wanted, sizeof(*devices));
	if (!devices || share() < 0) {
		return 1;
	}
	for (; count < wanted; count++) {
		if (start(&devices[count], first + count, port, interval_ms) < 0) {
			fprintf(stderr, "%s: device %u cannot be started\n", argv[0],
				first + count);
			return 1;
		}
	}
	uv_timer_init(loop, &sampling);
	uv_timer_start(&sampling, sample, 0, SAMPLE_MS);
	uv_poll_init(loop, &input, 0);
	uv_poll_start(&input, UV_READABLE, on_input);
	uv_run(loop, UV_RUN_DEFAULT);
	for (unsigned i = 0; i < count; i++) {
		mqtt_thread_destroy(devices[i].thread);
		alerts_destroy(devices[i].core.alerts);
	}
	apps_destroy(shared.apps);
	timeline_destroy(shared.timeline);
	metrics_destroy(shared.metrics);
	sources_destroy(shared.sources);
	free(devices);
	return uv_loop_close(loop) == 0 ? 0 : 1;
}
