/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c: opens the event loop such that libuv cannot abort later. libuv aborts when it finds no
 * descriptors for its first pipes, and when the array of its watchers, which is as long as the
 * highest descriptor, cannot grow: so it grows once, at start. */
#include "daemon/host/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/core/status/counters.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

enum { FIRST_DESCRIPTORS = 8, DESCRIPTORS_MAX = 4096 };

static int find_descriptors(void)
{
	int fds[FIRST_DESCRIPTORS], r = 0;
	size_t made = 0;
	while (r == 0 && made < FIRST_DESCRIPTORS) {
		fds[made] = eventfd(0, EFD_CLOEXEC);
		r = fds[made] < 0 ? -errno : 0;
		made += r == 0;
	}
	while (made > 0) {
		close(fds[--made]);
	}
	return r;
}

static void *realloc_or_exit(void *memory, size_t size)
{
	void *larger = realloc(memory, size);
	if (!larger && size > 0) {
		log_error("cannot start: out of memory for the event loop");
		_exit(EX_TEMPFAIL);
	}
	return larger;
}

static void ignore(uv_poll_t *poll, int status, int events)
{
	(void)poll;
	(void)status;
	(void)events;
}

/* Watches, once, the highest descriptor that there can be. */
static int grow_watchers(uv_loop_t *loop)
{
	struct rlimit limit;
	int highest = DESCRIPTORS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS_MAX) {
		highest = (int)limit.rlim_cur;
	}
	int low = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, highest - 1);
	int r = high < 0 ? -errno : 0;
	uv_poll_t poll;
	r = r < 0 ? r : uv_poll_init(loop, &poll, high);
	if (r == 0) {
		r = uv_poll_start(&poll, UV_READABLE, ignore);
		uv_close((uv_handle_t *)&poll, NULL);
		uv_run(loop, UV_RUN_DEFAULT);
	}
	if (high >= 0) {
		close(high);
	}
	if (low >= 0) {
		close(low);
	}
	return r;
}

int loop_open(uv_loop_t *loop)
{
	int r = find_descriptors();
	if (r < 0) {
		return r;
	}
	uv_replace_allocator(malloc, realloc_or_exit, calloc, free);
	r = uv_loop_init(loop);
	if (r == 0) {
		r = grow_watchers(loop);
		if (r < 0) {
			uv_loop_close(loop);
		}
	}
	uv_replace_allocator(malloc, realloc, calloc, free);
	return r;
}

/* An iteration's length less the time that libuv waited for events in it. libuv runs I/O callbacks
 * inside its poll step, so hooks around that step alone would not see them. */
static void after_iteration(uv_check_t *check)
{
	struct loopwatch *watch = check->data;
	uint64_t now_ns = sysops()->now_ns();
	uint64_t idle_ns = uv_metrics_idle_time(check->loop);
	uint64_t turn = now_ns - watch->turn_ns;
	uint64_t idle = idle_ns - watch->idle_ns;
	uint64_t busy_us = turn > idle ? (turn - idle) / 1000 : 0;
	watch->turn_ns = watch->counters->waited_ns = now_ns;
	watch->idle_ns = idle_ns;
	if (watch->counters->iterations++ == 0) {
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
	uv_check_start(&watch->check, after_iteration);
	uv_unref((uv_handle_t *)&watch->check);
}

void loopwatch_close(struct loopwatch *watch)
{
	uv_close((uv_handle_t *)&watch->check, NULL);
}
