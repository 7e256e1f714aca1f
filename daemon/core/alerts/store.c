/* SPDX-License-Identifier: Apache-2.0 */
/* store.c: writes alerts into memory that outlives the process and restores them. Nothing in it is
 * trusted at start. A slot is written twice, first behind the others: a kill in the middle of one
 * write loses no alert. */
#include "daemon/core/alerts/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/accounts.h"
#include "daemon/util/runfile.h"
#include "daemon/util/sysops.h"
#include "proto/fnv.h"
#include "proto/name.h"

#define MAGIC UINT64_C(0x34737472656c61) /* "alerts4" */

size_t alerts_store_bytes(void)
{
	return sizeof(struct runhead) + (ALERT_SLOTS + 1) * sizeof(struct alert_slot) +
	       ALERT_SLOPES * sizeof(struct alert_slope);
}

/* With the NUL, so that the end of one string differs from the begin of the next. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
	return fnv64(hash, text, strlen(text) + 1);
}

/* Of all that decides what the rule does; never 0. */
static uint64_t hash_rule(const struct alert_rule *rule)
{
	const uint64_t fields[] = {(uint64_t)rule->kind, rule->for_ns, rule->clear_for_ns,
		rule->over_ns, rule->max_per_hour, (uint64_t)rule->severity};
	const double numbers[] = {rule->threshold, rule->critical, rule->clear};
	uint64_t hash = hash_text(hash_text(FNV64_BASIS, rule->name), rule->metric);
	hash = fnv64(hash_text(hash, rule->message), fields, sizeof(fields));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		/* all NANs are equal */
		double number = isnan(numbers[i]) ? (double)NAN : numbers[i];
		hash = fnv64(hash, &number, sizeof(number));
	}
	return hash ? hash : 1;
}

static bool time_is_valid(uint64_t t_ns, uint64_t now_ns)
{
	return t_ns == ALERT_NEVER || t_ns <= now_ns;
}

/* A limit recovers within two hours: the slowest is that of three an hour. */
static bool tat_is_valid(const struct alert_slot *slot, uint64_t now_ns)
{
	const uint64_t end_ns = now_ns + UINT64_C(7200000000000);
	return slot->notified.tat_ns[0] <= end_ns && slot->notified.tat_ns[1] <= end_ns;
}

/* It becomes a part of MQTT topics. */
static bool instance_is_valid(const struct alert_slot *slot)
{
	if (!memchr(slot->instance, '\0', sizeof(slot->instance))) {
		return false;
	}
	const size_t valid =
		strspn(slot->instance, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				       "0123456789_.-:");
	return valid > 0 && slot->instance[valid] == '\0';
}

static bool slot_is_valid(const struct alert_slot *slot, uint64_t now_ns)
{
	return slot->phase <= ALERT_FIRING && slot->notified.phase <= ALERT_FIRING &&
	       slot->notified.severity <= ALERT_CRITICAL && tat_is_valid(slot, now_ns) &&
	       slot->severity <= ALERT_CRITICAL && slot->unit < UNIT_COUNT_OF_UNITS &&
	       slot->since_ns <= now_ns && time_is_valid(slot->clear_since_ns, now_ns) &&
	       time_is_valid(slot->critical_since_ns, now_ns) &&
	       time_is_valid(slot->calm_since_ns, now_ns) && slot->since_us >= 0 &&
	       memchr(slot->name, '\0', sizeof(slot->name)) && proto_name_valid(slot->name) &&
	       instance_is_valid(slot) && memchr(slot->metric, '\0', sizeof(slot->metric)) &&
	       proto_path_valid(slot->metric) && memchr(slot->text, '\0', sizeof(slot->text));
}

static struct runhead header_of(const uint8_t boot_id[16])
{
	const uint32_t shape[] = {
		sizeof(struct alert_slot), ALERT_SLOTS, sizeof(struct alert_slope), ALERT_SLOPES};
	return runhead_of(MAGIC, alerts_store_bytes(), shape, 4, boot_id);
}

bool alerts_store_is_of(const void *bytes, const uint8_t boot_id[16])
{
	const struct runhead wanted = header_of(boot_id);
	return runhead_look(bytes, &wanted) == RUNHEAD_OURS;
}

