/* When the file is written: the loop makes the bytes, libuv's worker writes them. */
#include "daemon/alerts_keep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/alerts_saved.h"
#include "daemon/core/crc32c.h"
#include "daemon/store/state_file.h"
#include "daemon/util/log.h"
#include "daemon/util/seam.h"

enum {
	LOOK_MS = 60000,
	RENAME_BYTES = 16 * 1024, /* directory, inode and journal beside the file itself */
};

struct alerts_keep {
	uv_timer_t timer;
	uv_work_t work;
	struct core *core;
	struct persist *persist;
	char dir[192];
	uint8_t *bytes;
	size_t size;
	uint32_t crc;	  /* of what is being written */
	uint32_t written; /* of what is in the file; 0 = not known */
	int result;
	bool busy, closing, closed, failed;
};

void alerts_keep_load(const char *dir, void *memory, void *holds, const uint8_t boot_id[16])
{
	size_t most = alerts_saved_bytes();
	uint8_t *bytes = mem_zalloc(most);
	int r = bytes ? state_file_read(dir, "alerts", bytes, most) : -ENOMEM;
	if (r >= 0) {
		r = alerts_load(memory, holds, boot_id, bytes, (size_t)r, seam()->now_ns());
	}
	if (r == 0) {
		log_info("alerts of the boot before go on");
	} else if (r != -ENOENT && r != -EALREADY) {
		log_warning("alerts of the boot before are not known: %s/alerts: %s", dir,
			r == -EBADMSG ? "damaged, or of another version" : strerror(-r));
	}
	free(bytes);
}

static void release(struct alerts_keep *keep)
{
	if (keep->closed && !keep->busy) {
		free(keep->bytes);
		free(keep);
	}
}

static void on_work(uv_work_t *work)
{
	struct alerts_keep *keep = work->data;
	keep->result = state_file_write(keep->dir, "alerts", keep->bytes, keep->size);
}

static void on_written(uv_work_t *work, int status)
{
	struct alerts_keep *keep = work->data;
	int r = status < 0 ? status : keep->result;
	keep->busy = false;
	keep->written = r == 0 ? keep->crc : 0;
	if (r < 0 && !keep->failed) {
		log_warning("%s/alerts: %s", keep->dir, strerror(-r));
	}
	keep->failed = r < 0;
	release(keep);
}

static void look(struct alerts_keep *keep)
{
	if (keep->busy || !persist_is_open(keep->persist)) {
		return;
	}
	keep->size = alerts_save(keep->core->alerts, keep->core->wall, keep->bytes);
	keep->crc = crc32c(0, keep->bytes, keep->size) | 1;
	if (keep->crc == keep->written ||
		!persist_charge(keep->persist, keep->size + RENAME_BYTES, keep->closing)) {
		return;
	}
	keep->work.data = keep;
	keep->busy = uv_queue_work(keep->timer.loop, &keep->work, on_work, on_written) == 0;
}

static void on_timer(uv_timer_t *timer)
{
	look(timer->data);
}

static bool is_there(const char *dir)
{
	char path[256];
	int n = snprintf(path, sizeof(path), "%s/alerts", dir);
	return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

int alerts_keep_open(uv_loop_t *loop, struct core *core, const char *dir, struct persist *persist,
	struct alerts_keep **ret)
{
	struct alerts_keep *keep = mem_zalloc(sizeof(*keep));
	if (!keep) {
		return -ENOMEM;
	}
	keep->bytes = mem_zalloc(alerts_saved_bytes());
	if (!keep->bytes || strlen(dir) >= sizeof(keep->dir)) {
		int r = keep->bytes ? -ENAMETOOLONG : -ENOMEM;
		free(keep->bytes);
		free(keep);
		return r;
	}
	memcpy(keep->dir, dir, strlen(dir) + 1);
	if (!is_there(dir)) {
		/* nothing to remember is no file */
		keep->size = alerts_save_nothing(keep->bytes);
		keep->written = crc32c(0, keep->bytes, keep->size) | 1;
	}
	keep->core = core;
	keep->persist = persist;
	uv_timer_init(loop, &keep->timer);
	keep->timer.data = keep;
	uv_timer_start(&keep->timer, on_timer, LOOK_MS, LOOK_MS);
	*ret = keep;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct alerts_keep *keep = handle->data;
	keep->closed = true;
	release(keep);
}

void alerts_keep_close(struct alerts_keep *keep)
{
	if (keep) {
		keep->closing = true;
		look(keep);
		uv_close((uv_handle_t *)&keep->timer, on_closed);
	}
}
