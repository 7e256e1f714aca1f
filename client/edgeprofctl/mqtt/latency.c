/* SPDX-License-Identifier: Apache-2.0 */
/* latency.c: measures how old messages are when they arrive. It subscribes, reads the capture
 * time of each payload (latency_stamp.c) and compares it with this machine's clock at the arrival;
 * with --publish it sends the messages itself, so that the round trip is measured on one clock. */
#include "client/edgeprofctl/verb.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/mqtt/mqtt.h"
#include "client/edgeprofctl/term/when.h"
#include "proto/percentile.h"

enum {
	LATENCY_MAX = 1000000,
	LATENCY_PLAUSIBLE_MS = 24 * 3600 * 1000 /* beyond a day either way it is another time */
};

/* What messages are counted as, in addition to the values of enum stamp. */
enum tally { NEGATIVE, IMPLAUSIBLE = STAMP_TOO_LARGE + 1, RETAINED, UNSYNCHRONISED, TALLIES };

static const char *const tallies[TALLIES] = {
	[NEGATIVE] = "negative",
	[STAMP_NONE] = "without_time",
	[STAMP_MALFORMED] = "malformed",
	[STAMP_TOO_LARGE] = "too_large",
	[IMPLAUSIBLE] = "implausible",
	[RETAINED] = "retained",
	[UNSYNCHRONISED] = "unsynchronised",
};

/* What makes the numbers doubtful comes first. */
static const char text_template[] =
	"[{?count}Latency of {count:0} message[{?count>=2}s], received - captured:\n  mean "
	"{mean_ms:3} ms, "
	"min {min_ms:3}, p50 {p50_ms:3}, p95 {p95_ms:3}, p99 {p99_ms:3}, max {max_ms:3} ms\n]"
	"[{?negative}  {negative:0} arrived before they were sent: the clocks of sender and "
	"receiver disagree\n]"
	"[{?unsynchronised}  {unsynchronised:0} were sent by a clock that is not synchronised\n]"
	"[{?without_time}  {without_time:0} hold no capture time\n]"
	"[{?malformed}  {malformed:0} are neither a JSON object nor a number\n]"
	"[{?too_large}  {too_large:0} are larger than 64 KiB\n]"
	"[{?implausible}  {implausible:0} hold a time more than a day off\n]"
	"[{?retained}  {retained:0} were retained by the broker, sent long ago: not measured\n]"
	"[{!one_clock}{!clock_synced}  this machine's clock is not synchronised: the numbers are "
	"right only if the sender uses the same clock\n]";

struct latency_report {
	double *values_ms; /* as many as were requested */
	size_t count;
	uint64_t messages; /* without the retained ones */
	uint64_t tally[TALLIES];
};

/* Counts a message in exactly one place. At most `wanted` of them. */
static void report_add(
	struct latency_report *report, enum stamp stamp, double latency_ms, bool unsynchronised)
{
	report->messages++;
	if (stamp != STAMP_FOUND) {
		report->tally[stamp]++;
		return;
	}
	if (fabs(latency_ms) > LATENCY_PLAUSIBLE_MS) {
		report->tally[IMPLAUSIBLE]++;
		return;
	}
	report->tally[NEGATIVE] += latency_ms < 0;
	report->tally[UNSYNCHRONISED] += unsynchronised;
	report->values_ms[report->count++] = latency_ms;
}

/* CTL_NO_DATA when nothing was measured; CTL_BAD_NEWS when a message came before it was sent. A
 * negative latency counts like the others: it shows how wrong the clocks are. */
static int report_print(struct latency_report *report, struct ctl *ctl)
{
	struct proto_summary summary;
	proto_summarize(report->values_ms, report->count, &summary);
	const struct {
		const char *name;
		double value;
	} numbers[] = {
		{"messages", (double)report->messages},
		{"count", (double)report->count},
		{"mean_ms", summary.mean},
		{"min_ms", summary.min},
		{"p50_ms", summary.p50},
		{"p95_ms", summary.p95},
		{"p99_ms", summary.p99},
		{"max_ms", summary.max},
	};
	cJSON *object = ctl_parameters("topic", ctl->words[0]);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		/* whole µs */
		json_add_number(object, numbers[i].name, round(numbers[i].value * 1e3) / 1e3);
	}
	for (size_t i = 0; i < TALLIES; i++) {
		json_add_number(object, tallies[i], (double)report->tally[i]);
	}
	cJSON_AddBoolToObject(object, "clock_synced", when_is_synchronised());
	cJSON_AddBoolToObject(object, "one_clock", ctl->options.publish);
	if (!ctl_json(ctl, object)) {
		listing_text(ctl, text_template, object);
	}
	cJSON_Delete(object);
	if (report->count == 0) {
		return ctl_fail(ctl, CTL_NO_DATA, "no message with a capture time came");
	}
	return report->tally[NEGATIVE] > 0 ? CTL_BAD_NEWS : CTL_FINE;
}

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

