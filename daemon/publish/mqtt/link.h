/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h: connects to the broker, in the thread: one connection after another, with a growing
 * random pause between them, until it is stopped. It takes ready messages from the outbox and knows
 * nothing of core. The main loop looks at the status after uv_async_send and never waits for the
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/publish/mqtt/options.h"
#include "daemon/publish/mqtt/thread.h"
#include "daemon/publish/outbox/outbox.h"

/* Strings are copied. */
struct mqtt_link_options {
	const struct mqtt_options *mqtt; /* the broker, its security, back-off and queue */
	const char *client_id;
	const char *status_topic; /* retained online | offline, and the will */
	const char *birth_topic;  /* "online" there is counted in births; NULL: none */
	void *kept;		  /* memory of outbox_restore; NULL: none */
	struct missed *missed;	  /* of outbox_restore_missed; NULL: none */
	struct mqtt_thread *thread;
};

enum link_state { LINK_CONNECTING, LINK_CONNECTED, LINK_AWAY };

struct mqtt_link_status {
	enum link_state state;
	unsigned broker;  /* the one that the state is about */
	unsigned lost;	  /* the one of the last loss */
	char reason[160]; /* of the last failure; "" when connected */
	unsigned failed;  /* the broker of the last failure, its reason */
	char failed_reason[160];
	uint64_t failures;
	uint64_t connects, losses; /* since start; a loss is the end of a connection that was up */
	uint64_t births;	   /* of Home Assistant */
	unsigned flaps;		   /* connections in a row that ended within seconds */
	bool taken;    /* another client uses our id; until a connection held for minutes */
	bool pushed;   /* it ended the last connection; until the next one held for seconds */
	bool refused;  /* this connection's broker did not take a message */
	bool finished; /* the thread has left it */
};

struct mqtt_link;

/* The pause after the attempt-th failure in a row (from 0): evenly between 0 and a limit that
 * doubles from min to max (full jitter), so that a fleet does not come back at once. */
uint64_t mqtt_link_backoff_ns(uint64_t min_ns, uint64_t max_ns, unsigned attempt);

/* The thread begins with it, or when it is done with the link before; it sends to async at each
 * change of the status and as messages are delivered. -ENOMEM, -EMFILE. */
int mqtt_link_start(
	const struct mqtt_link_options *options, uv_async_t *async, struct mqtt_link **ret);

/* The pause after one of several brokers failed is over at once, until each was tried. After a loss
 * the one that worked is tried first, then the others in order. */
struct round {
	unsigned first,
		tried; /* of the brokers: the one that a round begins with; failures in it */
};
unsigned round_broker(const struct round *round);
/* A session with that broker ended. True when the round is over: the next one is after a pause. */
bool round_ended(struct round *round, unsigned brokers, bool was_connected);

struct outbox *mqtt_link_outbox(struct mqtt_link *link);
/* Points into the link. */
struct proto_broker mqtt_link_broker(const struct mqtt_link *link, unsigned index);
struct mqtt_link_status mqtt_link_status(struct mqtt_link *link);

/* Messages were put. */
void mqtt_link_wake(struct mqtt_link *link);

/* Asks the thread to end: when connected it has at most 1.8 s to send what waits, then "offline".
 */
void mqtt_link_stop(struct mqtt_link *link);

/* After finished. */
void mqtt_link_destroy(struct mqtt_link *link);

/* The thread hangs in a call that can't be interrupted (name resolution, a connection into a black
 * hole): it never touches async again and frees the link when the call returns. */
void mqtt_link_abandon(struct mqtt_link *link);
