/* Linear search over hashes: a thousand entries are 8 KiB, and transitions are rare. */
#include "daemon/publish/retained.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/seam.h"

static uint64_t topic_hash(const char *topic)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	for (const char *byte = topic; *byte; byte++) {
		hash = (hash ^ (unsigned char)*byte) * UINT64_C(1099511628211);
	}
	return hash;
}

static size_t find(const struct retained *retained, const char *topic, uint64_t hash)
{
	size_t i = 0;
	while (i < retained->count &&
		(retained->entry[i].hash != hash || strcmp(retained->entry[i].topic, topic) != 0)) {
		i++;
	}
	return i;
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
	uint64_t hash = topic_hash(topic);
	size_t i = find(retained, topic, hash);
	if (i == retained->count) {
		if (i == RETAINED_MAX) {
			return -ENOSPC;
		}
		char *copy = mem_strdup(topic);
		if (!copy) {
			return -ENOMEM;
		}
		retained->entry[i].topic = copy;
		retained->entry[i].hash = hash;
		retained->count++;
	}
	retained->entry[i].current = true;
	return 0;
}

void retained_remove(struct retained *retained, const char *topic)
{
	size_t i = find(retained, topic, topic_hash(topic));
	if (i < retained->count) {
		char *copy = retained->entry[i].topic;
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

const char *retained_stale(const struct retained *retained)
{
	for (size_t i = 0; i < retained->count; i++) {
		if (!retained->entry[i].current) {
			return retained->entry[i].topic;
		}
	}
	return NULL;
}
