/* SPDX-License-Identifier: Apache-2.0 */
/* actions.c: acknowledges, silences and tests alerts, and reports that on the timeline. */
#include "daemon/core/alerts/actions.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/private.h"
#include "daemon/util/ratelimit.h"
#include "proto/text.h"

size_t alerts_attach_overrides(
	struct alerts *alerts, void *memory, const uint8_t boot_id[16], uint64_t now_ns)
{
	size_t damaged = overrides_attach(&alerts->overrides, memory, boot_id, now_ns);
	free(alerts->own_overrides);
	alerts->own_overrides = NULL;
	alerts->due_ns = 0; /* the first tick finds out */
	return damaged;
}

const struct overrides *alerts_overrides(const struct alerts *alerts)
{
	return &alerts->overrides;
}

static void refresh(struct alerts *alerts, uint64_t now_ns)
{
	for (size_t i = 0; i < alerts->count; i++) {
		alert_refresh(alerts, alerts->instance[i], now_ns);
	}
}

static void set_due(struct alerts *alerts)
{
	const bool testing = alerts->test.state.alert.phase == ALERT_FIRING;
	alerts->due_ns = testing ? alerts->test.ends_ns : UINT64_MAX;
	for (size_t i = 0; i < alerts->overrides.silences; i++) {
		const struct alert_silence *silence = &alerts->overrides.silence[i];
		if (silence->serial != 0 && silence->until_ns < alerts->due_ns) {
			alerts->due_ns = silence->until_ns;
		}
	}
}

/* Puts what somebody did on the timeline. Whoever may do it must not wash all else off: entries
 * beyond the limit are counted in the next. */
__attribute__((format(printf, 5, 6))) static void report(struct alerts *alerts, const char *rule,
	const char *instance, uint64_t now_ns, const char *format, ...)
{
	static const struct ratelimit limit = {.interval_ns = UINT64_C(10000000000), .burst = 64};
	char subject[2 * PROTO_NAME_SIZE], buffer[TIMELINE_TEXT];
	struct text text = TEXT_IN(buffer);
	va_list ap;
	if (!ratelimit_take(&limit, &alerts->report_due_ns, now_ns)) {
		alerts->unreported++;
		return;
	}
	alert_subject(rule, instance, subject);
	va_start(ap, format);
	text_vadd(&text, format, ap);
	va_end(ap);
	if (alerts->unreported > 0) {
		text_add(&text, " (%" PRIu64 " earlier entries suppressed)", alerts->unreported);
		alerts->unreported = 0;
	}
	timeline_add(alerts->timeline, now_ns, TIMELINE_HOLD, TIMELINE_INFO, subject, "%s", buffer);
}

static void report_alert(struct alerts *alerts, const struct alert *alert, uint64_t now_ns,
	const char *what, uint32_t uid, const char *note)
{
	const bool single = strcmp(alert->instance, "_") == 0;
	report(alerts, alert->rule->name, single ? "" : alert->instance, now_ns, "%s by uid %u%s%s",
		what, (unsigned)uid, note[0] ? ": " : "", note);
}

static bool fires(const struct alert *alert, const char *rule, const char *instance)
{
	return alert->phase == ALERT_FIRING && strcmp(alert->rule->name, rule) == 0 &&
	       (!instance || strcmp(alert->instance, instance) == 0);
}

int alerts_ack(struct alerts *alerts, const char *rule, const char *instance, uint32_t uid,
	const char *note, uint64_t now_ns)
{
	int acked = 0;
	for (size_t i = 0; i < alerts->count; i++) {
		const struct alert *alert = &alerts->instance[i]->state.alert;
		if (!fires(alert, rule, instance)) {
			continue;
		}
		struct alert_ack ack = {.t_ns = now_ns, .uid = uid};
		snprintf(ack.rule, sizeof(ack.rule), "%s", rule);
		memcpy(ack.instance, alert->instance, sizeof(ack.instance));
		snprintf(ack.note, sizeof(ack.note), "%s", note);
		int r = overrides_put_ack(&alerts->overrides, &ack);
		if (r < 0) {
			return r;
		}
		report_alert(alerts, alert, now_ns, "acknowledged", uid, note);
		alert_refresh(alerts, alerts->instance[i], now_ns);
		acked++;
	}
	return acked > 0 ? acked : -ENOENT;
}

