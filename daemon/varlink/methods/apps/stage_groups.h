/* SPDX-License-Identifier: Apache-2.0 */
/* stage_groups.h: writes totals, categories and compute units of apps. */
#pragma once

#include "daemon/core/stages/stats.h"
#include "daemon/varlink/methods/list.h"

struct json;

/* The lists of all apps that the cursor wants; empty ones when the reply is not the last. */
void stage_groups_write(struct json *out, const struct list_cursor *cursor,
	const struct window_query *query, bool last);
