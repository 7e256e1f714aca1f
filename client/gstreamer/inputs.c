/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs.c: keeps the buffers that arrived last at a sink pad. One thread at a time pushes into a
 * pad, and one takes from a queue; a filter's entries are overwritten, a queue's are not before
 * they were taken.
 */
#include "client/gstreamer/private.h"

static void store(struct input *to, const struct input *from)
{
	__atomic_store_n(&to->item, from->item, __ATOMIC_RELAXED);
	__atomic_store_n(&to->time, from->time, __ATOMIC_RELAXED);
	__atomic_store_n(&to->at_ns, from->at_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&to->frame, from->frame, __ATOMIC_RELAXED);
}

static struct input load(const struct input *from)
{
	return (struct input){
		.item = __atomic_load_n(&from->item, __ATOMIC_RELAXED),
		.time = __atomic_load_n(&from->time, __ATOMIC_RELAXED),
		.at_ns = __atomic_load_n(&from->at_ns, __ATOMIC_RELAXED),
		.frame = __atomic_load_n(&from->frame, __ATOMIC_RELAXED),
	};
}

void inputs_add(struct pad *pad, const struct input *input)
{
	uint64_t head = pad->head, tail = head;
	if (pad->kind == PAD_OF_QUEUE) {
		tail = __atomic_load_n(&pad->tail, __ATOMIC_ACQUIRE);
	}
	if (head - tail <= pad->mask) { /* a longer queue's last ones are not measured */
		store(&pad->input[head & pad->mask], input);
		__atomic_store_n(&pad->head, head + 1, __ATOMIC_RELEASE);
	}
}

bool inputs_find(const struct pad *pad, uint64_t time, struct input *ret)
{
	uint64_t head = __atomic_load_n(&pad->head, __ATOMIC_ACQUIRE);
	uint64_t oldest = head > pad->mask ? head - pad->mask - 1 : 0;
	for (uint64_t i = head; i-- > oldest;) {
		*ret = load(&pad->input[i & pad->mask]);
		if (ret->time == time) {
			return true;
		}
	}
	return false;
}

bool inputs_take(
	struct pad *pad, const void *item, uint64_t time, struct input *ret, uint64_t *skipped)
{
	uint64_t head = __atomic_load_n(&pad->head, __ATOMIC_ACQUIRE), tail = pad->tail;
	for (uint64_t i = tail; i != head; i++) {
		*ret = load(&pad->input[i & pad->mask]);
		if (ret->item == item && ret->time == time) {
			*skipped = i - tail;
			__atomic_store_n(&pad->tail, i + 1, __ATOMIC_RELEASE);
			return true;
		}
	}
	return false;
}
