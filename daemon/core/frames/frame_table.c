/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_table.c: puts frames together from their parts. app_frames.c hands in what records contain
 * and is notified of frames that are done; ids are hostile: the table is a set-associative cache,
 * an id has FRAME_TABLE_WAYS slots.
 */
#include "daemon/core/frames/frame_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

enum { SETS = FRAME_TABLE_FRAMES / FRAME_TABLE_WAYS, SET_BITS = 5 };
_Static_assert(SETS == 1 << SET_BITS, "sets");

int frame_table_create(
	void (*done)(void *ctx, struct frame *frame), void *ctx, struct frame_table **ret)
{
	struct frame_table *table = mem_zalloc(sizeof(*table));
	if (!table) {
		return -ENOMEM;
	}
	table->done = done;
	table->ctx = ctx;
	table->stage_grace_ns = FRAME_TABLE_GRACE_NS;
	table->hot_id = PROTO_NO_FRAME;
	*ret = table;
	return 0;
}

void frame_table_destroy(struct frame_table *table)
{
	free(table);
}

uint8_t frame_table_stage_index(struct frame_table *table, const char *name, bool is_total)
{
	size_t i = 0;
	while (i < table->stages && strcmp(table->stage[i], name) != 0) {
		i++;
	}
	if (i == table->stages && i < FRAME_STAGES) {
		memcpy(table->stage[i], name, strnlen(name, PROTO_NAME_SIZE - 1));
		table->is_total[i] = is_total;
		table->stages++;
	}
	return (uint8_t)i;
}

const char *frame_table_stage(const struct frame_table *table, uint8_t idx)
{
	return idx < table->stages ? table->stage[idx] : "(other)";
}

static void finish(struct frame_table *table, uint32_t at)
{
	struct frame *frame = &table->frame[at];
	table->state[at] = FRAME_DONE;
	table->open[at / 64] &= ~(UINT64_C(1) << at % 64);
	frame->serial = ++table->serial;
	if (table->hot == frame) {
		table->hot_id = PROTO_NO_FRAME;
	}
	table->done(table->ctx, frame);
}

/* Consecutive ids fall evenly into the sets (Knuth 6.4). */
static uint32_t set_of(uint64_t id)
{
	return (uint32_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SET_BITS)) * FRAME_TABLE_WAYS;
}

static void begin(struct frame_table *table, uint32_t at, uint64_t id)
{
	static const struct frame none;
	struct frame *frame = &table->frame[at];
	/* parts are valid by their bits; gcc's memset of this size would be `rep stos`, which is
	 * slow */
	memcpy(frame, &none, offsetof(struct frame, part));
	frame->id = id;
	frame->start_ns = UINT64_MAX;
	table->ids[at] = id;
	table->begun[at] = table->begins++;
	table->state[at] = FRAME_OPEN;
	table->open[at / 64] |= UINT64_C(1) << at % 64;
}

/* The slot to reuse in a set: a free one, else that of the oldest that is done, else that of
 * the oldest. */
static uint32_t victim(const struct frame_table *table, uint32_t set)
{
	static const uint64_t rank[] = {[FRAME_FREE] = 2, [FRAME_DONE] = 1, [FRAME_OPEN] = 0};
	uint32_t best = set;
	uint64_t max = 0;
	for (uint32_t i = 0; i < FRAME_TABLE_WAYS; i++) {
		uint32_t at = set + i;
		uint32_t age = table->begins - table->begun[at];
		uint64_t key = rank[table->state[at]] << 32 | age;
		/* no branches: which one it is nobody can predict */
		best = key > max ? at : best;
		max = key > max ? key : max;
	}
	return best;
}

/* How many frames have begun since, this one included. */
static uint32_t age_of(const struct frame_table *table, uint32_t at)
{
	return table->begins - table->begun[at];
}

/* The newest frame of the id that is older than this age; FRAME_TABLE_FRAMES: none. */
static uint32_t search(const struct frame_table *table, uint64_t id, uint32_t than)
{
	uint32_t set = set_of(id), best = FRAME_TABLE_FRAMES, min = UINT32_MAX;
	for (uint32_t i = 0; i < FRAME_TABLE_WAYS; i++) {
		uint32_t at = set + i;
		uint32_t age = age_of(table, at);
		if (table->ids[at] == id && table->state[at] != FRAME_FREE && age > than &&
			age < min) {
			best = at;
			min = age;
		}
	}
	return best;
}

