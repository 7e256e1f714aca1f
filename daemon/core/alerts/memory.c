/* The slots of alerts in memory that outlives the process. Nothing in them is believed at start. A
 * slot is written twice, first beside the others: a kill in the midst of one loses no alert. */
#include "daemon/core/alerts/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/runfile.h"
#include "daemon/util/sysops.h"

#define ALERTS_MAGIC UINT64_C(0x34737472656c61) /* "alerts4" */

size_t alerts_memory_bytes(void)
{
	return sizeof(struct runhead) + (ALERT_SLOTS + 1) * sizeof(struct alert_slot) +
	       ALERT_SLOPES * sizeof(struct alert_slope);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	for (size_t i = 0; i < size; i++) {
		hash = (hash ^ at[i]) * UINT64_C(1099511628211);
	}
	return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(hash, text, strlen(text) + 1);
}

/* Of all that decides what the rule does; never 0. */
static uint64_t hash_rule(const struct alert_rule *rule)
{
	const uint64_t words[] = {(uint64_t)rule->kind, rule->for_ns, rule->clear_for_ns,
		rule->over_ns, rule->max_per_hour, (uint64_t)rule->severity};
	const double numbers[] = {rule->threshold, rule->critical, rule->clear};
	uint64_t hash =
		hash_text(hash_text(UINT64_C(14695981039346656037), rule->name), rule->metric);
	hash = hash_bytes(hash_text(hash, rule->message), words, sizeof(words));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		/* one NAN is like another */
		double number = isnan(numbers[i]) ? (double)NAN : numbers[i];
		hash = hash_bytes(hash, &number, sizeof(number));
	}
	return hash ? hash : 1;
}

static bool time_is_good(uint64_t t_ns, uint64_t now_ns)
{
	return t_ns == ALERT_NEVER || t_ns <= now_ns;
}

/* A bucket takes two hours to fill at most: that of three an hour. */
static bool limit_is_good(const struct alert_slot *slot, uint64_t now_ns)
{
	const uint64_t end_ns = now_ns + UINT64_C(7200000000000);
	return slot->notifier.tat_ns[0] <= end_ns && slot->notifier.tat_ns[1] <= end_ns;
}

/* It becomes a part of topics. */
static bool instance_is_good(const struct alert_slot *slot)
{
	if (!memchr(slot->instance, '\0', sizeof(slot->instance))) {
		return false;
	}
	size_t good = strspn(slot->instance, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					     "0123456789_.-:");
	return good > 0 && slot->instance[good] == '\0';
}

static bool slot_is_good(const struct alert_slot *slot, uint64_t now_ns)
{
	return slot->phase <= ALERT_FIRING && slot->notifier.phase <= ALERT_FIRING &&
	       slot->notifier.severity <= ALERT_CRITICAL && limit_is_good(slot, now_ns) &&
	       slot->severity <= ALERT_CRITICAL && slot->unit < UNIT_COUNT_OF_UNITS &&
	       slot->since_ns <= now_ns && time_is_good(slot->clear_since_ns, now_ns) &&
	       time_is_good(slot->critical_since_ns, now_ns) &&
	       time_is_good(slot->calm_since_ns, now_ns) && slot->since_us >= 0 &&
	       memchr(slot->name, '\0', sizeof(slot->name)) && proto_name_valid(slot->name) &&
	       instance_is_good(slot) && memchr(slot->metric, '\0', sizeof(slot->metric)) &&
	       proto_path_valid(slot->metric) && memchr(slot->text, '\0', sizeof(slot->text));
}

static struct runhead header_of(const uint8_t boot_id[16])
{
	const uint32_t shape[] = {
		sizeof(struct alert_slot), ALERT_SLOTS, sizeof(struct alert_slope), ALERT_SLOPES};
	return runhead_of(ALERTS_MAGIC, alerts_memory_bytes(), shape, 4, boot_id);
}

bool alerts_memory_is_of(const void *bytes, const uint8_t boot_id[16])
{
	const struct runhead wanted = header_of(boot_id);
	return runhead_look(bytes, &wanted) == RUNHEAD_OURS;
}

