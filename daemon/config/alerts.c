/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c: describes the keys of [alert NAME] and the built-in rules, and checks rules that are
 * complete. config/edgeprofd.conf says why a built-in rule has its limits. */
#include "daemon/config/private.h"

#include "daemon/core/alerts/actions.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/util/parse.h"
#include "proto/text.h"

static const uint64_t SECOND_NS = 1000000000;

enum { DEFAULT_PER_HOUR = 12, DEFAULT_OVER_S = 600, LEAK_OVER_S = 1200 };

/* What every device should report; a section of the same name changes single keys. */
static const struct built_in {
	const char *name, *metric;
	enum alert_kind kind;
	double threshold, critical, clear;
	unsigned for_s, clear_for_s;
	enum alert_severity severity;
	const char *message;
} built_in[] = {
	{"temperature", "temperature/max", ALERT_ABOVE, 75, 82, 72, 0, 10, ALERT_WARNING, ""},
	{"temperature_limit", "temperature/max", ALERT_ABOVE, 85, NAN, 80, 0, 10, ALERT_CRITICAL,
		""},
	{"memory", "memory/used_percent", ALERT_ABOVE, 95, NAN, 90, 5, 10, ALERT_WARNING, ""},
	{"cpu", "cpu/utilization", ALERT_ABOVE, 90, NAN, 80, 30, 10, ALERT_WARNING, ""},
	{"throttled", "throttle/active", ALERT_EQUALS, 1, NAN, NAN, 5, 30, ALERT_WARNING,
		"hardware throttling active"},
	{"under_voltage", "throttle/under_voltage", ALERT_EQUALS, 1, NAN, NAN, 0, 60,
		ALERT_CRITICAL, "supply voltage too low"},
	{"power", "budget/power", ALERT_ABOVE, 100, NAN, 95, 30, 30, ALERT_WARNING,
		"{value} percent of what the power mode allows"},
	{"leak", "process/*/rss", ALERT_SLOPE, 1048576, NAN, 524288, 1500, 60, ALERT_WARNING, ""},
	{"process_memory", "process/*/over_limit", ALERT_ABOVE, 0, NAN, NAN, 5, 30, ALERT_WARNING,
		"{instance} exceeds its memory_limit"},
	{"stage_memory", "stage/*/*/growth_over_limit", ALERT_ABOVE, 0, NAN, NAN, 0, 60,
		ALERT_WARNING, ""},
	{"deadline_misses", "stage/*/*/miss_percent", ALERT_ABOVE, 5, NAN, 1, 10, 10, ALERT_WARNING,
		"{instance}: {value} percent of its executions missed the deadline"},
	{"frame_misses", "frame/*/miss_percent", ALERT_ABOVE, 5, NAN, 1, 10, 10, ALERT_WARNING,
		"{instance}: {value} percent of its frames missed the deadline"},
	{"fps_low", "frame/*/target_percent", ALERT_BELOW, 90, NAN, 95, 10, 10, ALERT_WARNING,
		"{instance}: {value} percent of its target frame rate"},
	{"app_hung", "app/*/hung", ALERT_EQUALS, 1, NAN, NAN, 0, 5, ALERT_CRITICAL,
		"{instance} hangs"},
	{"app_gone", "app/*/died", ALERT_EQUALS, 1, NAN, NAN, 0, 0, ALERT_CRITICAL,
		"{instance} died and has not been restarted"},
	{"source_stale", "collector/*/stale", ALERT_EQUALS, 1, NAN, NAN, 10, 10, ALERT_WARNING,
		"the source {instance} no longer delivers readings"},
	{"events_dropped", "self/events_dropped_rate", ALERT_ABOVE, 0, NAN, NAN, 0, 60,
		ALERT_WARNING,
		"events of apps are lost, {value} per second: statistics are incomplete"},
	{"history_degraded", "self/history_degraded", ALERT_EQUALS, 1, NAN, NAN, 0, 60,
		ALERT_WARNING, "the history is not kept as configured"},
	{"broker_away", "self/broker_away", ALERT_EQUALS, 1, NAN, NAN, 60, 10, ALERT_WARNING,
		"the MQTT broker is unreachable"},
};

/* A rule with only its name. */
static struct alert_rule plain_rule(const char *name)
{
	struct alert_rule rule = {.severity = ALERT_WARNING,
		.enabled = true,
		.critical = NAN,
		.clear = NAN,
		.over_ns = DEFAULT_OVER_S * SECOND_NS,
		.max_per_hour = DEFAULT_PER_HOUR};
	snprintf(rule.name, sizeof(rule.name), "%s", name);
	return rule;
}

void config_alert_defaults(struct config *config)
{
	for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++) {
		const struct built_in *from = &built_in[i];
		struct alert_rule *rule = &config->alert[config->alerts];
		*rule = plain_rule(from->name);
		rule->kind = from->kind;
		rule->threshold = from->threshold;
		rule->critical = from->critical;
		rule->clear = from->clear;
		rule->for_ns = from->for_s * SECOND_NS;
		rule->clear_for_ns = from->clear_for_s * SECOND_NS;
		rule->severity = from->severity;
		if (from->kind == ALERT_SLOPE) {
			rule->over_ns = LEAK_OVER_S * SECOND_NS;
		}
		snprintf(rule->metric, sizeof(rule->metric), "%s", from->metric);
		snprintf(rule->message, sizeof(rule->message), "%s", from->message);
		config->alert_has_kind[config->alerts++] = true;
	}
}

