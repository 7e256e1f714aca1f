/* Copies of the configuration's rules. Alerts point to their rule, so an unchanged rule keeps its
 * address across a reload. */
#include "daemon/core/alerts/rules.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

void alert_rules_free(struct alert_rule **rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(rules[i]);
	}
	free(rules);
}

int alert_rules_copy(const struct alert_rule *rules, size_t count, struct alert_rule ***ret)
{
	if (count > ALERT_RULES_MAX) {
		return -ENOSPC;
	}
	/* One more: no rules at all are not a failed allocation. */
	struct alert_rule **copy = mem_calloc(count + 1, sizeof(struct alert_rule *));
	if (!copy) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		copy[i] = mem_zalloc(sizeof(struct alert_rule));
		if (!copy[i]) {
			alert_rules_free(copy, count);
			return -ENOMEM;
		}
		*copy[i] = rules[i];
	}
	*ret = copy;
	return 0;
}

static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static bool same_rule(const struct alert_rule *a, const struct alert_rule *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->metric, b->metric) == 0 &&
	       a->kind == b->kind && same_number(a->threshold, b->threshold) &&
	       same_number(a->critical, b->critical) && same_number(a->clear, b->clear) &&
	       a->for_ns == b->for_ns && a->clear_for_ns == b->clear_for_ns &&
	       a->over_ns == b->over_ns && a->max_per_hour == b->max_per_hour &&
	       a->severity == b->severity && a->enabled == b->enabled &&
	       strcmp(a->message, b->message) == 0;
}

void alert_rules_keep(struct alert_rule **fresh, size_t count, struct alert_rule **old, size_t olds)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < olds; k++) {
			if (old[k] && same_rule(fresh[i], old[k])) {
				old[k]->configured = fresh[i]->configured;
				free(fresh[i]);
				fresh[i] = old[k];
				old[k] = NULL;
				break;
			}
		}
	}
}

void alert_unit(enum unit unit, bool per_minute, char ret[ALERT_UNIT])
{
	const char *name = unit_name(unit);
	snprintf(ret, ALERT_UNIT, "%s%s", name,
		!per_minute ? ""
		: name[0]   ? " per minute"
			    : "per minute");
}

const char *alert_phase_name(enum alert_phase phase)
{
	switch (phase) {
	case ALERT_OK:
		return "ok";
	case ALERT_PENDING:
		return "pending";
	case ALERT_FIRING:
		return "firing";
	}
	return "unknown";
}

const char *alert_severity_name(enum alert_severity severity)
{
	switch (severity) {
	case ALERT_INFO:
		return "info";
	case ALERT_WARNING:
		return "warning";
	case ALERT_CRITICAL:
		return "critical";
	}
	return "unknown";
}

const char *alert_kind_name(enum alert_kind kind)
{
	switch (kind) {
	case ALERT_ABOVE:
		return "above";
	case ALERT_BELOW:
		return "below";
	case ALERT_EQUALS:
		return "equals";
	case ALERT_ABSENT:
		return "absent";
	case ALERT_SLOPE:
		return "slope_above";
	}
	return "unknown";
}

int alert_severity_parse(const char *text, enum alert_severity *ret)
{
	for (int severity = ALERT_INFO; severity <= ALERT_CRITICAL; severity++) {
		if (strcmp(text, alert_severity_name((enum alert_severity)severity)) == 0) {
			*ret = (enum alert_severity)severity;
			return 0;
		}
	}
	return -EINVAL;
}
