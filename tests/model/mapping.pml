/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.pml: models the protocol of proto/mapping.h for Spin: W threads of one process publish
 * records, one reader drains them; the reader is killed and attaches again, the process is killed.
 *
 * Memory. Every store goes through its thread's buffer, from which it reaches memory at any later
 * time and in any order, except that stores to one location keep theirs and a release store waits
 * for all earlier ones of its thread. Later stores may overtake a release store, and the store half
 * of a compare and exchange with acquire is not a release (ldaxr, stxr). A kill discards the
 * buffer: what a killed thread has stored is any set of stores that its release stores permit, so
 * this covers the compiler's order as well as the processor's. A new reader starts when nothing of
 * the old one is under way: a process that is dead has left its processor. Loads are satisfied in
 * order, those after head's because it is an acquire load: without that, a record may be loaded
 * before head is (`early`). Reordering among the loads after it is not modelled.
 *
 * Each ordering is weakened by a macro; run.py lists those that the protocol needs, for which
 * the search finds a violation, and those that are implied by them. -DPYTHON is the writer of
 * client/python: plain stores, chunks taken under a lock, and a fence made of two lock sections.
 *
 * Checked: a record that is read is the one written for its position; each position is read in
 * order; tail never decreases and never passes what was read or published; all records between tail
 * and head are in chunks of their slot, in memory, after each store to head and of the reader (so
 * sent = received + dropped + in the ring, with every record of the latter there); the reader writes
 * to no chunk that a thread holds, and no thread takes one that another does;
 * at the end everything was read, nothing was counted twice, and no chunk is left behind; the reader
 * always gets there.
 *
 * Reduced without loss: a record is one word, since each of its words is subject to the same order;
 * a thread issues the stores of a chunk's worth of events at once, since nobody sees a buffer.
 */
#ifndef W
#define W 2 /* writing threads, a slot each */
#endif
#ifndef C
#define C 3 /* chunks */
#endif
#ifndef EVENTS0
#define EVENTS0 3 /* of the first thread */
#endif
#ifndef EVENTS1
#define EVENTS1 3 /* of each other */
#endif
#define EVENTS(s) (s == 0 -> EVENTS0 : EVENTS1)
#ifndef RKILLS
#define RKILLS 1 /* kills of the reader */
#endif
#ifndef WKILLS
#define WKILLS 1 /* kills of the writing process: at most 1 */
#endif
#define CR 2 /* records of a chunk */
#ifndef B
#define B 10 /* stores of a thread under way at most */
#endif

/* memory */
#define HEAD(s) (s)
#define FIRST(s) (W + (s))
#define TAIL(s) (2 * W + (s))
#define TAIL_CHUNK(s) (3 * W + (s))
#define OWNER(c) (4 * W + (c))
#define BASE(c) (4 * W + C + (c))
#define NEXT(c) (4 * W + 2 * C + (c))
#define RECORD(c, p) (4 * W + 3 * C + (c)*CR + (p) % CR)
#define LOCK (4 * W + 3 * C + C * CR)
#define LOCATIONS (LOCK + 1)
#define NONE 255    /* PROTO_NO_CHUNK, PROTO_NO_BASE; no location */
#define FREEING 254 /* PROTO_CHUNK_FREEING */
#define VALUE(s, p) (1 + (s)*64 + (p)) /* of the record at that position */

/* the stores: 1 = release */
#ifdef PYTHON
#define WEAK_HEAD
#define WEAK_BASE
#define WEAK_LINK
#else
#define WEAK_FENCE
#endif
#ifdef WEAK_HEAD
#define REL_HEAD 0
#else
#define REL_HEAD 1
#endif
#ifdef WEAK_BASE
#define REL_BASE 0
#else
#define REL_BASE 1
#endif
#ifdef WEAK_LINK
#define REL_LINK 0
#else
#define REL_LINK 1
#endif
#ifdef WEAK_TAIL
#define REL_TAIL 0
#else
#define REL_TAIL 1
#endif
#ifdef WEAK_TAIL_CHUNK
#define REL_TAIL_CHUNK 0
#else
#define REL_TAIL_CHUNK 1
#endif
#ifdef WEAK_FREEING
#define REL_FREEING 0
#else
#define REL_FREEING 1
#endif
#ifdef WEAK_FREE_BASE
#define REL_FREE_BASE 0
#else
#define REL_FREE_BASE 1
#endif
#ifdef WEAK_FREE_OWNER
#define REL_FREE_OWNER 0
#else
#define REL_FREE_OWNER 1
#endif

