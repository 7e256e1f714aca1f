/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h: stores alerts in memory that outlives the process (the mapped file `alerts` of the run
 * directory), also after kill -9: a slot for each alert that is pending or firing, or was sent so
 * often that its limit still counts, and the windows of slopes. A slot is written when its alert's
 * phase, severity or times change, without a system call. The next process of the same boot
 * restores a slot when the same rule matches the same metric again; a rule whose definition changed
 * starts afresh.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/alerts/slope.h"
#include "daemon/core/alerts/state.h"

/* More alerts and slopes than that at a time are not stored, of which one owner has at most the
 * first number: accounts_fits(). */
enum {
	ALERT_SLOTS_OWN = 114,
	ALERT_SLOTS = ALERT_SLOTS_OWN + ALERT_SLOTS_OWN / 8, /* ACCOUNTS_RESERVE */
	ALERT_SLOPES_OWN = 57,
	ALERT_SLOPES = ALERT_SLOPES_OWN + ALERT_SLOPES_OWN / 8
};

struct alert_slot {
	uint64_t rule; /* hash of its definition; 0 = free. Written last, cleared first */
	uint64_t since_ns, transitions;
	int64_t since_us; /* wall time, of a previous boot; 0 = since_ns is valid */
	uint64_t clear_since_ns, critical_since_ns, calm_since_ns;
	uint64_t record; /* its newest entry in the log of transitions */
	struct notified notified;
	double value, threshold;
	uint32_t phase, severity;
	uint32_t unit, flags;	    /* SLOT_ bits */
	uint32_t index;		    /* of the one being written: where it goes; else 0 */
	uid_t owner;		    /* of the metric; 0 = the device */
	char name[PROTO_NAME_SIZE]; /* of the rule */
	char instance[PROTO_PATH_SIZE];
	char metric[PROTO_PATH_SIZE];
	char text[ALERT_TEXT];
};

enum { SLOT_MISSED = 1, SLOT_SILENCED = 2 };

struct alert_store {
	/* ALERT_SLOTS, and one that is being written; NULL: nothing is stored */
	struct alert_slot *slot;
	bool inherited[ALERT_SLOTS]; /* from the previous process, not restored yet */
	size_t inherited_count;
	struct alert_slope *slope;	    /* ALERT_SLOPES; NULL likewise */
	bool slope_inherited[ALERT_SLOPES]; /* likewise */
	uid_t slope_owner[ALERT_SLOPES];    /* 0 while inherited */
};

size_t alerts_store_bytes(void);
/* Has a process of this boot left something there? */
bool alerts_store_is_of(const void *bytes, const uint8_t boot_id[16]);

/* Uses the memory (8-byte aligned, any bytes): recovers what a process of this boot left there, or
 * formats it. now_ns: later times in it are damage. The number of slots that were damaged. */
size_t alert_store_attach(
	struct alert_store *store, void *bytes, const uint8_t boot_id[16], uint64_t now_ns);

/* Restores the state of this rule and metric, which the alert names. Its slot, or -1. */
int alert_store_restore(struct alert_store *store, struct alert_state *state);
/* Copies the slot into a state whose alert has a rule. */
void alert_slot_read(const struct alert_slot *slot, struct alert_state *state);

/* Writes what changed; slot -1 = none so far. The slot it has now, -1 for an alert that is ok. */
int alert_store_put(struct alert_store *store, int slot, const struct alert_state *state);
void alert_store_free(struct alert_store *store, int slot);

/* The next slot from *cursor on that is inherited, of this rule unless it is NULL; -1 = none. */
int alert_store_inherited(
	const struct alert_store *store, const struct alert_rule *rule, size_t *cursor);

/* The window of this rule and the owner's metric: an inherited one, a free one of the store, or one
 * of the heap. NULL: no memory. */
struct alert_slope *alert_store_slope(
	struct alert_store *store, const struct alert_rule *rule, const char *metric, uid_t owner);
/* Keep: the next process may use it. slope may be NULL. */
void alert_store_free_slope(struct alert_store *store, struct alert_slope *slope, bool keep);
/* Frees the inherited windows that are not in use. */
void alert_store_drop_slopes(struct alert_store *store);
