/* The connection to the daemon: found, kept, woken, lost and found again, never waited for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* When the library is loaded, and again at edgeprof_init: events never read the environment, which
 * another thread may be changing. */
void attach_read_environment(void);

/* Names the app (only the first name counts) and looks for a daemon now. 0, or -ENOMEM when a
 * daemon is there and the mapping cannot be made. */
int attach_init(const char *app);

/* When the second is over: is the daemon still there, is there one now? Under thread_lock. */
void attach_check(uint64_t now_ns);

/* Room for so many records was taken since the last call. */
void attach_count(uint32_t records);

/* Tells the daemon that the mapping is past half full. At most once in 1000 counted records and
 * never twice before the daemon drains. */
void attach_wake(void);

/* A daemon holds the mapping, as far as known. */
bool attach_connected(void);

/* The end: nothing is recorded and nobody looked for from now on. */
void attach_close(void);

/* In a forked child: the connection and the memfd are the parent's. */
void attach_forget(void);
