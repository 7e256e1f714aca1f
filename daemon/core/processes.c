/* The list of watches. Others write it, the process collector notices by the serial and fills the
 * rows itself; only what must stay consistent (limit, duplicates, serial) is done here. */
#include "daemon/core/processes.h"

#include <errno.h>
#include <string.h>

static bool same_watch(const struct watch *a, const struct watch *b)
{
	return a->kind == b->kind && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->pattern, b->pattern) == 0 && a->pid == b->pid &&
	       a->start_ticks == b->start_ticks;
}

int processes_watch(struct processes *processes, const struct watch *watch)
{
	for (size_t i = 0; i < processes->watches; i++) {
		if (same_watch(&processes->watch[i], watch)) {
			return -EEXIST;
		}
	}
	if (processes->watches == WATCHES_MAX) {
		processes->refused++;
		return -ENOSPC;
	}
	processes->watch[processes->watches++] = *watch;
	processes->serial++;
	return 0;
}

int processes_unwatch(
	struct processes *processes, enum watch_kind kind, const char *name, pid_t pid)
{
	size_t kept = 0;
	for (size_t i = 0; i < processes->watches; i++) {
		const struct watch *watch = &processes->watch[i];
		bool gone = watch->kind == kind && strcmp(watch->name, name) == 0 &&
			    (pid == 0 || watch->pid == pid);
		if (gone) {
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
