/* One loop hook: a turn's length less the time that libuv waited for events in it. libuv runs I/O
 * callbacks inside its poll step, so the hooks around that step alone would not see them. */
#include "daemon/host/loopwatch.h"

#include "daemon/core/status/counters.h"
#include "daemon/util/sysops.h"

static void after_turn(uv_check_t *check)
{
	struct loopwatch *watch = check->data;
	uint64_t now_ns = sysops()->now_ns();
	uint64_t idle_ns = uv_metrics_idle_time(check->loop);
	uint64_t turn = now_ns - watch->turn_ns;
	uint64_t idle = idle_ns - watch->idle_ns;
	uint64_t busy_us = turn > idle ? (turn - idle) / 1000 : 0;
	watch->turn_ns = now_ns;
	watch->idle_ns = idle_ns;
	if (watch->counters->wakeups++ == 0) {
		return; /* the start: nobody waits for an answer yet */
	}
	uint32_t busy = busy_us < UINT32_MAX ? (uint32_t)busy_us : UINT32_MAX;
	loop_load_add(&watch->counters->load, busy, now_ns);
	if (busy > watch->counters->loop_lag_max_us) {
		watch->counters->loop_lag_max_us = busy;
	}
}

void loopwatch_open(uv_loop_t *loop, struct counters *counters, struct loopwatch *watch)
{
	uv_loop_configure(loop, UV_METRICS_IDLE_TIME);
	watch->counters = counters;
	watch->turn_ns = sysops()->now_ns();
	watch->idle_ns = uv_metrics_idle_time(loop);
	uv_check_init(loop, &watch->check);
	watch->check.data = watch;
	uv_check_start(&watch->check, after_turn);
	uv_unref((uv_handle_t *)&watch->check);
}

void loopwatch_close(struct loopwatch *watch)
{
	uv_close((uv_handle_t *)&watch->check, NULL);
}
