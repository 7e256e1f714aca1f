/* SPDX-License-Identifier: Apache-2.0 */
/* outbox.c: queues messages between mqtt.c (puts) and session.c (takes). Lists under one mutex; the
 * memory of a message is one allocation, made before the lock is taken. */
#include "daemon/publish/outbox/outbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/ratelimit.h"

static const struct ratelimit pace = {
	.interval_ns = UINT64_C(1000000000) / OUTBOX_PACE_PER_S, .burst = 1};

void outbox_init(struct outbox *outbox, size_t max_messages, size_t max_bytes)
{
	*outbox = (struct outbox){
		.max_messages = max_messages, .max_bytes = max_bytes, .window = OUTBOX_IN_FLIGHT};
	pthread_mutex_init(&outbox->lock, NULL);
	for (size_t i = 0; i < OUTBOX_CLASSES; i++) {
		outbox_list_init(&outbox->waiting[i]);
	}
	outbox_list_init(&outbox->flying);
	outbox->missed = &outbox->own_missed;
}

void outbox_finish(struct outbox *outbox)
{
	for (size_t i = 0; i < OUTBOX_CLASSES; i++) {
		outbox_list_free(&outbox->waiting[i]);
	}
	outbox_list_free(&outbox->flying);
	pthread_mutex_destroy(&outbox->lock);
}

/* Locked from here to outbox_put. */

static void keep_message(struct outbox *outbox, struct outbox_message *message)
{
	message->slot = outbox_message_keep(message, &outbox->slots);
	if (message->slot < 0) {
		message->slot = SLOT_NONE;
		slots_set_note(&outbox->slots, ++outbox->unkept);
	}
}

static void unkeep_message(struct outbox *outbox, const struct outbox_message *message)
{
	if (message->slot != SLOT_NONE) {
		slots_remove(&outbox->slots, message->slot);
	} else if (message->must_keep) {
		slots_set_note(&outbox->slots, --outbox->unkept);
	}
}

static void forget(struct outbox *outbox, struct outbox_message *message)
{
	unkeep_message(outbox, message);
	outbox->counts.messages--;
	outbox->counts.bytes -= message->size;
	free(message);
}

static void count_drop(struct outbox *outbox, const struct outbox_message *message)
{
	outbox->counts.dropped[message->class]++;
	missed_add(outbox->missed, message);
}

static void drop_superseded(struct outbox *outbox, const struct outbox_message *newer)
{
	struct outbox_list *list = &outbox->waiting[newer->class];
	struct outbox_message *message;
	TAILQ_FOREACH(message, &list->head, link)
	{
		if (message->retain && strcmp(message->topic, newer->topic) == 0) {
			outbox_list_remove(list, message);
			forget(outbox, message);
			return;
		}
	}
}

static bool fits(const struct outbox *outbox, size_t size)
{
	return outbox->counts.messages < outbox->max_messages && size <= outbox->max_bytes &&
	       outbox->counts.bytes <= outbox->max_bytes - size;
}

static void drop_oldest_summary(struct outbox *outbox)
{
	struct outbox_list *list = &outbox->waiting[OUTBOX_SUMMARY];
	struct outbox_message *oldest = TAILQ_FIRST(&list->head);
	outbox_list_remove(list, oldest);
	count_drop(outbox, oldest);
	forget(outbox, oldest);
}

/* Old summaries are worth little and would hold memory for as long as the broker is away. One that
 * is larger than the half alone may still wait alone. */
static void limit_summaries(struct outbox *outbox, size_t size)
{
	const struct outbox_list *list = &outbox->waiting[OUTBOX_SUMMARY];
	while (list->messages > 0 && (list->messages >= outbox->max_messages / 2 ||
					     list->bytes + size > outbox->max_bytes / 2)) {
		drop_oldest_summary(outbox);
	}
}

static bool fits_without_summaries(const struct outbox *outbox, size_t size)
{
	const struct outbox_list *summaries = &outbox->waiting[OUTBOX_SUMMARY];
	return outbox->counts.messages - summaries->messages < outbox->max_messages &&
	       outbox->counts.bytes - summaries->bytes <= outbox->max_bytes - size;
}

