/* SPDX-License-Identifier: Apache-2.0 */
/* facts_processes.h: gathers what a diagnosis has to know of other processes and of how the app's
 * own may run: process[], largest, governor, power_mode, frequency_limit, nice, policy,
 * quota_percent, quota_throttled and cpus_allowed. Of an app that has ended nothing is known of
 * others. */
#pragma once

#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/core/diagnose/facts/facts.h"

struct app;

void facts_add_processes(
	const struct core *core, const struct app *app, uint64_t now_ns, struct facts *ret);
