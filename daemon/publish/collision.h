/*
 * Two clients with one id: the broker ends the connection of the one when the other connects, so
 * that two daemons that both come back at once push each other out for ever. MQTT 5 can say so
 * (session taken over), MQTT 3.1.1 only closes; mosquitto 2.0.11 only closes either way. So MQTT 5
 * is spoken once connections are lost again and again although the broker is there, and when that
 * gives no answer, further losses are one. Whoever was pushed out stays away for minutes; when the
 * broker did not say so, only as long as after many failures: it may have another reason to close.
 * Pure decisions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum session_how {
	SESSION_FAILED, /* never connected, or it ended for a reason: reset, a message refused */
	SESSION_LOST,	/* was connected and closed in good order */
	SESSION_TAKEN,	/* the broker says: another client connected with this id */
	SESSION_OLD,	/* the broker knows no MQTT 5 */
};

enum {
	COLLISION_ASK = 2,     /* losses in a row after which MQTT 5 is spoken */
	COLLISION_SUSPECT = 4, /* and after which it is one even if the broker says nothing */
	COLLISION_PAUSE = 5,   /* the limit when the broker said so, in longest pauses; else one */
	COLLISION_CALM = 10, /* a connection that held so many times the longest pause: it's over */
};

struct collision {
	unsigned losses; /* in a row, the broker was there each time */
	bool old;	 /* the broker knows no MQTT 5 */
	bool taken;
};

/* Whether to speak MQTT 5 in the next session. */
bool collision_asks(const struct collision *collision);

/* A session ended that was up for up_ns. */
void collision_ended(
	struct collision *collision, enum session_how how, uint64_t up_ns, uint64_t backoff_max_ns);

/* True when a connection that is up so long shows that it is over; it is then forgotten. */
bool collision_calms(struct collision *collision, uint64_t up_ns, uint64_t backoff_max_ns);

/* How long to stay away, from a random number: between half and all of the limit. */
uint64_t collision_pause_ns(enum session_how how, uint64_t backoff_max_ns, uint64_t random);
