/* What mqtt-latency found: every message is counted in one place, none is passed over. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/edgeprofctl/ctl.h"
#include "client/edgeprofctl/mqtt/latency_stamp.h"

enum {
	LATENCY_MAX = 1000000,
	LATENCY_PLAUSIBLE_MS = 24 * 3600 * 1000 /* beyond a day either way it is another time */
};

struct latency_report {
	double *values_ms; /* room for as many as were asked for */
	size_t count;
	uint64_t messages; /* without the retained ones */
	uint64_t negative, without_time, malformed, too_large, implausible, retained;
	uint64_t unsynchronised; /* payloads that say so of their clock */
};

int latency_report_init(struct latency_report *report, size_t room); /* -ENOMEM */
void latency_report_finish(struct latency_report *report);

/* At most room messages. */
void latency_report_add(
	struct latency_report *report, enum stamp stamp, double latency_ms, bool unsynchronised);

/* CTL_NO_DATA when nothing was measured; CTL_BAD_NEWS when a message came before it was sent. */
int latency_report_print(struct latency_report *report, struct ctl *ctl);