static void write_slot(struct alert_slot *slot, const struct alert_slot *words)
{
	const size_t head = sizeof(slot->rule);
	__atomic_store_n(&slot->rule, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy((char *)slot + head, (const char *)words + head, sizeof(*slot) - head);
	__atomic_store_n(&slot->rule, words->rule, __ATOMIC_RELEASE);
}

/* What the last process was writing when it ended. */
static void finish_writing(struct alert_slot *slot, uint64_t now_ns)
{
	struct alert_slot *writing = &slot[ALERT_SLOTS];
	struct alert_slot words = *writing;
	if (words.rule != 0 && words.place < ALERT_SLOTS && slot_is_good(&words, now_ns)) {
		words.place = 0;
		write_slot(&slot[writing->place], &words);
	}
	__atomic_store_n(&writing->rule, 0, __ATOMIC_RELEASE);
}

size_t alerts_memory_adopt(
	struct alerts_memory *memory, void *bytes, const uint8_t boot_id[16], uint64_t now_ns)
{
	struct runhead *header = bytes;
	size_t damaged = 0;
	if (!alerts_memory_is_of(bytes, boot_id)) {
		const struct runhead wanted = header_of(boot_id);
		runhead_clear(bytes);
		memset(header + 1, 0, alerts_memory_bytes() - sizeof(*header));
		runhead_write(bytes, &wanted);
	}
	memory->slot = (struct alert_slot *)(void *)(header + 1);
	memory->inherited_count = 0;
	finish_writing(memory->slot, now_ns);
	for (size_t i = 0; i < ALERT_SLOTS; i++) {
		struct alert_slot *slot = &memory->slot[i];
		bool used = __atomic_load_n(&slot->rule, __ATOMIC_ACQUIRE) != 0;
		memory->inherited[i] = used && slot_is_good(slot, now_ns);
		memory->inherited_count += memory->inherited[i];
		if (used && !memory->inherited[i]) {
			slot->rule = 0;
			damaged++;
		}
	}
	memory->slope = (struct alert_slope *)(void *)(memory->slot + ALERT_SLOTS + 1);
	for (size_t i = 0; i < ALERT_SLOPES; i++) {
		memory->slope_inherited[i] = memory->slope[i].key != 0;
		alert_slope_adopt(&memory->slope[i], now_ns);
	}
	return damaged;
}

static void restore(struct alert_state *state, const struct alert_slot *slot)
{
	struct alert *alert = &state->alert;
	alert->phase = (enum alert_phase)slot->phase;
	alert->severity = (enum alert_severity)slot->severity;
	alert->value = slot->value;
	alert->threshold = slot->threshold;
	alert->since_ns = slot->since_ns;
	alert->since_us = slot->since_us;
	alert->transitions = slot->transitions;
	alert->record = slot->record;
	state->notifier = slot->notifier;
	alert->unit = alert->unit == UNIT_NONE ? (enum unit)slot->unit : alert->unit;
	snprintf(alert->text, sizeof(alert->text), "%s", slot->text);
	alert->untold = (slot->holds & SLOT_UNTOLD) != 0;
	/* until when is told by the silences: alert_hold_refresh */
	alert->silenced_until_ns = (slot->holds & SLOT_SILENCED) != 0;
	state->clear_since_ns = slot->clear_since_ns;
	state->critical_since_ns = slot->critical_since_ns;
	state->calm_since_ns = slot->calm_since_ns;
}

int alerts_memory_take(struct alerts_memory *memory, struct alert_state *state)
{
	if (memory->inherited_count == 0) {
		return -1;
	}
	uint64_t rule = hash_rule(state->alert.rule);
	for (size_t i = 0; i < ALERT_SLOTS; i++) {
		const struct alert_slot *slot = &memory->slot[i];
		if (memory->inherited[i] && slot->rule == rule &&
			strcmp(slot->metric, state->alert.metric) == 0) {
			memory->inherited[i] = false;
			memory->inherited_count--;
			restore(state, slot);
			return (int)i;
		}
	}
	return -1;
}

static int free_slot(const struct alerts_memory *memory)
{
	for (int i = 0; memory->slot && i < ALERT_SLOTS; i++) {
		if (memory->slot[i].rule == 0) {
			return i;
		}
	}
	return -1;
}

static uint32_t holds_of(const struct alert *alert)
{
	return (alert->untold ? SLOT_UNTOLD : 0) | (alert->silenced_until_ns ? SLOT_SILENCED : 0);
}

static bool same(const struct alert_slot *slot, const struct alert_state *state)
{
	const struct alert *alert = &state->alert;
	return slot->rule != 0 && slot->phase == (uint32_t)alert->phase &&
	       memcmp(&slot->notifier, &state->notifier, sizeof(slot->notifier)) == 0 &&
	       slot->severity == (uint32_t)alert->severity && slot->since_ns == alert->since_ns &&
	       slot->clear_since_ns == state->clear_since_ns &&
	       slot->critical_since_ns == state->critical_since_ns &&
	       slot->calm_since_ns == state->calm_since_ns && slot->holds == holds_of(alert);
}

/* All its bytes, also those between the fields: what is saved is compared. */
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
	slot->notifier = state->notifier;
	slot->clear_since_ns = state->clear_since_ns;
	slot->critical_since_ns = state->critical_since_ns;
	slot->calm_since_ns = state->calm_since_ns;
	slot->value = alert->value;
	slot->threshold = alert->threshold;
	slot->unit = (uint32_t)alert->unit;
	slot->holds = holds_of(alert);
	snprintf(slot->name, sizeof(slot->name), "%s", alert->rule->name);
	snprintf(slot->instance, sizeof(slot->instance), "%s", alert->instance);
	snprintf(slot->metric, sizeof(slot->metric), "%s", alert->metric);
	snprintf(slot->text, sizeof(slot->text), "%s", alert->text);
}

