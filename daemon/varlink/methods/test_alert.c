/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_alert.c: answers TestAlert. A test goes through the same path as any alert, and the reply
 * says what became of it at each receiver. The broker acknowledges later, so the call waits for
 * that, for CONFIRM_NS at most; with `more` a second reply says the same of the end of the test.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/actions.h"
#include "daemon/core/status/broker_status.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/methods.h"

enum { SEVERITY, TEXT, SECONDS };
enum { POLL_MS = 20, TEXT_MAX = 200 };

#define SECONDS_DEFAULT 5.0
#define CONFIRM_NS UINT64_C(3000000000)

struct test_stream {
	struct api_stream base;
	bool more;
	uint64_t serial; /* of the transition that the call waits for */
	uint64_t since_ns;
};

static void on_poll(uv_timer_t *timer)
{
	connection_wake(timer->data);
}

/* Whether the broker acknowledged the transition with this serial. */
static bool is_confirmed(const struct core *core, const struct alert_test *test, uint64_t serial)
{
	return test->mqtt != ALERT_LINK_WAITS || core->broker->delivered_tag == serial;
}

static const char *mqtt_result(const struct core *core, const struct alert_test *test)
{
	const struct broker_status *broker = core->broker;
	if (broker->state == BROKER_OFF) {
		return broker->reason[0] != '\0' ? "unusable" : "off";
	}
	if (test->mqtt == ALERT_LINK_FAILED) {
		return "dropped";
	}
	if (test->mqtt == ALERT_LINK_WAITS && broker->delivered_tag == test->serial) {
		return "delivered";
	}
	return broker->state == BROKER_CONNECTED ? "unconfirmed" : broker_state_name(broker->state);
}

static const char *const journal_results[] = {
	[ALERT_LINK_NONE] = "off",
	[ALERT_LINK_WAITS] = "off",
	[ALERT_LINK_DONE] = "yes",
	[ALERT_LINK_FAILED] = "refused",
	[ALERT_LINK_FILTERED] = "filtered",
};

static void put_reply(const struct test_stream *stream, struct json *out)
{
	struct api *api = stream->base.connection->api;
	const struct core *core = api->core;
	const struct alert_test *test = alerts_last_test(core->alerts);
	json_string(out, "state", alert_phase_name(test->state.alert.phase));
	json_unsigned(out, "timeline_serial", timeline_last_serial(core->timeline));
	json_string(out, "journal", journal_results[test->journal]);
	json_string(out, "mqtt", mqtt_result(core, test));
	json_string_opt(out, "mqtt_reason", core->broker->reason);
	json_unsigned(out, "subscribers", api->subscriptions);
	json_number(
		out, "elapsed_ms", (double)((sysops()->now_ns() - stream->since_ns) / 1000) / 1000);
}

static enum api_result poll_again(struct test_stream *stream)
{
	uv_timer_start(&stream->base.connection->tick, on_poll, POLL_MS, 0);
	return API_WAIT;
}

static enum api_result test_next(struct api_stream *base, struct json *out)
{
	struct test_stream *stream = (struct test_stream *)base;
	const struct core *core = base->connection->api->core;
	const struct alert_test *test = alerts_last_test(core->alerts);
	uint64_t now_ns = sysops()->now_ns();
	if (test->serial < stream->serial) {
		return poll_again(stream); /* it has not ended yet */
	}
	if (stream->since_ns == 0) {
		stream->since_ns = test->state.alert.t_ns;
	}
	/* a broker that is away is not waited for: it gets what is queued when it is back */
	bool away = core->broker->state == BROKER_AWAY;
	if (test->serial == stream->serial && !away && !is_confirmed(core, test, stream->serial) &&
		now_ns < stream->since_ns + CONFIRM_NS) {
		return poll_again(stream);
	}
	put_reply(stream, out);
	if (!stream->more || test->state.alert.phase != ALERT_FIRING) {
		return API_LAST;
	}
	stream->serial = test->serial + 1;
	stream->since_ns = 0;
	return API_CHUNK;
}

static void test_destroy(struct api_stream *base)
{
	uv_timer_stop(&base->connection->tick);
	free(base);
}

static const struct api_stream_ops test_ops = {.next = test_next, .destroy = test_destroy};

static enum api_result start(struct api_call *call)
{
	struct test_stream *stream = stream_create(call, &test_ops, sizeof(*stream), 0);
	if (!stream) {
		return API_LAST;
	}
	stream->more = call->more;
	stream->serial = alerts_last_test(call->core->alerts)->serial;
	stream->since_ns = call->now_ns;
	connection_set_stream(call->connection, &stream->base);
	return API_YIELD;
}

enum api_result method_test_alert(struct api_call *call)
{
	const struct value *value = call->value;
	enum alert_severity severity = ALERT_WARNING;
	double seconds = value[SECONDS].present ? value[SECONDS].number : SECONDS_DEFAULT;
	const char *text = value[TEXT].present ? value[TEXT].string : "a test: nothing is wrong";
	if (value[SEVERITY].present &&
		alert_severity_parse(value[SEVERITY].string, &severity) < 0) {
		return reply_invalid_parameter(call->out, "severity");
	}
	if (text[0] == '\0' || strlen(text) > TEXT_MAX || !overrides_is_line(text)) {
		return reply_invalid_parameter(call->out, "text");
	}
	int r = alerts_test(call->core->alerts, severity, text, call->now_ns,
		call->now_ns + (uint64_t)(seconds * 1e9));
	if (r < 0) {
		return r == -EBUSY ? reply_limit(call->out, "tests at a time", 1)
				   : reply_limit(call->out, "tests in 10 s", 1);
	}
	return start(call);
}