byte mem[LOCATIONS];

/* The stores under way of thread t: entries t * B to t * B + count[t] - 1, in program order. */
byte at[(W + 1) * B], what[(W + 1) * B];
bit release[(W + 1) * B];
byte count[W + 1];
#define READER W

/* of the threads */
byte position[W], newest[W]; /* the next record's, the last chunk */
byte raised[W], dropped[W];  /* events, and those refused */

/* of the reader; gone when it is killed */
byte step, slot, head, link, value, tail[W], chunk[W];
byte early = NONE, early_value; /* a load that was satisfied before its time */
#define RESUME 0
#define SWEEP 1
#define SWEEP_2 2
#define DRAIN 3
#define HERE 4
#define LINK 5
#define LINKED 6
#define READ 7
#define ENDED 8

/* what no program sees */
byte holder[C];    /* the thread + 1 that has taken the chunk; 0 from the reader's freeing on */
bit reserved[C];   /* compared and exchanged, but not yet stored in memory */
byte delivered[W]; /* records that the sink got, each once */
bit alive = 1;     /* the writing process */
byte rkills;

/* Adds a store to the buffer of thread t, which has space. */
inline store(t, location, datum, is_release)
{
	at[(t)*B + count[t]] = location;
	what[(t)*B + count[t]] = datum;
	release[(t)*B + count[t]] = is_release;
	count[t]++
}

inline discard(t)
{
	do
	:: count[t] > 0 ->
		count[t]--;
		at[(t)*B + count[t]] = 0;
		what[(t)*B + count[t]] = 0;
		release[(t)*B + count[t]] = 0
	:: else -> break
	od
}

/* Each record between tail and head is where the reader will look for it. */
inline check_ring(s)
{
	p_ = mem[TAIL(s)];
	do
	:: p_ < mem[HEAD(s)] ->
		c_ = 0;
		do
		:: c_ < C && (mem[OWNER(c_)] != s + 1 || mem[BASE(c_)] != p_ - p_ % CR) -> c_++
		:: else -> break
		od;
		assert(c_ < C);
		assert(mem[RECORD(c_, p_)] == VALUE(s, p_));
		p_++
	:: else -> break
	od;
	p_ = 0;
	c_ = 0
}

/* What a store of the reader must never do. */
inline check_reader(location, datum)
{
	s_ = 0;
	do
	:: s_ < W ->
		assert(location != TAIL(s_) ||
			(datum >= mem[location] && datum <= delivered[s_] && datum <= mem[HEAD(s_)]));
		s_++
	:: else -> break
	od;
	c_ = 0;
	do
	:: c_ < C ->
		assert((location != OWNER(c_) && location != BASE(c_)) || holder[c_] == 0);
		c_++
	:: else -> break
	od
}

/* Store i of thread t, the process's t_ and i_, reaches memory. */
inline perform(t, i)
{
	d_step {
		l_ = at[(t)*B + i];
		v_ = what[(t)*B + i];
		if
		:: t == READER -> check_reader(l_, v_)
		:: t != READER && l_ >= OWNER(0) && l_ < OWNER(C) -> reserved[l_ - OWNER(0)] = 0
		:: else
		fi;
		mem[l_] = v_;
		s_ = i;
		do
		:: s_ + 1 < count[t] ->
			at[(t)*B + s_] = at[(t)*B + s_ + 1];
			what[(t)*B + s_] = what[(t)*B + s_ + 1];
			release[(t)*B + s_] = release[(t)*B + s_ + 1];
			s_++
		:: else -> break
		od;
		count[t]--;
		at[(t)*B + count[t]] = 0;
		what[(t)*B + count[t]] = 0;
		release[(t)*B + count[t]] = 0;
		s_ = 0;
		do
		:: s_ < W && (l_ < W || t == READER) -> check_ring(s_); s_++
		:: else -> break
		od;
		l_ = 0;
		v_ = 0;
		s_ = 0;
		c_ = 0;
		t_ = 0;
		i_ = 0
	}
}

