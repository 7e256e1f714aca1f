/* What stages with edgeprof_stage_options measure besides the time. */
#pragma once

#include <stdint.h>

#include "client/libedgeprof/thread.h"

/* Forgets or sets the options of a declared stage. */
void cost_set_options(uint32_t stage, unsigned options);

/* Notes where the meters stand for the open stage at depth (below PROTO_OPEN_STAGES) of the
 * thread's slot. */
void cost_begin(const struct thread *t, uint32_t depth, uint32_t stage);

/* What they say since cost_begin. The thread's CPU time in us for the COMPLETE record; true when a
 * COST record is wanted too, whose value and frame are filled then. */
bool cost_end(const struct thread *t, uint32_t depth, uint32_t *cpu_us, struct proto_record *cost);
