/*
 * What people said about alerts: acknowledgements ("somebody knows") and silences ("call nobody").
 * Neither changes an alert's state. An acknowledgement is of one alert that fires and ends when it
 * is over or gets worse. A silence is a glob on rules and one on instances or metrics, and ends at
 * a monotonic time, which no step of the clock moves. All of it lies in memory that may outlive the
 * process (a mapped file of the run directory), like the log of transitions beside it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/alerts/alerts.h"

enum {
	ALERT_ACKS = 128,
	ALERT_SILENCES = 64,
	ALERT_SILENCES_UID = 32, /* of one user but root */
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

struct alert_holds {
	struct alert_ack *ack;
	struct alert_silence *silence;
	struct alert_record *record;
	uint64_t serial, records; /* the last ones given */
};

size_t alert_holds_bytes(void);

/* Formats the memory (8-byte aligned), or takes over what a process of this boot left there: what
 * is damaged is left out, and counted. now_ns: times of the past beyond it are damage. */
size_t alert_holds_adopt(
	struct alert_holds *holds, void *bytes, const uint8_t boot_id[16], uint64_t now_ns);

/* NULL: none. */
struct alert_ack *alert_holds_ack(
	const struct alert_holds *holds, const char *rule, const char *instance);
/* Replaces the one of the same rule and instance. -ENOSPC. */
int alert_holds_put_ack(struct alert_holds *holds, const struct alert_ack *ack);
void alert_holds_drop(uint64_t *serial); /* of an acknowledgement or a silence */

/* When the last silence over the alert ends, 0 = there is none. */
uint64_t alert_holds_until(
	const struct alert_holds *holds, const struct alert *alert, uint64_t now_ns);
/* True when a silence covers all instances of the rule. */
bool alert_holds_cover_rule(
	const struct alert_holds *holds, const struct alert_rule *rule, uint64_t now_ns);
/* The one with these very globs. NULL: none. */
struct alert_silence *alert_holds_silence(
	const struct alert_holds *holds, const char *rule, const char *instance);
/* Replaces the one with the same globs, whose begin stays. -ENOSPC: too many; -EDQUOT: of this
 * user. */
int alert_holds_put_silence(struct alert_holds *holds, const struct alert_silence *silence);

/* The glob on instances or metrics: 0, -EINVAL. */
int alert_holds_check_instance(const char *glob);

/* Adds a record at the end of the log, where the oldest goes; one with a serial replaces the record
 * of that serial. The serial it has now. */
uint64_t alert_holds_log(struct alert_holds *holds, const struct alert_record *record);
/* The record with the smallest serial >= serial, NULL = none. */
const struct alert_record *alert_holds_logged(const struct alert_holds *holds, uint64_t serial);
