/* Between mqtt.c (puts) and mqtt_session.c (takes). Plain lists under one mutex; the memory of a
 * message is one allocation, made before the lock is taken. */
#include "daemon/publish/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/seam.h"

/* Before topic (with NUL) and payload of a kept message. */
struct kept_head {
	uint8_t qos, retain;
};

void outbox_init(struct outbox *outbox, size_t max_messages, size_t max_bytes)
{
	*outbox = (struct outbox){.max_messages = max_messages, .max_bytes = max_bytes};
	pthread_mutex_init(&outbox->lock, NULL);
}

void outbox_finish(struct outbox *outbox)
{
	for (size_t i = 0; i < OUTBOX_CLASSES; i++) {
		outbox_list_free(&outbox->waiting[i]);
	}
	outbox_list_free(&outbox->flying);
	pthread_mutex_destroy(&outbox->lock);
}

/* glibc: a word before each block, blocks in steps of two words. */
static size_t allocated(size_t size)
{
	const size_t step = 2 * sizeof(size_t);
	return (size + sizeof(size_t) + step - 1) / step * step;
}

static struct outbox_message *message_create(const struct outbox_entry *entry)
{
	size_t topic_size = strlen(entry->topic) + 1;
	size_t size = sizeof(struct outbox_message) + topic_size + entry->payload_length;
	struct outbox_message *message = mem_zalloc(size);
	if (!message) {
		return NULL;
	}
	message->class = entry->class;
	message->qos = entry->qos;
	message->retain = entry->retain;
	message->must_keep = entry->keep;
	message->tag = entry->tag;
	message->place = KEEP_NONE;
	message->size = allocated(size);
	memcpy(message->bytes, entry->topic, topic_size);
	message->topic = message->bytes;
	message->payload_length = entry->payload_length;
	if (entry->payload_length > 0) {
		memcpy(message->bytes + topic_size, entry->payload, entry->payload_length);
		message->payload = message->bytes + topic_size;
	}
	return message;
}

/* Locked from here to outbox_put. */

static void keep_message(struct outbox *outbox, struct outbox_message *message)
{
	const struct kept_head head = {.qos = (uint8_t)message->qos, .retain = message->retain};
	const struct keep_part parts[] = {
		{&head, sizeof(head)},
		{message->topic, strlen(message->topic) + 1},
		{message->payload, message->payload_length},
	};
	message->place = keep_add(&outbox->keep, parts, sizeof(parts) / sizeof(parts[0]));
	if (message->place < 0) {
		message->place = KEEP_NONE;
		keep_set_note(&outbox->keep, ++outbox->unkept);
	}
}

static void unkeep_message(struct outbox *outbox, const struct outbox_message *message)
{
	if (message->place != KEEP_NONE) {
		keep_free(&outbox->keep, message->place);
	} else if (message->must_keep) {
		keep_set_note(&outbox->keep, --outbox->unkept);
	}
}

static void forget(struct outbox *outbox, struct outbox_message *message)
{
	unkeep_message(outbox, message);
	outbox->counts.messages--;
	outbox->counts.bytes -= message->size;
	free(message);
}

static void count_drop(struct outbox *outbox, enum outbox_class class)
{
	switch (class) {
	case OUTBOX_ALERT:
		outbox->counts.dropped_alerts++;
		break;
	case OUTBOX_SUMMARY:
		outbox->counts.dropped_summaries++;
		break;
	case OUTBOX_CLASSES:
		break;
	}
}

static void drop_superseded(struct outbox *outbox, const struct outbox_message *newer)
{
	struct outbox_list *list = &outbox->waiting[newer->class];
	struct outbox_message *before = NULL;
	for (struct outbox_message *message = list->first; message; message = message->next) {
		if (message->retain && strcmp(message->topic, newer->topic) == 0) {
			outbox_list_unlink(list, before, message);
			forget(outbox, message);
			return;
		}
		before = message;
	}
}

static bool fits(const struct outbox *outbox, size_t size)
{
	return outbox->counts.messages < outbox->max_messages && size <= outbox->max_bytes &&
	       outbox->counts.bytes <= outbox->max_bytes - size;
}

