/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c: writes slots and acknowledgements without the times that only this boot's clock
 * knows, and reads them in the next boot. */
#include "daemon/core/alerts/snapshot.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/alerts/private.h"
#include "daemon/util/crc32c.h"

#define MAGIC UINT64_C(0x6465766173726c61) /* "alrsaved" */

struct snapshot_header {
	uint64_t magic;
	uint32_t slot_size, slots;
	uint32_t ack_size, acks;
	uint32_t crc; /* of all, with 0 here */
	uint32_t reserved;
};
_Static_assert(sizeof(struct snapshot_header) == ALERTS_SNAPSHOT_EMPTY, "only the header");

size_t alerts_snapshot_bytes(void)
{
	return sizeof(struct snapshot_header) + ALERT_SLOTS * sizeof(struct alert_slot) +
	       ALERT_ACKS * sizeof(struct alert_ack);
}

/* Rounded to seconds: small corrections of the clock are not a change. */
static int64_t since_us(const struct alert_slot *slot, const struct wallclock *wall)
{
	int64_t time_us = slot->since_us ? slot->since_us : wallclock_us(wall, slot->since_ns);
	return time_us - time_us % 1000000;
}

static size_t finish(struct snapshot_header *header, uint8_t *bytes, size_t size)
{
	header->magic = MAGIC;
	header->slot_size = sizeof(struct alert_slot);
	header->ack_size = sizeof(struct alert_ack);
	memcpy(bytes, header, sizeof(*header));
	header->crc = crc32c(0, bytes, size);
	memcpy(bytes, header, sizeof(*header));
	return size;
}

size_t alerts_snapshot_empty(uint8_t *bytes)
{
	struct snapshot_header header = {0};
	return finish(&header, bytes, sizeof(header));
}

size_t alerts_snapshot(const struct alerts *alerts, const struct wallclock *wall, uint8_t *bytes)
{
	struct snapshot_header header = {0};
	size_t size = sizeof(header);
	if (!alerts->store.slot) {
		return 0;
	}
	for (size_t i = 0; i < ALERT_SLOTS; i++) {
		struct alert_slot slot = alerts->store.slot[i];
		if (slot.rule == 0 || (slot.phase == ALERT_OK && slot.notified.phase == ALERT_OK)) {
			continue; /* ok, and that was sent: a deferred one is written */
		}
		slot.since_us = since_us(&slot, wall);
		slot.since_ns = 0;
		slot.clear_since_ns = slot.critical_since_ns = slot.calm_since_ns = ALERT_NEVER;
		slot.notified.tat_ns[0] = slot.notified.tat_ns[1] = 0;
		slot.record = 0;
		slot.flags &= ~(uint32_t)SLOT_SILENCED;
		memcpy(bytes + size, &slot, sizeof(slot));
		size += sizeof(slot);
		header.slots++;
	}
	for (size_t i = 0; i < alerts->overrides.acks; i++) {
		struct alert_ack ack = alerts->overrides.ack[i];
		if (ack.serial == 0) {
			continue;
		}
		ack.t_ns = 0;
		memcpy(bytes + size, &ack, sizeof(ack));
		size += sizeof(ack);
		header.acks++;
	}
	return finish(&header, bytes, size);
}

static bool header_is_valid(const struct snapshot_header *header, const uint8_t *bytes, size_t size)
{
	struct snapshot_header blank = *header;
	blank.crc = 0;
	uint32_t crc = crc32c(0, &blank, sizeof(blank));
	return header->magic == MAGIC && header->slot_size == sizeof(struct alert_slot) &&
	       header->ack_size == sizeof(struct alert_ack) && header->slots <= ALERT_SLOTS &&
	       header->acks <= ALERT_ACKS &&
	       size == sizeof(*header) + header->slots * sizeof(struct alert_slot) +
			       header->acks * sizeof(struct alert_ack) &&
	       header->crc == crc32c(crc, bytes + sizeof(*header), size - sizeof(*header));
}

int alerts_snapshot_restore(void *store, void *overrides, const uint8_t boot_id[16],
	const uint8_t *bytes, size_t size, uint64_t now_ns)
{
	struct snapshot_header header;
	if (alerts_store_is_of(store, boot_id)) {
		return -EALREADY;
	}
	if (size < sizeof(header)) {
		return -EBADMSG;
	}
	memcpy(&header, bytes, sizeof(header));
	if (!header_is_valid(&header, bytes, size)) {
		return -EBADMSG;
	}
	struct alert_store alerts;
	alert_store_attach(&alerts, store, boot_id, now_ns);
	bytes += sizeof(header);
	for (uint32_t i = 0; i < header.slots; i++) {
		struct alert_slot *slot = &alerts.slot[i];
		memcpy(slot, bytes, sizeof(*slot));
		slot->since_ns = now_ns;
		bytes += sizeof(*slot);
	}
	struct overrides acks;
	if (overrides) {
		overrides_attach(&acks, overrides, boot_id, now_ns);
	}
	for (uint32_t i = 0; overrides && i < header.acks; i++) {
		struct alert_ack ack;
		memcpy(&ack, bytes, sizeof(ack));
		ack.t_ns = now_ns;
		overrides_put_ack(&acks, &ack);
		bytes += sizeof(ack);
	}
	return 0;
}