/* A store may pass those before it to other locations, a release store none. */
#define APART_0(t, i) true
#define APART_1(t, i) (at[(t)*B + 0] != at[(t)*B + i])
#define APART_2(t, i) (APART_1(t, i) && at[(t)*B + 1] != at[(t)*B + i])
#define APART_3(t, i) (APART_2(t, i) && at[(t)*B + 2] != at[(t)*B + i])
#define APART_4(t, i) (APART_3(t, i) && at[(t)*B + 3] != at[(t)*B + i])
#define APART_5(t, i) (APART_4(t, i) && at[(t)*B + 4] != at[(t)*B + i])
#define APART_6(t, i) (APART_5(t, i) && at[(t)*B + 5] != at[(t)*B + i])
#define APART_7(t, i) (APART_6(t, i) && at[(t)*B + 6] != at[(t)*B + i])
#define APART_8(t, i) (APART_7(t, i) && at[(t)*B + 7] != at[(t)*B + i])
#define APART_9(t, i) (APART_8(t, i) && at[(t)*B + 8] != at[(t)*B + i])
#define CAN_PERFORM(t, i) (count[t] > i && (!release[(t)*B + i] || i == 0))
#define PERFORM(t)                                                                                 \
	:: CAN_PERFORM(t, 0) && APART_0(t, 0) -> t_ = t; i_ = 0 \
	:: CAN_PERFORM(t, 1) && APART_1(t, 1) -> t_ = t; i_ = 1 \
	:: CAN_PERFORM(t, 2) && APART_2(t, 2) -> t_ = t; i_ = 2 \
	:: CAN_PERFORM(t, 3) && APART_3(t, 3) -> t_ = t; i_ = 3 \
	:: CAN_PERFORM(t, 4) && APART_4(t, 4) -> t_ = t; i_ = 4 \
	:: CAN_PERFORM(t, 5) && APART_5(t, 5) -> t_ = t; i_ = 5 \
	:: CAN_PERFORM(t, 6) && APART_6(t, 6) -> t_ = t; i_ = 6 \
	:: CAN_PERFORM(t, 7) && APART_7(t, 7) -> t_ = t; i_ = 7 \
	:: CAN_PERFORM(t, 8) && APART_8(t, 8) -> t_ = t; i_ = 8 \
	:: CAN_PERFORM(t, 9) && APART_9(t, 9) -> t_ = t; i_ = 9

/* Lets stores reach memory, and kills. */
proctype Memory()
{
	byte t_, i_, l_, v_, s_, p_, c_;
end:
	do
	:: atomic {
		if
		PERFORM(0)
		PERFORM(1)
#if W > 2
		PERFORM(2)
#endif
		PERFORM(READER)
		fi;
		perform(t_, i_)
	}
	:: d_step {
		rkills < RKILLS && step != ENDED -> rkills++;
		discard(READER);
		step = RESUME;
		slot = 0;
		head = 0;
		link = 0;
		value = 0;
		early = NONE;
		early_value = 0;
		do
		:: s_ < W -> tail[s_] = 0; chunk[s_] = 0; s_++
		:: else -> break
		od;
		s_ = 0
	}
	:: d_step {
		WKILLS > 0 && alive -> alive = 0;
		do
		:: s_ < W -> discard(s_); position[s_] = 0; s_++
		:: else -> break
		od;
		s_ = 0;
		do
		:: c_ < C -> reserved[c_] = 0; c_++
		:: else -> break
		od;
		c_ = 0
	}
	od
}

