/*
 * mqtt-latency: how old messages are when they arrive. Subscribes, takes the capture time out of
 * each payload (latency_stamp.h) and compares it with this machine's clock at the arrival; with
 * --publish it sends the messages itself, so that the way there and back is measured on one clock.
 */
#include "client/edgeprofctl/verb.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/edgeprofctl/mqtt/latency_report.h"
#include "client/edgeprofctl/mqtt/latency_stamp.h"
#include "client/edgeprofctl/mqtt/session.h"

enum { DEFAULT_COUNT = 100, PROBE_MS = 100, TURN_MS = 20, LOST_MS = 2000 };

struct probe {
	struct ctl *ctl;
	struct mqtt_session session;
	struct latency_report report;
	uint64_t wanted, sent;
	double next_ms;
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static double clock_ms(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int64_t wall_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void on_message(void *ctx, const char *bytes, size_t length, bool retained)
{
	struct probe *probe = ctx;
	const struct latency_options *options = probe->ctl->verb_options;
	int64_t now_us = wall_us();
	if (retained) {
		probe->report.retained++; /* sent long ago: nothing of a latency */
		return;
	}
	if (probe->report.messages < probe->wanted) {
		double us;
		bool unsynchronised;
		enum stamp stamp = latency_stamp(bytes, length, options->key, &us, &unsynchronised);
		latency_report_add(
			&probe->report, stamp, ((double)now_us - us) / 1e3, unsynchronised);
	}
}

/* Sends the next probe when it is due. */
static int publish(struct probe *probe)
{
	const struct latency_options *options = probe->ctl->verb_options;
	double now_ms = clock_ms(CLOCK_MONOTONIC);
	if (probe->sent >= probe->wanted || now_ms < probe->next_ms) {
		return CTL_FINE;
	}
	char payload[64];
	probe->sent++;
	probe->next_ms = now_ms + (options->interval_ms > 0 ? options->interval_ms : PROBE_MS);
	snprintf(payload, sizeof(payload), "{\"capture_us\":%" PRId64 "}", wall_us());
	return mqtt_session_publish(&probe->session, payload);
}

/* Until enough came, a signal, or the connection's end; probes that are lost end it, too. */
static int measure(struct probe *probe)
{
	const struct latency_options *options = probe->ctl->verb_options;
	bool sending = options->publish;
	int status = CTL_FINE;
	while (status == CTL_FINE && !ended && probe->report.messages < probe->wanted) {
		status = sending ? publish(probe) : CTL_FINE;
		if (sending && probe->sent == probe->wanted &&
			clock_ms(CLOCK_MONOTONIC) > probe->next_ms + LOST_MS) {
			break;
		}
		status = status == CTL_FINE ? mqtt_session_turn(&probe->session, TURN_MS) : status;
	}
	return status;
}

static int run(struct ctl *ctl)
{
	struct probe probe = {.ctl = ctl};
	const struct latency_options *options = ctl->verb_options;
	struct sigaction action = {.sa_handler = on_signal};
	probe.wanted = options->count > 0 ? (uint64_t)options->count : DEFAULT_COUNT;
	if (probe.wanted > LATENCY_MAX) {
		return ctl_fail(ctl, CTL_USAGE, "--count is at most %d", LATENCY_MAX);
	}
	int status = mqtt_session_open(
		&probe.session, ctl, ctl->words[0], options->publish, on_message, &probe);
	if (status == CTL_FINE && latency_report_init(&probe.report, probe.wanted) < 0) {
		status = ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	}
	if (status == CTL_FINE) {
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		status = measure(&probe);
		/* what came until then is told even when the connection was lost */
		int told = latency_report_print(&probe.report, ctl);
		status = status == CTL_FINE ? told : status;
	}
	mqtt_session_close(&probe.session);
	latency_report_finish(&probe.report);
	return status;
}

static int parse_port(const struct option_spec *spec, const char *text, void *value)
{
	int r = option_count(spec, text, value);
	return r == 0 && *(long *)value > 65535 ? -EINVAL : r;
}

static const struct option_spec options[] = {
	{"host", 0, "HOST", "the broker; default: that of the configuration", option_nonempty,
		offsetof(struct latency_options, host)},
	{"port", 0, "N", "the broker's port; default: 1883, or 8883 with TLS", parse_port,
		offsetof(struct latency_options, port)},
	{"config", 0, "FILE", "read the broker's settings from [mqtt] in FILE", option_nonempty,
		offsetof(struct latency_options, config)},
	{"key", 0, "NAME", "the member of the payload that holds the capture time", option_nonempty,
		offsetof(struct latency_options, key)},
	{"count", 0, "N", "stop after N messages; default: 100", option_count,
		offsetof(struct latency_options, count)},
	{"publish", 0, NULL, "publish the messages to measure", option_flag,
		offsetof(struct latency_options, publish)},
	{"interval", 0, "SPAN", "with --publish: time between messages; default: 100ms", option_ms,
		offsetof(struct latency_options, interval_ms)},
	{.name = NULL},
};

const struct verb verb_mqtt_latency = {"mqtt-latency", "TOPIC",
	"Measure how old MQTT messages are when they arrive.",
	"mqtt-latency 'edgeprof/+/summary' --count 10", options, sizeof(struct latency_options),
	run};
