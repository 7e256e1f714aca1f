/* The recorder's rules: pure, so that a test can make a day pass. */
#include "daemon/core/recordings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "proto/utf8.h"

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
	if (memcmp(memory->boot_id, boot_id, sizeof(memory->boot_id)) == 0) {
		return true;
	}
	*memory = (struct record_memory){.started = {0}};
	memcpy(memory->boot_id, boot_id, sizeof(memory->boot_id));
	return false;
}

bool record_memory_start(struct record_memory *memory, uint64_t now_ns)
{
	size_t oldest = 0;
	for (size_t i = 1; i < RECORDINGS_A_DAY; i++) {
		if (memory->started[i] < memory->started[oldest]) {
			oldest = i;
		}
	}
	uint64_t started = memory->started[oldest];
	/* a time that is yet to come is no time of ours */
	if (started != 0 && started <= now_ns + 1 && now_ns + 1 - started < DAY_NS) {
		return false;
	}
	memory->started[oldest] = now_ns + 1;
	return true;
}

static bool taken(void *ctx, const char *name)
{
	return recordings_find(ctx, name) != NULL;
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
		size_t length = proto_utf8_length(text, left);
		if (length == 0 || (unsigned char)*text < 0x20 || *text == '"' || *text == '\\' ||
			*text == 0x7f) {
			*text = '_';
			length = 1;
		}
		text += length;
		left -= length;
	}
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
