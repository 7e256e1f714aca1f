/* Ingest writes the list when it refuses a hello, api reads it for ListApps. */
#include "daemon/core/apps/rejected_attaches.h"

#include <stdio.h>
#include <string.h>

static struct refusal *room(struct refusals *refusals)
{
	if (refusals->count < REFUSALS_MAX) {
		return &refusals->entry[refusals->count++];
	}
	struct refusal *oldest = &refusals->entry[0];
	for (size_t i = 1; i < REFUSALS_MAX; i++) {
		if (refusals->entry[i].last_ns < oldest->last_ns) {
			oldest = &refusals->entry[i];
		}
	}
	return oldest;
}

bool refusals_add(struct refusals *refusals, const char *app, uid_t uid, pid_t pid,
	const char *reason, uint64_t now_ns)
{
	struct refusal new = {.uid = uid, .pid = pid, .count = 1, .last_ns = now_ns};
	snprintf(new.app, sizeof(new.app), "%s", app);
	snprintf(new.reason, sizeof(new.reason), "%s", reason);
	for (size_t i = 0; i < refusals->count; i++) {
		struct refusal *entry = &refusals->entry[i];
		if (entry->uid == uid && strcmp(entry->app, new.app) == 0 &&
			strcmp(entry->reason, new.reason) == 0) {
			entry->pid = pid;
			entry->count++;
			entry->last_ns = now_ns;
			return false;
		}
	}
	*room(refusals) = new;
	return true;
}

void refusals_forget(struct refusals *refusals, const char *app, uid_t uid)
{
	uint32_t kept = 0;
	for (size_t i = 0; i < refusals->count; i++) {
		const struct refusal *entry = &refusals->entry[i];
		if (entry->uid != uid || strcmp(entry->app, app) != 0) {
			refusals->entry[kept++] = *entry;
		}
	}
	refusals->count = kept;
}
