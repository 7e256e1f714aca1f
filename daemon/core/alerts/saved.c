/* Slots and acknowledgements without what only this boot's clock can tell. */
#include "daemon/core/alerts/saved.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/alerts/private.h"
#include "daemon/util/crc32c.h"

#define SAVED_MAGIC UINT64_C(0x6465766173726c61) /* "alrsaved" */

struct saved_header {
	uint64_t magic;
	uint32_t slot_size, slots;
	uint32_t ack_size, acks;
	uint32_t crc; /* of all, with 0 here */
	uint32_t reserved;
};

size_t alerts_saved_bytes(void)
{
	return sizeof(struct saved_header) + ALERT_SLOTS * sizeof(struct alert_slot) +
	       ALERT_ACKS * sizeof(struct alert_ack);
}

/* To the second: the clock's small corrections are no change. */
static int64_t since_us(const struct alert_slot *slot, const struct wallclock *wall)
{
	int64_t time_us = slot->since_us ? slot->since_us : wallclock_us(wall, slot->since_ns);
	return time_us - time_us % 1000000;
}

static size_t finish(struct saved_header *header, uint8_t *bytes, size_t size)
{
	header->magic = SAVED_MAGIC;
	header->slot_size = sizeof(struct alert_slot);
	header->ack_size = sizeof(struct alert_ack);
	memcpy(bytes, header, sizeof(*header));
	header->crc = crc32c(0, bytes, size);
	memcpy(bytes, header, sizeof(*header));
	return size;
}

size_t alerts_save_nothing(uint8_t *bytes)
{
	struct saved_header header = {0};
	return finish(&header, bytes, sizeof(header));
}

size_t alerts_save(const struct alerts *alerts, const struct wallclock *wall, uint8_t *bytes)
{
	struct saved_header header = {0};
	size_t size = sizeof(header);
	if (!alerts->memory.slot) {
		return 0;
	}
	for (size_t i = 0; i < ALERT_SLOTS; i++) {
		struct alert_slot slot = alerts->memory.slot[i];
		if (slot.rule == 0 || (slot.phase == ALERT_OK && slot.notifier.phase == ALERT_OK)) {
			continue; /* what is ok, but was not sent to be, is deferred */
		}
		slot.since_us = since_us(&slot, wall);
		slot.since_ns = 0;
		slot.clear_since_ns = slot.critical_since_ns = slot.calm_since_ns = ALERT_NEVER;
		slot.notifier.tat_ns[0] = slot.notifier.tat_ns[1] = 0;
		slot.record = 0;
		slot.holds &= ~(uint32_t)SLOT_SILENCED;
		memcpy(bytes + size, &slot, sizeof(slot));
		size += sizeof(slot);
		header.slots++;
	}
	for (size_t i = 0; alerts->holds.ack && i < ALERT_ACKS; i++) {
		struct alert_ack ack = alerts->holds.ack[i];
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

static bool header_is_good(const struct saved_header *header, const uint8_t *bytes, size_t size)
{
	struct saved_header blank = *header;
	blank.crc = 0;
	uint32_t crc = crc32c(0, &blank, sizeof(blank));
	return header->magic == SAVED_MAGIC && header->slot_size == sizeof(struct alert_slot) &&
	       header->ack_size == sizeof(struct alert_ack) && header->slots <= ALERT_SLOTS &&
	       header->acks <= ALERT_ACKS &&
	       size == sizeof(*header) + header->slots * sizeof(struct alert_slot) +
			       header->acks * sizeof(struct alert_ack) &&
	       header->crc == crc32c(crc, bytes + sizeof(*header), size - sizeof(*header));
}

int alerts_load(void *memory, void *holds, const uint8_t boot_id[16], const uint8_t *bytes,
	size_t size, uint64_t now_ns)
{
	struct saved_header header;
	if (alerts_memory_is_of(memory, boot_id)) {
		return -EALREADY;
	}
	if (size < sizeof(header)) {
		return -EBADMSG;
	}
	memcpy(&header, bytes, sizeof(header));
	if (!header_is_good(&header, bytes, size)) {
		return -EBADMSG;
	}
	struct alerts_memory fresh;
	alerts_memory_adopt(&fresh, memory, boot_id, now_ns);
	bytes += sizeof(header);
	for (uint32_t i = 0; i < header.slots; i++) {
		struct alert_slot *slot = &fresh.slot[i];
		memcpy(slot, bytes, sizeof(*slot));
		slot->since_ns = now_ns;
		bytes += sizeof(*slot);
	}
	struct alert_holds acks;
	if (holds) {
		alert_holds_adopt(&acks, holds, boot_id, now_ns);
	}
	for (uint32_t i = 0; holds && i < header.acks; i++) {
		struct alert_ack ack;
		memcpy(&ack, bytes, sizeof(ack));
		ack.t_ns = now_ns;
		alert_holds_put_ack(&acks, &ack);
		bytes += sizeof(ack);
	}
	return 0;
}
