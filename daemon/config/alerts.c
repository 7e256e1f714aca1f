/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c: describes the keys of [alert NAME] and the built-in rules, and checks rules that are
 * complete. config/edgeprofd.conf says why a built-in rule has its limits. */
#include "daemon/config/private.h"

#include "daemon/core/alerts/actions.h"

#include <errno.h>
#include <math.h>

#include "daemon/util/parse.h"

#define SECOND UINT64_C(1000000000)

enum { DEFAULT_PER_HOUR = 12, DEFAULT_OVER_S = 600, LEAK_OVER_S = 1200 };

/* What every device should report; a section of the same name changes single keys. */
static const struct built_in {
	const char *name, *metric;
	uint8_t kind;
	float threshold, critical, clear;
	uint16_t for_s, clear_for_s;
	uint8_t severity;
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

void config_alert_defaults(struct config *config)
{
	config->alerts = sizeof(built_in) / sizeof(built_in[0]);
	for (size_t i = 0; i < config->alerts; i++) {
		const struct built_in *from = &built_in[i];
		struct alert_rule *rule = &config->alert[i];
		const bool slope = from->kind == ALERT_SLOPE;
		*rule = (struct alert_rule){.kind = from->kind,
			.threshold = (double)from->threshold,
			.critical = (double)from->critical,
			.clear = (double)from->clear,
			.for_ns = from->for_s * SECOND,
			.clear_for_ns = from->clear_for_s * SECOND,
			.over_ns = (slope ? LEAK_OVER_S : DEFAULT_OVER_S) * SECOND,
			.max_per_hour = DEFAULT_PER_HOUR,
			.severity = from->severity,
			.enabled = true};
		snprintf(rule->name, sizeof(rule->name), "%s", from->name);
		snprintf(rule->metric, sizeof(rule->metric), "%s", from->metric);
		snprintf(rule->message, sizeof(rule->message), "%s", from->message);
		config->alert_has_kind[i] = true;
	}
}

void *config_alert_find(struct config *config, const char *name, struct text *error)
{
	const struct config_list list = {config->alert, sizeof(config->alert[0]),
		offsetof(struct alert_rule, name), ALERT_RULES_MAX, &config->alerts};
	bool added;
	if (strcmp(name, ALERT_TEST_RULE) == 0) {
		config_refuse(error,
			"the name \"%s\" is reserved for edgeprofctl test-alert; expected another "
			"one",
			name);
		return NULL;
	}
	struct alert_rule *rule = config_list_find(&list, "alert", name, &added, error);
	if (rule && added) {
		*rule = (struct alert_rule){.enabled = true,
			.severity = ALERT_WARNING,
			.critical = NAN,
			.clear = NAN,
			.over_ns = DEFAULT_OVER_S * SECOND,
			.max_per_hour = DEFAULT_PER_HOUR};
		memcpy(rule->name, name, strlen(name) + 1);
	}
	return rule;
}

static int set_metric_glob(void *instance, const char *value)
{
	struct alert_rule *rule = instance;
	if (strlen(value) >= sizeof(rule->metric) || proto_glob_check(value) < 0) {
		return -EINVAL;
	}
	memcpy(rule->metric, value, strlen(value) + 1);
	return 0;
}

static int set_severity(void *instance, const char *value)
{
	return alert_severity_parse(value, &((struct alert_rule *)instance)->severity);
}

/* The kind that has no threshold. */
static int set_absent(void *instance, const char *value)
{
	bool on;
	(void)instance;
	return parse_bool(value, &on) == 0 && on ? 0 : -EINVAL;
}

/* The name is the kind, the value its threshold. */
#define KIND_KEY(key, what)                                                    \
	{                                                                      \
		.name = key, .type = CONFIG_NUMBER, .expected = what,          \
		.offset = offsetof(struct alert_rule, threshold), .kind = true \
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
	{.name = "absent",
		.type = CONFIG_SPECIAL,
		.expected = "yes (leave the key out otherwise)",
		.set = set_absent,
		.kind = true},
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
		return config_refuse(
			error, "[alert %s] has no metric; expected metric = GLOB", rule->name);
	}
	if (!has_kind) {
		return config_refuse(error,
			"[alert %s] has no limit; expected above, below, equals, absent or "
			"slope_above",
			rule->name);
	}
	if (!isnan(rule->clear) && sign * rule->clear > sign * rule->threshold) {
		return config_refuse(error, "[alert %s] clear = %g lies beyond the limit %g",
			rule->name, rule->clear, rule->threshold);
	}
	if (!isnan(rule->critical) && sign * rule->critical < sign * rule->threshold) {
		return config_refuse(error, "[alert %s] critical = %g lies before the limit %g",
			rule->name, rule->critical, rule->threshold);
	}
	return 0;
}

int config_alerts_check(const struct config *config, struct text *error)
{
	int r = 0;
	for (size_t i = 0; i < config->alerts && r == 0; i++) {
		if (config->alert[i].enabled) {
			r = check(&config->alert[i], config->alert_has_kind[i], error);
		}
	}
	return r;
}
