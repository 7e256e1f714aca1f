/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overrides.h: stores acknowledgements and silences of alerts, and the log of transitions. An
 * acknowledgement
 * ("somebody is on it") is of one alert that fires and ends when that is over or gets worse. A
 * silence ("notify nobody") is a glob on rules and one on instances or metrics, and ends at a
 * monotonic time, which no step of the clock moves. Neither changes an alert's state. All of it
 * is in memory that may outlive the process: the mapped file `holds` of the run directory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/alerts/state.h"

enum {
	ALERT_ACKS = 128,
	ALERT_SILENCES = 64,
	ALERT_SILENCES_UID = 32, /* of one user other than root */
	ALERT_NOTE = 129,	 /* with NUL */
};

#define ALERT_SILENCE_MAX_NS (UINT64_C(366) * 86400 * 1000000000)

struct alert_ack {
	uint64_t serial; /* 0 = free. Written last, cleared first */
	uint64_t t_ns;
	uint32_t uid, reserved;
	char rule[PROTO_NAME_SIZE];
	char instance[PROTO_PATH_SIZE];
	char note[ALERT_NOTE];
};

struct alert_silence {
	uint64_t serial; /* 0 = free. Written last, cleared first */
	uint64_t from_ns, until_ns;
	uint32_t uid, reserved;
	char rule[PROTO_NAME_SIZE];	/* glob */
	char instance[PROTO_PATH_SIZE]; /* glob on the instance or the metric; "" = all */
	char note[ALERT_NOTE];
};

/* One transition. */
struct alert_record {
	uint64_t serial;	 /* 1, 2, 3 …; 0 = none. Written last, cleared first */
	uint64_t t_ns;		 /* when it happened */
	uint64_t sent_ns;	 /* when it was sent, if that was later; else 0 */
	double value, threshold; /* NAN = none */
	uint8_t from, to, severity, from_severity;
	uint8_t flags, unit, reserved[2];
	char rule[PROTO_NAME_SIZE];
	char instance[PROTO_PATH_SIZE];
	char metric[PROTO_PATH_SIZE];
	char text[ALERT_TEXT];
};

enum { ALERT_RECORDS = 128 };
enum {
	RECORD_SILENCED = 1,
	RECORD_ACKED = 2,
	RECORD_TEST = 4,
	RECORD_SUPPRESSED = 8,
	RECORD_PER_MINUTE = 16
};

struct overrides {
	struct alert_ack *ack;
	struct alert_silence *silence;
	struct alert_record *record;
	uint64_t serial, records; /* the last ones given */
	size_t acks, silences;	  /* those behind have not been touched */
};

size_t overrides_bytes(void);

/* Uses the memory (8-byte aligned): formats it, or recovers what a process of this boot left there
 * without what is damaged, whose count it returns. now_ns: later times in it are damage. */
size_t overrides_attach(
	struct overrides *overrides, void *bytes, const uint8_t boot_id[16], uint64_t now_ns);

/* NULL: none. */
struct alert_ack *overrides_ack(
	const struct overrides *overrides, const char *rule, const char *instance);
/* Replaces the one of the same rule and instance. -ENOSPC. */
int overrides_put_ack(struct overrides *overrides, const struct alert_ack *ack);
void overrides_drop(uint64_t *serial); /* of an acknowledgement or a silence */

/* When the last silence over the alert ends, 0 = there is none. */
uint64_t overrides_muted_until(
	const struct overrides *overrides, const struct alert *alert, uint64_t now_ns);
/* True when a silence covers all instances of the rule. */
bool overrides_mute_rule(
	const struct overrides *overrides, const struct alert_rule *rule, uint64_t now_ns);
/* The one with exactly these globs. NULL: none. */
struct alert_silence *overrides_silence(
	const struct overrides *overrides, const char *rule, const char *instance);
/* Replaces the one with the same globs, whose begin stays. -ENOSPC: too many; -EDQUOT: of this
 * user. */
int overrides_put_silence(struct overrides *overrides, const struct alert_silence *silence);

/* Whether a note is one line. The timeline and the API repair invalid UTF-8 when they write it. */
bool overrides_is_line(const char *text);
/* The glob on instances or metrics: 0, -EINVAL. */
int overrides_check_instance(const char *glob);

/* Appends a record to the log, where the oldest goes; one with a serial replaces the record of that
 * serial. The serial it has now. */
uint64_t overrides_log(struct overrides *overrides, const struct alert_record *record);
/* The record with the smallest serial >= serial, NULL = none. */
const struct alert_record *overrides_logged(const struct overrides *overrides, uint64_t serial);
