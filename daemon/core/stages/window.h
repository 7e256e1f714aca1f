/*
 * window.h: packs a word of a stage's recent window: the duration and, in the two highest bits,
 * the hardware's state at the run's end.
 */
#pragma once

#include <stdint.h>

#include "daemon/core/metrics/throttle.h"

#define STAGE_WORD_SHIFT 62
#define STAGE_WORD_DURATION ((UINT64_C(1) << STAGE_WORD_SHIFT) - 1)

static inline uint64_t stage_word(uint64_t duration_ns, enum throttle_value state)
{
	return (duration_ns < STAGE_WORD_DURATION ? duration_ns : STAGE_WORD_DURATION) |
	       (uint64_t)state << STAGE_WORD_SHIFT;
}

static inline uint64_t stage_word_ns(uint64_t word)
{
	return word & STAGE_WORD_DURATION;
}

static inline enum throttle_value stage_word_state(uint64_t word)
{
	return (enum throttle_value)(word >> STAGE_WORD_SHIFT);
}
