/* Start and medium: usually the file is there at once, and all is as if it had been read in line. A
 * medium that is slow after a boot is waited for beside the loop, one that hangs is not. */
#include "daemon/persist/alerts_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/alerts/memory.h"
#include "daemon/core/alerts/saved.h"
#include "daemon/persist/state_job.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

enum { QUICK_MS = 50, LATE_MS = 5000 };

struct alerts_load {
	uv_timer_t timer;
	struct state_job *job; /* NULL: has ended */
	char dir[192];
	void *memory, *holds;
	uint8_t boot_id[16];
	bool waiting; /* on the loop */
	alerts_begin *begin;
	void *ctx;
};

static void tell(const struct alerts_load *load, int r)
{
	if (r == 0) {
		log_info("alerts of the boot before go on");
	} else if (r != -ENOENT && r != -EALREADY) {
		log_warning("alerts of the boot before are not known: %s/alerts: %s", load->dir,
			r == -EBADMSG ? "damaged, or of another version" : strerror(-r));
	}
}

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void alerts_load_close(struct alerts_load *load)
{
	if (load) {
		state_job_leave(load->job);
		uv_close((uv_handle_t *)&load->timer, on_timer_closed);
	}
}

void alerts_load_give_up(struct alerts_load *load)
{
	if (load) {
		alerts_begin *begin = load->begin;
		void *ctx = load->ctx;
		tell(load, -ETIMEDOUT);
		alerts_load_close(load);
		begin(ctx);
	}
}

static void on_late(uv_timer_t *timer)
{
	alerts_load_give_up(timer->data);
}

static void on_read(void *ctx, int result, const uint8_t *bytes)
{
	struct alerts_load *load = ctx;
	load->job = NULL;
	if (result >= 0) {
		result = alerts_load(load->memory, load->holds, load->boot_id, bytes,
			(size_t)result, sysops()->now_ns());
	}
	tell(load, result);
	if (load->waiting) {
		alerts_load_close(load);
		load->begin(load->ctx);
	}
}

static int start(struct alerts_load *load, uv_loop_t *loop)
{
	size_t most = alerts_saved_bytes();
	uint8_t *bytes = mem_zalloc(most);
	int r = bytes ? state_job_start(loop, STATE_JOB_READ, load->dir, "alerts", bytes, most,
				on_read, load, &load->job)
		      : -ENOMEM;
	if (r < 0) {
		free(bytes);
	}
	return r;
}

bool alerts_load_open(uv_loop_t *loop, const char *dir, void *memory, void *holds,
	const uint8_t boot_id[16], alerts_begin *begin, void *ctx, struct alerts_load **ret)
{
	*ret = NULL;
	if (alerts_memory_is_of(memory, boot_id)) {
		return true;
	}
	struct alerts_load *load = mem_zalloc(sizeof(*load));
	if (!load) {
		log_warning("alerts of the boot before are not known: %s", strerror(ENOMEM));
		return true;
	}
	snprintf(load->dir, sizeof(load->dir), "%s", dir);
	memcpy(load->boot_id, boot_id, sizeof(load->boot_id));
	load->memory = memory;
	load->holds = holds;
	load->begin = begin;
	load->ctx = ctx;
	int r = start(load, loop);
	if (r < 0) {
		tell(load, r);
	}
	if (r < 0 || state_job_wait(load->job, QUICK_MS)) {
		free(load);
		return true;
	}
	load->waiting = true;
	uv_timer_init(loop, &load->timer);
	load->timer.data = load;
	uv_timer_start(&load->timer, on_late, LATE_MS, 0);
	*ret = load;
	return false;
}
