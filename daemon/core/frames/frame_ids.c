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

/* A new one, in place of the one unused for longest when there are enough. */
static struct frame_ids_sequence *start(struct frame_ids *ids, uint64_t id)
{
	struct frame_ids_sequence *s = &ids->sequence[0];
	if (ids->count < FRAME_IDS_SEQUENCES) {
		s = &ids->sequence[ids->count++];
	}
	for (size_t i = 1; s->used > 0 && i < ids->count; i++) {
		s = ids->sequence[i].used < s->used ? &ids->sequence[i] : s;
	}
	const size_t at = (size_t)(s - ids->sequence);
	for (size_t i = 0; i < ids->count; i++) {
		struct frame_ids_sequence *rest = &ids->sequence[i];
		rest->from = rest->from == at + 1 ? 0 : rest->from;
	}
	*s = (struct frame_ids_sequence){
		.last = id, .seen = 1, .first = id, .landed = id, .used = ids->taken};
	return s;
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

/* The ones that began by a jump from here are others: this one goes on. */
static void part_from(struct frame_ids *ids, size_t at)
{
	for (size_t i = 0; i < ids->count; i++) {
		struct frame_ids_sequence *s = &ids->sequence[i];
		if (s->from == at + 1) {
			ids->skipped -= s->jump;
			ids->sequences++;
			s->first = s->landed;
			s->jump = s->from = 0;
		}
	}
}

static void fill_gap(struct frame_ids *ids, struct frame_ids_sequence *s, uint64_t id)
{
	s->seen |= UINT64_C(1) << (s->last - id);
	s->jump -= s->jump > 0 && id < s->landed;
	ids->skipped--;
	ids->out_of_order++;
}

static void jump(struct frame_ids *ids, size_t at, uint64_t id)
{
	const uint64_t last = ids->sequence[at].last;
	struct frame_ids_sequence *s = start(ids, id);
	s->first = last;
	s->jump = id - last - 1;
	s->from = at + 1;
	ids->skipped += s->jump;
}

bool frame_ids_append(struct frame_ids *ids, uint64_t id)
{
	size_t nearest = 0;
	uint64_t best = UINT64_MAX;
	ids->taken++;
	for (size_t i = 0; i < ids->count; i++) {
		const struct frame_ids_sequence *s = &ids->sequence[i];
		uint64_t d = distance(s, id);
		if (d < best || (d == best && s->used > ids->sequence[nearest].used)) {
			best = d;
			nearest = i;
		}
	}
	if (best == UINT64_MAX) {
		start(ids, id);
		ids->sequences++;
		return false;
	}
	struct frame_ids_sequence *s = &ids->sequence[nearest];
	const uint64_t ahead = id - s->last;
	s->used = ids->taken;
	if (id < s->last) {
		fill_gap(ids, s, id);
		return true;
	}
	if (ahead < WINDOW) {
		part_from(ids, nearest);
		ids->skipped += ahead - 1;
		s->seen = s->seen << ahead | 1;
		s->last = id;
	} else {
		jump(ids, nearest, id);
	}
	return false;
}
