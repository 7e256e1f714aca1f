/* Thermal throttle counters of Intel processors: once a core, once a package. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/collect/lib/naming.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/util/root.h"

struct throttle_counter;

/* An episode whose end was missed (its core went offline) is not believed for longer. */
#define THROTTLE_X86_EPISODE_NS UINT64_C(300000000000)

struct throttle_x86 {
	size_t count;
	struct throttle_counter *counter;
	uint64_t t_ns; /* of the previous sample; 0 = none */
	struct metric *rate, *core, *package;
};

/* Looks for the counters; may hang. How many; -ENOMEM. Notes what was found in status->tried. */
int throttle_x86_probe(
	struct throttle_x86 *x86, const struct root *root, struct throttle_status *status);

/* Adds throttle/events_rate, throttle/core_events, throttle/package_events. 0 or -errno. */
int throttle_x86_name(struct throttle_x86 *x86, struct naming *naming);

/* Reads the counters; no more, as it runs on a worker. */
void throttle_x86_fetch(struct throttle_x86 *x86, const struct root *root);

/* Sets the metrics; joins throttled and active. */
void throttle_x86_sample(struct throttle_x86 *x86, struct throttle_status *status, uint64_t now_ns);

void throttle_x86_close(struct throttle_x86 *x86); /* zeroed storage is fine */
