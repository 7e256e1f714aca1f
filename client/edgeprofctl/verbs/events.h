/* SPDX-License-Identifier: Apache-2.0 */
/* events.h: lists the timeline, as far as the daemon still has it. */
#pragma once

#include <stdint.h>

#include "client/edgeprofctl/ctl.h"

/* The last `lines` events of those from from_us to to_us (both included), as ListEvents answers.
 * An exit status. */
int events_list(struct ctl *ctl, long lines, int64_t from_us, int64_t to_us, cJSON **ret);

/* One line: time, kind, severity, subject, text. Without `date` the time of day only. */
void events_show(struct ctl *ctl, const cJSON *event, bool date);
