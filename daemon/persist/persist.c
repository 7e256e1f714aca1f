/* SPDX-License-Identifier: Apache-2.0 */
/*
 * persist.c: decides when what is written to the history on disk. All of this is on the loop;
 * archive_file does one job at a time on a thread and reports its end. Blocks are written just
 * behind the end of a bucket, so that it is in them.
 */
#include "daemon/persist/persist.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/archive/boots.h"
#include "daemon/persist/private.h"
#include "daemon/persist/statedir.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

#define S_NS UINT64_C(1000000000)
#define RETRY_FIRST_NS (10 * S_NS)
#define RETRY_LAST_NS (600 * S_NS)
#define STUCK_NS (10 * S_NS)
#define STUCK_OPEN_NS (60 * S_NS) /* and a second for each MiB of the file */
#define BEHIND_NS (S_NS)	  /* the end of a bucket: its last values have come then */
#define LOOK_NS (10 * S_NS)	  /* the number of metrics may have changed */

enum {
	STOP_MS = 2000,
	SOON_BYTES = 16 * 1024, /* that still wait after a block: another one at once */
};

/* ---- failing and trying again ---- */

static void arm(struct persist *persist);

static void degrade(struct persist *persist, const char *why)
{
	uint64_t now_ns = sysops()->now_ns();
	persist->open = false;
	archive_release(persist->archive);
	persist->retry_at_ns = now_ns + persist->retry_ns;
	persist->retry_ns =
		2 * persist->retry_ns < RETRY_LAST_NS ? 2 * persist->retry_ns : RETRY_LAST_NS;
	persist_set_state(persist, PERSIST_DEGRADED, why);
}

static void reset_backoff(struct persist *persist)
{
	persist->retry_ns = persist->options.retry_ns ? persist->options.retry_ns : RETRY_FIRST_NS;
}

/* ---- what is written, and what that costs: the account is asked before, and charged with what
 * was handed to the kernel whatever comes of it ---- */

static void report_account(
	struct persist *persist, const struct archive_pace *pace, uint64_t now_ns)
{
	struct persist_status *status = persist->status;
	status->day_bytes = archive_account_day(&persist->account, now_ns);
	status->day_limit_bytes = persist->account.limit;
	status->bucket_ns = pace->bucket_ns;
	status->period_ns = pace->period_ns;
	status->loss_ns = pace->loss_ns;
}

static size_t values_now(const struct core *core)
{
	size_t count = 0;
	uint32_t cursor = 0;
	const struct metric *metric;
	while ((metric = metrics_next(core->metrics, &cursor))) {
		count += !isnan(metric->value);
	}
	return count;
}

static struct archive_pace set_pace(struct persist *persist, uint64_t now_ns)
{
	struct archive_pace pace =
		archive_account_pace(&persist->account, now_ns, values_now(persist->core));
	archive_set_bucket(persist->archive, pace.bucket_ns, now_ns);
	if (persist->options.period_ns) {
		pace.period_ns = persist->options.period_ns;
	}
	report_account(persist, &pace, now_ns);
	return pace;
}

bool persist_is_open(const struct persist *persist)
{
	return persist && persist->open;
}

bool persist_charge(struct persist *persist, size_t bytes, bool last)
{
	uint64_t now_ns = sysops()->now_ns();
	if (!persist->restored || !archive_account_allows(&persist->account, now_ns, bytes, last)) {
		return false;
	}
	archive_account_wrote(&persist->account, now_ns, bytes, 0, 0);
	persist->status->written_bytes += archive_account_cost(&persist->account, bytes);
	return true;
}

static bool write_block(struct persist *persist, uint64_t now_ns, bool last)
{
	const struct core *core = persist->core;
	const int64_t wall_us = wallclock_us(core->wall, now_ns);
	const bool synced = wallclock_synced(core->wall);
	struct archive_account_memory memory;
	struct archive_pending pending;
	const uint8_t *bytes;
	uint32_t page;
	archive_pending(persist->archive, &pending);
	/* Buckets that are still open may be in it; what the next process learns is never less than
	 * what this one wrote. */
	size_t most = pending.bytes + 8 * values_now(core) + ARCHIVE_PAGE;
	archive_account_save(&persist->account, now_ns, wall_us, synced, most, &memory);
	/* Blocks of a test's pace hold what there is. */
	bool all =
		last || (persist->options.period_ns > 0 && persist->options.period_ns < 10 * S_NS);
	size_t size =
		archive_seal(persist->archive, now_ns, core->wall, &memory, all, &bytes, &page);
	if (size == 0) {
		return false;
	}
	int r = archive_account_allows(&persist->account, now_ns, size, last) ? 0 : -EDQUOT;
	r = r < 0 ? r : archive_file_write(&persist->file, page, bytes, size);
	if (r < 0) {
		archive_written(persist->archive, r);
		return false;
	}
	archive_account_wrote(&persist->account, now_ns, size, pending.bytes, pending.rows);
	persist->status->written_bytes += archive_account_cost(&persist->account, size);
	persist->writing = size;
	return true;
}

