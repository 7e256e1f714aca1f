/* SPDX-License-Identifier: Apache-2.0 */
/* forecast.c: shows what temperatures will do, and of an app whether its frames will meet a
 * deadline at a rate. */
#include "client/edgeprofctl/verb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/listing.h"

static void show(struct ctl *ctl, const cJSON *reply)
{
	static const struct field zones[] = {
		{"METRIC", FIELD_LONG, "{metric}"},
		{"NOW", FIELD_NUMBER, "{celsius:celsius}"},
		{"TRIP", FIELD_NUMBER, "{trip_celsius:celsius}"},
		{"STEADY", FIELD_NUMBER, "{steady_celsius:celsius}"},
		{"", FIELD_TEXT, "{~dim}[{steady_low_celsius:1} to {steady_high_celsius:1}]"},
		{"IN", FIELD_NUMBER, "{trip_in_s:s}"},
		{"VERDICT", FIELD_LONG,
			"[{?state=tripped}{~bad}|{?state=rising_to_trip}{~warn}]"
			"[{verdict}|{reason}|{state}]"},
	};
	static const struct field plans[] = {
		{"ARRANGEMENT", FIELD_TEXT, "{arrangement}"},
		{"FPS", FIELD_NUMBER, "{fps:1}"},
		{"DEADLINE ms", FIELD_NUMBER, "{deadline_ms:1}"},
		{"MISSED", FIELD_NUMBER, "{miss_rate:share}"},
		{"", FIELD_TEXT, "{~dim}[{miss_rate_low:share} to {miss_rate_high:share}]"},
		{"P50 ms", FIELD_NUMBER, "{latency_p50_ms:1}"},
		{"P95 ms", FIELD_NUMBER, "{latency_p95_ms:1}"},
		{"P99 ms", FIELD_NUMBER, "{latency_p99_ms:1}"},
		{"MAX FPS", FIELD_NUMBER, "[{?max_fps>=0.05}{max_fps:1}|-]"},
		{"NOTE", FIELD_LONG, "{~dim}[{reason}]"},
	};
	listing_show(ctl, reply, "temperatures", zones, sizeof(zones) / sizeof(zones[0]));
	if (json_count(reply, "temperatures") > 0 && json_count(reply, "plans") > 0) {
		fputc('\n', ctl->output.stream);
	}
	listing_show(ctl, reply, "plans", plans, sizeof(plans) / sizeof(plans[0]));
}

static int run(struct ctl *ctl)
{
	const struct options *options = &ctl->options;
	const char *app = ctl_word(ctl, 0);
	cJSON *reply, *parameters = ctl_parameters("app", app);
	if (options->fps > 0) {
		cJSON_AddNumberToObject(parameters, "fps", options->fps);
	}
	if (options->deadline_ms > 0) {
		cJSON_AddNumberToObject(parameters, "deadline_ms", options->deadline_ms);
	}
	if (!app && (options->fps > 0 || options->deadline_ms > 0)) {
		cJSON_Delete(parameters);
		return ctl_fail(ctl, CTL_USAGE, "--fps and --deadline require an APP");
	}
	int status = ctl_call(ctl, "Forecast", parameters, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	bool none = json_count(reply, "temperatures") + json_count(reply, "plans") == 0;
	ctl_answer(ctl, reply, show);
	return none ? ctl_fail(ctl, CTL_NO_DATA,
			      "no temperature is measured; 'edgeprofctl source list' says why")
		    : CTL_FINE;
}

/* A number that strtod would also read from "nan" or "0x1p3" is not meant. */
static int parse_number(const struct option_spec *spec, const char *text, void *value)
{
	(void)spec;
	char *end;
	double number = strtod(text, &end);
	bool plain = text[strspn(text, "0123456789.")] == '\0' && *end == '\0';
	if (!plain || !(number > 0 && number < 1e6)) {
		return -EINVAL;
	}
	*(double *)value = number;
	return 0;
}

static int parse_deadline(const struct option_spec *spec, const char *text, void *value)
{
	return parse_number(spec, text, value) < 0 ? option_ms(spec, text, value) : 0;
}

static const struct option_spec options[] = {
	{"fps", 0, "N", "plan for N frames a second; default: the app's rate", parse_number,
		offsetof(struct options, fps)},
	{"deadline", 0, "MS", "plan for frames within MS milliseconds; default: the app's deadline",
		parse_deadline, offsetof(struct options, deadline_ms)},
	{.name = NULL},
};

const struct verb verb_forecast = {"forecast", "[APP]",
	"Forecast temperatures, and whether the frames of an app will meet a deadline.",
	"forecast cam --fps 30 --deadline 33", options, run};
