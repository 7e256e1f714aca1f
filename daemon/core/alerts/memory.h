/*
 * What alerts remember across a restart of the daemon, also after kill -9: a slot of shared memory
 * (a mapped file of the run directory) for each alert that is pending or firing, or was sent so
 * often that its limit still counts. A slot is written when its alert's phase, severity or times
 * change, without a system call. Beside them lie the windows of slopes. The next process of the
 * same boot takes a slot up when the same rule meets the same metric again; a rule whose definition
 * changed starts anew.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/alerts/slope.h"
#include "daemon/core/alerts/state.h"

/* More alerts and slopes than that at a time are not remembered. */
enum { ALERT_SLOTS = 128, ALERT_SLOPES = 64 };

struct alert_slot {
	uint64_t rule; /* hash of its definition; 0 = free. Written last, cleared first */
	uint64_t since_ns, transitions;
	int64_t since_us; /* wall time, of a boot before; 0 = since_ns says it */
	uint64_t clear_since_ns, critical_since_ns, calm_since_ns;
	uint64_t record; /* its newest entry in the log of transitions */
	struct alert_notifier notifier;
	double value, threshold;
	uint32_t phase, severity;
	uint32_t unit, holds;	    /* SLOT_ bits */
	uint32_t place, reserved;   /* of the one being written: where it goes; else 0 */
	char name[PROTO_NAME_SIZE]; /* of the rule */
	char instance[PROTO_PATH_SIZE];
	char metric[PROTO_PATH_SIZE];
	char text[ALERT_TEXT];
};

enum { SLOT_UNTOLD = 1, SLOT_SILENCED = 2 };

struct alerts_memory {
	/* ALERT_SLOTS, and one that is being written; NULL: nothing is remembered */
	struct alert_slot *slot;
	bool inherited[ALERT_SLOTS]; /* of the last process, not taken up yet */
	size_t inherited_count;
	struct alert_slope *slope;	    /* ALERT_SLOPES; NULL likewise */
	bool slope_inherited[ALERT_SLOPES]; /* likewise */
};

/* Has a process of this boot left something there? */
bool alerts_memory_is_of(const void *bytes, const uint8_t boot_id[16]);

/* Takes over what a process of this boot left in the memory (8-byte aligned, any bytes), or formats
 * it. now_ns: times beyond it are damage. The number of slots that were damaged. */
size_t alerts_memory_adopt(
	struct alerts_memory *memory, void *bytes, const uint8_t boot_id[16], uint64_t now_ns);

/* The state that was remembered for this rule and metric goes into state, whose alert has both.
 * Its slot, or -1. */
int alerts_memory_take(struct alerts_memory *memory, struct alert_state *state);

/* Writes what changed; slot -1 = none so far. The slot it has now, -1 for an alert that is ok. */
int alerts_memory_store(struct alerts_memory *memory, int slot, const struct alert_state *state);
void alerts_memory_free(struct alerts_memory *memory, int slot);

/* An inherited slot that nobody took up, -1 = none. */
int alerts_memory_orphan(const struct alerts_memory *memory);

/* The next inherited slot from *cursor on that was the rule's; -1 = none. */
int alerts_memory_of_rule(
	const struct alerts_memory *memory, const struct alert_rule *rule, size_t *cursor);

/* The window of this rule and metric: the one that was remembered, a free one of the memory, or one
 * of the heap. NULL: no memory. */
struct alert_slope *alerts_memory_slope(
	struct alerts_memory *memory, const struct alert_rule *rule, const char *metric);
/* NULL is allowed. */
void alerts_memory_free_slope(struct alerts_memory *memory, struct alert_slope *slope);
/* The same, but what the next process may take up stays. */
void alerts_memory_leave_slope(struct alerts_memory *memory, struct alert_slope *slope);
/* Inherited windows that nobody took up are free. */
void alerts_memory_drop_slopes(struct alerts_memory *memory);
