/* SPDX-License-Identifier: Apache-2.0 */
/* detached.h: starts threads that nobody joins. */
#pragma once

#include <stddef.h>

/* work(ctx) on a detached thread that receives no signals. -EAGAIN, -ENOMEM. */
int detached_start(size_t stack_bytes, void *(*work)(void *ctx), void *ctx);