/* chunk_find: the first free chunk from the slot's home. */
inline chunk_find(s)
{
	c_ = s;
	i_ = 0;
	do
	:: i_ < C && (mem[OWNER(c_)] != 0 || reserved[c_]) -> c_ = (c_ + 1) % C; i_++
	:: else -> break
	od;
	if
	:: i_ == C -> c_ = NONE
	:: else
	fi;
	i_ = 0
}

/* chunk_take; the store half of its compare and exchange is no release. */
inline chunk_take(s)
{
	assert(holder[c_] == 0);
	holder[c_] = s + 1;
	reserved[c_] = 1;
	store(s, OWNER(c_), s + 1, 0);
	store(s, NEXT(c_), NONE, 0);
	store(s, BASE(c_), position[s], REL_BASE);
	if
	:: newest[s] == NONE -> store(s, FIRST(s), c_, REL_LINK)
	:: else -> store(s, NEXT(newest[s]), c_, REL_LINK)
	fi;
	newest[s] = c_
}

#ifndef PYTHON
/* A chunk's worth of events at once: only the compare and exchange depends on others. */
proctype Writer(byte s)
{
	byte c_, i_;
end:
	do
	:: d_step {
		alive && raised[s] < EVENTS(s) && position[s] % CR == 0 && count[s] + 4 + 2 * CR <= B ->
		chunk_find(s);
		if
		:: c_ == NONE -> dropped[s]++; raised[s]++
		:: else ->
			chunk_take(s);
			do
			:: raised[s] < EVENTS(s) && (i_ == 0 || position[s] % CR != 0) ->
				store(s, RECORD(newest[s], position[s]), VALUE(s, position[s]), 0);
				position[s]++;
				store(s, HEAD(s), position[s], REL_HEAD);
				raised[s]++;
				i_++
			:: else -> break
			od
		fi;
		c_ = 0;
		i_ = 0
	}
	od
}
#else
/* A release of a lock and its next acquire: nothing from before is under way any more. */
#ifdef WEAK_FENCE
#define FENCED(s) true
#else
#define FENCED(s) (count[s] == 0)
#endif

proctype Writer(byte s)
{
	byte c_, i_;
	bit room, stored; /* there is a chunk for position; the record is stored, not published */
end:
	do
	:: d_step {
		alive && raised[s] < EVENTS(s) && position[s] % CR == 0 && !room &&
			count[s] + 5 <= B && mem[LOCK] == 0 ->
		chunk_find(s);
		if
		:: c_ == NONE -> dropped[s]++; raised[s]++
		:: else ->
			mem[LOCK] = 1;
			chunk_take(s);
			store(s, LOCK, 0, 1);
			room = 1
		fi;
		c_ = 0
	}
	:: d_step {
		alive && raised[s] < EVENTS(s) && (position[s] % CR != 0 || room) && !stored &&
			count[s] < B ->
		store(s, RECORD(newest[s], position[s]), VALUE(s, position[s]), 0);
		stored = 1
	}
	:: d_step {
		alive && stored && count[s] < B && FENCED(s) ->
		position[s]++;
		store(s, HEAD(s), position[s], REL_HEAD);
		raised[s]++;
		stored = 0;
		room = 0
	}
	od
}
#endif

/* A load by the reader: its own latest store, or memory. */
inline load(ret, location)
{
	l_ = location;
	i_ = count[READER];
	do
	:: i_ > 0 && at[READER * B + i_ - 1] != l_ -> i_--
	:: else -> break
	od;
	if
	:: early == l_ -> ret = early_value
	:: early != l_ && i_ > 0 -> ret = what[READER * B + i_ - 1]
	:: else -> ret = mem[l_]
	fi;
	if
	:: early == l_ -> early = NONE; early_value = 0
	:: else
	fi;
	l_ = 0;
	i_ = 0
}

