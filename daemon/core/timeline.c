/* The ring of things that happened. Texts come from apps, sensors and the kernel: they are made
 * harmless here, once, so that every reader (terminal, journal, JSON, MQTT) can print them. */
#include "daemon/core/timeline.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/runhead.h"
#include "daemon/util/seam.h"
#include "proto/utf8.h"

#define TIMELINE_MAGIC UINT64_C(0x32656e696c6d6974) /* "timline2" */

struct timeline {
	size_t size;
	uint64_t first; /* serial of the oldest entry, unless the ring went round since */
	uint64_t last;	/* serial of the newest entry; entry of serial s is at (s - 1) % size */
	struct timeline_entry *past; /* serials without a gap */
	size_t past_count;
	size_t observers;
	struct {
		timeline_observer *call;
		void *ctx;
	} observer[TIMELINE_OBSERVERS];
	struct timeline_entry *entry;
	bool owned;
	size_t damaged; /* entries that were there and could not be taken over */
};

static int create(struct timeline_entry *entry, size_t entries, struct timeline **ret)
{
	struct timeline *timeline = mem_zalloc(sizeof(*timeline));
	if (!timeline) {
		return -ENOMEM;
	}
	timeline->size = entries;
	timeline->first = 1;
	timeline->entry = entry;
	*ret = timeline;
	return 0;
}

int timeline_create(size_t entries, struct timeline **ret)
{
	if (entries == 0) {
		return -EINVAL;
	}
	if (entries > SIZE_MAX / sizeof(struct timeline_entry)) {
		return -ENOMEM;
	}
	struct timeline_entry *entry = mem_calloc(entries, sizeof(*entry));
	int r = entry ? create(entry, entries, ret) : -ENOMEM;
	if (r < 0) {
		free(entry);
		return r;
	}
	(*ret)->owned = true;
	return 0;
}

void timeline_destroy(struct timeline *timeline)
{
	if (!timeline) {
		return;
	}
	if (timeline->owned) {
		free(timeline->entry);
	}
	free(timeline->past);
	free(timeline);
}

size_t timeline_bytes(size_t entries)
{
	return sizeof(struct runhead) + entries * sizeof(struct timeline_entry);
}

/* What an earlier process wrote may be anything: only whole entries count, and their texts are
 * cleaned again. */
static bool entry_take(struct timeline_entry *entry, uint64_t serial)
{
	if (__atomic_load_n(&entry->serial, __ATOMIC_ACQUIRE) != serial || serial == 0 ||
		(unsigned)entry->kind >= TIMELINE_KIND_COUNT ||
		(unsigned)entry->level > TIMELINE_CRITICAL) {
		return false;
	}
	entry->subject[sizeof(entry->subject) - 1] = '\0';
	entry->text[sizeof(entry->text) - 1] = '\0';
	proto_utf8_clean(entry->subject);
	proto_utf8_clean(entry->text);
	return true;
}

/* Finds the newest entry, and how far back from there none is missing. */
static void take_over(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->size; i++) {
		uint64_t serial = timeline->entry[i].serial;
		if (serial > timeline->last && serial < UINT64_MAX / 2 &&
			(serial - 1) % timeline->size == i) {
			timeline->last = serial;
		}
	}
	timeline->first = timeline->last + 1;
	for (size_t i = 0; i < timeline->size && timeline->first > 1; i++) {
		uint64_t serial = timeline->first - 1;
		if (!entry_take(&timeline->entry[(serial - 1) % timeline->size], serial)) {
			break;
		}
		timeline->first = serial;
	}
	for (size_t i = 0; i < timeline->size; i++) {
		uint64_t serial = timeline->entry[i].serial;
		timeline->damaged +=
			serial != 0 && (serial < timeline->first || serial > timeline->last ||
					       (serial - 1) % timeline->size != i);
	}
}

size_t timeline_damaged(const struct timeline *timeline)
{
	return timeline->damaged;
}

int timeline_adopt(void *memory, size_t entries, const uint8_t boot_id[16], struct timeline **ret)
{
	if (entries == 0 || entries > UINT32_MAX || (uintptr_t)memory % sizeof(uint64_t) != 0) {
		return -EINVAL;
	}
	const uint32_t shape[] = {(uint32_t)sizeof(struct timeline_entry), (uint32_t)entries};
	const struct runhead wanted =
		runhead_of(TIMELINE_MAGIC, timeline_bytes(entries), shape, 2, boot_id);
	const bool ours = runhead_look(memory, &wanted) == RUNHEAD_OURS;
	struct timeline_entry *entry =
		(struct timeline_entry *)(void *)((struct runhead *)memory + 1);
	if (!ours) {
		runhead_clear(memory);
		memset(entry, 0, entries * sizeof(*entry));
		runhead_write(memory, &wanted);
	}
	struct timeline *timeline;
	int r = create(entry, entries, &timeline);
	if (r < 0) {
		return r;
	}
	if (ours) {
		take_over(timeline);
	}
	*ret = timeline;
	return 0;
}

/* Takes away the sequence that the end of the buffer cut in two. */
static void drop_cut_sequence(char *text, size_t length)
{
	size_t back = 0;
	while (back < 3 && back < length &&
		((unsigned char)text[length - 1 - back] & 0xc0) == 0x80) {
		back++;
	}
	if (back < length && (unsigned char)text[length - 1 - back] >= 0xc0 &&
		proto_utf8_length(text + length - 1 - back, back + 1) == 0) {
		text[length - 1 - back] = '\0';
	}
}

