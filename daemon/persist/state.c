/* SPDX-License-Identifier: Apache-2.0 */
/* state.c: reports how the history on disk fares: how writing fares and, when that is well, how
 * reading does and what is missing. Each state is reported once, on its change. */
#include <stdio.h>
#include <string.h>

#include "daemon/persist/private.h"
#include "daemon/util/sysops.h"

/* What is wrong although all is written; false: nothing. */
static bool impaired(const struct persist *persist, char *why, size_t size)
{
	struct archive_reads reads = {0};
	struct archive_pending pending;
	if (persist->readers) {
		archive_readers_look(persist->readers, &reads);
	}
	archive_pending(persist->archive, &pending);
	if (reads.stuck) {
		snprintf(why, size, "reading it: the medium does not answer");
	} else if (reads.error < 0) {
		snprintf(why, size, "reading it: %s (%llu reads failed)", strerror(-reads.error),
			(unsigned long long)reads.failed);
	} else if (pending.dropped > 0) {
		snprintf(why, size,
			"%llu buckets and events were dropped before they could be written",
			(unsigned long long)pending.dropped);
	}
	return reads.stuck || reads.error < 0 || pending.dropped > 0;
}

static void log_change(const struct persist *persist, enum persist_state before)
{
	struct timeline *timeline = persist->core->timeline;
	const struct persist_status *status = persist->status;
	const bool was_bad = persist_is_degraded(&(struct persist_status){.state = before});
	if (persist_is_degraded(status)) {
		timeline_add(timeline, sysops()->now_ns(), TIMELINE_DAEMON, TIMELINE_WARNING,
			"edgeprofd", "history is not persistent: %s", status->reason);
	} else if (was_bad) {
		timeline_add(timeline, sysops()->now_ns(), TIMELINE_DAEMON, TIMELINE_INFO,
			"edgeprofd", "history is persistent again");
	}
	if (status->state == PERSIST_IMPAIRED) {
		timeline_add(timeline, sysops()->now_ns(), TIMELINE_DAEMON, TIMELINE_WARNING,
			"edgeprofd", "history is impaired: %s", status->reason);
	} else if (before == PERSIST_IMPAIRED && status->state == PERSIST_OK) {
		timeline_add(timeline, sysops()->now_ns(), TIMELINE_DAEMON, TIMELINE_INFO,
			"edgeprofd", "history is no longer impaired");
	}
}

/* How writing fares, and when it is well, how reading does. */
void persist_publish(struct persist *persist)
{
	struct persist_status *status = persist->status;
	const enum persist_state before = status->state;
	char reason[sizeof(status->reason)];
	snprintf(reason, sizeof(reason), "%s", persist->reason);
	status->state = persist->written;
	if (persist->written == PERSIST_OK && impaired(persist, reason, sizeof(reason))) {
		status->state = PERSIST_IMPAIRED;
	}
	/* These reasons have numbers that change. */
	bool same = before == status->state &&
		    (before == PERSIST_PAUSED || before == PERSIST_IMPAIRED ||
			    strcmp(status->reason, reason) == 0);
	snprintf(status->reason, sizeof(status->reason), "%s", reason);
	if (!same) {
		log_change(persist, before);
	}
}

void persist_set_state(struct persist *persist, enum persist_state state, const char *reason)
{
	persist->written = state;
	snprintf(persist->reason, sizeof(persist->reason), "%s", reason);
	persist_publish(persist);
}