static void drop_oldest_summary(struct outbox *outbox)
{
	forget(outbox, outbox_list_shift(&outbox->waiting[OUTBOX_SUMMARY]));
	outbox->counts.dropped_summaries++;
}

/* Old summaries are worth little and would hold memory for as long as the broker is away. One that
 * is larger than the half alone may still wait alone. */
static void limit_summaries(struct outbox *outbox, size_t size)
{
	const struct outbox_list *list = &outbox->waiting[OUTBOX_SUMMARY];
	while (list->first && (list->messages >= outbox->max_messages / 2 ||
				      list->bytes + size > outbox->max_bytes / 2)) {
		drop_oldest_summary(outbox);
	}
}

/* True when there is room, after dropping as many of the oldest summaries as that takes. Nothing is
 * dropped for a message that can't fit anyhow: the rest belongs to alerts and to what flies. */
static bool make_room(struct outbox *outbox, const struct outbox_message *message)
{
	const struct outbox_list *summaries = &outbox->waiting[OUTBOX_SUMMARY];
	if (outbox->counts.messages - summaries->messages >= outbox->max_messages ||
		message->size > outbox->max_bytes ||
		outbox->counts.bytes - summaries->bytes > outbox->max_bytes - message->size) {
		return false;
	}
	if (message->class == OUTBOX_SUMMARY) {
		limit_summaries(outbox, message->size);
	}
	while (!fits(outbox, message->size)) {
		drop_oldest_summary(outbox);
	}
	return true;
}

int outbox_put(struct outbox *outbox, const struct outbox_entry *entry)
{
	int r = 0;
	struct outbox_message *message = message_create(entry);
	pthread_mutex_lock(&outbox->lock);
	if (!message) {
		r = -ENOMEM;
	} else {
		if (entry->replace) {
			drop_superseded(outbox, message);
		}
		if (!make_room(outbox, message)) {
			r = -ENOSPC;
		}
	}
	if (r < 0) {
		count_drop(outbox, entry->class);
	} else {
		outbox->counts.messages++;
		outbox->counts.bytes += message->size;
		if (message->must_keep) {
			keep_message(outbox, message);
		}
		r = message->place != KEEP_NONE;
		outbox_list_append(&outbox->waiting[entry->class], message);
		message = NULL;
	}
	pthread_mutex_unlock(&outbox->lock);
	free(message);
	return r;
}

/* What the record says, or NULL when it can't be one of ours. */
static struct outbox_message *message_restore(const struct keep *keep, int place)
{
	size_t length;
	const unsigned char *bytes = keep_bytes(keep, place, &length);
	struct kept_head head;
	const unsigned char *topic = bytes + sizeof(head);
	const unsigned char *end =
		length > sizeof(head) ? memchr(topic, '\0', length - sizeof(head)) : NULL;
	if (!end || end == topic) {
		return NULL;
	}
	memcpy(&head, bytes, sizeof(head));
	const struct outbox_entry entry = {.class = OUTBOX_ALERT,
		.qos = head.qos == 1 ? 1 : 0,
		.retain = head.retain == 1,
		.keep = true,
		.topic = (const char *)topic,
		.payload = end + 1,
		.payload_length = length - (size_t)(end + 1 - bytes)};
	struct outbox_message *message = message_create(&entry);
	if (message) {
		message->place = place;
	}
	return message;
}

size_t outbox_restore(struct outbox *outbox, void *memory)
{
	if (!memory) {
		return 0;
	}
	pthread_mutex_lock(&outbox->lock);
	unsigned damaged = keep_init(&outbox->keep, memory, OUTBOX_KEPT, OUTBOX_KEPT_SIZE);
	outbox->counts.dropped_alerts += damaged + keep_note(&outbox->keep);
	keep_set_note(&outbox->keep, 0);
	uint64_t serial = 0;
	size_t restored = 0;
	for (int place; (place = keep_next(&outbox->keep, &serial)) != KEEP_NONE;) {
		struct outbox_message *message = message_restore(&outbox->keep, place);
		if (!message || !fits(outbox, message->size)) {
			outbox->counts.dropped_alerts++;
			keep_free(&outbox->keep, place);
			free(message);
			continue;
		}
		outbox->counts.messages++;
		outbox->counts.bytes += message->size;
		outbox_list_append(&outbox->waiting[OUTBOX_ALERT], message);
		restored++;
	}
	pthread_mutex_unlock(&outbox->lock);
	return restored;
}

