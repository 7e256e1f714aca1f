/* What the daemon's own answers tell doctor. Any reply may be NULL or of an odd shape. */
#pragma once

#include <cjson/cJSON.h>

struct doctor_replies {
	const cJSON *status, *self, *sources, *metrics, *apps;
};

/* Appends findings: version, sources, sensors, cost, history, MQTT, limits, refused apps. */
void doctor_daemon(cJSON *checks, const struct doctor_replies *replies);

/* [{"name","state","reason","interval_ms","duration_us","us_per_s","share_percent","metrics",
 * "errors"}]: a cost is null when the source does not run. share_percent is of one CPU. */
cJSON *doctor_sources(const cJSON *reply);

/* [{"kind","metrics","values"}]: by the first segment of the metrics' names. */
cJSON *doctor_kinds(const cJSON *reply);