static void on_message(void *ctx, const char *bytes, size_t length, bool retained)
{
	struct probe *probe = ctx;
	int64_t now_us = when_now_us();
	if (retained) {
		probe->report.tally[RETAINED]++; /* sent long ago: nothing of a latency */
		return;
	}
	if (probe->report.messages < probe->wanted) {
		double us;
		bool unsynchronised;
		enum stamp stamp =
			latency_stamp(bytes, length, probe->ctl->options.key, &us, &unsynchronised);
		report_add(&probe->report, stamp, ((double)now_us - us) / 1e3, unsynchronised);
	}
}

/* Sends the next probe when it is due. */
static int publish(struct probe *probe)
{
	double now_ms = when_mono_ms();
	if (probe->sent >= probe->wanted || now_ms < probe->next_ms) {
		return CTL_FINE;
	}
	char payload[64];
	probe->sent++;
	probe->next_ms =
		now_ms +
		(probe->ctl->options.interval_ms > 0 ? probe->ctl->options.interval_ms : PROBE_MS);
	snprintf(payload, sizeof(payload), "{\"capture_us\":%" PRId64 "}", when_now_us());
	return mqtt_session_publish(&probe->session, payload);
}

/* Until enough came, a signal, or the connection's end; probes that are lost end it, too. */
static int measure(struct probe *probe)
{
	bool sending = probe->ctl->options.publish;
	int status = CTL_FINE;
	while (status == CTL_FINE && !ended && probe->report.messages < probe->wanted) {
		status = sending ? publish(probe) : CTL_FINE;
		if (sending && probe->sent == probe->wanted &&
			when_mono_ms() > probe->next_ms + LOST_MS) {
			break;
		}
		status = status == CTL_FINE ? mqtt_session_turn(&probe->session, TURN_MS) : status;
	}
	return status;
}

static int run(struct ctl *ctl)
{
	struct probe probe = {.ctl = ctl};
	struct sigaction action = {.sa_handler = on_signal};
	probe.wanted = ctl->options.count > 0 ? (uint64_t)ctl->options.count : DEFAULT_COUNT;
	if (probe.wanted > LATENCY_MAX) {
		return ctl_fail(ctl, CTL_USAGE, "--count is at most %d", LATENCY_MAX);
	}
	probe.session = (struct mqtt_session){
		.ctl = ctl, .topic = ctl->words[0], .on_message = on_message, .ctx = &probe};
	probe.report.values_ms = ctl_memory(probe.wanted, sizeof(double));
	int status = mqtt_session_open(&probe.session, ctl->options.publish);
	if (status == CTL_FINE) {
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		status = measure(&probe);
		/* print what arrived until then, even when the connection was lost */
		int printed = report_print(&probe.report, ctl);
		status = status == CTL_FINE ? printed : status;
	}
	mqtt_session_close(&probe.session);
	free(probe.report.values_ms);
	return status;
}

static int parse_port(const struct option_spec *spec, const char *text, void *value)
{
	int r = option_count(spec, text, value);
	return r == 0 && *(long *)value > 65535 ? -EINVAL : r;
}

static const struct option_spec options[] = {
	{"host", 0, "HOST", "the broker; default: that of the configuration", option_nonempty,
		offsetof(struct options, host)},
	{"port", 0, "N", "the broker's port; default: 1883, or 8883 with TLS", parse_port,
		offsetof(struct options, port)},
	{"config", 0, "FILE", "read the broker's settings from [mqtt] in FILE", option_nonempty,
		offsetof(struct options, config)},
	{"key", 0, "NAME", "the member of the payload that holds the capture time", option_nonempty,
		offsetof(struct options, key)},
	{"count", 0, "N", "stop after N messages; default: 100", option_count,
		offsetof(struct options, count)},
	{"publish", 0, NULL, "publish the messages to measure", option_flag,
		offsetof(struct options, publish)},
	{"interval", 0, "SPAN", "with --publish: time between messages; default: 100ms", option_ms,
		offsetof(struct options, interval_ms)},
	{.name = NULL},
};

const struct verb verb_mqtt_latency = {"mqtt-latency", "TOPIC",
	"Measure how old MQTT messages are when they arrive.",
	"mqtt-latency 'edgeprof/+/summary' --count 10", options, run};
