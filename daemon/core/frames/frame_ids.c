/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_ids.c: detects skipped and late frames by their ids. frames.c hands in each finished
 * frame's id; an id is any 64 bits, so every difference here is one of unsigned numbers.
 */
#include "daemon/core/frames/frame_ids.h"

enum { WINDOW = 64 };

/* Seen and expected at `behind` before the last one. */
static bool is_gap(const struct frame_ids_sequence *s, uint64_t id)
{
	uint64_t behind = s->last - id;
	return behind > 0 && behind < WINDOW && id > s->first && !(s->seen >> behind & 1);
}

static void start(struct frame_ids *ids, uint64_t id)
{
	struct frame_ids_sequence *s = &ids->sequence[0];
	if (ids->count < FRAME_IDS_SEQUENCES) {
		s = &ids->sequence[ids->count++];
	} else {
		for (size_t i = 1; i < ids->count; i++) {
			s = ids->sequence[i].used < s->used ? &ids->sequence[i] : s;
		}
	}
	ids->sequences++;
	*s = (struct frame_ids_sequence){.last = id, .seen = 1, .first = id, .used = ids->taken};
}

static void advance(struct frame_ids *ids, struct frame_ids_sequence *s, uint64_t id)
{
	uint64_t ahead = id - s->last;
	if (ahead >= WINDOW) {
		s->jumped_at = s->last;
		s->landed = id;
		s->jump = ahead - 1;
	}
	ids->skipped += ahead - 1;
	s->seen = ahead < WINDOW ? s->seen << ahead | 1 : 1;
	s->last = id;
}

/* How far the sequence's next id is from this one; UINT64_MAX: it is not of this sequence. */
static uint64_t distance(const struct frame_ids_sequence *s, uint64_t id)
{
	uint64_t ahead = id - s->last;
	if (id > s->last && ahead <= FRAME_IDS_JUMP) {
		return ahead - 1;
	}
	return id < s->last && is_gap(s, id) ? s->last - id : UINT64_MAX;
}

/* The sequence whose jump began right before this id, which comes too late to fill a gap. */
static struct frame_ids_sequence *jumped_over(struct frame_ids *ids, uint64_t id)
{
	for (size_t i = 0; i < ids->count; i++) {
		struct frame_ids_sequence *s = &ids->sequence[i];
		if (s->jump > 0 && id == s->jumped_at + 1 && s->last - id >= WINDOW) {
			return s;
		}
	}
	return NULL;
}

bool frame_ids_append(struct frame_ids *ids, uint64_t id)
{
	struct frame_ids_sequence *nearest = NULL;
	uint64_t best = UINT64_MAX;
	ids->taken++;
	for (size_t i = 0; i < ids->count; i++) {
		uint64_t d = distance(&ids->sequence[i], id);
		if (d < best) {
			best = d;
			nearest = &ids->sequence[i];
		}
	}
	if (nearest && id < nearest->last) {
		nearest->seen |= UINT64_C(1) << (nearest->last - id);
		nearest->used = ids->taken;
		ids->out_of_order++;
		ids->skipped--;
		nearest->jump -=
			nearest->jump > 0 && id > nearest->jumped_at && id < nearest->landed;
		return true;
	}
	struct frame_ids_sequence *jumped = jumped_over(ids, id);
	if (jumped && best > 0) {
		ids->skipped -= jumped->jump;
		jumped->first = jumped->landed;
		jumped->jump = 0;
		nearest = NULL;
	}
	if (nearest) {
		nearest->used = ids->taken;
		advance(ids, nearest, id);
	} else {
		start(ids, id);
	}
	return false;
}
