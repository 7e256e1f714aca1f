/* SPDX-License-Identifier: Apache-2.0 */
/* collision.c: counts lost connections and decides what they mean. The broker's thread asks between
 * its sessions. */
#include "daemon/publish/mqtt/collision.h"

bool collision_asks(const struct collision *collision)
{
	return !collision->old && (collision->taken || collision->losses >= COLLISION_ASK);
}

bool collision_tries_at_once(const struct collision *collision)
{
	return collision->quick >= COLLISION_ASK && collision->quick < COLLISION_SUSPECT;
}

bool collision_calms(struct collision *collision, uint64_t up_ns, uint64_t backoff_max_ns)
{
	if (up_ns < COLLISION_CALM * backoff_max_ns) {
		return false;
	}
	bool was = collision->taken;
	collision->losses = 0;
	collision->taken = false;
	return was;
}

bool collision_ended(
	struct collision *collision, enum session_how how, uint64_t up_ns, uint64_t backoff_max_ns)
{
	collision_calms(collision, up_ns, backoff_max_ns);
	switch (how) {
	case SESSION_FAILED:
		collision->losses = collision->quick = 0; /* that explains the losses before */
		collision->old = false;
		return false;
	case SESSION_OLD:
		collision->old = true;
		collision->quick = 0;
		return false;
	case SESSION_RESET:
		return false;
	case SESSION_TAKEN:
		collision->losses++;
		collision->taken = true;
		return true;
	case SESSION_LOST:
		collision->losses++;
		collision->quick = up_ns < COLLISION_QUICK_NS ? collision->quick + 1 : 0;
		break;
	}
	bool taken = collision->quick >= COLLISION_SUSPECT;
	collision->taken = collision->taken || taken;
	return taken;
}

uint64_t collision_pause_ns(enum session_how how, uint64_t backoff_max_ns, uint64_t random)
{
	uint64_t half_ns = (how == SESSION_TAKEN ? COLLISION_PAUSE : 1) * backoff_max_ns / 2;
	return half_ns + random % (half_ns + 1);
}
