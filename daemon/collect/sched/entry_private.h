/* SPDX-License-Identifier: Apache-2.0 */
/* entry_private.h: declares what entry.c, entry_devices.c and entry_fetch.c share. */
#pragma once

#include "daemon/collect/sched/entry.h"

void entry_report(
	struct entry *entry, enum source_state state, const char *reason, uint64_t now_ns);

/* Publishes: everything null, or what was set. */
void entry_commit_nulls(struct entry *entry, const char *reason, uint64_t now_ns);

/* Microseconds, saturating. */
uint32_t entry_microseconds(uint64_t ns);

/* One tick whose work began at started_ns. */
void entry_account(struct source *source, uint64_t started_ns);

/* The collector's sample; then the end of one, whose result is r. */
int entry_sample(struct entry *entry, uint64_t now_ns);
void entry_conclude(struct entry *entry, int r, uint64_t now_ns);

/* Hands an open collector that fetches to the threads. -ENOMEM. */
int entry_open_fetch(struct entry *entry);

/* Has a thread probe. -ENOMEM. */
int entry_probe(struct entry *entry, uint64_t now_ns);

/* The end of an opening, well or not; what failed is closed. True when it is open. */
bool entry_opened(struct entry *entry, int r, uint64_t now_ns);

/* Before an opening. True: it is in vain, since what was absent still is: no device or driver came.
 * Files that others make are found in a quarter of an hour. */
bool entry_is_in_vain(struct entry *entry, uint64_t now_ns);

/* An open collector's class has other devices than when it was opened; looks once a minute. */
bool entry_has_changed(struct entry *entry, uint64_t now_ns);

/* When to look again for what could not be opened; soon: it only has to be closed first. */
void entry_rest(struct entry *entry, bool soon, uint64_t now_ns);

/* One tick of a source that fetches, and when to look at it again. */
void entry_fetch(struct entry *entry, uint64_t now_ns);
void entry_await(struct entry *entry);
