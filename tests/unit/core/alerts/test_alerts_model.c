/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine step by step against a model that knows nothing of it: it looks back over all
 * samples and asks since when, without a break, something has been so. */
#include "daemon/core/alerts/state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/core/alerts/alerts_fixture.h"
#include "tests/unit/unit.h"

enum { STEPS = 300, RULES = 2000 };

struct model {
	const struct alert_rule *rule;
	enum unit unit;
	size_t count;
	uint64_t t_ns[STEPS];
	double value[STEPS];
	size_t entered; /* samples from here on count for the present phase */
	bool firing, critical;
	enum alert_phase phase;
};

static bool beyond(const struct model *model, size_t at, double limit)
{
	double value = model->value[at];
	switch (model->rule->kind) {
	case ALERT_ABOVE:
		return value > limit || (model->unit == UNIT_CELSIUS && value == limit);
	case ALERT_BELOW:
		return value < limit || (model->unit == UNIT_CELSIUS && value == limit);
	case ALERT_EQUALS:
		return value == limit;
	case ALERT_SLOPE:
		return value > limit;
	case ALERT_ABSENT:
		break;
	}
	return isnan(value);
}

enum question { PAST, PAST_CRITICAL, FINE, FINE_FOR_CRITICAL };

static bool fine(const struct model *model, size_t at, double limit)
{
	const struct alert_rule *rule = model->rule;
	double value = model->value[at], room = rule->threshold - rule->clear;
	bool plain = isnan(rule->clear) || rule->kind == ALERT_EQUALS || rule->kind == ALERT_ABSENT;
	if (beyond(model, at, limit)) {
		return false;
	}
	if (plain || isnan(value)) {
		return true;
	}
	return rule->kind == ALERT_BELOW ? value >= limit - room : value <= limit - room;
}

static bool holds(const struct model *model, enum question question, size_t at)
{
	const struct alert_rule *rule = model->rule;
	switch (question) {
	case PAST:
		return beyond(model, at, rule->threshold) || holds(model, PAST_CRITICAL, at);
	case PAST_CRITICAL:
		return rule->kind != ALERT_ABSENT && !isnan(rule->critical) &&
		       beyond(model, at, rule->critical);
	case FINE:
		return fine(model, at, rule->threshold);
	case FINE_FOR_CRITICAL:
		break;
	}
	return fine(model, at, rule->critical);
}

static bool unknown(const struct model *model, size_t at)
{
	return isnan(model->value[at]) && model->rule->kind != ALERT_ABSENT &&
	       model->rule->kind != ALERT_SLOPE;
}

/* Whether the answer has been yes for so long, looking at no sample before `from`. */
static bool held(const struct model *model, enum question question, size_t from, uint64_t long_ns)
{
	const size_t last = model->count - 1;
	uint64_t since_ns = UINT64_MAX;
	for (size_t at = last + 1; at-- > from;) {
		if (unknown(model, at)) {
			continue;
		}
		if (!holds(model, question, at)) {
			break;
		}
		since_ns = model->t_ns[at];
	}
	return since_ns != UINT64_MAX && model->t_ns[last] - since_ns >= long_ns;
}

static void model_step(struct model *model, uint64_t t_ns, double value)
{
	const struct alert_rule *rule = model->rule;
	const size_t last = model->count++;
	model->t_ns[last] = t_ns;
	model->value[last] = value;
	if (unknown(model, last)) {
		return;
	}
	const bool critical = held(model, PAST_CRITICAL, 0, rule->for_ns);
	if (!model->firing) {
		model->firing = held(model, PAST, model->entered, rule->for_ns);
		model->phase = model->firing		  ? ALERT_FIRING
			       : holds(model, PAST, last) ? ALERT_PENDING
							  : ALERT_OK;
		model->critical = model->phase == ALERT_OK ? model->critical : critical;
		model->entered = model->firing ? last + 1 : model->entered;
		return;
	}
	if (held(model, FINE, model->entered, rule->clear_for_ns)) {
		model->firing = false;
		model->phase = ALERT_OK;
		model->entered = last + 1;
	} else if (rule->kind != ALERT_ABSENT && !isnan(rule->critical)) {
		/* what may clear soon waits for that */
		model->critical =
			critical ? true
			: !holds(model, FINE, last) && held(model, FINE_FOR_CRITICAL,
							       model->entered, rule->clear_for_ns)
				? false
				: model->critical;
	}
}

