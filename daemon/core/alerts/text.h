/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: formats the messages of alerts. Pure. */
#pragma once

#include <stdint.h>

#include "daemon/core/alerts/state.h"

/* The unit of an alert's value: that of the metric, of a slope "bytes per minute". */
enum { ALERT_UNIT = 40 };
void alert_unit(enum unit unit, bool per_minute, char ret[ALERT_UNIT]);

/* Writes the message of the alert's present state into alert->text, by the rule's template or the
 * standard text: "THERMAL WARNING: 81.2C (threshold: 75.0)" for temperatures, "cpu/utilization 97.2
 * percent, above 95" for others, "High memory usage in load: 24.0MB (limit 10.0 MiB)" for a stage's
 * growth; metric and `ending` (" is gone") when that is not NULL. One that is not past its limit
 * any more, but does not clear yet, says where it clears. */
void alert_text(struct alert *alert, const char *ending);

/* Appends "; " and the comment, as far as it fits. */
void alert_text_comment(struct alert *alert, const char *comment);

/* Appends how many changes were suppressed before this one; nothing for 0. */
void alert_text_suppressed(struct alert *alert, uint64_t count);
