/* SPDX-License-Identifier: Apache-2.0 */
/* sources.c: keeps the registry of sources. Ids are given out once and index every per-source table
 * elsewhere (metrics, history), so a source is never removed; one that is gone is unavailable. */
#include "daemon/core/metrics/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

enum { STALE_AFTER_INTERVALS = 3 };

struct sources {
	size_t count;
	struct source *source[SOURCES_MAX];
};

int sources_create(struct sources **ret)
{
	struct sources *sources = mem_zalloc(sizeof(*sources));
	if (!sources) {
		return -ENOMEM;
	}
	*ret = sources;
	return 0;
}

void sources_destroy(struct sources *sources)
{
	if (!sources) {
		return;
	}
	for (size_t i = 0; i < sources->count; i++) {
		free(sources->source[i]);
	}
	free(sources);
}

int sources_add(
	struct sources *sources, const char *name, uint64_t interval_ns, struct source **ret)
{
	if (!proto_name_valid(name)) {
		return -EINVAL;
	}
	if (sources_find(sources, name)) {
		return -EEXIST;
	}
	if (sources->count == SOURCES_MAX) {
		return -ENOSPC;
	}
	struct source *source = mem_zalloc(sizeof(*source));
	if (!source) {
		return -ENOMEM;
	}
	source->id = (uint16_t)sources->count;
	snprintf(source->name, sizeof(source->name), "%s", name);
	source->interval_ns = interval_ns;
	source->wanted = true;
	source_report(source, SOURCE_UNAVAILABLE, "not sampled yet");
	sources->source[sources->count++] = source;
	*ret = source;
	return 0;
}

struct source *sources_find(struct sources *sources, const char *name)
{
	for (size_t i = 0; i < sources->count; i++) {
		if (strcmp(sources->source[i]->name, name) == 0) {
			return sources->source[i];
		}
	}
	return NULL;
}

struct source *sources_at(struct sources *sources, size_t index)
{
	return index < sources->count ? sources->source[index] : NULL;
}

size_t sources_count(const struct sources *sources)
{
	return sources->count;
}

bool source_report(struct source *source, enum source_state state, const char *reason)
{
	reason = state != SOURCE_OK && reason ? reason : "";
	if (source->state == state &&
		strncmp(source->reason, reason, sizeof(source->reason) - 1) == 0) {
		return false;
	}
	source->state = state;
	snprintf(source->reason, sizeof(source->reason), "%s", reason);
	return true;
}

enum source_state source_state_at(const struct source *source, uint64_t now_ns)
{
	if (!source->wanted) {
		return SOURCE_SUSPENDED;
	}
	if (source->state != SOURCE_OK || source->interval_ns == 0 || source->last_ok_ns == 0 ||
		now_ns <= source->last_ok_ns) {
		return source->state;
	}
	uint64_t age_ns = now_ns - source->last_ok_ns;
	/* Divided, not multiplied: an absurd interval must not overflow. */
	return (age_ns - 1) / STALE_AFTER_INTERVALS >= source->interval_ns ? SOURCE_STALE
									   : SOURCE_OK;
}

const char *source_reason_at(const struct source *source, uint64_t now_ns)
{
	if ((source->state == SOURCE_SUSPENDED) == source->wanted) {
		return source->wanted ? "switched on, not sampled yet" : "switched off";
	}
	bool silent = source->reason[0] == '\0' && source_state_at(source, now_ns) == SOURCE_STALE;
	return silent ? "no new reading" : source->reason;
}

const char *source_state_name(enum source_state state)
{
	static const char *const names[] = {"ok", "unavailable", "stale", "error", "suspended"};
	return names[state];
}

void source_request(struct source *source, bool wanted, uint64_t interval_ns)
{
	source->wanted = wanted;
	if (interval_ns != 0) {
		source->wanted_interval_ns = interval_ns;
	}
	source->request_serial++;
}
