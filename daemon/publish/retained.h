/* The retained topics that this process has set at the broker and must clear one day. (Across
 * restarts of the daemon they are not remembered yet.) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RETAINED_MAX = 1024 };

struct retained {
	size_t count;
	struct {
		uint64_t hash;
		char *topic;
		bool current;
	} entry[RETAINED_MAX];
};

void retained_finish(struct retained *retained);

/* Remembers the topic and marks it as current. -ENOSPC, -ENOMEM. */
int retained_add(struct retained *retained, const char *topic);
void retained_remove(struct retained *retained, const char *topic);

/* Nothing is current until it is added again. */
void retained_unmark(struct retained *retained);
/* A topic that is not current, NULL when there is none. Valid until it is removed. */
const char *retained_stale(const struct retained *retained);