struct frame *frame_table_find(struct frame_table *table, uint64_t id, uint64_t t_ns)
{
	uint32_t at = search(table, id, 0), newest = at;
	while (at < FRAME_TABLE_FRAMES && table->frame[at].start_ns > t_ns &&
		table->frame[at].end_ns != t_ns) {
		at = search(table, id, age_of(table, at));
	}
	at = at < FRAME_TABLE_FRAMES ? at : newest;
	return at < FRAME_TABLE_FRAMES ? &table->frame[at] : NULL;
}

/* A frame of the same id that is done, and yet not the one that this piece is of: the ids started
 * again. A process that came later may go on with what another one left in a queue, but does not
 * begin with what ran already. */
static bool is_another(const struct frame *frame, const struct frame_piece *piece, bool goes_on)
{
	return (piece->born_ns > frame->end_ns && !goes_on) ||
	       piece->start_ns > frame->end_ns + FRAME_TABLE_GRACE_MAX_NS;
}

/* A piece of a frame that was done: the next ones wait longer. */
static void note_late(
	struct frame_table *table, struct frame *frame, const struct frame_piece *piece)
{
	table->late++;
	frame->late++;
	if (piece->end_ns <= frame->end_ns) {
		return;
	}
	uint64_t lateness = piece->end_ns - frame->end_ns;
	uint64_t grace = lateness < FRAME_TABLE_GRACE_MAX_NS / 2 ? lateness + lateness / 2
								 : FRAME_TABLE_GRACE_MAX_NS;
	uint64_t *kept = frame->has_frame ? &table->frame_grace_ns : &table->stage_grace_ns;
	*kept = grace > *kept ? grace : *kept;
}

/* The stage that the frame began with runs again, after others. */
static bool begins_again(const struct frame_table *table, const struct frame *frame,
	const struct frame_piece *piece, uint8_t idx)
{
	return !table->of_records && !frame->ended_ns && (frame->parts & (frame->parts - 1)) &&
	       frame->part[idx].start_ns == frame->start_ns && piece->start_ns >= frame->end_ns;
}

/* Of a loop that counts like that of the piece's thread. */
static bool is_rivals(
	const struct frame_table *table, const struct frame *frame, const struct frame_piece *piece)
{
	return table->rivals[piece->thread % 64] & frame->threads && !piece->by_id;
}

/* The frame has ended, as far as the piece can be of it. */
static bool is_over(
	const struct frame_table *table, uint32_t at, const struct frame_piece *piece, uint8_t idx)
{
	const struct frame *frame = &table->frame[at];
	bool ran = idx != FRAME_NO_STAGE && (frame->parts >> idx & 1);
	if (is_rivals(table, frame, piece)) {
		return true;
	}
	bool after = frame->ended_ns && piece->start_ns >= frame->ended_ns;
	bool goes_on = idx != FRAME_NO_STAGE && !ran;
	if (table->state[at] == FRAME_DONE && is_another(frame, piece, goes_on)) {
		return true;
	}
	if (after && frame->owner == piece->thread && idx != FRAME_NO_STAGE) {
		return ran || !frame->is_tick;
	}
	uint64_t thread = UINT64_C(1) << piece->thread % 64;
	if (!piece->by_id && table->current[piece->thread % 64] == table->begun[at] + 1) {
		return ran && begins_again(table, frame, piece, idx);
	}
	/* a task's, whose frame will be ended by a record: another thread of it was read ahead */
	bool goes_on_by_id = piece->by_id && table->of_records && !frame->ended_ns &&
			     piece->start_ns <= frame->end_ns + FRAME_TABLE_GRACE_MAX_NS;
	bool far = age_of(table, at) > FRAME_TABLE_NEAR && !goes_on_by_id;
	if (!ran) { /* one thread is never far from itself */
		return far && frame->threads == thread && !piece->by_id;
	}
	bool elsewhere = !piece->by_id && (frame->threads & thread);
	bool ahead = frame->ended_ns && !frame->is_tick && piece->end_ns <= frame->start_ns;
	return after || ahead || elsewhere || far;
}

