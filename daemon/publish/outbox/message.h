/* A message of the outbox: how it is made, and how it lies in the table that outlives the process.
 */
#pragma once

#include "daemon/publish/outbox/outbox.h"

/* One allocation; everything is copied. NULL: no memory. */
struct outbox_message *outbox_message_create(const struct outbox_entry *entry);

/* Its place in the table, or negative: there is none. */
int outbox_message_keep(const struct outbox_message *message, struct keep *keep);

/* What the record says, or NULL when it can't be one of ours. */
struct outbox_message *outbox_message_restore(const struct keep *keep, int place);