static struct alert_rule random_rule(uint64_t *seed, enum unit *unit)
{
	static const enum alert_kind kinds[] = {
		ALERT_ABOVE, ALERT_BELOW, ALERT_EQUALS, ALERT_ABSENT, ALERT_SLOPE};
	struct alert_rule rule = plain_rule("r", "a", kinds[(size_t)(5 * noise(seed))], 5);
	double sign = rule.kind == ALERT_BELOW ? -1 : 1;
	*unit = noise(seed) < 0.5 ? UNIT_CELSIUS : UNIT_NONE;
	rule.for_ns = (uint64_t)(6 * noise(seed)) * SECOND;
	rule.clear_for_ns = (uint64_t)(6 * noise(seed)) * SECOND;
	rule.severity = noise(seed) < 0.5 ? ALERT_INFO : ALERT_WARNING;
	if (noise(seed) < 0.6) {
		rule.clear = rule.threshold - sign * floor(3 * noise(seed));
	}
	if (noise(seed) < 0.6) {
		rule.critical = rule.threshold + sign * floor(3 * noise(seed));
	}
	return rule;
}

/* Whole numbers, so that limits are met exactly; sometimes it stays, sometimes it is not known. */
static double next_value(uint64_t *seed, double value)
{
	double dice = noise(seed);
	return dice < 0.08 ? NAN : dice < 0.5 && !isnan(value) ? value : floor(11 * noise(seed));
}

TEST_TIMEOUT(60);

START_TEST(every_step_is_the_models)
{
	static struct model model;
	uint64_t seed = 2026;
	size_t fired = 0, criticals = 0, cleared = 0;
	for (int i = 0; i < RULES; i++) {
		struct alert_state state;
		memset(&state, 0, sizeof(state));
		struct alert_rule rule = random_rule(&seed, &state.alert.unit);
		state.alert.rule = &rule;
		model = (struct model){.rule = &rule, .unit = state.alert.unit};
		uint64_t t_ns = 100 * SECOND;
		double value = 0;
		alert_state_init(&state, t_ns);
		for (int step = 0; step < STEPS; step++) {
			enum alert_phase before = model.phase;
			struct notified from;
			const bool was_critical = model.critical;
			t_ns += SECOND / 2 * (uint64_t)(4 * noise(&seed));
			value = next_value(&seed, value);
			bool told = alert_state_step(&state, value, t_ns, 0, &from);
			model_step(&model, t_ns, value);
			const struct alert *alert = &state.alert;
			ck_assert_msg(alert->phase == model.phase,
				"rule %d step %d: %s, the model says %s", i, step,
				alert_phase_name(alert->phase), alert_phase_name(model.phase));
			const bool changed = (before == ALERT_FIRING) != model.firing ||
					     (model.firing && was_critical != model.critical &&
						     before == ALERT_FIRING);
			ck_assert_int_eq(told, changed);
			if (model.firing) {
				ck_assert_int_eq(alert->severity,
					model.critical ? ALERT_CRITICAL : rule.severity);
				ck_assert_int_eq(
					isnan(alert->threshold), rule.kind == ALERT_ABSENT);
				ck_assert(rule.kind == ALERT_ABSENT ||
					  alert->threshold == (model.critical ? rule.critical
									      : rule.threshold));
			}
			fired += told && model.firing;
			criticals += told && model.critical && model.firing;
			cleared += told && !model.firing;
		}
	}
	/* the input was rich enough to say something */
	ck_assert_uint_ge(fired, RULES);
	ck_assert_uint_ge(criticals, RULES / 4);
	ck_assert_uint_ge(cleared, RULES);
}
END_TEST
