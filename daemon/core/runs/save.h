/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save.h: keeps the statistics of current runs in memory that outlives the daemon (a mapped file
 * of the run directory): after kill -9 a process that attaches again goes on with its run. Items
 * (an app, a stage, a frame stream) that changed are written a few at a time; each has two copies,
 * written in turns, with a sequence and a checksum, so that a torn one leaves the one before it.
 *
 * An app is written when all of its changed stages and frames are: what it received by then is in
 * them. What its processes have received beyond that when they come back is missing, and counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct app;
struct apps;
struct app_process;

struct app_save_memory {
	void *data; /* size bytes, of which only those reserved are touched, but the first page */
	size_t size;
	/* Backs [offset, offset + length) with pages for good. False: out of space. */
	bool (*reserve)(void *ctx, size_t offset, size_t length);
	void *ctx;
};

size_t apps_save_size(void);

/* From now on current runs are written there, and restored from what it holds of this boot. The
 * memory outlives apps. -EINVAL: too small; -ENOSPC: not even its first page; -ENOMEM. */
int apps_save_into(
	struct apps *apps, const struct app_save_memory *memory, const uint8_t boot_id[16]);

/* Writes at most n changed items, those of the next apps in turn. */
void apps_save_some(struct apps *apps, size_t n);
/* Writes the marks that changed. Called for each mark: people also make marks while no app runs. */
void apps_save_marks(struct apps *apps);
/* Everything that changed, frames in flight included, before the processes are released. */
void apps_save_all(struct apps *apps);

/* Looks at the next n saved runs of apps that have not come back, and ends those of which no
 * process is left; how they ended is not known. is_gone: of a process (its pid and start time). */
void apps_end_saved(struct apps *apps, size_t n, bool (*is_gone)(pid_t pid, uint64_t start_ticks),
	uint64_t now_ns);

/* A process attached whose mapping says that this number of records was read from it by an
 * earlier life of the daemon. What of them the statistics miss is noted in its app. */
void apps_note_received(struct app_process *process, uint64_t received);

/* Of the processes that shared its frames before the daemon was restarted not all have come back.
 */
bool app_awaits_processes(const struct app *app);
