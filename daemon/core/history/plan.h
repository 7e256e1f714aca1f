/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h: chooses the plan of packed rows (row.h) for a writer. */
#pragma once

#include "daemon/core/history/row.h"

/* True when a plan is to be made from the rows of the block: at 16 rows if there is none yet, and
 * again at 64 and 1024. */
bool history_plan_is_due(const struct history_row_state *state);

/* Goes over them (a walk at its start). From the next row on, columns have as many bits as these
 * rows would have needed; nothing changes where that saves less than it costs. */
void history_plan_make(struct history_row_state *state, const struct history_walk *block);