int alerts_unack(struct alerts *alerts, const char *rule, const char *instance, uint32_t uid,
	uint64_t now_ns)
{
	int removed = 0;
	for (size_t i = 0; i < alerts->count; i++) {
		const struct alert *alert = &alerts->instance[i]->state.alert;
		if (fires(alert, rule, instance) &&
			overrides_ack(&alerts->overrides, rule, alert->instance)) {
			alert_drop_ack(alerts, alert);
			report_alert(alerts, alert, now_ns, "acknowledgement removed", uid, "");
			alert_refresh(alerts, alerts->instance[i], now_ns);
			removed++;
		}
	}
	return removed > 0 ? removed : -ENOENT;
}

int alerts_silence(struct alerts *alerts, const struct alert_silence *silence)
{
	int r = overrides_put_silence(&alerts->overrides, silence);
	if (r < 0) {
		return r;
	}
	const uint64_t span_ns = silence->until_ns - silence->from_ns;
	report(alerts, silence->rule, silence->instance, silence->from_ns,
		"silenced for %s by uid %u%s%s", text_span((span_ns + 999999999) / 1000000000).text,
		(unsigned)silence->uid, silence->note[0] ? ": " : "", silence->note);
	refresh(alerts, silence->from_ns);
	set_due(alerts);
	return 0;
}

int alerts_unsilence(struct alerts *alerts, const char *rule, const char *instance, uint32_t uid,
	uint64_t now_ns)
{
	struct alert_silence *silence = overrides_silence(&alerts->overrides, rule, instance);
	if (!silence) {
		return -ENOENT;
	}
	report(alerts, rule, instance, now_ns, "silence removed by uid %u", (unsigned)uid);
	overrides_drop(&silence->serial);
	refresh(alerts, now_ns);
	set_due(alerts);
	return 0;
}

/* The test is evaluated like any alert, on this value. */
static void set_test(struct alerts *alerts, double value, uint64_t now_ns)
{
	struct alert_test *test = &alerts->test;
	test->serial++;
	test->journal = test->mqtt = ALERT_LINK_NONE;
	alert_evaluate(alerts, &test->state, NULL, value, now_ns, 0);
	set_due(alerts);
}

int alerts_test(struct alerts *alerts, enum alert_severity severity, const char *text,
	uint64_t now_ns, uint64_t ends_ns)
{
	struct alert_test *test = &alerts->test;
	struct alert *alert = &test->state.alert;
	const uint64_t transitions = alert->transitions;
	if (alert->phase == ALERT_FIRING) {
		return -EBUSY;
	}
	if (test->begun_ns != 0 && now_ns - test->begun_ns < ALERT_TEST_PAUSE_NS) {
		return -EAGAIN;
	}
	test->rule = (struct alert_rule){.name = ALERT_TEST_RULE,
		.metric = "self/alert_test",
		.kind = ALERT_ABOVE,
		.critical = NAN,
		.clear = NAN,
		.severity = severity,
		.enabled = true};
	snprintf(test->rule.message, sizeof(test->rule.message), "%s", text);
	*alert = (struct alert){
		.rule = &test->rule, .instance = "_", .metric = "self/alert_test", .test = true};
	alert_state_init(&test->state, now_ns);
	alert->transitions = transitions;
	test->begun_ns = now_ns;
	test->ends_ns = ends_ns;
	set_test(alerts, 1, now_ns);
	return 0;
}

const struct alert_test *alerts_last_test(const struct alerts *alerts)
{
	return &alerts->test;
}

void alerts_tick(struct alerts *alerts, uint64_t now_ns)
{
	bool ended = alerts->restored;
	alerts->restored = false;
	if (alerts->test.state.alert.phase == ALERT_FIRING && alerts->test.ends_ns <= now_ns) {
		set_test(alerts, 0, now_ns);
	}
	for (size_t i = 0; i < alerts->overrides.silences; i++) {
		struct alert_silence *silence = &alerts->overrides.silence[i];
		if (silence->serial != 0 && silence->until_ns <= now_ns) {
			report(alerts, silence->rule, silence->instance, now_ns,
				"the silence is over");
			overrides_drop(&silence->serial);
			ended = true;
		}
	}
	if (ended) {
		refresh(alerts, now_ns);
	}
	set_due(alerts);
}