/* chunk_is, chunk_reaches: sets found_. What is loaded second is newer at most. */
inline chunk_is(number, is_reached)
{
	found_ = 0;
	if
	:: number < C ->
		load(v_, OWNER(number));
		if
		:: v_ == slot + 1 ->
			load(v_, BASE(number));
			found_ = (is_reached -> v_ != NONE && v_ <= start_ && start_ - v_ <= CR
					     : v_ == start_)
		:: else
		fi;
		v_ = 0
	:: else
	fi
}

inline chunk_search()
{
	link = 0;
	do
	:: link < C ->
		chunk_is(link, false);
		if
		:: found_ -> break
		:: else -> link++
		fi
	:: else -> link = NONE; break
	od
}

inline chunk_free(number)
{
	i_ = 0;
	do
	:: i_ < W -> assert(newest[i_] != number); i_++ /* whose next is still to be written */
	:: else -> break
	od;
	i_ = 0;
	store(READER, OWNER(number), FREEING, REL_FREEING);
	store(READER, BASE(number), NONE, REL_FREE_BASE);
	store(READER, OWNER(number), 0, REL_FREE_OWNER);
	holder[number] = 0
}

/* resume: what it loads but head is written by readers only, or no longer changes. */
inline resume()
{
	head = mem[HEAD(slot)];
	start_ = mem[TAIL(slot)];
	tail[slot] = start_;
	chunk[slot] = NONE;
	assert(start_ <= head && head - start_ <= C * CR);
	if
	:: start_ > 0 ->
		link = mem[TAIL_CHUNK(slot)];
		chunk_is(link, true);
		if
		:: found_
		:: else ->
			start_ = tail[slot] - tail[slot] % CR;
			chunk_search();
			if
			:: link == NONE && start_ == tail[slot] -> start_ = start_ - CR; chunk_search()
			:: else
			fi;
			assert(link != NONE);
			store(READER, TAIL_CHUNK(slot), link, 0)
		fi;
		chunk[slot] = link
	:: else
	fi;
	head = 0;
	link = 0;
	start_ = 0;
	found_ = 0;
	slot++;
	if
	:: slot == W -> slot = 0; step = SWEEP
	:: else
	fi
}

/* Where a record at tail is read: here, or behind a link. */
#define AT_TAIL (tail[slot] % CR != 0 -> READ : (chunk[slot] == NONE -> LINK : HERE))

/* A pass finds nothing in a slot, or its records. Without an acquire load of head the next record
 * may be loaded before it. */
#ifdef WEAK_HEAD_LOAD
#define DRAIN_SLOT(s)                                                                              \
	:: d_step { step == DRAIN && early == NONE && tail[s] % CR != 0 ->                         \
		early = RECORD(chunk[s], tail[s]); early_value = mem[early] }                      \
	:: d_step { step == DRAIN && mem[HEAD(s)] != tail[s] -> slot = s; drain() }
#else
#define DRAIN_SLOT(s)                                                                              \
	:: d_step { step == DRAIN && mem[HEAD(s)] != tail[s] -> slot = s; drain() }
#endif
inline drain()
{
	head = mem[HEAD(slot)];
	assert(head >= tail[slot] && head - tail[slot] <= C * CR);
	step = AT_TAIL
}

#define END(s) ((!alive || raised[s] == EVENTS(s)) && count[s] == 0 && tail[s] == mem[HEAD(s)])