/* What lies between them. */
static uint64_t distance_ns(const struct frame *frame, const struct frame_piece *piece)
{
	if (piece->end_ns < frame->start_ns) {
		return frame->start_ns - piece->end_ns;
	}
	return piece->start_ns > frame->end_ns ? piece->start_ns - frame->end_ns : 0;
}

/* The piece ends before the later frame begins, and starts after the earlier one began, which ran a
 * stage of the later one: the earlier frame waited in a queue. */
static bool is_between(
	const struct frame *earlier, const struct frame *later, const struct frame_piece *piece)
{
	return piece->end_ns <= later->start_ns && piece->start_ns >= earlier->start_ns &&
	       (earlier->parts & later->parts);
}

/* The slot of the frame that the piece is of; FRAME_TABLE_FRAMES: none that has not ended. The
 * piece may be late: then it is of the one before, or threads that are read one after the other
 * have used the id again already. */
static uint32_t frame_of(
	const struct frame_table *table, const struct frame_piece *piece, uint8_t idx)
{
	uint32_t best = FRAME_TABLE_FRAMES;
	uint64_t min_ns = UINT64_MAX;
	uint32_t at = search(table, piece->id, 0);
	while (at < FRAME_TABLE_FRAMES) {
		const struct frame *frame = &table->frame[at];
		uint64_t far_ns = distance_ns(frame, piece);
		bool nearer =
			far_ns < min_ns || (best < FRAME_TABLE_FRAMES &&
						   is_between(frame, &table->frame[best], piece));
		if (nearer && !is_over(table, at, piece, idx)) {
			best = at;
			min_ns = far_ns;
		}
		if (piece->end_ns >= frame->start_ns && !is_rivals(table, frame, piece)) {
			break;
		}
		at = search(table, piece->id, age_of(table, at));
	}
	return best;
}

static struct frame *use(struct frame_table *table, uint32_t at, const struct frame_piece *piece)
{
	table->hot = &table->frame[at];
	table->hot_id = table->state[at] == FRAME_OPEN ? piece->id : PROTO_NO_FRAME;
	table->hot_thread = piece->thread;
	if (piece->by_id) { /* it says nothing about where a thread is */
		table->hot->by_id = true;
		table->hot_id = PROTO_NO_FRAME;
		table->threads = UINT64_MAX;
	} else {
		table->current[piece->thread % 64] = table->begun[at] + 1;
		table->threads |= UINT64_C(1) << piece->thread % 64;
	}
	return table->hot;
}

/* A slot is needed: those that began as long ago as its frame are done too, in their order, and so
 * are the older ones of a table that fills up, since their slots will be the next. */
static void force(struct frame_table *table, uint32_t at)
{
	enum { OLD = FRAME_TABLE_FRAMES * 3 / 4, OLDEST = FRAME_TABLE_FRAMES * 2 };
	uint8_t of_age[OLDEST] = {0}; /* slot + 1 */
	uint32_t min = age_of(table, at) < OLD ? age_of(table, at) : OLD;
	for (size_t word = 0; word < sizeof(table->open) / sizeof(table->open[0]); word++) {
		for (uint64_t bits = table->open[word]; bits; bits &= bits - 1) {
			uint32_t slot = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
			uint32_t age = age_of(table, slot);
			if (age < OLDEST) {
				of_age[age] = (uint8_t)(slot + 1);
			} else {
				table->forced++;
				finish(table, slot);
			}
		}
	}
	for (uint32_t age = OLDEST - 1; age >= min; age--) {
		if (of_age[age] > 0) {
			table->forced++;
			finish(table, of_age[age] - 1u);
		}
	}
}

static struct frame *begin_of(struct frame_table *table, const struct frame_piece *piece)
{
	uint32_t at = victim(table, set_of(piece->id));
	if (table->state[at] == FRAME_OPEN) {
		force(table, at);
	}
	begin(table, at, piece->id);
	return use(table, at, piece);
}

