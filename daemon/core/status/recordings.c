/* SPDX-License-Identifier: Apache-2.0 */
/* recordings.c: decides which recordings may be made; pure, so that a test can make a day pass. */
#include "daemon/core/status/recordings.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "proto/utf8.h"

#define RECORDS_MAGIC UINT64_C(0x317364726f636572) /* "records1" */
#define DAY_NS UINT64_C(86400000000000)

const char *record_kind_name(enum record_kind kind)
{
	static const char *const names[RECORD_KINDS] = {
		[RECORD_NOW] = "now",
		[RECORD_ALERT] = "alert",
		[RECORD_MISSES] = "misses",
		[RECORD_HANG] = "hang",
	};
	return names[kind];
}

const struct recording *recordings_find(const struct recordings *recordings, const char *name)
{
	for (size_t i = 0; i < recordings->count; i++) {
		if (strcmp(recordings->row[i].name, name) == 0) {
			return &recordings->row[i];
		}
	}
	return NULL;
}

bool record_memory_adopt(struct record_memory *memory, const uint8_t boot_id[16])
{
	const struct runhead wanted = runhead_of(
		RECORDS_MAGIC, sizeof(*memory), (const uint32_t[]){RECORDINGS_A_DAY}, 1, boot_id);
	if (runhead_look(memory, &wanted) == RUNHEAD_OURS) {
		return true;
	}
	*memory = (struct record_memory){.started = {0}};
	runhead_write(memory, &wanted);
	return false;
}

bool record_is_minor(uint32_t flags)
{
	return (flags & (RECORD_CRITICAL | RECORD_OF_PERSON)) == 0;
}

/* Of the last 24 h; a time in the future is not one of ours. */
static bool counts(const struct record_memory *memory, size_t i, uint64_t now_ns)
{
	const uint64_t started = memory->started[i];
	return started != 0 && started <= now_ns + 1 && now_ns + 1 - started < DAY_NS;
}

/* The oldest of those; RECORDINGS_A_DAY: there is none. */
static size_t oldest_with(const struct record_memory *memory, uint8_t flags)
{
	size_t oldest = RECORDINGS_A_DAY;
	for (size_t i = 0; i < RECORDINGS_A_DAY; i++) {
		const bool wanted =
			(memory->flags[i] & (RECORD_CRITICAL | RECORD_OF_PERSON)) == flags;
		if (wanted && (oldest == RECORDINGS_A_DAY ||
				      memory->started[i] < memory->started[oldest])) {
			oldest = i;
		}
	}
	return oldest;
}

/* Whose slot this one takes when none is free. critical: how many there are for critical alerts. */
static size_t evict(const struct record_memory *memory, uint32_t flags, size_t critical)
{
	size_t slot = RECORDINGS_A_DAY;
	if ((flags & RECORD_OF_PERSON) ||
		((flags & RECORD_CRITICAL) && critical < RECORDINGS_AUTOMATIC - RECORDINGS_MINOR)) {
		slot = oldest_with(memory, 0);
	}
	if (slot == RECORDINGS_A_DAY && (flags & RECORD_OF_PERSON)) {
		slot = oldest_with(memory, RECORD_CRITICAL);
	}
	return slot;
}

