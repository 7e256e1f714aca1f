/* When the file is written: the loop makes the bytes, a thread of its own writes them. A medium
 * that hangs is left to that thread. */
#include "daemon/persist/alerts_keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/saved.h"
#include "daemon/persist/state_job.h"
#include "daemon/util/crc32c.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

enum {
	LOOK_MS = 60000,
	STOP_MS = 2000,
	RENAME_BYTES = 16 * 1024, /* directory, inode and journal beside the file itself */
};

struct alerts_keep {
	uv_timer_t timer;
	struct core *core;
	struct persist *persist;
	struct state_job *job; /* NULL: none is under way */
	char dir[192];
	uint32_t crc;	  /* of what is being written */
	uint32_t written; /* of what is in the file; 0 = not known */
	uint32_t nothing; /* of what says that nothing is remembered */
	bool closing, failed;
};

static bool look(struct alerts_keep *keep);

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void finish(struct alerts_keep *keep)
{
	state_job_leave(keep->job);
	keep->job = NULL;
	uv_close((uv_handle_t *)&keep->timer, on_closed);
}

static void on_written(void *ctx, int result, const uint8_t *bytes)
{
	struct alerts_keep *keep = ctx;
	(void)bytes;
	keep->job = NULL;
	keep->written = result == 0 ? keep->crc : 0;
	if (result < 0 && !keep->failed) {
		log_warning("%s/alerts: %s", keep->dir, strerror(-result));
	}
	keep->failed = result < 0;
	/* what changed meanwhile; not again what failed */
	if (keep->closing && (result < 0 || !look(keep))) {
		finish(keep);
	}
}

/* True when something is being written. */
static bool look(struct alerts_keep *keep)
{
	if (keep->job || !persist_is_open(keep->persist)) {
		return keep->job != NULL;
	}
	uint8_t *bytes = mem_zalloc(alerts_saved_bytes());
	size_t size = bytes ? alerts_save(keep->core->alerts, keep->core->wall, bytes) : 0;
	keep->crc = crc32c(0, bytes, size) | 1;
	/* nothing to remember is no file; a start does not know whether there is one, and pays only
	 * when it had to try twice */
	bool nothing = keep->crc == keep->nothing;
	bool guess = nothing && keep->written == 0 && !keep->failed;
	if (size == 0 || keep->crc == keep->written ||
		(!guess && !persist_charge(keep->persist, size + RENAME_BYTES, keep->closing))) {
		free(bytes);
		return false;
	}
	enum state_job_kind kind = nothing ? STATE_JOB_REPLACE : STATE_JOB_WRITE;
	if (state_job_start(keep->timer.loop, kind, keep->dir, "alerts", bytes, size, on_written,
		    keep, &keep->job) < 0) {
		free(bytes);
	}
	return keep->job != NULL;
}

static void on_timer(uv_timer_t *timer)
{
	look(timer->data);
}

static int nothing(uint32_t *ret)
{
	uint8_t *bytes = mem_zalloc(alerts_saved_bytes());
	if (!bytes) {
		return -ENOMEM;
	}
	*ret = crc32c(0, bytes, alerts_save_nothing(bytes)) | 1;
	free(bytes);
	return 0;
}

int alerts_keep_open(uv_loop_t *loop, struct core *core, const char *dir, struct persist *persist,
	struct alerts_keep **ret)
{
	struct alerts_keep *keep = mem_zalloc(sizeof(*keep));
	int r = !keep				   ? -ENOMEM
		: strlen(dir) >= sizeof(keep->dir) ? -ENAMETOOLONG
						   : nothing(&keep->nothing);
	if (r < 0) {
		free(keep);
		return r;
	}
	memcpy(keep->dir, dir, strlen(dir) + 1);
	keep->core = core;
	keep->persist = persist;
	uv_timer_init(loop, &keep->timer);
	keep->timer.data = keep;
	uv_timer_start(&keep->timer, on_timer, LOOK_MS, LOOK_MS);
	*ret = keep;
	return 0;
}

static void on_late(uv_timer_t *timer)
{
	log_warning("what alerts remember was not written within %d s", STOP_MS / 1000);
	finish(timer->data);
}

void alerts_keep_close(struct alerts_keep *keep)
{
	if (!keep) {
		return;
	}
	keep->closing = true;
	if (look(keep)) {
		uv_timer_start(&keep->timer, on_late, STOP_MS, 0);
	} else {
		finish(keep);
	}
}