/* The frame of a piece: found, or begun. */
static struct frame *seek(struct frame_table *table, const struct frame_piece *piece, uint8_t idx)
{
	if (piece->id == table->hot_id && piece->thread == table->hot_thread) {
		return table->hot;
	}
	uint32_t at = frame_of(table, piece, idx);
	if (at == FRAME_TABLE_FRAMES) {
		return begin_of(table, piece);
	}
	struct frame *frame = &table->frame[at];
	if (table->state[at] == FRAME_DONE) {
		note_late(table, frame, piece);
	}
	frame->shared |= idx != FRAME_NO_STAGE && (frame->parts >> idx & 1) &&
			 table->current[piece->thread % 64] != table->begun[at] + 1;
	return use(table, at, piece);
}

/* Another run of a stage that ran in the frame before. */
static void part_add(struct frame_part *part, const struct frame_piece *piece)
{
	uint64_t room_ns = FRAME_BUSY_MAX - frame_part_ns(part);
	uint64_t busy_ns = piece->end_ns - piece->start_ns;
	uint32_t runs = frame_part_runs(part);
	part->busy += busy_ns < room_ns ? busy_ns : room_ns;
	part->busy += (uint64_t)(runs < UINT16_MAX) << FRAME_BUSY_BITS;
	if (piece->start_ns < part->start_ns) {
		part->start_ns = piece->start_ns;
	}
}

struct frame *frame_table_run(
	struct frame_table *table, const struct frame_piece *piece, uint8_t idx, bool nested)
{
	struct frame *frame = seek(table, piece, idx);
	uint64_t busy_ns = piece->end_ns - piece->start_ns;
	if (frame->parts >> idx & 1 && !nested &&
		is_over(table, (uint32_t)(table->hot - table->frame), piece, idx)) {
		frame = begin_of(table, piece);
	}
	frame_extend(frame, piece);
	frame->runs++;
	frame->sum_ns += nested || table->is_total[idx] ? 0 : busy_ns;
	if (frame->parts >> idx & 1) {
		part_add(&frame->part[idx], piece);
	} else {
		frame_part_begin(
			frame, piece, busy_ns < FRAME_BUSY_MAX ? busy_ns : FRAME_BUSY_MAX, idx);
	}
	return frame;
}

/* Two loops whose ids are the same by chance. */
static void note_rivals(struct frame_table *table, uint64_t a, uint64_t b)
{
	table->rivals[a % 64] |= UINT64_C(1) << b % 64;
	table->rivals[b % 64] |= UINT64_C(1) << a % 64;
}

/* Which frame a FRAME record is of; FRAME_TABLE_FRAMES: of another one than is there. */
static uint32_t frame_of_record(
	struct frame_table *table, const struct frame_piece *piece, bool *known)
{
	uint32_t at = frame_of(table, piece, FRAME_NO_STAGE);
	if (at == FRAME_TABLE_FRAMES) {
		return at;
	}
	const struct frame *frame = &table->frame[at];
	bool took_part = frame->threads >> piece->thread % 64 & 1;
	bool own = frame->owner == piece->thread;
	bool lasts = piece->start_ns < piece->end_ns;
	if (!frame->ended_ns) { /* what lies before the record is left of one that had none */
		bool before = took_part && lasts && frame->end_ns < piece->start_ns;
		return before ? FRAME_TABLE_FRAMES : at;
	}
	bool around = own && frame->is_tick && piece->start_ns <= frame->ended_ns && lasts &&
		      frame->ended_ns <= piece->end_ns;
	*known = around || (!own && took_part && !frame->shared);
	if (!own && took_part && frame->shared && !frame->is_tick && lasts) {
		note_rivals(table, frame->owner, piece->thread);
	}
	return *known ? at : FRAME_TABLE_FRAMES;
}

