/* SPDX-License-Identifier: Apache-2.0 */
/* overrides.c: stores acknowledgements, silences and the log of transitions in memory that outlives
 * the process. Nothing in it is trusted at start. */
#include "daemon/core/alerts/overrides.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "daemon/util/runfile.h"

#define MAGIC UINT64_C(0x3273646c6f68) /* "holds2" */

size_t overrides_bytes(void)
{
	return sizeof(struct runhead) + ALERT_ACKS * sizeof(struct alert_ack) +
	       ALERT_SILENCES * sizeof(struct alert_silence) +
	       ALERT_RECORDS * sizeof(struct alert_record);
}

#define ENDS(text) (memchr(text, '\0', sizeof(text)) != NULL)

bool overrides_is_line(const char *text)
{
	while ((unsigned char)*text >= 0x20 && *text != 0x7f) {
		text++;
	}
	return *text == '\0';
}

int overrides_check_instance(const char *glob)
{
	if (strchr(glob, '/')) {
		return proto_glob_check(glob);
	}
	const size_t length = strlen(glob);
	const size_t valid = strspn(glob, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					  "0123456789_.-:*?");
	return length == 0 || length >= PROTO_PATH_SIZE || valid < length ? -EINVAL : 0;
}

static bool ack_is_valid(const struct alert_ack *ack, uint64_t now_ns)
{
	return ack->t_ns <= now_ns && ENDS(ack->rule) && ENDS(ack->instance) && ENDS(ack->note) &&
	       proto_name_valid(ack->rule) && overrides_is_line(ack->instance) &&
	       overrides_is_line(ack->note);
}

static bool silence_is_valid(const struct alert_silence *silence, uint64_t now_ns)
{
	return silence->from_ns <= now_ns && silence->until_ns > silence->from_ns &&
	       silence->until_ns <= now_ns + ALERT_SILENCE_MAX_NS && ENDS(silence->rule) &&
	       ENDS(silence->instance) && ENDS(silence->note) &&
	       proto_glob_check(silence->rule) == 0 && !strchr(silence->rule, '/') &&
	       (silence->instance[0] == '\0' || overrides_check_instance(silence->instance) == 0) &&
	       overrides_is_line(silence->note);
}

static bool record_is_valid(const struct alert_record *record, uint64_t now_ns)
{
	return record->t_ns <= now_ns && record->sent_ns <= now_ns &&
	       record->from <= ALERT_FIRING && record->to <= ALERT_FIRING &&
	       record->severity <= ALERT_CRITICAL && record->from_severity <= ALERT_CRITICAL &&
	       record->unit < UNIT_COUNT_OF_UNITS && ENDS(record->rule) && ENDS(record->instance) &&
	       ENDS(record->metric) && ENDS(record->text) && proto_name_valid(record->rule) &&
	       overrides_is_line(record->instance) && overrides_is_line(record->metric) &&
	       overrides_is_line(record->text);
}

/* A serial out of range would end the count; lists count with 32 bits. True when it was damaged. */
static bool recover(uint64_t *serial, bool valid, uint64_t *last)
{
	if (__atomic_load_n(serial, __ATOMIC_ACQUIRE) == 0) {
		return false;
	}
	if (!valid || *serial > UINT32_MAX / 2) {
		*serial = 0;
		return true;
	}
	*last = *serial > *last ? *serial : *last;
	return false;
}

static size_t recover_all(struct overrides *overrides, uint64_t now_ns)
{
	size_t damaged = 0;
	for (size_t i = 0; i < ALERT_ACKS; i++) {
		struct alert_ack *ack = &overrides->ack[i];
		damaged += recover(&ack->serial, ack_is_valid(ack, now_ns), &overrides->serial);
		overrides->acks = ack->serial != 0 ? i + 1 : overrides->acks;
	}
	for (size_t i = 0; i < ALERT_SILENCES; i++) {
		struct alert_silence *silence = &overrides->silence[i];
		damaged += recover(
			&silence->serial, silence_is_valid(silence, now_ns), &overrides->serial);
		overrides->silences = silence->serial != 0 ? i + 1 : overrides->silences;
	}
	for (size_t i = 0; i < ALERT_RECORDS; i++) {
		struct alert_record *record = &overrides->record[i];
		const bool valid = (record->serial - 1) % ALERT_RECORDS == i &&
				   record_is_valid(record, now_ns);
		damaged += recover(&record->serial, valid, &overrides->records);
	}
	return damaged;
}

size_t overrides_attach(
	struct overrides *overrides, void *bytes, const uint8_t boot_id[16], uint64_t now_ns)
{
	const uint32_t shape[] = {sizeof(struct alert_ack), sizeof(struct alert_silence),
		sizeof(struct alert_record), ALERT_ACKS, ALERT_SILENCES, ALERT_RECORDS};
	const struct runhead wanted = runhead_of(MAGIC, overrides_bytes(), shape, 6, boot_id);
	const bool ours = runhead_attach(bytes, &wanted);
	overrides->ack = (struct alert_ack *)(void *)((struct runhead *)bytes + 1);
	overrides->silence = (struct alert_silence *)(void *)(overrides->ack + ALERT_ACKS);
	overrides->record = (struct alert_record *)(void *)(overrides->silence + ALERT_SILENCES);
	overrides->serial = overrides->records = 0;
	overrides->acks = overrides->silences = 0;
	return ours ? recover_all(overrides, now_ns) : 0;
}