/* ---- when ---- */

static void open_again(struct persist *persist)
{
	int r = archive_file_open(&persist->file);
	if (r < 0) {
		degrade(persist, strerror(-r));
	}
}

static void set_due(struct persist *persist, const struct archive_pace *pace)
{
	uint64_t bucket_ns = pace->bucket_ns;
	persist->due_ns = persist->sealed_ns + pace->period_ns;
	if (!persist->options.period_ns) {
		persist->due_ns = persist->sealed_ns / bucket_ns * bucket_ns + pace->period_ns;
		persist->due_ns = persist->due_ns / bucket_ns * bucket_ns + BEHIND_NS;
	}
}

static void tick(struct persist *persist)
{
	char reason[128];
	uint64_t now_ns = sysops()->now_ns();
	uint64_t busy_ns = persist->file.busy_ns;
	if (busy_ns > 0) {
		uint64_t limit_ns = persist->writing > 0
					    ? STUCK_NS
					    : STUCK_OPEN_NS + (persist->options.size >> 20) * S_NS;
		if (now_ns - busy_ns > limit_ns) {
			snprintf(reason, sizeof(reason), "the medium has not answered for %s",
				persist->writing > 0 ? "10 s" : "a minute and longer");
			persist_set_state(persist, PERSIST_STUCK, reason);
		}
		return;
	}
	if (!persist->open) {
		if (now_ns >= persist->retry_at_ns) {
			open_again(persist);
		}
		return;
	}
	struct archive_pace pace = set_pace(persist, now_ns);
	if (pace.paused) {
		snprintf(reason, sizeof(reason), "%.1f MiB were written in the last 24 h",
			(double)persist->status->day_bytes / (1 << 20));
		persist_set_state(persist, PERSIST_PAUSED, reason);
		return;
	}
	if (persist->status->state == PERSIST_PAUSED) {
		persist_set_state(persist, PERSIST_OK, "");
	}
	set_due(persist, &pace);
	if (persist->write_now || now_ns >= persist->due_ns) {
		persist->sealed_ns = now_ns;
		if (!write_block(persist, now_ns, false) && persist->write_now) {
			persist_set_state(
				persist, PERSIST_OK, ""); /* there is nothing to try it with */
		}
		persist->write_now = false;
		set_due(persist, &pace);
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct persist *persist = timer->data;
	tick(persist);
	persist_publish(persist);
	arm(persist);
}

/* The next time that something is to be looked at. */
static void arm(struct persist *persist)
{
	uint64_t now_ns = sysops()->now_ns();
	uint64_t next_ns = now_ns + LOOK_NS;
	if (persist->closing) {
		return;
	}
	if (persist->file.busy_ns > 0) {
		next_ns = now_ns + 5 * S_NS;
	} else if (!persist->open) {
		next_ns = persist->retry_at_ns;
	} else if (persist->status->state != PERSIST_PAUSED && persist->due_ns < next_ns) {
		next_ns = persist->due_ns;
	}
	uint64_t wait_ms = next_ns > now_ns ? (next_ns - now_ns) / 1000000 : 0;
	uv_timer_start(&persist->timer, on_timer, wait_ms + 1, 0);
}

/* ---- what the thread reports ---- */

static void finish(struct persist *persist);

/* The boots before this one come onto the timeline. */
static void list_past(struct persist *persist)
{
	const struct core *core = persist->core;
	int r = timeline_load_past(core->timeline, persist->archive, core->wall);
	if (r < 0) {
		log_warning("cannot list events of previous boots: %s", strerror(-r));
	}
}

static void on_opened(struct persist *persist, int result, struct archive_index *index)
{
	uint64_t now_ns = sysops()->now_ns();
	const struct core *core = persist->core;
	const struct archive_disk *disk = archive_file_disk(&persist->file);
	if (disk->aside[0] != '\0') {
		timeline_add(core->timeline, now_ns, TIMELINE_DAEMON, TIMELINE_WARNING, "edgeprofd",
			"the file of the history was unusable and was renamed to %s", disk->aside);
	}
	if (result < 0) {
		degrade(persist, disk->why);
		return;
	}
	archive_adopt(persist->archive, index);
	list_past(persist);
	if (!persist->restored) {
		struct archive_account_memory memory;
		archive_account_init(&persist->account, persist->options.day_bytes, disk->overhead,
			disk->unit, now_ns);
		archive_account_found(persist->archive, &memory);
		archive_account_restore(&persist->account, &memory, now_ns,
			wallclock_us(core->wall, now_ns), wallclock_synced(core->wall));
		persist->restored = true;
	}
	persist->account.overhead = disk->overhead;
	persist->account.unit = disk->unit;
	persist->status->file_bytes = persist->options.size;
	persist->open = true;
	persist->sealed_ns = now_ns;
	/* After a failure it is ok again when something has been written. */
	persist->write_now = persist_is_degraded(persist->status);
	if (!persist->write_now) {
		persist_set_state(persist, PERSIST_OK, "");
	}
	if (!persist->closing) {
		tick(persist);
	}
}

static void on_written(struct persist *persist, int result)
{
	uint64_t now_ns = sysops()->now_ns();
	struct archive_pending pending;
	persist->writing = 0;
	archive_written(persist->archive, result);
	if (result < 0) {
		degrade(persist, archive_file_disk(&persist->file)->why);
		return;
	}
	reset_backoff(persist);
	persist_set_state(persist, PERSIST_OK, "");
	archive_pending(persist->archive, &pending);
	history_set_archived(persist->core->history, archive_mark_ns(persist->archive, now_ns));
	if (pending.bytes >= SOON_BYTES && !persist->closing) {
		write_block(persist, now_ns, false);
	}
	set_pace(persist, now_ns);
}

static void on_done(void *ctx, int result, bool opened, struct archive_index *index)
{
	struct persist *persist = ctx;
	if (opened) {
		on_opened(persist, result, index);
	} else {
		on_written(persist, result);
	}
	if (!persist->closing) {
		arm(persist);
	} else if (!persist->open || !write_block(persist, sysops()->now_ns(), true)) {
		finish(persist);
	}
}

static void on_event(void *ctx, const struct timeline_entry *entry)
{
	struct persist *persist = ctx;
	archive_on_event(persist->archive, entry);
	if (entry->kind == TIMELINE_CLOCK && archive_boot_seq(persist->archive) > 0) {
		list_past(persist); /* the clock of this boot is known better */
	}
}

/* ---- opening and closing ---- */

static int descriptor(void *ctx)
{
	const struct persist *persist = ctx;
	return persist->open ? persist->file.descriptor : -1;
}

static int open_file(struct persist *persist)
{
	struct archive_disk disk;
	char dir[ARCHIVE_DIR_SIZE];
	bool parents;
	int r = statedir_choose(
		persist->options.path, dir, sizeof(dir) - sizeof("/history"), &parents);
	if (r < 0) {
		persist_set_state(persist, PERSIST_DEGRADED,
			r == -ENOENT ? "no state directory: set [history] path"
				     : "the path is too long");
		return 0;
	}
	archive_disk_init(&disk, dir, parents, persist->options.size);
	snprintf(persist->status->path, sizeof(persist->status->path), "%s/history", dir);
	r = archive_file_init(&persist->file, persist->loop, &disk, on_done, persist);
	if (r == 0) {
		persist_set_state(persist, PERSIST_STARTING, "");
		open_again(persist);
		arm(persist);
	}
	return r;
}

int persist_open(uv_loop_t *loop, struct core *core, struct persist_status *status,
	const struct persist_options *options, struct persist **ret)
{
	struct persist *persist = mem_zalloc(sizeof(*persist));
	if (!persist) {
		return -ENOMEM;
	}
	*ret = persist;
	persist->loop = loop;
	persist->core = core;
	persist->status = status;
	persist->options = *options;
	persist->options.size -= persist->options.size % ARCHIVE_PAGE;
	reset_backoff(persist);
	uv_timer_init(loop, &persist->timer);
	persist->timer.data = persist;
	int r = archive_create(options->boot_id, core->history, &persist->archive);
	if (r == 0) {
		archive_continue(persist->archive, core->timeline);
		history_observe(core->history, archive_on_row, persist->archive);
	}
	r = r < 0 ? r : timeline_observe(core->timeline, on_event, persist);
	r = r < 0 ? r : archive_readers_open(loop, descriptor, persist, &persist->readers);
	if (r == 0) {
		core->archive = persist->archive;
		core->archive_reader = archive_readers_ops(persist->readers);
	}
	return r < 0 ? r : open_file(persist);
}

static void finish(struct persist *persist)
{
	archive_file_close(&persist->file);
	if (!uv_is_closing((uv_handle_t *)&persist->timer)) {
		uv_close((uv_handle_t *)&persist->timer, NULL);
	}
}

/* A medium that hangs is left to its thread. */
static void on_late(uv_timer_t *timer)
{
	log_warning("stopped before the latest history was written: no response within %d s",
		STOP_MS / 1000);
	finish(timer->data);
}

void persist_close(struct persist *persist)
{
	if (!persist || persist->closing) {
		return;
	}
	persist->closing = true;
	timeline_unobserve(persist->core->timeline, persist);
	persist->core->archive_reader = NULL;
	archive_readers_close(persist->readers);
	persist->readers = NULL;
	/* What a run of a moment has to write waits until the file is open. */
	bool busy = persist->file.busy_ns > 0;
	if (!busy && persist->open) {
		busy = write_block(persist, sysops()->now_ns(), true);
	}
	if (busy) {
		uv_timer_start(&persist->timer, on_late, STOP_MS, 0);
	} else {
		finish(persist);
	}
}

void persist_destroy(struct persist *persist)
{
	if (persist) {
		persist->core->archive = NULL;
		history_observe(persist->core->history, NULL, NULL);
		archive_destroy(persist->archive);
		free(persist);
	}
}
