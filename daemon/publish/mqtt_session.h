/* One connection to the broker, from name resolution to its end. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/mqtt_link.h"

/* Blocks until the connection ended, failed, or was closed after a stop. Returns how long it was up
 * (0: never) and why it ended. Messages in flight stay so: outbox_return them. */
uint64_t mqtt_session(struct mqtt_link *link, char *reason, size_t size);

/* Around the life of threads that use mqtt_session; main thread, counted by libmosquitto. */
void mqtt_session_init(void);
void mqtt_session_finish(void);
