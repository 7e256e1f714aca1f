/* Deadlines told at run time: kept here, so that every daemon that comes learns them. */
#pragma once

#include <stdint.h>

#include "client/libedgeprof/thread.h"

/* A daemon has just been attached: all deadlines are due again. From any thread. */
void deadline_resend(void);

/* Writes what is due, as far as there is room; the rest stays due. Under thread_lock, with a slot.
 */
void deadline_flush(struct thread *t, uint64_t now_ns);
