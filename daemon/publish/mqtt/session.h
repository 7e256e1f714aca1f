/* One connection to the broker, from name resolution to its end. */
#pragma once

#include <stdint.h>

#include "daemon/publish/mqtt/link.h"

struct session_end {
	enum session_how how;
	uint64_t up_ns; /* 0: never */
	char reason[160];
};

/* Blocks until the connection ended, failed, or was closed after a stop. Messages in flight stay
 * so: outbox_return them. */
void mqtt_session(struct mqtt_link *link, struct session_end *ret);

/* Around the life of threads that use mqtt_session; main thread, counted by libmosquitto. */
void mqtt_session_init(void);
void mqtt_session_finish(void);
