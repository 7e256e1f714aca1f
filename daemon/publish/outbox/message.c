/* SPDX-License-Identifier: Apache-2.0 */
/* message.c: makes messages, and copies them to and from the slots that outlive the process; what a
 * slot holds may be damaged. */
#include "daemon/publish/outbox/message.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"
#include "proto/fnv.h"

/* Before topic, subject (both with NUL) and payload of a kept message. Without KEPT_TIME an older
 * version wrote it, without a time. */
struct kept_head {
	uint8_t qos, flags;
};

enum { KEPT_RETAIN = 1, KEPT_SUBJECT = 2, KEPT_TIME = 4 };

/* glibc: a word before each block, blocks in steps of two words. */
static size_t allocated(size_t size)
{
	const size_t step = 2 * sizeof(size_t);
	return (size + sizeof(size_t) + step - 1) / step * step;
}

struct outbox_message *outbox_message_create(const struct outbox_entry *entry)
{
	const char *subject = entry->subject ? entry->subject : "";
	size_t topic_size = strlen(entry->topic) + 1, subject_size = strlen(subject) + 1;
	size_t size =
		sizeof(struct outbox_message) + topic_size + subject_size + entry->payload_length;
	struct outbox_message *message = mem_zalloc(size);
	if (!message) {
		return NULL;
	}
	message->class = entry->class;
	message->qos = entry->qos;
	message->retain = entry->retain;
	message->must_keep = entry->keep;
	message->tag = entry->tag;
	message->t_ns = entry->t_ns;
	message->slot = SLOT_NONE;
	message->size = allocated(size);
	memcpy(message->bytes, entry->topic, topic_size);
	message->topic = message->bytes;
	message->subject = memcpy(message->bytes + topic_size, subject, subject_size);
	message->subject_hash = fnv64_text(FNV64_BASIS, subject);
	message->payload_length = entry->payload_length;
	if (entry->payload_length > 0) {
		char *payload = message->bytes + topic_size + subject_size;
		memcpy(payload, entry->payload, entry->payload_length);
		message->payload = payload;
	}
	return message;
}

int outbox_message_keep(const struct outbox_message *message, struct slots *slots)
{
	const struct kept_head head = {.qos = (uint8_t)message->qos,
		.flags = (uint8_t)(KEPT_SUBJECT | KEPT_TIME | (message->retain ? KEPT_RETAIN : 0))};
	const struct slots_part parts[] = {
		{&head, sizeof(head)},
		{&message->t_ns, sizeof(message->t_ns)},
		{message->topic, strlen(message->topic) + 1},
		{message->subject, strlen(message->subject) + 1},
		{message->payload, message->payload_length},
	};
	return slots_add(slots, parts, sizeof(parts) / sizeof(parts[0]));
}

/* The end of a text of at least one byte, or NULL. */
static const unsigned char *text_end(const unsigned char *text, const unsigned char *end)
{
	return text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;
}

struct outbox_message *outbox_message_restore(const struct slots *slots, int slot)
{
	size_t length;
	const unsigned char *bytes = slots_bytes(slots, slot, &length);
	struct kept_head head = {0};
	memcpy(&head, bytes, length < sizeof(head) ? length : sizeof(head));
	const unsigned char *topic = bytes + sizeof(head), *end = bytes + length;
	uint64_t t_ns = 0;
	if (head.flags & KEPT_TIME && length >= sizeof(head) + sizeof(t_ns)) {
		memcpy(&t_ns, topic, sizeof(t_ns));
		topic += sizeof(t_ns);
	}
	const unsigned char *rest = text_end(topic, end), *subject = NULL;
	if (!rest || rest == topic) {
		return NULL;
	}
	if (head.flags & KEPT_SUBJECT) {
		subject = rest + 1;
		rest = text_end(subject, end);
		if (!rest) {
			return NULL;
		}
	}
	const struct outbox_entry entry = {.class = OUTBOX_ALERT,
		.qos = head.qos == 1 ? 1 : 0,
		.retain = head.flags & KEPT_RETAIN,
		.keep = true,
		.t_ns = t_ns,
		.topic = (const char *)topic,
		.subject = (const char *)subject,
		.payload = rest + 1,
		.payload_length = (size_t)(end - (rest + 1))};
	struct outbox_message *message = outbox_message_create(&entry);
	if (message) {
		message->slot = slot;
	}
	return message;
}

void outbox_list_init(struct outbox_list *list)
{
	TAILQ_INIT(&list->head);
	list->messages = list->bytes = 0;
}

void outbox_list_append(struct outbox_list *list, struct outbox_message *message)
{
	TAILQ_INSERT_TAIL(&list->head, message, link);
	list->messages++;
	list->bytes += message->size;
}

void outbox_list_remove(struct outbox_list *list, struct outbox_message *message)
{
	TAILQ_REMOVE(&list->head, message, link);
	list->messages--;
	list->bytes -= message->size;
}

void outbox_list_prepend(struct outbox_list *list, struct outbox_message *message)
{
	TAILQ_INSERT_HEAD(&list->head, message, link);
	list->messages++;
	list->bytes += message->size;
}

void outbox_list_free(struct outbox_list *list)
{
	for (struct outbox_message *message; (message = TAILQ_FIRST(&list->head));) {
		outbox_list_remove(list, message);
		free(message);
	}
}