void overrides_drop(uint64_t *serial)
{
	__atomic_store_n(serial, 0, __ATOMIC_RELAXED);
	/* what is written into the slot next must not be seen under the old serial */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* All three begin with their serial, which is valid only while the rest is complete. */
static void publish(void *slot, const void *entry, size_t size, uint64_t serial)
{
	overrides_drop(slot);
	memcpy((char *)slot + sizeof(serial), (const char *)entry + sizeof(serial),
		size - sizeof(serial));
	__atomic_store_n((uint64_t *)slot, serial, __ATOMIC_RELEASE);
}

struct alert_ack *overrides_ack(
	const struct overrides *overrides, const char *rule, const char *instance)
{
	for (size_t i = 0; i < overrides->acks; i++) {
		struct alert_ack *ack = &overrides->ack[i];
		if (ack->serial != 0 && strcmp(ack->rule, rule) == 0 &&
			strcmp(ack->instance, instance) == 0) {
			return ack;
		}
	}
	return NULL;
}

int overrides_put_ack(struct overrides *overrides, const struct alert_ack *ack)
{
	struct alert_ack *slot = overrides_ack(overrides, ack->rule, ack->instance);
	for (size_t i = 0; !slot && i < overrides->acks; i++) {
		slot = overrides->ack[i].serial == 0 ? &overrides->ack[i] : NULL;
	}
	if (!slot && overrides->acks == ALERT_ACKS) {
		return -ENOSPC;
	}
	slot = slot ? slot : &overrides->ack[overrides->acks++];
	publish(slot, ack, sizeof(*ack), ++overrides->serial);
	return 0;
}

static bool covers(const struct alert_silence *silence, const struct alert *alert)
{
	return proto_glob_match(silence->rule, alert->rule->name) &&
	       (silence->instance[0] == '\0' ||
		       proto_glob_match(silence->instance, alert->instance) ||
		       proto_glob_match(silence->instance, alert->metric));
}

static bool is_active(const struct alert_silence *silence, uint64_t now_ns)
{
	return silence->serial != 0 && silence->until_ns > now_ns;
}

uint64_t overrides_muted_until(
	const struct overrides *overrides, const struct alert *alert, uint64_t now_ns)
{
	uint64_t until_ns = 0;
	for (size_t i = 0; i < overrides->silences; i++) {
		const struct alert_silence *silence = &overrides->silence[i];
		if (is_active(silence, now_ns) && silence->until_ns > until_ns &&
			covers(silence, alert)) {
			until_ns = silence->until_ns;
		}
	}
	return until_ns;
}

bool overrides_mute_rule(
	const struct overrides *overrides, const struct alert_rule *rule, uint64_t now_ns)
{
	for (size_t i = 0; i < overrides->silences; i++) {
		const struct alert_silence *silence = &overrides->silence[i];
		const bool all =
			silence->instance[0] == '\0' || strcmp(silence->instance, "*") == 0;
		if (is_active(silence, now_ns) && all &&
			proto_glob_match(silence->rule, rule->name)) {
			return true;
		}
	}
	return false;
}

struct alert_silence *overrides_silence(
	const struct overrides *overrides, const char *rule, const char *instance)
{
	for (size_t i = 0; i < overrides->silences; i++) {
		struct alert_silence *silence = &overrides->silence[i];
		if (silence->serial != 0 && strcmp(silence->rule, rule) == 0 &&
			strcmp(silence->instance, instance) == 0) {
			return silence;
		}
	}
	return NULL;
}

/* An index, or -ENOSPC, -EDQUOT. */
static int find_free_silence(const struct overrides *overrides, uint32_t uid)
{
	int index = overrides->silences < ALERT_SILENCES ? (int)overrides->silences : -ENOSPC;
	size_t own = 0;
	for (int i = (int)overrides->silences - 1; i >= 0; i--) {
		index = overrides->silence[i].serial == 0 ? i : index;
		own += overrides->silence[i].serial != 0 && overrides->silence[i].uid == uid;
	}
	return uid != 0 && own >= ALERT_SILENCES_UID ? -EDQUOT : index;
}

int overrides_put_silence(struct overrides *overrides, const struct alert_silence *silence)
{
	struct alert_silence entry = *silence;
	struct alert_silence *slot = overrides_silence(overrides, silence->rule, silence->instance);
	if (slot) {
		entry.from_ns = slot->from_ns;
	} else {
		int index = find_free_silence(overrides, silence->uid);
		if (index < 0) {
			return index;
		}
		slot = &overrides->silence[index];
		overrides->silences += (size_t)index == overrides->silences;
	}
	publish(slot, &entry, sizeof(entry), ++overrides->serial);
	return 0;
}

uint64_t overrides_log(struct overrides *overrides, const struct alert_record *record)
{
	const uint64_t serial = record->serial ? record->serial : ++overrides->records;
	struct alert_record *slot = &overrides->record[(serial - 1) % ALERT_RECORDS];
	publish(slot, record, sizeof(*record), serial);
	return serial;
}

const struct alert_record *overrides_logged(const struct overrides *overrides, uint64_t serial)
{
	const uint64_t last = overrides->records;
	const uint64_t first = last >= ALERT_RECORDS ? last - ALERT_RECORDS + 1 : 1;
	for (serial = serial > first ? serial : first; serial <= last; serial++) {
		const struct alert_record *record =
			&overrides->record[(serial - 1) % ALERT_RECORDS];
		if (record->serial == serial) {
			return record;
		}
	}
	return NULL;
}
