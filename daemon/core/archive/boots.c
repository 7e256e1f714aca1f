/* SPDX-License-Identifier: Apache-2.0 */
/* boots.c: puts previous boots on the timeline. Everything comes from a file: texts are cleaned by
 * the timeline, kinds and levels were checked by the archive. */
#include "daemon/core/archive/boots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"
#include "proto/text.h"

#define BUCKET_US INT64_C(60000000) /* the longest */

struct list {
	struct timeline_entry *entry;
	size_t count, room;
};

static bool is_stop(const struct timeline_entry *event)
{
	return event->kind == TIMELINE_DAEMON && strcmp(event->text, TIMELINE_STOPPED) == 0;
}

enum boot_end timeline_boot_end(const struct archive *archive, uint32_t seq)
{
	const struct timeline_entry *event;
	size_t count = archive_events(archive, &event);
	if (seq == archive_boot_seq(archive)) {
		return BOOT_RUNS;
	}
	for (size_t i = count; i > 0; i--) {
		if (event[i - 1].boot_seq == seq && event[i - 1].kind == TIMELINE_DAEMON) {
			return is_stop(&event[i - 1]) ? BOOT_STOPPED : BOOT_CUT;
		}
	}
	return BOOT_UNKNOWN;
}

const char *timeline_boot_end_name(enum boot_end end)
{
	static const char *const names[] = {
		[BOOT_RUNS] = "running",
		[BOOT_STOPPED] = "stopped",
		[BOOT_CUT] = "cut",
		[BOOT_UNKNOWN] = "unknown",
	};
	return names[end];
}

bool timeline_boot_at(const struct archive *archive, size_t index, struct archive_boot *ret)
{
	const struct timeline_entry *event;
	size_t count = archive_events(archive, &event), at = 0;
	if (!archive_boot_at(archive, index, ret)) {
		return false;
	}
	while (at < count && event[at].boot_seq < ret->seq) {
		at++;
	}
	/* a bucket has the time of its begin, which may lie before the boot's */
	if (at < count && event[at].boot_seq == ret->seq &&
		(ret->first_us == 0 || event[at].time_us < ret->first_us + BUCKET_US)) {
		ret->first_us = event[at].time_us;
	}
	for (; at < count && event[at].boot_seq == ret->seq; at++) {
		ret->last_us = event[at].time_us > ret->last_us ? event[at].time_us : ret->last_us;
	}
	return true;
}

static struct timeline_entry *add(struct list *list)
{
	if (list->count == list->room) {
		/* the newest are what is asked for */
		memmove(list->entry, list->entry + 1, --list->count * sizeof(list->entry[0]));
	}
	struct timeline_entry *entry = &list->entry[list->count++];
	memset(entry, 0, sizeof(*entry));
	return entry;
}

/* How the previous boot ended, and for how long nothing was recorded. */
static void describe_reboot(struct timeline_entry *entry, const struct archive *archive,
	const struct archive_boot *before, const struct archive_boot *boot, int64_t begin_us)
{
	int64_t seconds = (begin_us - before->last_us) / 1000000;
	bool cut = timeline_boot_end(archive, before->seq) == BOOT_CUT;
	bool known = before->last_us > 0 && seconds >= 0;
	entry->kind = TIMELINE_DAEMON;
	entry->level = cut ? TIMELINE_WARNING : TIMELINE_INFO;
	snprintf(entry->subject, sizeof(entry->subject), "edgeprofd");
	snprintf(entry->text, sizeof(entry->text), "reboot: boot %" PRIu32 "%s%s%s%s", boot->seq,
		known ? ", the device was off or not recorded for " : "",
		known ? text_span((uint64_t)seconds).text : "",
		cut ? "; the previous boot ended without a stop" : "",
		before->synced && boot->synced ? "" : "; the clock was not synchronised");
}

static void add_event(struct list *list, const struct timeline_entry *event)
{
	struct timeline_entry *entry = add(list);
	*entry = *event;
	entry->t_ns = 0;
}

uint64_t timeline_begin_ns(const struct timeline *timeline)
{
	const struct timeline_entry *first = timeline_from(timeline, 0);
	while (first && first->boot_seq > 0) {
		first = timeline_from(timeline, first->serial + 1);
	}
	return first ? first->t_ns : 0;
}

static void add_boots(struct list *list, const struct timeline *timeline,
	const struct archive *archive, const struct wallclock *wall)
{
	const struct timeline_entry *event;
	size_t events = archive_events(archive, &event), at = 0;
	uint32_t now = archive_boot_seq(archive);
	struct archive_boot before = {0}, boot;
	for (size_t i = 0; timeline_boot_at(archive, i, &boot); i++) {
		while (at < events && event[at].boot_seq < boot.seq) {
			add_event(list, &event[at++]); /* of a boot of which only that is left */
		}
		if (i > 0 && boot.first_us < before.last_us &&
			boot.first_us > before.last_us - BUCKET_US) {
			boot.first_us = before.last_us;
		}
		if (i > 0 && boot.seq != now) {
			struct timeline_entry *entry = add(list);
			describe_reboot(entry, archive, &before, &boot, boot.first_us);
			entry->time_us = boot.first_us;
			entry->boot_seq = boot.seq;
		} else if (i > 0) {
			uint64_t t_ns = timeline_begin_ns(timeline);
			if (boot.first_us > 0 && wallclock_mono_ns(wall, boot.first_us) < t_ns) {
				t_ns = wallclock_mono_ns(wall, boot.first_us);
			}
			boot.synced = wallclock_synced(wall);
			struct timeline_entry *entry = add(list);
			describe_reboot(entry, archive, &before, &boot, wallclock_us(wall, t_ns));
			entry->t_ns = t_ns;
		}
		while (at < events && event[at].boot_seq == boot.seq && boot.seq != now) {
			add_event(list, &event[at++]);
		}
		before = boot;
	}
}

int timeline_load_past(
	struct timeline *timeline, const struct archive *archive, const struct wallclock *wall)
{
	struct list list = {.room = TIMELINE_PAST};
	list.entry = mem_calloc(list.room, sizeof(list.entry[0]));
	if (!list.entry) {
		return -ENOMEM;
	}
	add_boots(&list, timeline, archive, wall);
	int r = timeline_set_past(timeline, list.entry, list.count);
	free(list.entry);
	return r;
}
