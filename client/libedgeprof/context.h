/* What happened to the thread of a frame: switches, page faults, waiting for a CPU. */
#pragma once

#include <stdint.h>

#include "client/libedgeprof/thread.h"

/* At a frame's end, behind its record. Under thread_lock, with a slot. Two system calls while the
 * thread's frames are few enough. */
void context_frame(struct thread *t, uint64_t now_ns, uint64_t frame);

/* The thread that had this slot has ended. */
void context_end(uint32_t slot);

/* In a forked child: none of the threads is ours. */
void context_forget(void);
