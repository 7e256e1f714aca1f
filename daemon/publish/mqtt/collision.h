/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collision.h: detects another client with the same id. The broker ends the connection of one
 * client when the other connects, so two daemons that both reconnect at once evict each other for
 * ever. MQTT 5 can say so (session taken over), MQTT 3.1.1 only closes; mosquitto 2.0.11 only
 * closes either way. MQTT 5 is therefore used once connections are lost repeatedly although the
 * broker is there. When that gives no answer, the evidence is a connection that ends right after it
 * was accepted, several times in a row, while the broker accepts the next one at once each time: a
 * broker that restarts refuses it, and a proxy that closes connections now and then does not close
 * them that soon. The evicted client stays away for minutes; when the broker gave no reason, only
 * as long as after many failures: it may have another reason to close. Pure decisions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum session_how {
	SESSION_FAILED, /* never connected, or it ended for a reason that is known */
	SESSION_RESET,	/* was connected, and the connection broke */
	SESSION_LOST,	/* was connected and closed in good order, nobody said why */
	SESSION_TAKEN,	/* the broker says: another client connected with this id */
	SESSION_OLD,	/* the broker knows no MQTT 5 */
};

enum {
	COLLISION_ASK = 2, /* losses in a row after which MQTT 5 is spoken */
	COLLISION_SUSPECT =
		4,	     /* quick ones in a row that are one even if the broker says nothing */
	COLLISION_PAUSE = 5, /* the limit when the broker said so, in longest pauses; else one */
	COLLISION_CALM = 10, /* a connection that lasted this multiple of the longest pause ends the
				collision */
};

#define COLLISION_QUICK_NS UINT64_C(5000000000) /* a connection that ended sooner ended at once */

struct collision {
	unsigned losses; /* in a row, the broker was there each time */
	unsigned quick;	 /* the last of them that came right after the connection was accepted */
	bool old;	 /* the broker knows no MQTT 5 */
	bool taken;	 /* there was one, and it has not been calm since */
};

/* Whether to speak MQTT 5 in the next session. */
bool collision_asks(const struct collision *collision);

/* Whether the next session must begin at once: a broker that restarts is not there then. */
bool collision_tries_at_once(const struct collision *collision);

/* A session ended that was up for up_ns. True: another client with our id disconnected us. */
bool collision_ended(
	struct collision *collision, enum session_how how, uint64_t up_ns, uint64_t backoff_max_ns);

/* True when a connection that is up so long shows that it is over; it is then forgotten. */
bool collision_calms(struct collision *collision, uint64_t up_ns, uint64_t backoff_max_ns);

/* How long to stay away, from a random number: between half and all of the limit. */
uint64_t collision_pause_ns(enum session_how how, uint64_t backoff_max_ns, uint64_t random);
