/* A message of the outbox, and a list of them that knows its size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum outbox_class { OUTBOX_ALERT, OUTBOX_SUMMARY, OUTBOX_CLASSES };

struct outbox_message {
	struct outbox_message *next;
	enum outbox_class class;
	int qos;
	bool retain;
	bool must_keep;
	int place; /* in the table; KEEP_NONE */
	int mid;   /* the thread's, while in flight */
	uint64_t tag;
	size_t size; /* what it counts against the limit: with the allocator's share */
	const char *topic;
	const char *subject; /* "" = none */
	uint64_t subject_hash;
	const void *payload; /* NULL: empty */
	size_t payload_length;
	char bytes[]; /* topic and subject with NUL, payload */
};

struct outbox_list {
	struct outbox_message *first, *last;
	size_t messages, bytes;
};

void outbox_list_append(struct outbox_list *list, struct outbox_message *message);

/* The first, no longer in the list; NULL: it is empty. */
struct outbox_message *outbox_list_shift(struct outbox_list *list);

/* Takes out message, whose predecessor is before (NULL: it is the first). */
void outbox_list_unlink(
	struct outbox_list *list, struct outbox_message *before, struct outbox_message *message);

/* Everything of front comes before what list holds. */
void outbox_list_prepend(struct outbox_list *list, const struct outbox_list *front);

/* Frees all of them. */
void outbox_list_free(struct outbox_list *list);
