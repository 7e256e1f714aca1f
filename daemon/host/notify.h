/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h: talks to the service manager: READY, STATUS, WATCHDOG, RELOADING, and its sockets.
 * Without one these do nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The listening Varlink socket that systemd passed (FileDescriptorName=varlink), or -1. */
int notify_listen_fd(void);

/* Lines of NAME=VALUE as sd_notify(3) describes them; RELOADING=1 is followed by READY=1. */
void notify_state(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How often to feed the watchdog, in ms; 0 = there is none. */
uint64_t notify_watchdog_ms(void);

/* Whether the service manager shuts the system down. Waits for its answer for at most half a
 * second; none is false. */
bool notify_system_stops(void);
