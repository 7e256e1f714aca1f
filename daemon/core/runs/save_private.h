/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save_private.h: declares what save.c (which items, when), restore.c (what becomes of them) and
 * save_slots.c (how one is written) share.
 */
#pragma once

#include "daemon/core/apps/apps.h"
#include "daemon/core/runs/save.h"

enum {
	SAVE_SLOTS = 464, /* all stages, streams, apps and their values, and the marks */
	SAVE_COPY = 32 << 10,
	SAVE_SEGMENTS = 16,
};

enum save_kind { SAVE_NOTHING, SAVE_APP, SAVE_STAGE, SAVE_FRAMES, SAVE_VALUES, SAVE_MARKS };

/* Words of a structure or a window. */
struct save_segment {
	void *data;
	size_t bytes; /* a multiple of 8 */
};

/* What is written into one slot. */
struct save_object {
	const void *owner;
	enum save_kind kind;
	uint64_t mark; /* grows with each change */
	size_t count;
	/* the first says which of the others there are */
	struct save_segment segment[SAVE_SEGMENTS];
};

struct save_slot {
	const void *owner; /* NULL = free, or of the life before and not claimed */
	uint64_t mark;	   /* the change counter when it was written */
	uint64_t sequence; /* of the newest copy; 0 = none */
	uint64_t run;	   /* key of the run */
	size_t reserved[2];
	enum save_kind kind;
};

struct save_area;

/* The hash of all headers that the saved structures may be in; made by layout.py. */
extern const uint32_t saved_layout;

struct save_slots {
	struct app_save_memory memory;
	struct save_area *area;
	uint64_t scratch[SAVE_COPY / sizeof(uint64_t)];
	struct save_slot slot[SAVE_SLOTS];
};

/* Looks through what the memory holds. -EINVAL, -ENOSPC. */
int save_slots_init(
	struct save_slots *slots, const struct app_save_memory *memory, const uint8_t boot_id[16]);

/* The owner's slot, a free one when it has none; NULL when all are taken. */
struct save_slot *save_slot_of(struct save_slots *slots, const void *owner, enum save_kind kind);
void save_slot_free(struct save_slots *slots, struct save_slot *slot);
/* False: out of space, in the slot or for its pages. */
bool save_slot_write(
	struct save_slots *slots, struct save_slot *slot, const struct save_object *object);

/* Where reading a slot's newest copy stands. */
struct save_reader {
	const uint64_t *at, *end;
};

void save_slot_read(
	const struct save_slots *slots, const struct save_slot *slot, struct save_reader *ret);
/* The next segment. False: it is incomplete. */
bool save_read(struct save_reader *reader, void *data, size_t bytes);

struct saved_process {
	uint64_t pid, start_ticks, received;
};

/* Of an app and its run, what no stage and no stream holds. */
struct saved_app {
	char name[PROTO_NAME_SIZE + (8 - PROTO_NAME_SIZE % 8) % 8];
	uint64_t uid, known_ns, run, since_ns, covers_since_ns, missing;
	uint64_t starts, restarts, marks_refused, hangs;
	uint64_t events; /* at least, in its stages and frames as they were written */
	struct app_accounting past;
	uint64_t processes;
	struct saved_process process[APP_PROCESSES_MAX];
};

struct app_save {
	struct save_slots slots;
	size_t app, item;     /* where the next call goes on */
	size_t ending;	      /* where that of apps_end_saved() does */
	bool failed;	      /* an item of the app did not fit */
	uint64_t marks_saved; /* sum of their changes when they were written last */
	struct saved_app now; /* of that app, when its round began */
};

void save_restore_marks(struct apps *apps);

/* What a stage or a stream consists of. */
struct save_object save_stage(const struct stage *stage);
struct save_object save_frames(const struct frames *frames);
struct save_object save_values(const struct app_values *values);
uint64_t save_events_of(const struct app *app);
