/* SPDX-License-Identifier: Apache-2.0 */
/* retained.h: records the retained topics that were set at the broker, by this process or an
 * earlier one, and must be cleared eventually. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/util/slots.h"

enum { RETAINED_MAX = 1024, RETAINED_KEPT = 256, RETAINED_KEPT_SIZE = 256 };

struct retained {
	size_t count;
	struct {
		char *topic;
		int slot; /* in the table; SLOT_NONE: forgotten with the process */
		bool current;
	} entry[RETAINED_MAX];
	struct slots slots;
};

/* What an earlier process left in memory (slots_size(RETAINED_KEPT, RETAINED_KEPT_SIZE); NULL:
 * nothing is kept) is remembered, and not current. retained is zeroed. Returns how many. */
size_t retained_restore(struct retained *retained, void *memory);
/* What is kept stays in the table. */
void retained_finish(struct retained *retained);

/* Remembers the topic and marks it as current. -ENOSPC, -ENOMEM. */
int retained_add(struct retained *retained, const char *topic);
bool retained_has(const struct retained *retained, const char *topic);

/* Not current any more, whatever becomes of it. */
void retained_expire(struct retained *retained, const char *topic);
void retained_remove(struct retained *retained, const char *topic);

/* Nothing is current until it is added again. */
void retained_unmark(struct retained *retained);
