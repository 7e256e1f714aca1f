/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c: spaces messages evenly. A pause earns no credit: the rate is a limit for every second,
 * not a mean. */
#include "daemon/publish/outbox/pace.h"

#define PACE_NS (UINT64_C(1000000000) / PACE_PER_S)

void pace_begin(struct pace *pace, size_t waiting)
{
	*pace = (struct pace){.left = waiting, .burst = PACE_AT_ONCE};
}

uint64_t pace_wait_ns(const struct pace *pace, uint64_t now_ns)
{
	if (pace->left == 0 || pace->burst > 0 || now_ns >= pace->next_ns) {
		return 0;
	}
	return pace->next_ns - now_ns;
}

void pace_sent(struct pace *pace, uint64_t now_ns)
{
	if (pace->left == 0) {
		return;
	}
	pace->left--;
	pace->burst -= pace->burst > 0;
	pace->next_ns = now_ns + PACE_NS;
}
