/* Threads that may be left behind: nobody joins them, and no signal is theirs. */
#pragma once

#include <stddef.h>

/* work(ctx) on a thread of its own with a stack of this size. -EAGAIN, -ENOMEM. */
int detached_start(size_t stack_bytes, void *(*work)(void *ctx), void *ctx);
