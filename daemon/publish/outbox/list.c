/* The lists of outbox.c: what waits and what flies. */
#include "daemon/publish/outbox/list.h"

#include <stdlib.h>

void outbox_list_append(struct outbox_list *list, struct outbox_message *message)
{
	message->next = NULL;
	if (list->last) {
		list->last->next = message;
	} else {
		list->first = message;
	}
	list->last = message;
	list->messages++;
	list->bytes += message->size;
}

struct outbox_message *outbox_list_shift(struct outbox_list *list)
{
	struct outbox_message *message = list->first;
	if (message) {
		list->first = message->next;
		if (!list->first) {
			list->last = NULL;
		}
		message->next = NULL;
		list->messages--;
		list->bytes -= message->size;
	}
	return message;
}

void outbox_list_unlink(
	struct outbox_list *list, struct outbox_message *before, struct outbox_message *message)
{
	if (before) {
		before->next = message->next;
	} else {
		list->first = message->next;
	}
	if (list->last == message) {
		list->last = before;
	}
	message->next = NULL;
	list->messages--;
	list->bytes -= message->size;
}

void outbox_list_prepend(struct outbox_list *list, const struct outbox_list *front)
{
	if (front->last) {
		front->last->next = list->first;
		list->first = front->first;
		list->last = list->last ? list->last : front->last;
		list->messages += front->messages;
		list->bytes += front->bytes;
	}
}

void outbox_list_free(struct outbox_list *list)
{
	for (struct outbox_message *message; (message = outbox_list_shift(list));) {
		free(message);
	}
}
