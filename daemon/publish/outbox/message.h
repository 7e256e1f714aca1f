/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h: declares a message of the outbox, how it is stored in the slots that outlive the
 * process, and a list of messages that knows its size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/util/slots.h"

enum outbox_class { OUTBOX_ALERT, OUTBOX_SUMMARY, OUTBOX_CLASSES };

struct outbox_message {
	TAILQ_ENTRY(outbox_message) link;
	enum outbox_class class;
	int qos;
	bool retain;
	bool must_keep;
	int slot;	  /* in the table; SLOT_NONE */
	int mid;	  /* the thread's, while in flight */
	unsigned strikes; /* connections that ended without a word when it was alone in flight */
	uint64_t tag;
	uint64_t t_ns; /* of what it reports; 0: unknown */
	size_t size;   /* what it counts against the limit: with the allocator's share */
	const char *topic;
	const char *subject; /* "" = none */
	uint64_t subject_hash;
	const void *payload; /* NULL: empty */
	size_t payload_length;
	char bytes[]; /* topic and subject with NUL, payload */
};

/* What outbox_put needs to know of a message; everything is copied. */
struct outbox_entry {
	enum outbox_class class;
	int qos;
	bool retain;
	bool replace;  /* a waiting message of the same topic is superseded: only the newest matters
			*/
	bool keep;     /* survives the process */
	uint64_t t_ns; /* of what it reports; 0: unknown */
	uint64_t tag;  /* reported when it is delivered; 0 = none */
	const char *topic;
	const char *subject; /* whose state it reports: older ones go first; NULL: nothing */
	const void *payload;
	size_t payload_length;
};

struct outbox_list {
	TAILQ_HEAD(outbox_head, outbox_message) head;
	size_t messages, bytes;
};

/* One allocation; everything is copied. NULL: no memory. */
struct outbox_message *outbox_message_create(const struct outbox_entry *entry);

/* Its slot in the table, or negative: there is none. */
int outbox_message_keep(const struct outbox_message *message, struct slots *slots);

/* What the record says, or NULL when it can't be one of ours. */
struct outbox_message *outbox_message_restore(const struct slots *slots, int slot);

void outbox_list_init(struct outbox_list *list);
void outbox_list_append(struct outbox_list *list, struct outbox_message *message);
void outbox_list_prepend(struct outbox_list *list, struct outbox_message *message);
void outbox_list_remove(struct outbox_list *list, struct outbox_message *message);

/* Frees all of them. */
void outbox_list_free(struct outbox_list *list);
