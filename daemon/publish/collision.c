/* Asked by the broker's thread between its sessions. */
#include "daemon/publish/collision.h"

bool collision_asks(const struct collision *collision)
{
	return !collision->old && (collision->taken || collision->losses >= COLLISION_ASK);
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

void collision_ended(
	struct collision *collision, enum session_how how, uint64_t up_ns, uint64_t backoff_max_ns)
{
	collision_calms(collision, up_ns, backoff_max_ns);
	switch (how) {
	case SESSION_FAILED:
		collision->losses = 0; /* a broker that is away explains the loss before */
		collision->old = false;
		break;
	case SESSION_OLD:
		collision->old = true;
		break;
	case SESSION_TAKEN:
		collision->taken = true;
		collision->losses++;
		break;
	case SESSION_LOST:
		collision->losses++;
		collision->taken = collision->taken || collision->losses >= COLLISION_SUSPECT;
		break;
	}
}

uint64_t collision_pause_ns(enum session_how how, uint64_t backoff_max_ns, uint64_t random)
{
	uint64_t half_ns = (how == SESSION_TAKEN ? COLLISION_PAUSE : 1) * backoff_max_ns / 2;
	return half_ns + random % (half_ns + 1);
}
