/*
 * The answer of `snapshot`, made from the daemon's answers: the values that the guides print in one
 * line, each a number or null, and then `reasons` says why.
 */
#pragma once

#include <cjson/cJSON.h>

struct snapshot_replies {
	const cJSON *status;  /* GetStatus */
	const cJSON *metrics; /* ListMetrics, several answers in one */
	const cJSON *stages;  /* ListStages; NULL = none */
	const cJSON *sources; /* ListSources: why something is missing */
	const char *app;      /* only this app and its process; NULL = all */
};

/* {timestamp, time_us, clock_synced, hostname, cpu_usage, memory_usage {bytes, percent,
 * total_bytes, available_bytes}, temperature, power_consumption, inference_latency, inference_app,
 * units, reasons, apps [{app, inference_latency}], processes [{name, rss_bytes, vms_bytes,
 * peak_rss_bytes}]}. inference_latency is the mean of the stage `infer` over the recent window; of
 * several apps, that of the slowest, which inference_app names. NULL: no memory. */
cJSON *snapshot_report(const struct snapshot_replies *replies);