/* same_kind: an event is not superseded by a retained state, which comes with it. */
static bool supersedes(
	const struct outbox_message *newer, const struct outbox_message *message, bool same_kind)
{
	return newer->subject_hash == message->subject_hash &&
	       (!same_kind || newer->retain == message->retain) &&
	       strcmp(newer->subject, message->subject) == 0;
}

/* The oldest alert whose subject has a newer state here, or in coming. */
static bool drop_repeated(
	struct outbox *outbox, const struct outbox_message *coming, bool same_kind)
{
	struct outbox_list *list = &outbox->waiting[OUTBOX_ALERT];
	struct outbox_message *message;
	TAILQ_FOREACH(message, &list->head, link)
	{
		const struct outbox_message *newer = TAILQ_NEXT(message, link);
		while (message->subject[0] != '\0' && newer &&
			!supersedes(newer, message, same_kind)) {
			newer = TAILQ_NEXT(newer, link);
		}
		if (message->subject[0] != '\0' &&
			(newer || supersedes(coming, message, same_kind))) {
			outbox_list_remove(list, message);
			count_drop(outbox, message);
			forget(outbox, message);
			return true;
		}
	}
	return false;
}

/* True when there is room, after dropping as many of the oldest summaries as that takes, and of the
 * alerts what newer ones make obsolete. No summary is dropped for a message that can't fit anyhow:
 * the rest belongs to alerts and to what flies. */