bool record_memory_start(struct record_memory *memory, uint64_t now_ns, uint32_t flags)
{
	enum { AUTOMATIC, MINOR, OF_APPS, OF_APPS_MINOR, LIMITS };
	static const struct {
		uint8_t mask, bits; /* those that it limits */
		size_t max;
	} limits[LIMITS] = {
		[AUTOMATIC] = {RECORD_OF_PERSON, 0, RECORDINGS_AUTOMATIC},
		[MINOR] = {RECORD_OF_PERSON | RECORD_CRITICAL, 0, RECORDINGS_MINOR},
		[OF_APPS] = {RECORD_OF_PERSON | RECORD_OF_APP, RECORD_OF_APP, RECORDINGS_OF_APPS},
		[OF_APPS_MINOR] = {RECORD_OF_PERSON | RECORD_OF_APP | RECORD_CRITICAL,
			RECORD_OF_APP, RECORDINGS_OF_APPS_MINOR},
	};
	size_t slot = RECORDINGS_A_DAY, used[LIMITS] = {0};
	for (size_t i = 0; i < RECORDINGS_A_DAY; i++) {
		if (!counts(memory, i, now_ns)) {
			slot = slot == RECORDINGS_A_DAY ? i : slot;
			continue;
		}
		for (size_t k = 0; k < LIMITS; k++) {
			used[k] += (memory->flags[i] & limits[k].mask) == limits[k].bits;
		}
	}
	for (size_t k = 0; k < LIMITS; k++) {
		if ((flags & limits[k].mask) == limits[k].bits && used[k] >= limits[k].max) {
			return false;
		}
	}
	slot = slot == RECORDINGS_A_DAY ? evict(memory, flags, used[AUTOMATIC] - used[MINOR])
					: slot;
	if (slot == RECORDINGS_A_DAY) {
		return false;
	}
	memory->started[slot] = now_ns + 1;
	memory->flags[slot] = (uint8_t)flags;
	return true;
}

bool record_metric_of_app(const char *metric)
{
	static const char *const groups[] = {
		"app/", "stage/", "frame/", "gauge/", "counter/", "process/"};
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (strncmp(metric, groups[i], strlen(groups[i])) == 0) {
			return true;
		}
	}
	return false;
}

static bool taken(void *ctx, const char *name)
{
	const struct recordings *recordings = ctx;
	return recordings_find(recordings, name) || strcmp(recordings->open, name) == 0;
}

int record_name(const struct recordings *recordings, int64_t time_us, enum record_kind kind,
	const char *subject, char ret[PROTO_NAME_SIZE])
{
	char text[256], stamp[32];
	struct tm tm;
	time_t seconds = (time_t)(time_us / 1000000);
	if (!gmtime_r(&seconds, &tm) || strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm) == 0) {
		snprintf(stamp, sizeof(stamp), "19700101-000000");
	}
	snprintf(text, sizeof(text), "%s-%s%s%s", stamp, record_kind_name(kind),
		subject[0] ? "-" : "", subject);
	/* only compared */
	return proto_name_unique(text, strlen(text), taken, (void *)(uintptr_t)recordings, ret);
}

void record_text_clean(char *text)
{
	size_t left = strlen(text);
	while (left > 0) {
		uint32_t c = 0;
		size_t length = proto_utf8_decode(text, left, &c);
		if (length == 0 || proto_utf8_is_hidden(c) || c == '"' || c == '\\') {
			length = length > 0 ? length : 1;
			memset(text, '_', length);
		}
		text += length;
		left -= length;
	}
}

size_t recording_before_bytes(size_t max_bytes, uint64_t before_ns, uint64_t after_ns)
{
	size_t records = max_bytes / 8 * 5;
	double share =
		before_ns + after_ns == 0 ? 1 : (double)before_ns / (double)(before_ns + after_ns);
	return (size_t)((double)records * (share > 0.5 ? share : 0.5));
}

bool record_burst(struct record_bursts *bursts, uint64_t key, double misses, uint64_t consecutive,
	uint64_t now_ns)
{
	size_t at = 0;
	if (!(misses >= BURST_MISSES) && !(misses > 0 && consecutive >= BURST_CONSECUTIVE)) {
		return false;
	}
	for (size_t i = 0; i < RECORDING_BURSTS; i++) {
		if (bursts->burst[i].key == key) {
			at = i;
			break;
		}
		if (bursts->burst[i].last_ns < bursts->burst[at].last_ns) {
			at = i;
		}
	}
	uint64_t last_ns = bursts->burst[at].key == key ? bursts->burst[at].last_ns : 0;
	bursts->burst[at].key = key;
	bursts->burst[at].last_ns = now_ns;
	return last_ns == 0 || now_ns - last_ns > BURST_CALM_NS;
}