proctype Reader()
{
	byte l_, v_, i_, start_;
	bit found_;
	do /* no end label: a reader that waits for something for ever is an error */
	:: d_step {
		step == RESUME -> resume()
	}
#ifdef WEAK_OWNER_LOAD
#define FIRST_LOAD BASE
#define SECOND_LOAD OWNER
#else
#define FIRST_LOAD OWNER
#define SECOND_LOAD BASE
#endif
	:: d_step { /* sweep */
		step == SWEEP -> load(value, FIRST_LOAD(link));
		step = SWEEP_2
	}
	:: d_step {
		step == SWEEP_2 && count[READER] + 3 <= B -> load(v_, SECOND_LOAD(link));
#ifdef WEAK_OWNER_LOAD
		i_ = v_;
		v_ = value;
		value = i_;
		i_ = 0;
#endif
		if
		:: value == FREEING -> chunk_free(link)
		:: value != FREEING && value != 0 && v_ != NONE && link != chunk[value - 1] &&
			tail[value - 1] >= CR && v_ <= tail[value - 1] - CR -> chunk_free(link)
		:: else
		fi;
		v_ = 0;
		value = 0;
		link++;
		step = SWEEP;
		if
		:: link == C -> link = 0; step = DRAIN
		:: else
		fi
	}
	DRAIN_SLOT(0)
	DRAIN_SLOT(1)
#if W > 2
	DRAIN_SLOT(2)
#endif
	:: d_step { /* a chunk whose first record was waited for is there already */
		step == HERE -> start_ = tail[slot];
		chunk_is(chunk[slot], false);
		step = (found_ -> READ : LINK);
		start_ = 0;
		found_ = 0
	}
	:: d_step { /* next_chunk */
		step == LINK ->
		if
		:: chunk[slot] == NONE -> load(link, FIRST(slot))
		:: else -> load(link, NEXT(chunk[slot]))
		fi;
		step = LINKED
	}
	:: d_step {
		step == LINKED && count[READER] + 5 <= B -> start_ = tail[slot];
		chunk_is(link, false);
		if
		:: found_
		:: else -> chunk_search()
		fi;
		assert(link != NONE); /* else the slot is damaged */
		store(READER, TAIL(slot), tail[slot], REL_TAIL);
		store(READER, TAIL_CHUNK(slot), link, REL_TAIL_CHUNK);
		if
		:: chunk[slot] != NONE -> chunk_free(chunk[slot])
		:: else
		fi;
		chunk[slot] = link;
		link = 0;
		start_ = 0;
		found_ = 0;
		step = READ
	}
	:: d_step { /* deliver_records */
		step == READ && count[READER] < B ->
		load(v_, RECORD(chunk[slot], tail[slot]));
		assert(v_ == VALUE(slot, tail[slot]));
		v_ = 0;
		assert(tail[slot] <= delivered[slot]);
		tail[slot]++;
		if
		:: tail[slot] > delivered[slot] -> delivered[slot] = tail[slot]
		:: else
		fi;
		if
		:: tail[slot] != head -> step = AT_TAIL
		:: else ->
			store(READER, TAIL(slot), tail[slot], REL_TAIL);
			step = DRAIN;
			head = 0;
			slot = 0
		fi
	}
	:: d_step { /* the process is done, or dead, and everything is read */
		step == DRAIN && count[READER] == 0 && END(0) && END(1) && END(W - 1) ->
		step = ENDED;
		do
		:: slot < W ->
			assert(mem[TAIL(slot)] == mem[HEAD(slot)]);
			assert(delivered[slot] == mem[HEAD(slot)]);
			assert(!alive || mem[HEAD(slot)] + dropped[slot] == EVENTS(slot));
			slot++
		:: else -> break
		od;
		slot = 0;
		do
		:: link < C -> /* what has an owner is its slot's last chunk */
			assert(!alive || mem[OWNER(link)] == 0 ||
				(mem[OWNER(link)] <= W && newest[mem[OWNER(link)] - 1] == link));
			link++
		:: else -> break
		od;
		link = 0
	} -> break
	od
}

init
{
	d_step {
		do
		:: slot < W ->
			mem[FIRST(slot)] = NONE;
			mem[TAIL_CHUNK(slot)] = NONE;
			newest[slot] = NONE;
			slot++
		:: else -> break
		od;
		slot = 0;
		do
		:: link < C -> mem[BASE(link)] = NONE; mem[NEXT(link)] = NONE; link++
		:: else -> break
		od;
		link = 0
	}
	atomic {
		run Memory();
		run Reader();
		run Writer(0);
		run Writer(1);
#if W > 2
		run Writer(2);
#endif
	}
}
