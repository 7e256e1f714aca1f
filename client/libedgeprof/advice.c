/* SPDX-License-Identifier: Apache-2.0 */
/* advice.c: reads the advice that the daemon wrote into the mapping, unless it has expired. Two
 * loads and a coarse clock (no system call; an expiry of 5 s needs no better), no lock. */
#include "client/libedgeprof/private.h"

/* Of this thread's loop; below the of_frames that it counted in last. */
static __thread uint32_t advice_frame __attribute__((tls_model("initial-exec")));

static uint64_t coarse_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return timespec_ns(&t);
}

/* False: nobody is there, or nothing is known. */
static bool advice_read(struct proto_advice *ret)
{
	const uint64_t second_ns = 1000000000u; /* the coarse clock is behind by a tick */
	const struct proto_map_header *header = __atomic_load_n(&process.map, __ATOMIC_ACQUIRE);
	if (!header || process_mode() == PROCESS_OFF) {
		return false;
	}
	/* the time first: the word is never older than it */
	uint64_t at_ns = __atomic_load_n(&header->advice_ns, __ATOMIC_ACQUIRE);
	uint64_t word = __atomic_load_n(&header->advice, __ATOMIC_RELAXED);
	return at_ns != 0 && coarse_ns() + second_ns - at_ns <= PROTO_ADVICE_FRESH_NS + second_ns &&
	       proto_advice_unpack(word, ret);
}

bool edgeprof_advice(struct edgeprof_advice *ret)
{
	struct proto_advice advice;
	if (!advice_read(&advice)) {
		*ret = (struct edgeprof_advice){.level = EDGEPROF_ADVICE_NONE};
		return false;
	}
	*ret = (struct edgeprof_advice){
		.level = (int)advice.level,
		.skip_frames = advice.skip_frames,
		.of_frames = advice.of_frames,
		.target_fps = advice.target_mfps / 1000.0,
	};
	return true;
}

/* Evenly: frame n of the group is skipped where n * skip / of reaches a new whole number. */
bool edgeprof_should_skip(void)
{
	struct proto_advice advice;
	if (!advice_read(&advice) || advice.skip_frames == 0) {
		advice_frame = 0;
		return false;
	}
	uint32_t n = advice_frame % advice.of_frames;
	advice_frame = n + 1;
	return (n + 1) * advice.skip_frames / advice.of_frames >
	       n * advice.skip_frames / advice.of_frames;
}