struct frame *frame_table_frame(
	struct frame_table *table, const struct frame_piece *piece, bool *known)
{
	*known = false;
	uint32_t at = frame_of_record(table, piece, known);
	bool there = at < FRAME_TABLE_FRAMES;
	struct frame *frame = there ? use(table, at, piece) : begin_of(table, piece);
	if (!*known || frame->owner == piece->thread) {
		frame->ended_ns = piece->end_ns;
		frame->owner = piece->thread;
		frame->is_tick = piece->start_ns == piece->end_ns;
	}
	frame->has_frame = true;
	if (piece->start_ns < piece->end_ns) {
		frame_extend(frame, piece);
	} else if (piece->end_ns > frame->end_ns) {
		frame->end_ns = piece->end_ns;
	}
	table->of_records = true;
	table->hot_id = PROTO_NO_FRAME; /* what comes next may be of another one */
	return frame;
}

static void add_saturating(uint32_t *sum, uint64_t add)
{
	*sum = add > UINT32_MAX - *sum ? UINT32_MAX : *sum + (uint32_t)add;
}

void frame_table_context(struct frame_table *table, const struct frame_piece *piece,
	uint64_t context, uint32_t run_delay_us)
{
	struct frame *frame = seek(table, piece, FRAME_NO_STAGE);
	frame->has_context = true;
	add_saturating(&frame->voluntary_switches, context & 0xffff);
	add_saturating(&frame->involuntary_switches, context >> 16 & 0xffff);
	add_saturating(&frame->minor_faults, context >> 32 & 0xffff);
	add_saturating(&frame->major_faults, context >> 48);
	if (run_delay_us != PROTO_CPU_NOT_MEASURED) {
		add_saturating(&frame->run_delay_us, run_delay_us);
	}
	if (piece->end_ns > frame->end_ns) {
		frame->end_ns = piece->end_ns;
	}
}

static bool of_one_thread(const struct frame_table *table)
{
	bool one = (table->threads & (table->threads - 1)) == 0;
	return one && !table->of_records && table->late == 0;
}

const struct frame *frame_table_current(const struct frame_table *table)
{
	bool open = table->hot && table->state[table->hot - table->frame] == FRAME_OPEN;
	return open && of_one_thread(table) ? table->hot : NULL;
}

static bool due(const struct frame_table *table, const struct frame *frame, uint64_t horizon_ns)
{
	uint64_t grace = frame->has_frame ? table->frame_grace_ns : table->stage_grace_ns;
	if (frame != table->hot && of_one_thread(table)) {
		grace = 0;
	}
	return horizon_ns == UINT64_MAX ||
	       (horizon_ns >= grace && frame->end_ns <= horizon_ns - grace);
}

/* By their ends; of datagrams that were read together that is one time, so then by their begins. */
static bool is_later(const struct frame_table *table, uint8_t one, uint8_t other)
{
	uint64_t end_ns = table->frame[one].end_ns, other_ns = table->frame[other].end_ns;
	int32_t begun = (int32_t)(table->begun[one] - table->begun[other]);
	return end_ns != other_ns ? end_ns > other_ns : begun > 0;
}

void frame_table_finish_until(struct frame_table *table, uint64_t horizon_ns)
{
	uint8_t order[FRAME_TABLE_FRAMES];
	size_t count = 0;
	for (size_t word = 0; word < sizeof(table->open) / sizeof(table->open[0]); word++) {
		for (uint64_t bits = table->open[word]; bits; bits &= bits - 1) {
			uint8_t at = (uint8_t)(word * 64 + (size_t)__builtin_ctzll(bits));
			if (!due(table, &table->frame[at], horizon_ns)) {
				continue;
			}
			size_t i = count++;
			while (i > 0 && is_later(table, order[i - 1], at)) {
				order[i] = order[i - 1];
				i--;
			}
			order[i] = at;
		}
	}
	for (size_t i = 0; i < count; i++) {
		finish(table, order[i]);
	}
}

size_t frame_table_recent(const struct frame_table *table, const struct frame **ret, size_t n)
{
	size_t count = 0;
	for (size_t at = 0; at < FRAME_TABLE_FRAMES && n > 0; at++) {
		const struct frame *frame = &table->frame[at];
		if (table->state[at] != FRAME_DONE ||
			(count == n && ret[n - 1]->serial > frame->serial)) {
			continue;
		}
		size_t i = count < n ? count++ : n - 1;
		while (i > 0 && ret[i - 1]->serial < frame->serial) {
			ret[i] = ret[i - 1];
			i--;
		}
		ret[i] = frame;
	}
	return count;
}
