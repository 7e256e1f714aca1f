/* SPDX-License-Identifier: Apache-2.0 */
/* processes.c: adds and removes watches. The process collector notices a change by the serial and
 * fills the rows itself; only the limit, duplicates and the serial are handled here. */
#include "daemon/core/metrics/processes.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static bool same_watch(const struct watch *a, const struct watch *b)
{
	return a->kind == b->kind && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->pattern, b->pattern) == 0 && a->pid == b->pid &&
	       a->start_ticks == b->start_ticks;
}

struct watch *processes_find(struct processes *processes, const struct watch *watch)
{
	for (size_t i = 0; i < processes->watches; i++) {
		if (same_watch(&processes->watch[i], watch)) {
			return &processes->watch[i];
		}
	}
	return NULL;
}

int processes_watch(struct processes *processes, const struct watch *watch)
{
	if (processes_find(processes, watch)) {
		return -EEXIST;
	}
	if (processes->watches == WATCHES_MAX) {
		processes->refused++;
		return -ENOSPC;
	}
	processes->watch[processes->watches++] = *watch;
	processes->serial++;
	return 0;
}

static int remove_watches(struct processes *processes, const struct watch *key,
	bool (*matches)(const struct watch *watch, const struct watch *key))
{
	size_t kept = 0;
	for (size_t i = 0; i < processes->watches; i++) {
		const struct watch *watch = &processes->watch[i];
		if (matches(watch, key)) {
			continue;
		}
		if (kept != i) {
			processes->watch[kept] = *watch;
		}
		kept++;
	}
	int removed = (int)(processes->watches - kept);
	processes->watches = kept;
	if (removed > 0) {
		processes->serial++;
	}
	return removed;
}

static bool is_lasting(const struct watch *watch, const struct watch *key)
{
	return !watch->runtime && watch->kind == key->kind && strcmp(watch->name, key->name) == 0 &&
	       (key->pid == 0 || watch->pid == key->pid);
}

int processes_unwatch(
	struct processes *processes, enum watch_kind kind, const char *name, pid_t pid)
{
	struct watch key = {.kind = kind, .pid = pid};
	size_t length = strlen(name);
	if (length >= sizeof(key.name)) {
		return 0;
	}
	memcpy(key.name, name, length);
	return remove_watches(processes, &key, is_lasting);
}

static bool is_runtime(const struct watch *watch, const struct watch *key)
{
	return watch->runtime && (key->pid == 0 || watch->pid == key->pid) &&
	       (key->pattern[0] == '\0' || strcmp(watch->name, key->pattern) == 0 ||
		       strcmp(watch->pattern, key->pattern) == 0);
}

int processes_unwatch_runtime(struct processes *processes, pid_t pid, const char *name)
{
	struct watch key = {.pid = pid};
	size_t length = name ? strlen(name) : 0;
	if (length >= sizeof(key.pattern)) {
		return 0;
	}
	if (length > 0) {
		memcpy(key.pattern, name, length);
	}
	return remove_watches(processes, &key, is_runtime);
}

size_t processes_runtime(const struct processes *processes)
{
	size_t count = 0;
	for (size_t i = 0; i < processes->watches; i++) {
		count += processes->watch[i].runtime;
	}
	return count;
}

double process_ipc(const double counter[PROCESS_COUNTERS])
{
	double cycles = counter[PROCESS_CYCLES];
	return cycles > 0 ? counter[PROCESS_INSTRUCTIONS] / cycles : (double)NAN;
}

const char *process_ipc_verdict(double ipc)
{
	if (isnan(ipc)) {
		return "";
	}
	return ipc < 1.0 ? "stalled" : ipc > 1.5 ? "efficient" : "mixed";
}

const char *process_policy_name(int policy)
{
	static const char *const names[] = {"SCHED_OTHER", "SCHED_FIFO", "SCHED_RR", "SCHED_BATCH",
		"", "SCHED_IDLE", "SCHED_DEADLINE", "SCHED_EXT"};
	return policy >= 0 && (size_t)policy < sizeof(names) / sizeof(names[0]) ? names[policy]
										: "";
}
