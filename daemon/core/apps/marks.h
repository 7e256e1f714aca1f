/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.h: declares marks: labelled moments with what memory was like, made by apps and by people.
 * The last of each app are kept, in the order in which they came. They are on the timeline, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/name.h"

enum {
	MARKS_MAX = 256,     /* over all apps */
	APP_MARKS_KEPT = 64, /* of one app */
	MARK_ATTRIBUTES_MAX = 8,
	MARK_LABEL_SIZE = 201,
};

struct mark_attribute {
	char name[PROTO_NAME_SIZE];
	double value;
};

/* NAN = not known. Copied as it is to memory that outlives the daemon: app_marks_restored() sets
 * what points to anything. */
struct app_mark {
	uint64_t serial; /* the timeline's; of the previous entry when unlogged */
	bool unlogged;	 /* kept, but not on the timeline: its user's apps make too many */
	uint64_t t_ns;
	uint64_t frame;		   /* PROTO_NO_FRAME = none */
	char app[PROTO_NAME_SIZE]; /* "" = of nobody */
	uid_t uid;		   /* of the app, or of another ordinary user who made it */
	uint64_t process; /* distinguishes the processes of an app; 0 = of none, or of several */
	char label[MARK_LABEL_SIZE];
	double rss_bytes, vms_bytes, peak_rss_bytes; /* of the process */
	uint64_t memory_age_ns;			     /* of a sample, at t_ns */
	const char *memory_source; /* "app": it measured; "sample": the daemon's last one; NULL */
	const char *memory_reason; /* why rss_bytes is not known; static text */
	double system_total_bytes, system_available_bytes, system_used_percent;
	uint64_t system_delay_ns; /* they were read so long after t_ns */
	size_t attributes;
	struct mark_attribute attribute[MARK_ATTRIBUTES_MAX];
	uint64_t attributes_refused;
	uint32_t index; /* of its declaration: private, as is: */
	uint32_t owner;
};

struct apps;
struct app_process;

/* Tells the processes of an app apart; never 0. */
uint64_t app_process_key(const struct app_process *process);

/* A mark as it is before anything is known: of nobody, memory not known. */
void app_mark_init(struct app_mark *mark, uint64_t t_ns, const char *label);

/* The system's memory at t_ns. */
struct system_memory {
	double total_bytes, available_bytes; /* NAN = not known */
	uint64_t t_ns;
};

/* Reads the system's memory now; false: it cannot be read. */
typedef bool system_memory_reader(void *ctx, struct system_memory *ret);
void apps_set_memory_reader(struct apps *apps, system_memory_reader *reader, void *ctx);

/* Keeps a copy with the system's memory as it is read now, and puts it on the timeline unless
 * unlogged. At APP_MARKS_KEPT marks of the app and uid, the oldest of them is removed; at MARKS_MAX
 * in total, the oldest of the app with the most marks of the user with the most marks. Returns its
 * serial. */
uint64_t apps_mark(struct apps *apps, const struct app_mark *mark);

/* The index-th that is kept, oldest first; NULL past the end. Valid until the next mark. */
const struct app_mark *apps_mark_at(const struct apps *apps, size_t index);

/* The one before it of the same app and process, from which its deltas are computed; NULL = none.
 */
const struct app_mark *apps_mark_before(const struct apps *apps, size_t index);
