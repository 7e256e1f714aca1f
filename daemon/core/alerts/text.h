/* Messages of alerts: the words for a transition. Pure formatting. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/alerts/alerts.h"

/* The message of the alert's present state, by the rule's template or the standard text:
 * "THERMAL WARNING: 81.2C (threshold: 75.0)" for temperatures, "cpu/utilization 97.2 percent above
 * 95" for others, "High memory usage in load: 24.0MB (limit 10.0 MiB)" for a stage's growth; metric
 * and `ending` (" is gone") when that is not NULL. One that is not past its limit any more, but
 * does not clear yet, says where it clears. */
void alerts_text(const struct alert *alert, const char *ending, char *ret, size_t size);

/* Appends how many changes were suppressed before this one; nothing for 0. */
void alerts_text_suppressed(char *text, size_t size, uint64_t count);