void timeline_add(struct timeline *timeline, uint64_t t_ns, enum timeline_kind kind,
	enum timeline_level level, const char *subject, const char *format, ...)
{
	/* Built aside: subject and arguments may point into the entry that goes. */
	struct timeline_entry entry = {
		.serial = timeline->last + 1, .t_ns = t_ns, .kind = kind, .level = level};
	int length = snprintf(entry.subject, sizeof(entry.subject), "%s", subject ? subject : "");
	if (length >= (int)sizeof(entry.subject)) {
		drop_cut_sequence(entry.subject, sizeof(entry.subject) - 1);
	}
	va_list args;
	va_start(args, format);
	length = vsnprintf(entry.text, sizeof(entry.text), format, args);
	va_end(args);
	if (length < 0) {
		entry.text[0] = '\0';
	} else if (length >= (int)sizeof(entry.text)) {
		drop_cut_sequence(entry.text, sizeof(entry.text) - 1);
	}
	proto_utf8_clean(entry.subject);
	proto_utf8_clean(entry.text);
	struct timeline_entry *place = &timeline->entry[timeline->last % timeline->size];
	/* without its serial until it is whole: a kill in between leaves no entry */
	__atomic_store_n(&place->serial, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	uint64_t serial = entry.serial;
	entry.serial = 0;
	*place = entry;
	__atomic_store_n(&place->serial, serial, __ATOMIC_RELEASE);
	timeline->last++;
	for (size_t i = 0; i < timeline->observers; i++) {
		timeline->observer[i].call(timeline->observer[i].ctx, place);
	}
}

static uint64_t oldest_serial(const struct timeline *timeline)
{
	uint64_t oldest = timeline->last > timeline->size ? timeline->last - timeline->size + 1 : 1;
	return oldest > timeline->first ? oldest : timeline->first;
}

void timeline_reserve(struct timeline *timeline)
{
	if (timeline->last == 0) {
		timeline->last = TIMELINE_PAST;
		timeline->first = TIMELINE_PAST + 1;
	}
}

int timeline_set_past(struct timeline *timeline, const struct timeline_entry *entries, size_t count)
{
	uint64_t room = timeline->first - 1 < TIMELINE_PAST ? timeline->first - 1 : TIMELINE_PAST;
	size_t kept = count < room ? count : (size_t)room;
	struct timeline_entry *past = NULL;
	if (kept > 0) {
		past = mem_calloc(kept, sizeof(*past));
		if (!past) {
			return -ENOMEM;
		}
	}
	for (size_t i = 0; i < kept; i++) {
		past[i] = entries[count - kept + i];
		past[i].serial = room - kept + i + 1;
		proto_utf8_clean(past[i].subject);
		proto_utf8_clean(past[i].text);
	}
	free(timeline->past);
	timeline->past = past;
	timeline->past_count = kept;
	return 0;
}

const struct timeline_entry *timeline_from(const struct timeline *timeline, uint64_t serial)
{
	if (timeline->past_count > 0 && serial <= timeline->past[timeline->past_count - 1].serial) {
		uint64_t first = timeline->past[0].serial;
		return &timeline->past[serial > first ? serial - first : 0];
	}
	uint64_t oldest = oldest_serial(timeline);
	if (serial < oldest) {
		serial = oldest;
	}
	return serial > timeline->last ? NULL : &timeline->entry[(serial - 1) % timeline->size];
}

uint64_t timeline_last_serial(const struct timeline *timeline)
{
	return timeline->last;
}

int timeline_observe(struct timeline *timeline, timeline_observer *observer, void *ctx)
{
	if (timeline->observers == TIMELINE_OBSERVERS) {
		return -ENOSPC;
	}
	timeline->observer[timeline->observers].call = observer;
	timeline->observer[timeline->observers].ctx = ctx;
	timeline->observers++;
	return 0;
}

void timeline_unobserve(struct timeline *timeline, void *ctx)
{
	size_t kept = 0;
	for (size_t i = 0; i < timeline->observers; i++) {
		if (timeline->observer[i].ctx != ctx) {
			timeline->observer[kept++] = timeline->observer[i];
		}
	}
	timeline->observers = kept;
}

const char *timeline_kind_name(enum timeline_kind kind)
{
	switch (kind) {
	case TIMELINE_ALERT:
		return "alert";
	case TIMELINE_MARK:
		return "mark";
	case TIMELINE_APP:
		return "app";
	case TIMELINE_SOURCE:
		return "source";
	case TIMELINE_CLOCK:
		return "clock";
	case TIMELINE_DAEMON:
		return "daemon";
	case TIMELINE_THROTTLE:
		return "throttle";
	case TIMELINE_SILENCED:
		return "silenced";
	case TIMELINE_HOLD:
		return "hold";
	case TIMELINE_KIND_COUNT:
		break;
	}
	return "unknown";
}

const char *timeline_level_name(enum timeline_level level)
{
	switch (level) {
	case TIMELINE_INFO:
		return "info";
	case TIMELINE_WARNING:
		return "warning";
	case TIMELINE_CRITICAL:
		return "critical";
	}
	return "unknown";
}
