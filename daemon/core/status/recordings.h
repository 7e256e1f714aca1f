/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recordings.h: lists the recordings of the flight recorder, and holds the rules for new ones: how
 * many a day, their names, when missed deadlines are a burst. Plain data and pure functions;
 * daemon/recorder writes the files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/util/runfile.h"
#include "proto/name.h"

enum {
	RECORDINGS_MAX = 64, /* kept at one time; [recorder] keep */
	RECORDINGS_A_DAY = 12,
	/* of them, at most: that nobody asked for; of these, not for a critical alert; that apps
	 * can bring about; of these, not for a critical alert */
	RECORDINGS_AUTOMATIC = 10,
	RECORDINGS_MINOR = 8,
	RECORDINGS_OF_APPS = 8,
	RECORDINGS_OF_APPS_MINOR = 6,
	RECORDING_TRIGGER = 224, /* bytes of a trigger's text */
	RECORDING_CUT = 64,
	RECORDING_BURSTS = 64, /* stages and frame streams that miss deadlines at one time */
	BURST_MISSES = 5,      /* in one interval of the source stages (1 s) */
	BURST_CONSECUTIVE = 10,
};

/* A burst ends when this long no interval had as many misses. */
#define BURST_CALM_NS UINT64_C(10000000000)

enum record_kind { RECORD_NOW, RECORD_ALERT, RECORD_MISSES, RECORD_HANG, RECORD_KINDS };
const char *record_kind_name(enum record_kind kind); /* now alert misses hang */

/* Whose a recording is: what decides about its slot. */
enum {
	RECORD_OF_APP = 1,    /* an app can bring it about */
	RECORD_CRITICAL = 2,  /* for a critical alert */
	RECORD_OF_PERSON = 4, /* somebody asked for it */
};

/* A finished recording. */
struct recording {
	char name[PROTO_NAME_SIZE]; /* of the file, without .jsonl */
	int64_t time_us;	    /* of the trigger, as known at the end */
	char trigger[RECORDING_TRIGGER];
	double span_s, before_s, after_s; /* as recorded */
	uint64_t bytes, records, lost, triggers;
	uint32_t flags;		 /* RECORD_ bits */
	char cut[RECORDING_CUT]; /* why it is not complete; "" = it is */
};

struct recordings {
	char dir[200]; /* where the files are */
	size_t count;  /* oldest first */
	struct recording row[RECORDINGS_MAX];
	uint64_t refused;	    /* triggers over the limit of a day */
	uint64_t failed;	    /* not written */
	char reason[128];	    /* why the last one failed; "" = it did not */
	char open[PROTO_NAME_SIZE]; /* that is being made; "" = none */
};

const struct recording *recordings_find(const struct recordings *recordings, const char *name);

/* When recordings were started: memory that outlives the process. Zeroed, or as it was left. */
struct record_memory {
	struct runhead head;
	uint64_t started[RECORDINGS_A_DAY]; /* CLOCK_MONOTONIC + 1; 0 = none */
	uint8_t flags[RECORDINGS_A_DAY];    /* RECORD_ bits */
};

/* Discards what another boot left. True when it was this boot's. */
bool record_memory_adopt(struct record_memory *memory, const uint8_t boot_id[16]);
/* Notes a start; false, and nothing noted, when the last 24 h had as many as there may be of its
 * kind: warnings leave some for critical alerts, apps for the device, and all of them for people.
 * A person's takes the slot of the oldest automatic one when none is left, the first critical ones
 * that of the oldest minor one. */
bool record_memory_start(struct record_memory *memory, uint64_t now_ns, uint32_t flags);
/* What nobody asked for and no critical alert brought about: it goes first where one has to. */
bool record_is_minor(uint32_t flags);

/* Does an app bring about what this metric says? True of metrics of apps and of processes. */
bool record_metric_of_app(const char *metric);

/* "YYYYMMDD-HHMMSS-KIND-SUBJECT" in UTC, cut and cleaned to one segment of a name; with .2, .3 when
 * there is one of that name. -ENOSPC. subject may be "". */
int record_name(const struct recordings *recordings, int64_t time_us, enum record_kind kind,
	const char *subject, char ret[PROTO_NAME_SIZE]);

/* Quotes, backslashes, control bytes and broken UTF-8 become '_': the text stands in JSON as it is.
 */
void record_text_clean(char *text);

/* Of max_bytes, what raw records before the trigger may take when the span is so divided. */
size_t recording_before_bytes(size_t max_bytes, uint64_t before_ns, uint64_t after_ns);

struct record_bursts {
	struct {
		uint64_t key, last_ns;
	} burst[RECORDING_BURSTS];
};

/* An interval of a stage or a frame stream (key) with that many misses, the last `consecutive` of
 * them in a row. True when a burst begins. */
bool record_burst(struct record_bursts *bursts, uint64_t key, double misses, uint64_t consecutive,
	uint64_t now_ns);
