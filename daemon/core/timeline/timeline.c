/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c: records the things that happened. Texts come from apps, sensors and the kernel: they
 * are made harmless here, once, so that every reader (terminal, journal, JSON, MQTT) can print
 * them. */
#include "daemon/core/timeline/timeline.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/runfile.h"
#include "daemon/util/sysops.h"
#include "proto/fnv.h"
#include "proto/text.h"
#include "proto/utf8.h"

#define TIMELINE_MAGIC UINT64_C(0x33656e696c6d6974) /* "timline3" */

enum group { GROUP_OTHER, GROUP_ALERT, GROUP_MARK, GROUP_APP, GROUPS };

static const uint8_t group_of[TIMELINE_KIND_COUNT] = {
	[TIMELINE_ALERT] = GROUP_ALERT,
	[TIMELINE_SILENCED] = GROUP_ALERT,
	[TIMELINE_HOLD] = GROUP_ALERT,
	[TIMELINE_MARK] = GROUP_MARK,
	[TIMELINE_APP] = GROUP_APP,
};

struct timeline {
	size_t size;
	uint64_t last; /* serial of the newest entry */
	size_t count;
	uint32_t *order; /* places of the entries, in the order of their serials */
	size_t held[GROUPS];
	struct timeline_entry *past; /* serials without a gap */
	size_t past_count;
	size_t observers;
	struct {
		timeline_observer *call;
		void *ctx;
	} observer[TIMELINE_OBSERVERS];
	struct timeline_entry *entry;
	void *own;	/* the memory of the entries; NULL: it belongs to somebody else */
	size_t damaged; /* entries found there that could not be restored */
};

int timeline_create(size_t entries, struct timeline **ret)
{
	static const uint8_t no_boot[16];
	if (entries > UINT32_MAX / sizeof(struct timeline_entry)) {
		return -ENOMEM;
	}
	void *memory = mem_calloc(1, timeline_bytes(entries));
	int r = memory ? timeline_adopt(memory, entries, no_boot, ret) : -ENOMEM;
	if (r < 0) {
		free(memory);
		return r;
	}
	(*ret)->own = memory;
	return 0;
}

void timeline_destroy(struct timeline *timeline)
{
	if (!timeline) {
		return;
	}
	free(timeline->own);
	free(timeline->past);
	free(timeline->order);
	free(timeline);
}

size_t timeline_bytes(size_t entries)
{
	return sizeof(struct runhead) + entries * sizeof(struct timeline_entry);
}

/* Of an entry with this serial, which it does not have yet. */
static uint32_t check_of(const struct timeline_entry *entry, uint64_t serial)
{
	struct timeline_entry copy = *entry;
	copy.serial = serial;
	copy.check = 0;
	return fnv32(FNV32_BASIS, &copy, offsetof(struct timeline_entry, text) + sizeof(copy.text));
}

/* What an earlier process wrote may be anything: only whole entries count, and their texts are
 * cleaned again. */
