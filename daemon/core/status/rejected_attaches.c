/* SPDX-License-Identifier: Apache-2.0 */
/* rejected_attaches.c: adds to the list of rejected processes; the oldest entry makes room. */
#include "daemon/core/status/rejected_attaches.h"

#include <stdio.h>
#include <string.h>

static struct rejected_attach *new_entry(struct rejected_attaches *rejected)
{
	if (rejected->count < REJECTED_ATTACHES_MAX) {
		return &rejected->entry[rejected->count++];
	}
	struct rejected_attach *oldest = &rejected->entry[0];
	for (size_t i = 1; i < REJECTED_ATTACHES_MAX; i++) {
		if (rejected->entry[i].last_ns < oldest->last_ns) {
			oldest = &rejected->entry[i];
		}
	}
	return oldest;
}

bool rejected_attaches_add(struct rejected_attaches *rejected, const char *app, uid_t uid,
	pid_t pid, const char *reason, uint64_t now_ns)
{
	struct rejected_attach new = {.uid = uid, .pid = pid, .count = 1, .last_ns = now_ns};
	snprintf(new.app, sizeof(new.app), "%s", app);
	snprintf(new.reason, sizeof(new.reason), "%s", reason);
	for (size_t i = 0; i < rejected->count; i++) {
		struct rejected_attach *entry = &rejected->entry[i];
		if (entry->uid == uid && strcmp(entry->app, new.app) == 0 &&
			strcmp(entry->reason, new.reason) == 0) {
			entry->pid = pid;
			entry->count++;
			entry->last_ns = now_ns;
			return false;
		}
	}
	*new_entry(rejected) = new;
	return true;
}

void rejected_attaches_forget(struct rejected_attaches *rejected, const char *app, uid_t uid)
{
	uint32_t kept = 0;
	for (size_t i = 0; i < rejected->count; i++) {
		const struct rejected_attach *entry = &rejected->entry[i];
		if (entry->uid != uid || strcmp(entry->app, app) != 0) {
			rejected->entry[kept++] = *entry;
		}
	}
	rejected->count = kept;
}
