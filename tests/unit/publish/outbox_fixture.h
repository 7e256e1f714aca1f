/* SPDX-License-Identifier: Apache-2.0 */
/* outbox_fixture.h: puts messages into an outbox and takes them, for its tests. */
#pragma once

#include "daemon/publish/outbox/outbox.h"
#include "tests/unit/unit.h"

static inline int put(
	struct outbox *outbox, enum outbox_class class, const char *topic, size_t length)
{
	char payload[4096] = {0};
	const struct outbox_entry entry = {.class = class,
		.qos = class == OUTBOX_ALERT,
		.topic = topic,
		.payload = payload,
		.payload_length = length};
	return outbox_put(outbox, &entry);
}

/* Takes the next message, checks its topic, gives it the id. */
static inline void take_is(struct outbox *outbox, const char *topic, int mid)
{
	struct outbox_message *message = outbox_take(outbox, 0);
	ck_assert_ptr_nonnull(message);
	ck_assert_str_eq(message->topic, topic);
	message->mid = mid;
}
