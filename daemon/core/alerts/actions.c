/* Acknowledgements, silences and the test of the chain: what people do, told on the timeline. */
#include "daemon/core/alerts/actions.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/private.h"

enum { HOLDS_AT_ONCE = 64 };

static const uint64_t HOLD_COST_NS = UINT64_C(10000000000);

size_t alerts_remember_holds(
	struct alerts *alerts, void *memory, const uint8_t boot_id[16], uint64_t now_ns)
{
	size_t damaged = alert_holds_adopt(&alerts->holds, memory, boot_id, now_ns);
	free(alerts->own_holds);
	alerts->own_holds = NULL;
	alerts->due_ns = 0; /* the first tick finds out */
	return damaged;
}

const struct alert_holds *alerts_holds(const struct alerts *alerts)
{
	return &alerts->holds;
}

static void refresh(struct alerts *alerts, uint64_t now_ns)
{
	for (size_t i = 0; i < alerts->count; i++) {
		alert_hold_refresh(alerts, alerts->instance[i], now_ns);
	}
}

static void set_due(struct alerts *alerts)
{
	alerts->due_ns =
		alerts->test.alert.phase == ALERT_FIRING ? alerts->test.ends_ns : UINT64_MAX;
	for (size_t i = 0; i < ALERT_SILENCES; i++) {
		const struct alert_silence *silence = &alerts->holds.silence[i];
		if (silence->serial != 0 && silence->until_ns < alerts->due_ns) {
			alerts->due_ns = silence->until_ns;
		}
	}
}

static bool fires(const struct alert *alert, const char *rule, const char *instance)
{
	return alert->phase == ALERT_FIRING && strcmp(alert->rule->name, rule) == 0 &&
	       (!instance || strcmp(alert->instance, instance) == 0);
}

/* Whoever may change holds must not wash all else off the timeline: so many entries at once, then
 * one in HOLD_COST_NS. What was left out is counted in the next. */
static void tell_hold(struct alerts *alerts, const char *subject, uint64_t now_ns, const char *text)
{
	const uint64_t debt_ns = alerts->told_debt_ns > now_ns ? alerts->told_debt_ns : now_ns;
	char left_out[64] = "";
	if (debt_ns + HOLD_COST_NS > now_ns + HOLDS_AT_ONCE * HOLD_COST_NS) {
		alerts->untold_holds++;
		return;
	}
	alerts->told_debt_ns = debt_ns + HOLD_COST_NS;
	if (alerts->untold_holds > 0) {
		snprintf(left_out, sizeof(left_out), " (%" PRIu64 " before were not told)",
			alerts->untold_holds);
		alerts->untold_holds = 0;
	}
	timeline_add(alerts->timeline, now_ns, TIMELINE_HOLD, TIMELINE_INFO, subject, "%s%s", text,
		left_out);
}

static void tell_alert(struct alerts *alerts, const struct alert *alert, uint64_t now_ns,
	const char *what, uint32_t uid, const char *note)
{
	char subject[2 * PROTO_NAME_SIZE], text[256];
	alert_subject(alert, subject);
	snprintf(text, sizeof(text), "%s by uid %u%s%s", what, (unsigned)uid, note[0] ? ": " : "",
		note);
	tell_hold(alerts, subject, now_ns, text);
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
		int r = alert_holds_put_ack(&alerts->holds, &ack);
		if (r < 0) {
			return r;
		}
		tell_alert(alerts, alert, now_ns, "acknowledged", uid, note);
		alert_hold_refresh(alerts, alerts->instance[i], now_ns);
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
		struct alert_ack *ack =
			fires(alert, rule, instance)
				? alert_holds_ack(&alerts->holds, rule, alert->instance)
				: NULL;
		if (ack) {
			alert_holds_drop(&ack->serial);
			tell_alert(alerts, alert, now_ns, "acknowledgement removed", uid, "");
			alert_hold_refresh(alerts, alerts->instance[i], now_ns);
			removed++;
		}
	}
	return removed > 0 ? removed : -ENOENT;
}

