/* The magic goes first and comes last: a kill in between leaves a file that is nobody's. */
#include "daemon/util/runhead.h"

#include <string.h>

#include "daemon/util/crc32c.h"

static uint32_t sum_of(const struct runhead *head)
{
	return crc32c(0, head, offsetof(struct runhead, crc));
}

struct runhead runhead_of(uint64_t magic, uint64_t bytes, const uint32_t *shape, size_t shapes,
	const uint8_t boot_id[16])
{
	struct runhead head = {.magic = magic, .bytes = bytes};
	memcpy(head.shape, shape, shapes * sizeof(head.shape[0]));
	memcpy(head.boot_id, boot_id, sizeof(head.boot_id));
	head.crc = sum_of(&head);
	return head;
}

enum runhead_found runhead_look(const void *bytes, const struct runhead *wanted)
{
	struct runhead head;
	memcpy(&head, bytes, sizeof(head));
	if (memcmp(&head, wanted, sizeof(head)) == 0) {
		return RUNHEAD_OURS;
	}
	if (head.magic == 0) {
		return RUNHEAD_NOTHING;
	}
	return head.crc == sum_of(&head) && head.reserved == 0 ? RUNHEAD_OTHER : RUNHEAD_DAMAGED;
}

bool runhead_is_damaged(const void *bytes, uint64_t size, uint64_t wanted)
{
	struct runhead head;
	memcpy(&head, bytes, sizeof(head));
	return head.magic != 0 &&
	       (head.crc != sum_of(&head) || size != (head.bytes > 0 ? head.bytes : wanted));
}

void runhead_clear(void *bytes)
{
	__atomic_store_n((uint64_t *)bytes, 0, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void runhead_write(void *bytes, const struct runhead *wanted)
{
	struct runhead unnamed = *wanted;
	unnamed.magic = 0;
	memcpy(bytes, &unnamed, sizeof(unnamed));
	__atomic_store_n((uint64_t *)bytes, wanted->magic, __ATOMIC_RELEASE);
}
