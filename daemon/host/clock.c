/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c: sees steps of the clock at once, without polling: the kernel cancels a timerfd on
 * CLOCK_REALTIME when the clock is set. */
#include "daemon/host/clock.h"

#include <math.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <unistd.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

static const uint64_t REREAD_MS = 60000;
/* Less is the time between two reads of clocks. */
static const uint64_t SUSPEND_NS = 1000000000;

/* adjtimex is refused inside the service's sandbox (ProtectClock); timesyncd then leaves a file. */
static bool clock_is_synced(void)
{
	struct timex state = {.modes = 0};
	if (adjtimex(&state) >= 0) {
		return !(state.status & STA_UNSYNC);
	}
	return access("/run/systemd/timesync/synchronized", F_OK) == 0;
}

/* By how much the wall clock is off from where it would be, had it gone on as it did. */
static double moved_s(const struct wallclock *wall, uint64_t now_ns, int64_t wall_ns)
{
	int64_t offset_ns = wall->count > 0 ? wall->entry[wall->count - 1].offset_ns : 0;
	return ((double)wall_ns - (double)now_ns - (double)offset_ns) / 1e9;
}

/* For how long, in seconds, since the last look. */
static double note_suspend(struct clock_watch *clock, uint64_t now_ns)
{
	uint64_t before_ns = clock->suspended_ns;
	clock->suspended_ns = sysops()->suspended_ns();
	if (clock->suspended_ns < before_ns + SUSPEND_NS) {
		return 0;
	}
	double slept = (double)(clock->suspended_ns - before_ns) / 1e9;
	timeline_add(clock->core->timeline, now_ns, TIMELINE_CLOCK, TIMELINE_INFO, "clock",
		"the machine was suspended for %s", text_span((uint64_t)round(slept)).text);
	alerts_break(clock->core->alerts);
	return slept;
}

/* Both clocks at one time: the reading that took least of several, if none is quick, since the
 * process may be held up between the two. */
static void read_clocks(uint64_t *now_ns, int64_t *wall_ns)
{
	enum { TRIES = 5, QUICK_NS = 20000 };
	uint64_t least_ns = UINT64_MAX;
	for (int i = 0; i < TRIES && least_ns > QUICK_NS; i++) {
		uint64_t before_ns = sysops()->now_ns();
		int64_t read_ns = sysops()->wall_ns();
		uint64_t took_ns = sysops()->now_ns() - before_ns;
		if (took_ns < least_ns) {
			least_ns = took_ns;
			*now_ns = before_ns + took_ns / 2;
			*wall_ns = read_ns;
		}
	}
}

static bool note_clocks(struct clock_watch *clock, uint64_t now_ns, int64_t wall_ns, bool synced)
{
	bool step = wallclock_note(clock->wall, now_ns, wall_ns, synced);
	if (clock->saved) {
		wallclock_save(clock->wall, clock->saved);
	}
	return step;
}

static void note(struct clock_watch *clock)
{
	uint64_t now_ns = 0;
	int64_t wall_ns = 0;
	read_clocks(&now_ns, &wall_ns);
	double slept = note_suspend(clock, now_ns);
	bool was_synced = wallclock_synced(clock->wall);
	bool synced = clock_is_synced();
	double moved = moved_s(clock->wall, now_ns, wall_ns) - slept;
	if (note_clocks(clock, now_ns, wall_ns, synced) && fabs(moved) > 1) {
		timeline_add(clock->core->timeline, now_ns, TIMELINE_CLOCK, TIMELINE_INFO, "clock",
			"the wall clock was set by %+.3f s", moved);
	}
	if (synced && !was_synced) {
		timeline_add(clock->core->timeline, now_ns, TIMELINE_CLOCK, TIMELINE_INFO, "clock",
			"the wall clock is synchronised");
	}
}

static int arm(int fd)
{
	const struct itimerspec far = {.it_value = {.tv_sec = INT32_MAX}};
	return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
}

static void on_clock_set(uv_poll_t *poll, int status, int events)
{
	struct clock_watch *clock = poll->data;
	uint64_t expirations;
	(void)events;
	if (status < 0) {
		uv_poll_stop(poll);
		return;
	}
	ssize_t ignored = read(clock->fd, &expirations, sizeof(expirations));
	(void)ignored;
	if (arm(clock->fd) < 0) {
		uv_poll_stop(poll);
	}
	note(clock);
}

static void on_minute(uv_timer_t *timer)
{
	note(timer->data);
}

void clock_watch_open(uv_loop_t *loop, struct core *core, struct wallclock *wall, void *saved,
	struct clock_watch *clock)
{
	*clock = (struct clock_watch){.core = core, .wall = wall, .saved = saved, .fd = -1};
	clock->suspended_ns = sysops()->suspended_ns();
	uint64_t now_ns = 0;
	int64_t wall_ns = 0;
	read_clocks(&now_ns, &wall_ns);
	note_clocks(clock, now_ns, wall_ns, clock_is_synced());
	uv_timer_init(loop, &clock->timer);
	clock->timer.data = clock;
	uv_timer_start(&clock->timer, on_minute, REREAD_MS, REREAD_MS);
	clock->open_handles = 1;
	clock->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (clock->fd < 0 || arm(clock->fd) < 0) {
		log_info("the kernel does not report clock steps; checking the clock every 60 s");
		return;
	}
	if (uv_poll_init(loop, &clock->poll, clock->fd) == 0) {
		clock->poll.data = clock;
		clock->polled = true;
		clock->open_handles++;
		uv_poll_start(&clock->poll, UV_READABLE, on_clock_set);
	}
}

static void on_closed(uv_handle_t *handle)
{
	struct clock_watch *clock = handle->data;
	if (--clock->open_handles == 0 && clock->fd >= 0) {
		close(clock->fd);
	}
}

void clock_watch_close(struct clock_watch *clock)
{
	if (clock->polled) {
		uv_close((uv_handle_t *)&clock->poll, on_closed);
	}
	uv_close((uv_handle_t *)&clock->timer, on_closed);
}
