/*
 * Meters of opted-in stages: system calls at their begin and end. Where the meters stood is kept by
 * slot and depth, in memory that is touched only when there is such a stage.
 */
#include "client/libedgeprof/cost.h"

#include <time.h>

#include "client/libedgeprof/memory.h"

static uint8_t options_of[PROTO_DECLARATIONS];

static struct cost {
	uint64_t cpu_ns, process_cpu_ns, resident_bytes; /* UINT64_MAX: not measured */
} costs[THREAD_SLOTS][PROTO_OPEN_STAGES];

void cost_set_options(uint32_t stage, unsigned options)
{
	options &= EDGEPROF_CPU_TIME | EDGEPROF_PROCESS_CPU | EDGEPROF_RSS;
	__atomic_store_n(&options_of[stage], (uint8_t)options, __ATOMIC_RELAXED);
	__atomic_store_n(
		&stage_state[stage], options ? STAGE_MEASURED : STAGE_PLAIN, __ATOMIC_RELAXED);
}

static uint64_t cpu_clock(clockid_t clock)
{
	struct timespec ts;
	return clock_gettime(clock, &ts) == 0
		       ? (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec
		       : UINT64_MAX;
}

static uint64_t resident(void)
{
	struct memory memory;
	return memory_read(&memory) == 0 ? memory.resident_bytes : UINT64_MAX;
}

void cost_begin(const struct thread *t, uint32_t depth, uint32_t stage)
{
	unsigned options = __atomic_load_n(&options_of[stage], __ATOMIC_RELAXED);
	struct cost *c = &costs[t->index][depth];
	/* the thread's own time last: it is the one that the others would be seen in */
	c->resident_bytes = options & EDGEPROF_RSS ? resident() : UINT64_MAX;
	c->process_cpu_ns =
		options & EDGEPROF_PROCESS_CPU ? cpu_clock(CLOCK_PROCESS_CPUTIME_ID) : UINT64_MAX;
	c->cpu_ns = options & EDGEPROF_CPU_TIME ? cpu_clock(CLOCK_THREAD_CPUTIME_ID) : UINT64_MAX;
}

static uint64_t since(uint64_t begin_ns, clockid_t clock)
{
	uint64_t end_ns = begin_ns != UINT64_MAX ? cpu_clock(clock) : UINT64_MAX;
	return end_ns != UINT64_MAX ? end_ns - begin_ns : UINT64_MAX;
}

bool cost_end(const struct thread *t, uint32_t depth, uint32_t *cpu_us, struct proto_record *cost)
{
	const struct cost *c = &costs[t->index][depth];
	uint64_t cpu_ns = since(c->cpu_ns, CLOCK_THREAD_CPUTIME_ID);
	if (cpu_ns == UINT64_MAX) {
		*cpu_us = PROTO_CPU_NOT_MEASURED;
	} else {
		uint64_t us = (cpu_ns + 500) / 1000;
		*cpu_us =
			us < PROTO_CPU_NOT_MEASURED - 1 ? (uint32_t)us : PROTO_CPU_NOT_MEASURED - 1;
	}
	cost->value = since(c->process_cpu_ns, CLOCK_PROCESS_CPUTIME_ID);
	uint64_t end = c->resident_bytes != UINT64_MAX ? resident() : UINT64_MAX;
	int64_t growth = end != UINT64_MAX ? (int64_t)(end - c->resident_bytes) : INT64_MIN;
	cost->frame = (uint64_t)growth;
	return cost->value != UINT64_MAX || growth != INT64_MIN;
}