void *config_alert_find(struct config *config, const char *name, char *error, size_t size)
{
	const struct config_list list = {config->alert, sizeof(config->alert[0]),
		offsetof(struct alert_rule, name), ALERT_RULES_MAX, &config->alerts};
	bool added;
	if (!config_name_valid("alert", name, error, size)) {
		return NULL;
	}
	if (strcmp(name, ALERT_TEST_RULE) == 0) {
		snprintf(error, size,
			"the name \"%s\" is reserved for edgeprofctl test-alert; expected another "
			"one",
			name);
		return NULL;
	}
	struct alert_rule *rule = config_list_find(&list, name, &added);
	if (!rule) {
		snprintf(error, size, "too many [alert …] sections");
	} else if (added) {
		*rule = plain_rule(name);
	}
	return rule;
}

static int set_metric_glob(void *instance, const char *key, const char *value)
{
	(void)key;
	struct alert_rule *rule = instance;
	if (strlen(value) >= sizeof(rule->metric) || proto_glob_check(value) < 0) {
		return -EINVAL;
	}
	memcpy(rule->metric, value, strlen(value) + 1);
	return 0;
}

static int set_severity(void *instance, const char *key, const char *value)
{
	(void)key;
	return alert_severity_parse(value, &((struct alert_rule *)instance)->severity);
}

/* above, below, equals, slope_above: the kind and its threshold in one; absent: the kind alone. */
static int set_kind(void *instance, const char *key, const char *value)
{
	struct alert_rule *rule = instance;
	if (strcmp(key, "absent") == 0) {
		bool on;
		if (parse_bool(value, &on) < 0 || !on) {
			return -EINVAL;
		}
		rule->kind = ALERT_ABSENT;
		return 0;
	}
	int r = alert_kind_parse(key, &rule->kind);
	return r < 0 ? r : parse_double(value, &rule->threshold);
}

#define KIND_KEY(key, what)                                                             \
	{                                                                               \
		.name = key, .type = CONFIG_SPECIAL, .expected = what, .set = set_kind, \
		.kind = true                                                            \
	}
#define PLAIN_KEY(key, what, member)                                                     \
	{                                                                                \
		.name = key, .type = what, .offset = offsetof(struct alert_rule, member) \
	}
#define RANGE_KEY(key, what, member, least, most)                                         \
	{                                                                                 \
		.name = key, .type = what, .offset = offsetof(struct alert_rule, member), \
		.min = least, .max = most                                                 \
	}

const struct config_key config_alert_keys[] = {
	CONFIG_SPECIAL_KEY(
		"metric", "a metric name or glob such as temperature/*", set_metric_glob),
	KIND_KEY("above", "a number"),
	KIND_KEY("below", "a number"),
	KIND_KEY("equals", "a number"),
	KIND_KEY("absent", "yes (leave the key out otherwise)"),
	KIND_KEY("slope_above", "a number: by how much a minute"),
	RANGE_KEY("over", CONFIG_DURATION, over_ns, 10000000000u, 86400000000000u),
	PLAIN_KEY("critical", CONFIG_NUMBER, critical),
	PLAIN_KEY("clear", CONFIG_NUMBER, clear),
	RANGE_KEY("for", CONFIG_DURATION, for_ns, 0, 86400000000000u),
	RANGE_KEY("clear_for", CONFIG_DURATION, clear_for_ns, 0, 86400000000000u),
	CONFIG_SPECIAL_KEY("severity", "info, warning or critical", set_severity),
	RANGE_KEY("max_per_hour", CONFIG_COUNT, max_per_hour, 0, 3600),
	{.name = "message",
		.type = CONFIG_TEXT,
		.offset = offsetof(struct alert_rule, message),
		.size = ALERT_TEXT},
	PLAIN_KEY("enabled", CONFIG_BOOL, enabled),
};

static int check(const struct alert_rule *rule, bool has_kind, struct text *error)
{
	const double sign = rule->kind == ALERT_BELOW ? -1 : 1;
	if (rule->metric[0] == '\0') {
		text_add(error, "[alert %s] has no metric; expected metric = GLOB", rule->name);
	} else if (!has_kind) {
		text_add(error,
			"[alert %s] has no limit; expected above, below, equals, absent or "
			"slope_above",
			rule->name);
	} else if (!isnan(rule->clear) && sign * rule->clear > sign * rule->threshold) {
		text_add(error, "[alert %s] clear = %g lies beyond the limit %g", rule->name,
			rule->clear, rule->threshold);
	} else if (!isnan(rule->critical) && sign * rule->critical < sign * rule->threshold) {
		text_add(error, "[alert %s] critical = %g lies before the limit %g", rule->name,
			rule->critical, rule->threshold);
	} else {
		return 0;
	}
	return -EINVAL;
}

int config_alerts_check(const struct config *config, char *error, size_t size)
{
	int r = 0;
	struct text text = {.data = error, .size = size};
	for (size_t i = 0; i < config->alerts && r == 0; i++) {
		if (config->alert[i].enabled) {
			r = check(&config->alert[i], config->alert_has_kind[i], &text);
		}
	}
	return r;
}