static void write_slot(struct alert_slot *slot, const struct alert_slot *entry)
{
	const size_t head = sizeof(slot->rule);
	__atomic_store_n(&slot->rule, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy((char *)slot + head, (const char *)entry + head, sizeof(*slot) - head);
	__atomic_store_n(&slot->rule, entry->rule, __ATOMIC_RELEASE);
}

/* Completes what the previous process was writing when it ended. */
static void finish_writing(struct alert_slot *slot, uint64_t now_ns)
{
	struct alert_slot *writing = &slot[ALERT_SLOTS];
	struct alert_slot entry = *writing;
	if (entry.rule != 0 && entry.index < ALERT_SLOTS && slot_is_valid(&entry, now_ns)) {
		entry.index = 0;
		write_slot(&slot[writing->index], &entry);
	}
	__atomic_store_n(&writing->rule, 0, __ATOMIC_RELEASE);
}

size_t alert_store_attach(
	struct alert_store *store, void *bytes, const uint8_t boot_id[16], uint64_t now_ns)
{
	const struct runhead wanted = header_of(boot_id);
	const bool ours = runhead_attach(bytes, &wanted);
	size_t damaged = 0;
	store->slot = (struct alert_slot *)(void *)((struct runhead *)bytes + 1);
	store->slope = (struct alert_slope *)(void *)(store->slot + ALERT_SLOTS + 1);
	store->inherited_count = 0;
	memset(store->inherited, 0, sizeof(store->inherited));
	memset(store->slope_inherited, 0, sizeof(store->slope_inherited));
	memset(store->slope_owner, 0, sizeof(store->slope_owner));
	if (!ours) {
		return 0;
	}
	finish_writing(store->slot, now_ns);
	for (size_t i = 0; i < ALERT_SLOTS; i++) {
		struct alert_slot *slot = &store->slot[i];
		bool used = __atomic_load_n(&slot->rule, __ATOMIC_ACQUIRE) != 0;
		store->inherited[i] = used && slot_is_valid(slot, now_ns);
		store->inherited_count += store->inherited[i];
		if (used && !store->inherited[i]) {
			slot->rule = 0;
			damaged++;
		}
	}
	for (size_t i = 0; i < ALERT_SLOPES; i++) {
		store->slope_inherited[i] = store->slope[i].key != 0;
		alert_slope_restore(&store->slope[i], now_ns);
	}
	return damaged;
}

void alert_slot_read(const struct alert_slot *slot, struct alert_state *state)
{
	struct alert *alert = &state->alert;
	snprintf(alert->text, sizeof(alert->text), "%s", slot->text);
	alert->phase = (enum alert_phase)slot->phase;
	alert->severity = (enum alert_severity)slot->severity;
	alert->value = slot->value;
	alert->threshold = slot->threshold;
	alert->since_ns = slot->since_ns;
	alert->since_us = slot->since_us;
	alert->transitions = slot->transitions;
	alert->record = slot->record;
	alert->unit = alert->unit == UNIT_NONE ? (enum unit)slot->unit : alert->unit;
	alert->notifier.last = slot->notified;
	alert->notifier.missed = (slot->flags & SLOT_MISSED) != 0;
	/* until when is what the silences say: alert_refresh() */
	alert->notifier.muted_until_ns = (slot->flags & SLOT_SILENCED) != 0;
	state->clear_since_ns = slot->clear_since_ns;
	state->critical_since_ns = slot->critical_since_ns;
	state->calm_since_ns = slot->calm_since_ns;
}

int alert_store_inherited(
	const struct alert_store *store, const struct alert_rule *rule, size_t *cursor)
{
	if (store->inherited_count == 0) {
		return -1;
	}
	const uint64_t hash = rule ? hash_rule(rule) : 0;
	while (*cursor < ALERT_SLOTS) {
		const size_t i = (*cursor)++;
		if (store->inherited[i] && (!rule || store->slot[i].rule == hash)) {
			return (int)i;
		}
	}
	return -1;
}

static void clear_inherited(struct alert_store *store, int slot)
{
	store->inherited_count -= store->inherited[slot];
	store->inherited[slot] = false;
}

int alert_store_restore(struct alert_store *store, struct alert_state *state)
{
	size_t cursor = 0;
	int slot;
	while ((slot = alert_store_inherited(store, state->alert.rule, &cursor)) >= 0) {
		if (strcmp(store->slot[slot].metric, state->alert.metric) == 0) {
			clear_inherited(store, slot);
			alert_slot_read(&store->slot[slot], state);
			break;
		}
	}
	return slot;
}

/* -1: none that the owner may have. */
static int free_slot(const struct alert_store *store, uid_t owner)
{
	size_t own = 0, all = 0;
	int unused = -1;
	for (int i = 0; store->slot && i < ALERT_SLOTS; i++) {
		const bool used = store->slot[i].rule != 0;
		all += used;
		own += used && store->slot[i].owner == owner;
		unused = used || unused >= 0 ? unused : i;
	}
	return accounts_fits(ALERT_SLOTS_OWN, own, all, 1, owner == 0) ? unused : -1;
}

static uint32_t flags_of(const struct alert *alert)
{
	return (alert->notifier.missed ? SLOT_MISSED : 0) |
	       (alert->notifier.muted_until_ns ? SLOT_SILENCED : 0);
}

static bool same(const struct alert_slot *slot, const struct alert_state *state)
{
	const struct alert *alert = &state->alert;
	return slot->rule != 0 && slot->phase == (uint32_t)alert->phase &&
	       memcmp(&slot->notified, &alert->notifier.last, sizeof(slot->notified)) == 0 &&
	       slot->severity == (uint32_t)alert->severity && slot->since_ns == alert->since_ns &&
	       slot->clear_since_ns == state->clear_since_ns &&
	       slot->critical_since_ns == state->critical_since_ns &&
	       slot->calm_since_ns == state->calm_since_ns && slot->flags == flags_of(alert);
}

/* All its bytes, including padding: snapshots are compared. */
static void fill_slot(struct alert_slot *slot, const struct alert_state *state)
{
	const struct alert *alert = &state->alert;
	memset(slot, 0, sizeof(*slot));
	slot->rule = hash_rule(alert->rule);
	slot->phase = (uint32_t)alert->phase;
	slot->severity = (uint32_t)alert->severity;
	slot->since_ns = alert->since_ns;
	slot->since_us = alert->since_us;
	slot->transitions = alert->transitions;
	slot->record = alert->record;
	slot->notified = alert->notifier.last;
	slot->clear_since_ns = state->clear_since_ns;
	slot->critical_since_ns = state->critical_since_ns;
	slot->calm_since_ns = state->calm_since_ns;
	slot->value = alert->value;
	slot->threshold = alert->threshold;
	slot->unit = (uint32_t)alert->unit;
	slot->flags = flags_of(alert);
	slot->owner = state->owner;
	snprintf(slot->name, sizeof(slot->name), "%s", alert->rule->name);
	snprintf(slot->instance, sizeof(slot->instance), "%s", alert->instance);
	snprintf(slot->metric, sizeof(slot->metric), "%s", alert->metric);
	snprintf(slot->text, sizeof(slot->text), "%s", alert->text);
}

int alert_store_put(struct alert_store *store, int index, const struct alert_state *state)
{
	const struct alert *alert = &state->alert;
	if (alert->phase == ALERT_OK && !alert_notify_pending(alert) &&
		!alert_notify_limits(alert)) {
		alert_store_free(store, index);
		return -1;
	}
	if (index < 0) {
		index = free_slot(store, state->owner);
	}
	if (index < 0 || same(&store->slot[index], state)) {
		return index;
	}
	struct alert_slot entry;
	fill_slot(&entry, state);
	entry.index = (uint32_t)index;
	write_slot(&store->slot[ALERT_SLOTS], &entry);
	entry.index = 0;
	write_slot(&store->slot[index], &entry);
	__atomic_store_n(&store->slot[ALERT_SLOTS].rule, 0, __ATOMIC_RELEASE);
	return index;
}

void alert_store_free(struct alert_store *store, int index)
{
	if (index < 0) {
		return;
	}
	clear_inherited(store, index);
	__atomic_store_n(&store->slot[index].rule, 0, __ATOMIC_RELEASE);
}

struct alert_slope *alert_store_slope(
	struct alert_store *store, const struct alert_rule *rule, const char *metric, uid_t owner)
{
	const uint64_t key = hash_text(hash_rule(rule), metric) | 1;
	size_t own = 0, all = 0, unused = ALERT_SLOPES;
	for (size_t i = 0; store->slope && i < ALERT_SLOPES; i++) {
		struct alert_slope *slope = &store->slope[i];
		if (store->slope_inherited[i] && slope->key == key) {
			store->slope_inherited[i] = false;
			store->slope_owner[i] = owner;
			return slope;
		}
		unused = slope->key == 0 && unused == ALERT_SLOPES ? i : unused;
		all += slope->key != 0;
		own += slope->key != 0 && store->slope_owner[i] == owner;
	}
	const bool stored =
		unused < ALERT_SLOPES && accounts_fits(ALERT_SLOPES_OWN, own, all, 1, owner == 0);
	struct alert_slope *slope = stored ? &store->slope[unused] : mem_zalloc(sizeof(*slope));
	if (stored) {
		store->slope_owner[unused] = owner;
	}
	if (slope) {
		*slope = (struct alert_slope){.slope = NAN};
		__atomic_store_n(&slope->key, key, __ATOMIC_RELEASE);
	}
	return slope;
}

void alert_store_free_slope(struct alert_store *store, struct alert_slope *slope, bool keep)
{
	const bool stored =
		store->slope && slope >= store->slope && slope < store->slope + ALERT_SLOPES;
	if (!stored) {
		free(slope);
	} else if (!keep) {
		__atomic_store_n(&slope->key, 0, __ATOMIC_RELEASE);
	}
}

void alert_store_drop_slopes(struct alert_store *store)
{
	for (size_t i = 0; store->slope && i < ALERT_SLOPES; i++) {
		if (store->slope_inherited[i]) {
			store->slope_inherited[i] = false;
			store->slope[i].key = 0;
		}
	}
}
