/* SPDX-License-Identifier: Apache-2.0 */
/* past_private.h: declares what past_frames.c, which puts frames together, and past_order.c share.
 */
#pragma once

#include "daemon/core/diagnose/past_frames.h"

/* wait_ms, which is when each stage began, and when it ended, become waits. */
void past_finish_waits(struct past_frames *past, size_t count);
/* Ascending by end, or where it is not known yet by start; those with UINT64_MAX are dropped. In
 * place; waits are finished before, or nothing ran in them yet. */
void past_sort(struct past_frames *past, size_t count);
/* Leaves those that ended in [from_ns, to_ns], without the first, and sets their deltas. */
void past_select(struct past_frames *past, size_t first, uint64_t from_ns, uint64_t to_ns);
