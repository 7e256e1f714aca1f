/*
 * mqtt-latency: how old messages are when they arrive. Subscribes, takes the capture time out of
 * each payload (latency_stamp.h) and compares it with this machine's clock at the arrival; with
 * --publish it sends the messages itself, so that the way there and back is measured on one clock.
 */
#include "client/edgeprofctl/verbs.h"

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
	int64_t now_us = wall_us();
	if (retained) {
		probe->report.retained++; /* sent long ago: nothing of a latency */
		return;
	}
	if (probe->report.messages < probe->wanted) {
		double us;
		bool unsynchronised;
		enum stamp stamp =
			latency_stamp(bytes, length, probe->ctl->options.key, &us, &unsynchronised);
		latency_report_add(
			&probe->report, stamp, ((double)now_us - us) / 1e3, unsynchronised);
	}
}

/* Sends the next probe when it is due. */
static int publish(struct probe *probe)
{
	const struct options *options = &probe->ctl->options;
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
	bool sending = probe->ctl->options.given & OPTION_PUBLISH;
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

int verb_mqtt_latency(struct ctl *ctl)
{
	struct probe probe = {.ctl = ctl};
	const struct options *options = &ctl->options;
	struct sigaction action = {.sa_handler = on_signal};
	probe.wanted = options->count > 0 ? (uint64_t)options->count : DEFAULT_COUNT;
	if (probe.wanted > LATENCY_MAX) {
		return ctl_fail(ctl, CTL_USAGE, "--count is at most %d", LATENCY_MAX);
	}
	int status = mqtt_session_open(&probe.session, ctl, ctl->words[0],
		options->given & OPTION_PUBLISH, on_message, &probe);
	if (status == CTL_FINE && latency_report_init(&probe.report, probe.wanted) < 0) {
		status = ctl_fail(ctl, CTL_OUTPUT, "no memory");
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