static bool entry_take(struct timeline_entry *entry)
{
	uint64_t serial = __atomic_load_n(&entry->serial, __ATOMIC_ACQUIRE);
	if (serial == 0 || serial >= UINT64_MAX / 2 || entry->check != check_of(entry, serial) ||
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

/* The place in the order of the first entry with a serial >= serial. */
static size_t order_at(const struct timeline *timeline, uint64_t serial)
{
	size_t low = 0, high = timeline->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (timeline->entry[timeline->order[middle]].serial < serial) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

static void order_insert(struct timeline *timeline, size_t at, uint32_t place)
{
	memmove(&timeline->order[at + 1], &timeline->order[at],
		(timeline->count - at) * sizeof(*timeline->order));
	timeline->order[at] = place;
	timeline->held[group_of[timeline->entry[place].kind]]++;
	timeline->count++;
}

/* Returns the place that is free then. */
static uint32_t order_remove(struct timeline *timeline, size_t at)
{
	uint32_t place = timeline->order[at];
	timeline->count--;
	timeline->held[group_of[timeline->entry[place].kind]]--;
	memmove(&timeline->order[at], &timeline->order[at + 1],
		(timeline->count - at) * sizeof(*timeline->order));
	return place;
}

/* Places that are not taken follow one another: they are filled from the first on, and given again
 * only when all are. What was damaged is filled by moving the last one there. */
static void take_over(struct timeline *timeline)
{
	for (uint32_t i = 0; i < timeline->size; i++) {
		struct timeline_entry *entry = &timeline->entry[i];
		size_t at = order_at(timeline, entry->serial);
		bool twice = at < timeline->count &&
			     timeline->entry[timeline->order[at]].serial == entry->serial;
		if (!entry_take(entry) || twice) {
			timeline->damaged += entry->serial != 0;
			entry->serial = 0;
			continue;
		}
		uint32_t place = (uint32_t)timeline->count;
		if (place != i) {
			timeline->entry[place] = *entry;
			entry->serial = 0;
		}
		timeline->last = timeline->last > timeline->entry[place].serial
					 ? timeline->last
					 : timeline->entry[place].serial;
		order_insert(timeline, at, place);
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
	const bool ours = runhead_attach(memory, &wanted);
	struct timeline_entry *entry =
		(struct timeline_entry *)(void *)((struct runhead *)memory + 1);
	struct timeline *timeline = mem_zalloc(sizeof(*timeline));
	uint32_t *order = mem_calloc(entries, sizeof(*order));
	if (!timeline || !order) {
		free(timeline);
		free(order);
		return -ENOMEM;
	}
	timeline->size = entries;
	timeline->order = order;
	timeline->entry = entry;
	if (ours) {
		take_over(timeline);
	}
	*ret = timeline;
	return 0;
}

/* A free place: a new one, or that of the oldest of a group that holds more than its share, its own
 * first. */
static uint32_t place_for(struct timeline *timeline, uint8_t group)
{
	if (timeline->count < timeline->size) {
		return (uint32_t)timeline->count;
	}
	size_t share = timeline->size / GROUPS;
	uint8_t gives = group;
	for (uint8_t i = 0; i < GROUPS && timeline->held[group] < (share > 0 ? share : 1); i++) {
		gives = timeline->held[i] > timeline->held[gives] ? i : gives;
	}
	size_t at = 0;
	while (group_of[timeline->entry[timeline->order[at]].kind] != gives) {
		at++;
	}
	return order_remove(timeline, at);
}

static struct timeline_entry *keep(struct timeline *timeline, struct timeline_entry *entry)
{
	uint64_t serial = timeline->last + 1;
	uint32_t index = place_for(timeline, group_of[entry->kind]);
	struct timeline_entry *place = &timeline->entry[index];
	/* without its serial until it is whole: a kill in between leaves no entry */
	__atomic_store_n(&place->serial, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	entry->serial = 0;
	entry->check = check_of(entry, serial);
	*place = *entry;
	__atomic_store_n(&place->serial, serial, __ATOMIC_RELEASE);
	timeline->last = serial;
	order_insert(timeline, timeline->count, index);
	return place;
}

void timeline_add(struct timeline *timeline, uint64_t t_ns, enum timeline_kind kind,
	enum timeline_level level, const char *subject, const char *format, ...)
{
	/* Built aside: subject and arguments may point into the entry that goes. */
	struct timeline_entry entry = {.t_ns = t_ns, .kind = kind, .level = level};
	struct text title = TEXT_IN(entry.subject), text = TEXT_IN(entry.text);
	text_add(&title, "%s", subject ? subject : "");
	va_list args;
	va_start(args, format);
	text_vadd(&text, format, args);
	va_end(args);
	proto_utf8_clean(entry.subject);
	proto_utf8_clean(entry.text);
	struct timeline_entry *place = keep(timeline, &entry);
	for (size_t i = 0; i < timeline->observers; i++) {
		timeline->observer[i].call(timeline->observer[i].ctx, place);
	}
}

/* The serial of this boot's first entry, or of the next one when there is none. */
static uint64_t first_serial(const struct timeline *timeline)
{
	return timeline->count > 0 ? timeline->entry[timeline->order[0]].serial
				   : timeline->last + 1;
}

void timeline_reserve(struct timeline *timeline)
{
	if (timeline->last == 0) {
		timeline->last = TIMELINE_PAST;
	}
}

int timeline_set_past(struct timeline *timeline, const struct timeline_entry *entries, size_t count)
{
	uint64_t first = first_serial(timeline);
	uint64_t room = first - 1 < TIMELINE_PAST ? first - 1 : TIMELINE_PAST;
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
	size_t at = order_at(timeline, serial);
	return at < timeline->count ? &timeline->entry[timeline->order[at]] : NULL;
}

const struct timeline_entry *timeline_back(const struct timeline *timeline, uint64_t serial)
{
	size_t at = serial < UINT64_MAX ? order_at(timeline, serial + 1) : timeline->count;
	if (at > 0) {
		return &timeline->entry[timeline->order[at - 1]];
	}
	size_t past = timeline->past_count;
	while (past > 0 && timeline->past[past - 1].serial > serial) {
		past--;
	}
	return past > 0 ? &timeline->past[past - 1] : NULL;
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
	static const char *const names[TIMELINE_KIND_COUNT] = {
		[TIMELINE_ALERT] = "alert",
		[TIMELINE_MARK] = "mark",
		[TIMELINE_APP] = "app",
		[TIMELINE_SOURCE] = "source",
		[TIMELINE_CLOCK] = "clock",
		[TIMELINE_DAEMON] = "daemon",
		[TIMELINE_THROTTLE] = "throttle",
		[TIMELINE_SILENCED] = "silenced",
		[TIMELINE_HOLD] = "hold",
	};
	return names[kind];
}

const char *timeline_level_name(enum timeline_level level)
{
	static const char *const names[] = {"info", "warning", "critical"};
	return names[level];
}