static void tell_silence(struct alerts *alerts, const struct alert_silence *silence,
	uint64_t now_ns, const char *text)
{
	char subject[2 * PROTO_NAME_SIZE];
	bool all = silence->instance[0] == '\0';
	snprintf(subject, sizeof(subject), "%s%s%.*s", silence->rule, all ? "" : ":",
		PROTO_NAME_MAX, silence->instance);
	tell_hold(alerts, subject, now_ns, text);
}

int alerts_silence(struct alerts *alerts, const struct alert_silence *silence)
{
	int r = alert_holds_put_silence(&alerts->holds, silence);
	if (r < 0) {
		return r;
	}
	char text[256];
	double seconds = (double)(silence->until_ns - silence->from_ns) / 1e9;
	snprintf(text, sizeof(text), "silenced for %.0f s by uid %u%s%s", ceil(seconds),
		(unsigned)silence->uid, silence->note[0] ? ": " : "", silence->note);
	tell_silence(alerts, silence, silence->from_ns, text);
	refresh(alerts, silence->from_ns);
	set_due(alerts);
	return 0;
}

int alerts_unsilence(struct alerts *alerts, const char *rule, const char *instance, uint32_t uid,
	uint64_t now_ns)
{
	struct alert_silence *silence = alert_holds_silence(&alerts->holds, rule, instance);
	if (!silence) {
		return -ENOENT;
	}
	char text[64];
	snprintf(text, sizeof(text), "silence removed by uid %u", (unsigned)uid);
	tell_silence(alerts, silence, now_ns, text);
	alert_holds_drop(&silence->serial);
	refresh(alerts, now_ns);
	set_due(alerts);
	return 0;
}

/* The chain takes the test as it takes any alert; only holds do not apply. */
static void tell_test(struct alerts *alerts, enum alert_phase to, uint64_t now_ns)
{
	struct alert_test *test = &alerts->test;
	struct alert *alert = &test->alert;
	struct alert_transition transition = {.alert = alert,
		.from = alert->phase,
		.to = to,
		.from_severity = alert->severity,
		.t_ns = now_ns,
		.value = to == ALERT_FIRING,
		.test = test};
	alert->phase = to;
	alert->value = to == ALERT_FIRING;
	alert->since_ns = alert->t_ns = now_ns;
	alert->transitions++;
	if (to != ALERT_FIRING) {
		snprintf(alert->text, sizeof(alert->text), "the test is over");
	}
	test->serial++;
	test->journal = test->mqtt = ALERT_LINK_NONE;
	alerts_dispatch(alerts, alert, &transition);
}

int alerts_test(struct alerts *alerts, enum alert_severity severity, const char *text,
	uint64_t now_ns, uint64_t ends_ns)
{
	struct alert_test *test = &alerts->test;
	if (test->alert.phase == ALERT_FIRING) {
		return -EBUSY;
	}
	if (test->begun_ns != 0 && now_ns - test->begun_ns < ALERT_TEST_PAUSE_NS) {
		return -EAGAIN;
	}
	test->rule = (struct alert_rule){.name = ALERT_TEST_RULE,
		.metric = "self/alert_test",
		.critical = NAN,
		.clear = NAN,
		.severity = severity,
		.enabled = true};
	uint64_t transitions = test->alert.transitions;
	test->alert = (struct alert){.rule = &test->rule,
		.instance = "_",
		.metric = "self/alert_test",
		.severity = severity,
		.transitions = transitions,
		.test = true};
	snprintf(test->alert.text, sizeof(test->alert.text), "%s", text);
	test->begun_ns = now_ns;
	test->ends_ns = ends_ns;
	tell_test(alerts, ALERT_FIRING, now_ns);
	set_due(alerts);
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
	if (alerts->test.alert.phase == ALERT_FIRING && alerts->test.ends_ns <= now_ns) {
		tell_test(alerts, ALERT_OK, now_ns);
	}
	for (size_t i = 0; i < ALERT_SILENCES; i++) {
		struct alert_silence *silence = &alerts->holds.silence[i];
		if (silence->serial != 0 && silence->until_ns <= now_ns) {
			tell_silence(alerts, silence, now_ns, "the silence is over");
			alert_holds_drop(&silence->serial);
			ended = true;
		}
	}
	if (ended) {
		refresh(alerts, now_ns);
	}
	set_due(alerts);
}