int alerts_memory_store(struct alerts_memory *memory, int index, const struct alert_state *state)
{
	const struct alert *alert = &state->alert;
	if (alert->phase == ALERT_OK && !alert_notify_pending(state) &&
		!alert_notify_limits(state)) {
		alerts_memory_free(memory, index);
		return -1;
	}
	if (index < 0) {
		index = free_slot(memory);
	}
	if (index < 0 || same(&memory->slot[index], state)) {
		return index;
	}
	struct alert_slot words;
	fill_slot(&words, state);
	words.place = (uint32_t)index;
	write_slot(&memory->slot[ALERT_SLOTS], &words);
	words.place = 0;
	write_slot(&memory->slot[index], &words);
	__atomic_store_n(&memory->slot[ALERT_SLOTS].rule, 0, __ATOMIC_RELEASE);
	return index;
}

void alerts_memory_free(struct alerts_memory *memory, int index)
{
	if (index < 0) {
		return;
	}
	if (memory->inherited[index]) {
		memory->inherited[index] = false;
		memory->inherited_count--;
	}
	__atomic_store_n(&memory->slot[index].rule, 0, __ATOMIC_RELEASE);
}

int alerts_memory_orphan(const struct alerts_memory *memory)
{
	for (size_t i = 0; memory->inherited_count > 0 && i < ALERT_SLOTS; i++) {
		if (memory->inherited[i]) {
			return (int)i;
		}
	}
	return -1;
}

int alerts_memory_of_rule(
	const struct alerts_memory *memory, const struct alert_rule *rule, size_t *cursor)
{
	const uint64_t hash = memory->inherited_count > 0 ? hash_rule(rule) : 0;
	while (hash != 0 && *cursor < ALERT_SLOTS) {
		const size_t i = (*cursor)++;
		if (memory->inherited[i] && memory->slot[i].rule == hash) {
			return (int)i;
		}
	}
	return -1;
}

struct alert_slope *alerts_memory_slope(
	struct alerts_memory *memory, const struct alert_rule *rule, const char *metric)
{
	const uint64_t key = hash_text(hash_rule(rule), metric) | 1;
	struct alert_slope *unused = NULL;
	for (size_t i = 0; memory->slope && i < ALERT_SLOPES; i++) {
		struct alert_slope *slope = &memory->slope[i];
		if (slope->key == key && memory->slope_inherited[i]) {
			memory->slope_inherited[i] = false;
			return slope;
		}
		unused = slope->key == 0 && !unused ? slope : unused;
	}
	struct alert_slope *slope = unused ? unused : mem_zalloc(sizeof(*slope));
	if (slope) {
		*slope = (struct alert_slope){.slope = NAN};
		__atomic_store_n(&slope->key, key, __ATOMIC_RELEASE);
	}
	return slope;
}

static bool is_remembered(const struct alerts_memory *memory, const struct alert_slope *slope)
{
	return memory->slope && slope >= memory->slope && slope < memory->slope + ALERT_SLOPES;
}

void alerts_memory_free_slope(struct alerts_memory *memory, struct alert_slope *slope)
{
	if (is_remembered(memory, slope)) {
		__atomic_store_n(&slope->key, 0, __ATOMIC_RELEASE);
	} else {
		free(slope);
	}
}

void alerts_memory_leave_slope(struct alerts_memory *memory, struct alert_slope *slope)
{
	if (!is_remembered(memory, slope)) {
		free(slope);
	}
}

void alerts_memory_drop_slopes(struct alerts_memory *memory)
{
	for (size_t i = 0; memory->slope && i < ALERT_SLOPES; i++) {
		if (memory->slope_inherited[i]) {
			memory->slope_inherited[i] = false;
			memory->slope[i].key = 0;
		}
	}
}
