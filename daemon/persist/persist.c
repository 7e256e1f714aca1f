/*
 * When what is written. All of this is on the loop; the worker (store/archive_file) does one job at
 * a time and tells its end. Blocks are written just behind the end of a bucket, so that it is in
 * them. States are told once, on their change.
 */
#include "daemon/persist/persist.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/history/history.h"
#include "daemon/persist/past.h"
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

static void forgive(struct persist *persist)
{
	persist->retry_ns = persist->options.retry_ns ? persist->options.retry_ns : RETRY_FIRST_NS;
}

/* ---- when ---- */

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
	uint64_t busy_ns = archive_file_busy_ns(persist->file);
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
			archive_file_open(persist->file);
		}
		return;
	}
	struct archive_pace pace = persist_pace(persist, now_ns);
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
	if (persist->hurry || now_ns >= persist->due_ns) {
		persist->sealed_ns = now_ns;
		if (!persist_write(persist, now_ns, false) && persist->hurry) {
			persist_set_state(
				persist, PERSIST_OK, ""); /* there is nothing to try it with */
		}
		persist->hurry = false;
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
	if (archive_file_busy_ns(persist->file) > 0) {
		next_ns = now_ns + 5 * S_NS;
	} else if (!persist->open) {
		next_ns = persist->retry_at_ns;
	} else if (persist->status->state != PERSIST_PAUSED && persist->due_ns < next_ns) {
		next_ns = persist->due_ns;
	}
	uint64_t wait_ms = next_ns > now_ns ? (next_ns - now_ns) / 1000000 : 0;
	uv_timer_start(&persist->timer, on_timer, wait_ms + 1, 0);
}

/* ---- what the worker tells ---- */

static void finish(struct persist *persist);

static void on_opened(struct persist *persist, const struct archive_file_result *result)
{
	uint64_t now_ns = sysops()->now_ns();
	const struct core *core = persist->core;
	if (result->aside[0] != '\0') {
		timeline_add(core->timeline, now_ns, TIMELINE_DAEMON, TIMELINE_WARNING, "edgeprofd",
			"what was in place of the history was set aside as %s", result->aside);
	}
	if (result->result < 0) {
		degrade(persist, result->why);
		return;
	}
	archive_adopt(persist->archive, result->index);
	past_adopted(persist->past);
	if (!persist->remembered) {
		struct archive_account_memory memory;
		archive_account_init(&persist->account, persist->options.day_bytes,
			result->overhead, result->unit, now_ns);
		archive_account_found(persist->archive, &memory);
		archive_account_remember(&persist->account, &memory, now_ns,
			wallclock_us(core->wall, now_ns), wallclock_synced(core->wall));
		persist->remembered = true;
	}
	persist->account.overhead = result->overhead;
	persist->account.unit = result->unit;
	persist->status->file_bytes = persist->options.size;
	persist->open = true;
	persist->sealed_ns = now_ns;
	/* After a failure it is well again when something has been written. */
	persist->hurry = persist_is_degraded(persist->status);
	if (!persist->hurry) {
		persist_set_state(persist, PERSIST_OK, "");
	}
	if (!persist->closing) {
		tick(persist);
	}
}

static void on_written(struct persist *persist, const struct archive_file_result *result)
{
	uint64_t now_ns = sysops()->now_ns();
	struct archive_pending pending;
	persist->writing = 0;
	archive_written(persist->archive, result->result);
	if (result->result < 0) {
		degrade(persist, result->why);
		return;
	}
	forgive(persist);
	persist_set_state(persist, PERSIST_OK, "");
	archive_pending(persist->archive, &pending);
	history_set_archived(persist->core->history, archive_mark_ns(persist->archive, now_ns));
	if (pending.bytes >= SOON_BYTES && !persist->closing) {
		persist_write(persist, now_ns, false);
	}
	persist_pace(persist, now_ns);
}

static void on_told(void *ctx, const struct archive_file_result *result)
{
	struct persist *persist = ctx;
	if (result->job == ARCHIVE_JOB_OPEN) {
		on_opened(persist, result);
	} else {
		on_written(persist, result);
	}
	if (!persist->closing) {
		arm(persist);
	} else if (!persist->open || !persist_write(persist, sysops()->now_ns(), true)) {
		finish(persist);
	}
}

/* ---- opening and closing ---- */

static int descriptor(void *ctx)
{
	const struct persist *persist = ctx;
	return persist->file && persist->open ? archive_file_descriptor(persist->file) : -1;
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
			r == -ENOENT ? "there is no place for it: set [history] path"
				     : "the path is too long");
		return 0;
	}
	archive_disk_init(&disk, dir, parents, persist->options.size);
	snprintf(persist->status->path, sizeof(persist->status->path), "%s/history", dir);
	r = archive_file_create(persist->loop, &disk, on_told, persist, &persist->file);
	if (r == 0) {
		persist_set_state(persist, PERSIST_STARTING, "");
		archive_file_open(persist->file);
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
	forgive(persist);
	uv_timer_init(loop, &persist->timer);
	persist->timer.data = persist;
	int r = archive_create(options->boot_id, core->history, &persist->archive);
	if (r == 0) {
		archive_continue(persist->archive, core->timeline);
		history_observe(core->history, archive_on_row, persist->archive);
	}
	r = r < 0 ? r : timeline_observe(core->timeline, archive_on_event, persist->archive);
	if (r == 0) {
		core->archive = persist->archive;
		r = past_open(loop, core, descriptor, persist, &persist->past);
	}
	return r < 0 ? r : open_file(persist);
}

static void finish(struct persist *persist)
{
	if (persist->file) {
		archive_file_close(persist->file, NULL, NULL);
		persist->file = NULL;
	}
	if (!uv_is_closing((uv_handle_t *)&persist->timer)) {
		uv_close((uv_handle_t *)&persist->timer, NULL);
	}
}

/* A medium that hangs is left to its thread. */
static void on_late(uv_timer_t *timer)
{
	log_warning("the last of the history was not written within %d s", STOP_MS / 1000);
	finish(timer->data);
}

void persist_close(struct persist *persist)
{
	if (!persist || persist->closing) {
		return;
	}
	persist->closing = true;
	timeline_unobserve(persist->core->timeline, persist->archive);
	past_close(persist->past);
	persist->past = NULL;
	bool writing = persist->writing > 0;
	if (!writing && persist->open) {
		writing = persist_write(persist, sysops()->now_ns(), true);
	}
	if (writing) {
		uv_timer_start(&persist->timer, on_late, STOP_MS, 0);
	} else {
		finish(persist); /* an opening ends by itself */
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
