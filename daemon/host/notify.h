/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h: talks to the service manager: READY, STATUS, WATCHDOG, RELOADING, and its sockets.
 * Without one these do nothing. */
#pragma once

#include <stdint.h>

/* The listening Varlink socket that systemd passed (FileDescriptorName=varlink), or -1. */
int notify_listen_fd(void);

void notify_ready(const char *status);
void notify_reloading(void); /* follow with notify_ready */
void notify_stopping(void);

/* How often to feed the watchdog, in ms; 0 = there is none. */
uint64_t notify_watchdog_ms(void);
void notify_watchdog(void);