void outbox_detach(struct outbox *outbox)
{
	pthread_mutex_lock(&outbox->lock);
	outbox->keep.header = NULL;
	pthread_mutex_unlock(&outbox->lock);
}

static struct outbox_message *next_message(const struct outbox *outbox)
{
	const struct outbox_list *alerts = &outbox->waiting[OUTBOX_ALERT];
	return alerts->first ? alerts->first : outbox->waiting[OUTBOX_SUMMARY].first;
}

static bool may_fly(const struct outbox *outbox, const struct outbox_message *message)
{
	const struct outbox_list *flying = &outbox->flying;
	return message &&
	       (!flying->first || (flying->messages < OUTBOX_IN_FLIGHT &&
					  flying->bytes + message->size <= OUTBOX_FLIGHT_BYTES));
}

struct outbox_message *outbox_take(struct outbox *outbox)
{
	pthread_mutex_lock(&outbox->lock);
	struct outbox_message *message = next_message(outbox);
	if (may_fly(outbox, message)) {
		outbox_list_shift(&outbox->waiting[message->class]);
		message->mid = 0;
		outbox->counts.in_flight++;
		outbox_list_append(&outbox->flying, message);
	} else {
		message = NULL;
	}
	pthread_mutex_unlock(&outbox->lock);
	return message;
}

/* Locked. The message in flight with this id, no longer so; NULL: there is none. */
static struct outbox_message *land(struct outbox *outbox, int mid)
{
	struct outbox_message *before = NULL;
	struct outbox_message *message = outbox->flying.first;
	while (message && message->mid != mid) {
		before = message;
		message = message->next;
	}
	if (message) {
		outbox_list_unlink(&outbox->flying, before, message);
		outbox->counts.in_flight--;
	}
	return message;
}

bool outbox_delivered(struct outbox *outbox, int mid)
{
	pthread_mutex_lock(&outbox->lock);
	struct outbox_message *message = land(outbox, mid);
	if (message) {
		/* QoS 0 is only written to the socket: nobody knows what became of it. */
		outbox->counts.delivered += message->qos > 0;
		if (message->tag != 0) {
			outbox->counts.delivered_tag = message->tag;
		}
		forget(outbox, message);
	}
	pthread_mutex_unlock(&outbox->lock);
	return message != NULL;
}

bool outbox_refused(struct outbox *outbox, int mid)
{
	pthread_mutex_lock(&outbox->lock);
	struct outbox_message *message = land(outbox, mid);
	if (message) {
		count_drop(outbox, message->class);
		forget(outbox, message);
	}
	pthread_mutex_unlock(&outbox->lock);
	return message != NULL;
}

void outbox_reject(struct outbox *outbox, struct outbox_message *message)
{
	message->mid = -1; /* no id of a message that was sent */
	outbox_refused(outbox, -1);
}

void outbox_return(struct outbox *outbox)
{
	pthread_mutex_lock(&outbox->lock);
	struct outbox_list again[OUTBOX_CLASSES] = {0};
	for (struct outbox_message *message; (message = outbox_list_shift(&outbox->flying));) {
		message->mid = 0;
		outbox_list_append(&again[message->class], message);
	}
	for (size_t i = 0; i < OUTBOX_CLASSES; i++) {
		outbox_list_prepend(&outbox->waiting[i], &again[i]);
	}
	outbox->counts.in_flight = 0;
	pthread_mutex_unlock(&outbox->lock);
}

struct outbox_counts outbox_count(struct outbox *outbox)
{
	pthread_mutex_lock(&outbox->lock);
	struct outbox_counts counts = outbox->counts;
	counts.ready = may_fly(outbox, next_message(outbox));
	pthread_mutex_unlock(&outbox->lock);
	return counts;
}
