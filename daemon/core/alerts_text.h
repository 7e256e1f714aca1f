/* Messages of alerts: the words for a transition. Pure formatting. */
#pragma once

#include <stddef.h>

#include "daemon/core/alerts.h"

/* The message of a transition of the alert, by the rule's template or the standard text:
 * "THERMAL WARNING: 81.2C (threshold: 75.0)" for temperatures, "cpu/utilization 97.2 percent above
 * 95" for others, "High memory usage in load: 24.0MB" for a stage's growth; metric and `ending`
 * (" is gone") when that is not NULL. Uses phase, severity, value and threshold as they are after
 * the transition. */
void alerts_text(const struct alert *alert, const char *ending, char *ret, size_t size);
