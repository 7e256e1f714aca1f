/* SPDX-License-Identifier: Apache-2.0 */
/* retained.c: searches topics linearly: they are a thousand at most, and transitions are rare. */
#include "daemon/publish/outbox/retained.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

static size_t find(const struct retained *retained, const char *topic)
{
	size_t i = 0;
	while (i < retained->count && strcmp(retained->entry[i].topic, topic) != 0) {
		i++;
	}
	return i;
}

/* The topic is not there yet. */
static int append(struct retained *retained, const char *topic)
{
	if (retained->count == RETAINED_MAX) {
		return -ENOSPC;
	}
	char *copy = mem_strdup(topic);
	if (!copy) {
		return -ENOMEM;
	}
	size_t i = retained->count++;
	retained->entry[i].topic = copy;
	retained->entry[i].slot = SLOT_NONE;
	retained->entry[i].current = false;
	return 0;
}

/* Levels of the name rule's bytes and ':' only: never a wildcard, never the broker's own '$'. */
static bool topic_valid(const char *topic, size_t length)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-:/";
	return length > 1 && topic[length - 1] == '\0' && strspn(topic, allowed) == length - 1;
}

size_t retained_restore(struct retained *retained, void *memory)
{
	if (!memory) {
		return 0;
	}
	struct slots *slots = &retained->slots;
	slots_init(slots, memory, RETAINED_KEPT, RETAINED_KEPT_SIZE);
	uint64_t serial = 0;
	for (int slot; (slot = slots_next(slots, &serial)) != SLOT_NONE;) {
		size_t length;
		const char *topic = slots_bytes(slots, slot, &length);
		if (!topic_valid(topic, length) || find(retained, topic) < retained->count) {
			slots_remove(slots, slot);
		} else if (append(retained, topic) == 0) {
			retained->entry[retained->count - 1].slot = slot;
		}
	}
	return retained->count;
}

void retained_finish(struct retained *retained)
{
	for (size_t i = 0; i < retained->count; i++) {
		free(retained->entry[i].topic);
	}
	retained->count = 0;
}

int retained_add(struct retained *retained, const char *topic)
{
	size_t i = find(retained, topic);
	if (i == retained->count) {
		int r = append(retained, topic);
		if (r < 0) {
			return r;
		}
		const struct slots_part part = {topic, strlen(topic) + 1};
		int slot = slots_add(&retained->slots, &part, 1);
		retained->entry[i].slot = slot < 0 ? SLOT_NONE : slot;
	}
	retained->entry[i].current = true;
	return 0;
}

bool retained_has(const struct retained *retained, const char *topic)
{
	return find(retained, topic) < retained->count;
}

void retained_expire(struct retained *retained, const char *topic)
{
	size_t i = find(retained, topic);
	if (i < retained->count) {
		retained->entry[i].current = false;
	}
}

void retained_remove(struct retained *retained, const char *topic)
{
	size_t i = find(retained, topic);
	if (i < retained->count) {
		char *copy = retained->entry[i].topic;
		slots_remove(&retained->slots, retained->entry[i].slot);
		retained->entry[i] = retained->entry[--retained->count];
		free(copy); /* last: topic may be this copy */
	}
}

void retained_unmark(struct retained *retained)
{
	for (size_t i = 0; i < retained->count; i++) {
		retained->entry[i].current = false;
	}
}