static bool make_room(struct outbox *outbox, const struct outbox_message *message)
{
	if (message->size > outbox->max_bytes) {
		return false;
	}
	while (!fits_without_summaries(outbox, message->size)) {
		if (message->class == OUTBOX_SUMMARY ||
			(!drop_repeated(outbox, message, true) &&
				!drop_repeated(outbox, message, false))) {
			return false;
		}
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
	struct outbox_message *message = outbox_message_create(entry);
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
	if (message && r < 0) {
		count_drop(outbox, message);
	} else if (r < 0) {
		outbox->counts.dropped[entry->class]++;
	} else {
		outbox->counts.messages++;
		outbox->counts.bytes += message->size;
		if (message->must_keep) {
			keep_message(outbox, message);
		}
		r = message->slot != SLOT_NONE;
		outbox_list_append(&outbox->waiting[entry->class], message);
		message = NULL;
	}
	pthread_mutex_unlock(&outbox->lock);
	free(message);
	return r;
}

size_t outbox_restore(struct outbox *outbox, void *memory)
{
	if (!memory) {
		return 0;
	}
	pthread_mutex_lock(&outbox->lock);
	unsigned damaged = slots_init(&outbox->slots, memory, OUTBOX_KEPT, OUTBOX_KEPT_SIZE);
	const uint64_t lost = damaged + slots_note(&outbox->slots);
	outbox->counts.dropped[OUTBOX_ALERT] += lost;
	outbox->missed->others += lost;
	slots_set_note(&outbox->slots, 0);
	uint64_t serial = 0;
	size_t restored = 0;
	for (int slot; (slot = slots_next(&outbox->slots, &serial)) != SLOT_NONE;) {
		struct outbox_message *message = outbox_message_restore(&outbox->slots, slot);
		if (!message || !fits(outbox, message->size)) {
			outbox->counts.dropped[OUTBOX_ALERT]++;
			outbox->missed->others++;
			slots_remove(&outbox->slots, slot);
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

void outbox_restore_missed(struct outbox *outbox, struct missed *memory)
{
	if (memory) {
		missed_repair(memory);
		outbox->missed = memory;
	}
}

bool outbox_take_missed(struct outbox *outbox, struct missed *ret)
{
	pthread_mutex_lock(&outbox->lock);
	const bool any = missed_any(outbox->missed);
	if (any) {
		*ret = *outbox->missed;
		*outbox->missed = (struct missed){.alerts = 0};
	}
	pthread_mutex_unlock(&outbox->lock);
	return any;
}

void outbox_detach(struct outbox *outbox)
{
	pthread_mutex_lock(&outbox->lock);
	outbox->missed = &outbox->own_missed;
	outbox->slots.header = NULL;
	pthread_mutex_unlock(&outbox->lock);
}

static struct outbox_message *next_message(const struct outbox *outbox)
{
	struct outbox_message *alert = TAILQ_FIRST(&outbox->waiting[OUTBOX_ALERT].head);
	return alert ? alert : TAILQ_FIRST(&outbox->waiting[OUTBOX_SUMMARY].head);
}

static bool may_fly(const struct outbox *outbox, const struct outbox_message *message)
{
	const struct outbox_list *flying = &outbox->flying;
	return message && (flying->messages == 0 ||
				  (flying->messages < outbox->window &&
					  flying->bytes + message->size <= OUTBOX_FLIGHT_BYTES));
}

void outbox_pace(struct outbox *outbox)
{
	pthread_mutex_lock(&outbox->lock);
	outbox->paced = outbox->counts.messages;
	outbox->at_once = OUTBOX_PACE_AT_ONCE;
	outbox->pace_ns = 0;
	pthread_mutex_unlock(&outbox->lock);
}

static bool is_its_time(struct outbox *outbox, uint64_t now_ns)
{
	const bool in_time = ratelimit_take(&pace, &outbox->pace_ns, now_ns);
	if (!in_time && outbox->paced > 0 && outbox->at_once == 0 && now_ns > 0) {
		return false;
	}
	outbox->paced -= outbox->paced > 0;
	outbox->at_once -= outbox->at_once > 0;
	return true;
}

struct outbox_message *outbox_take(struct outbox *outbox, uint64_t now_ns)
{
	pthread_mutex_lock(&outbox->lock);
	struct outbox_message *message = next_message(outbox);
	if (may_fly(outbox, message) && is_its_time(outbox, now_ns)) {
		outbox_list_remove(&outbox->waiting[message->class], message);
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
	struct outbox_message *message = TAILQ_FIRST(&outbox->flying.head);
	while (message && message->mid != mid) {
		message = TAILQ_NEXT(message, link);
	}
	if (message) {
		outbox_list_remove(&outbox->flying, message);
		outbox->counts.in_flight--;
		outbox->counts.answered += message->qos > 0;
		if (message->qos > 0 && outbox->window < OUTBOX_IN_FLIGHT) {
			outbox->window *= 2; /* nobody answers QoS 0 */
		}
	}
	return message;
}

bool outbox_answered(struct outbox *outbox, int mid, bool accepted)
{
	pthread_mutex_lock(&outbox->lock);
	struct outbox_message *message = land(outbox, mid);
	if (message && accepted) {
		/* QoS 0 is only written to the socket: nobody knows what became of it. */
		outbox->counts.delivered += message->qos > 0;
		outbox->counts.delivered_tag =
			message->tag ? message->tag : outbox->counts.delivered_tag;
	} else if (message) {
		count_drop(outbox, message);
	}
	if (message) {
		forget(outbox, message);
	}
	pthread_mutex_unlock(&outbox->lock);
	return message != NULL;
}

void outbox_reject(struct outbox *outbox, struct outbox_message *message)
{
	message->mid = -1; /* no id of a message that was sent */
	outbox_answered(outbox, -1, false);
}

bool outbox_return(struct outbox *outbox, bool strike, char *ret_topic, size_t size)
{
	bool given_up = false;
	pthread_mutex_lock(&outbox->lock);
	struct outbox_message *first = TAILQ_FIRST(&outbox->flying.head);
	if (first && strike && !TAILQ_NEXT(first, link) && ++first->strikes == OUTBOX_STRIKES) {
		given_up = true;
		snprintf(ret_topic, size, "%s", first->topic);
		outbox_list_remove(&outbox->flying, first);
		count_drop(outbox, first);
		forget(outbox, first);
	}
	for (struct outbox_message *message;
		(message = TAILQ_LAST(&outbox->flying.head, outbox_head));) {
		outbox_list_remove(&outbox->flying, message);
		message->mid = 0;
		outbox_list_prepend(&outbox->waiting[message->class], message);
		outbox->window = 1;
	}
	outbox->counts.in_flight = 0;
	pthread_mutex_unlock(&outbox->lock);
	return given_up;
}

struct outbox_counts outbox_count(struct outbox *outbox)
{
	pthread_mutex_lock(&outbox->lock);
	struct outbox_counts counts = outbox->counts;
	counts.ready = may_fly(outbox, next_message(outbox));
	counts.ready_ns = outbox->paced > 0 && outbox->at_once == 0 ? outbox->pace_ns : 0;
	pthread_mutex_unlock(&outbox->lock);
	return counts;
}
