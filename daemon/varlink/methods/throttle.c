/* SPDX-License-Identifier: Apache-2.0 */
/*
 * throttle.c: answers GetThrottle: what the hardware reports and, independent of it, the
 * temperature against its critical limit. Unknown is null; `unknown` has the reason.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

/* The limit when no rule "temperature" is set (acceptance.md, G2.13). */
#define CRITICAL_CELSIUS 82.0

static const struct {
	const char *field;
	enum throttle_flag flag;
} fields[] = {
	{"currently_under_voltage", THROTTLE_UNDER_VOLTAGE},
	{"currently_freq_capped", THROTTLE_FREQ_CAPPED},
	{"currently_throttled", THROTTLE_THROTTLED},
	{"currently_soft_temp_limit", THROTTLE_SOFT_TEMP_LIMIT},
	{"under_voltage_occurred", THROTTLE_UNDER_VOLTAGE_OCCURRED},
	{"freq_capped_occurred", THROTTLE_FREQ_CAPPED_OCCURRED},
	{"throttled_occurred", THROTTLE_THROTTLED_OCCURRED},
	{"soft_temp_limit_occurred", THROTTLE_SOFT_TEMP_LIMIT_OCCURRED},
	{"over_current", THROTTLE_OVER_CURRENT},
	{"is_throttling", THROTTLE_ACTIVE},
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static void bool_or_null(struct json *out, const char *name, enum throttle_value value)
{
	if (value == THROTTLE_UNKNOWN) {
		json_number(out, name, NAN);
	} else {
		json_bool(out, name, value == THROTTLE_YES);
	}
}

static void temperature_fields(struct json *out, const struct core *core, uint64_t now_ns)
{
	double critical = CRITICAL_CELSIUS;
	const struct alert *alert;
	for (size_t i = 0; (alert = alerts_at(core->alerts, i)); i++) {
		if (strcmp(alert->rule->name, "temperature") == 0 &&
			!isnan(alert->rule->critical)) {
			critical = alert->rule->critical;
		}
	}
	double celsius = row_current(core, "temperature/max", now_ns);
	enum throttle_value over = isnan(celsius)	 ? THROTTLE_UNKNOWN
				   : celsius >= critical ? THROTTLE_YES
							 : THROTTLE_NO;
	bool_or_null(out, "over_critical", over);
	json_number(out, "temperature_celsius", celsius);
	json_number(out, "critical_celsius", critical);
}

static void lists(struct json *out, const struct throttle_status *status)
{
	json_open(out, "unknown", '[');
	for (size_t i = 0; i < FIELDS; i++) {
		const struct throttle_state *state = &status->flag[fields[i].flag];
		if (state->value == THROTTLE_UNKNOWN) {
			json_open(out, NULL, '{');
			json_string(out, "field", fields[i].field);
			json_string(out, "reason", state->reason ? state->reason : "not sampled");
			json_close(out, '}');
		}
	}
	json_close(out, ']');
	json_open(out, "tried", '[');
	for (size_t i = 0; i < status->tried_count; i++) {
		json_open(out, NULL, '{');
		json_string(out, "source", status->tried[i].source);
		json_string(out, "result", status->tried[i].result);
		json_close(out, '}');
	}
	json_close(out, ']');
}

enum api_result method_get_throttle(struct api_call *call)
{
	struct json *out = call->out;
	const struct throttle_status *status = call->core->throttle;
	char raw[16];
	if (status->has_raw) {
		snprintf(raw, sizeof(raw), "0x%x", (unsigned)status->raw);
		json_string(out, "raw", raw);
	} else {
		json_number(out, "raw", NAN); /* null */
		json_string(
			out, "raw_reason", status->raw_reason ? status->raw_reason : "not sampled");
	}
	for (size_t i = 0; i < FIELDS; i++) {
		bool_or_null(out, fields[i].field, status->flag[fields[i].flag].value);
	}
	temperature_fields(out, call->core, call->now_ns);
	if (status->sampled) {
		json_number(out, "age_ms", row_age_ms(call->now_ns, status->t_ns));
	}
	if (status->source[0] != '\0') {
		json_string(out, "source", status->source);
	} else {
		json_number(out, "source", NAN);
	}
	lists(out, status);
	return API_LAST;
}
