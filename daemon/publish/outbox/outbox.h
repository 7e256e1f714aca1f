/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox.h: queues messages, bounded, between the main loop, which makes them, and the broker's
 * thread, which sends them. There are two classes: alerts are sent first, in order, and kept while
 * there is capacity; summaries use at most half of the queue and are dropped for other messages,
 * oldest first. After them, superseded states of an alert are dropped, never the newest. Drops are
 * counted. A message that the thread took stays owned (and counted) here until it was delivered, or
 * returns to its position when the connection is lost. A message that must not be lost with the
 * process is stored in a table of slots (util/slots.h), too, until it is delivered. Every function
 * holds the lock for a few pointer moves and a copy, never across a call that waits. What waits
 * when the broker comes back is sent evenly, so that a fleet that reconnects together does not fill
 * the broker's queues: a few messages at once, then some each second; a pause earns no credit. A
 * connection that ended with messages in flight may have ended because of one of them, and its
 * answers are lost: the next one starts with one message at a time, and doubles with each answer.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/outbox/message.h"
#include "daemon/publish/outbox/missed.h"

/* libmosquitto holds messages in flight, too: at most OUTBOX_IN_FLIGHT of them, and after the first
 * one at most OUTBOX_FLIGHT_BYTES. */
enum { OUTBOX_IN_FLIGHT = 16, OUTBOX_FLIGHT_BYTES = 64 << 10 };

/* A broker may end the connection at a message that it refuses, and say nothing: after this number
 * of connections the message is given up. Two clients with one id have long pauses by then. */
enum { OUTBOX_STRIKES = 8 };

enum { OUTBOX_PACE_AT_ONCE = 16, OUTBOX_PACE_PER_S = 20 };

/* Counts since the start; messages and bytes are current. delivered: acknowledged, never QoS 0. */
struct outbox_counts {
	size_t messages, bytes, in_flight;
	bool ready;	   /* outbox_take has one to give … */
	uint64_t ready_ns; /* … from then on; 0: at once */
	uint64_t delivered, dropped[OUTBOX_CLASSES];
	uint64_t answered;	/* delivered or refused: the broker said so */
	uint64_t delivered_tag; /* of the last message that had one */
};

struct outbox {
	pthread_mutex_t lock;
	size_t max_messages, max_bytes;
	struct outbox_list waiting[OUTBOX_CLASSES];
	struct outbox_list flying;
	struct outbox_counts counts;
	struct slots slots;
	struct missed *missed, own_missed; /* in the memory that survives, or the latter */
	size_t paced;			   /* messages that are still sent evenly */
	unsigned at_once;		   /* of them, those that need not wait */
	uint64_t pace_ns;		   /* when the next one may be sent; ratelimit.h */
	unsigned window;		   /* messages that may be in flight now */
	uint64_t unkept; /* messages here that would be lost with the process: the table is full */
};

void outbox_init(struct outbox *outbox, size_t max_messages, size_t max_bytes);
void outbox_finish(struct outbox *outbox); /* frees what is left; what is kept stays in the table */

enum { OUTBOX_KEPT = 128, OUTBOX_KEPT_SIZE = 2048 };

/* Memory for slots_size(OUTBOX_KEPT, OUTBOX_KEPT_SIZE): what an earlier process left there waits
 * again, first, in order; what it could not keep counts as dropped. Before the thread is started.
 * NULL: nothing is kept. Returns how many messages are back. */
size_t outbox_restore(struct outbox *outbox, void *memory);

/* The memory where an earlier process left what it gave up, zeroed when new. NULL: none; before the
 * thread is started. */
void outbox_restore_missed(struct outbox *outbox, struct missed *memory);

/* Main loop. Moves what was given up since the last call to ret; false when that is nothing. */
bool outbox_take_missed(struct outbox *outbox, struct missed *ret);

/* Never touches that memory again. */
void outbox_detach(struct outbox *outbox);

/* Main loop. 0, or 1 when the message is in the table, too; -ENOSPC when there is no room, -ENOMEM:
 * both counted as dropped. */
int outbox_put(struct outbox *outbox, const struct outbox_entry *entry);

/* Thread. A connection begins: what waits now is paced, what comes later is sent as it comes. */
void outbox_pace(struct outbox *outbox);

/* Thread. The next message to send, now in flight; NULL when none waits, enough are on their way,
 * or it is not its time yet (now_ns 0: it is). Valid until it is delivered, rejected or returned.
 */
struct outbox_message *outbox_take(struct outbox *outbox, uint64_t now_ns);

/* Thread. The message in flight with this id is done and freed: delivered, or dropped and counted
 * because the broker does not accept it. False when there is none. */
bool outbox_answered(struct outbox *outbox, int mid, bool accepted);

/* Thread. This message can never be sent: dropped and counted. */
void outbox_reject(struct outbox *outbox, struct outbox_message *message);

/* Thread. The connection is gone: what is in flight waits again, before all others, in order.
 * strike: the broker closed it and did not say why. True: a message was given up for that, dropped
 * and counted; its topic is in ret_topic, shortened to size. */
bool outbox_return(struct outbox *outbox, bool strike, char *ret_topic, size_t size);

/* Any thread. */
struct outbox_counts outbox_count(struct outbox *outbox);
