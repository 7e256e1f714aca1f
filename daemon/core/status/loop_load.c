/* SPDX-License-Identifier: Apache-2.0 */
/* loop_load.c: counts how long the event loop was busy in each iteration. The longest iterations
 * of the last minute stand in a ring of spans of ten seconds. */
#include "daemon/core/status/loop_load.h"

#define SPAN_NS UINT64_C(10000000000)

const uint32_t loop_bound_us[LOOP_BOUNDS] = {500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

static void spans_move(struct loop_load *load, uint64_t now_ns)
{
	uint64_t span = now_ns / SPAN_NS;
	for (unsigned i = 0; load->span < span && i < LOOP_SPANS; i++) {
		uint64_t next =
			span - load->span > LOOP_SPANS ? span - LOOP_SPANS + 1 : load->span + 1;
		load->span_us[next % LOOP_SPANS] = 0;
		load->span = next;
	}
}

void loop_load_add(struct loop_load *load, uint32_t busy_us, uint64_t now_ns)
{
	unsigned bound = 0;
	while (bound < LOOP_BOUNDS && busy_us > loop_bound_us[bound]) {
		bound++;
	}
	load->count[bound]++;
	spans_move(load, now_ns);
	uint32_t *longest_us = &load->span_us[load->span % LOOP_SPANS];
	*longest_us = busy_us > *longest_us ? busy_us : *longest_us;
	load->longest_us = busy_us > load->longest_us ? busy_us : load->longest_us;
}

uint32_t loop_load_minute(struct loop_load *load, uint64_t now_ns)
{
	uint32_t longest_us = 0;
	spans_move(load, now_ns);
	for (unsigned i = 0; i < LOOP_SPANS; i++) {
		longest_us = load->span_us[i] > longest_us ? load->span_us[i] : longest_us;
	}
	return longest_us;
}
