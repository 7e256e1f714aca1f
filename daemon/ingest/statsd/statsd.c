/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statsd.c: receives datagrams in batches and processes a bounded amount of work in each iteration
 * of the loop. What is left of a batch waits for the next iteration, and meanwhile nothing is read
 * from the sockets: non-blocking senders get EAGAIN, and the kernel counts what UDP loses.
 */
#include "daemon/ingest/statsd/statsd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/ingest/statsd/batch.h"
#include "daemon/ingest/statsd/udp.h"
#include "daemon/util/deferred_close.h"
#include "daemon/util/sysops.h"

enum {
	BUDGET = 4096, /* work per iteration: about 0.4 ms, the longest line may add half of it */
	SWEEP_MS = 10000,
	FRAMES_MS = 300, /* a little longer than core waits for the lines of a frame */
	UNIX_SOCKET = 0,
	UDP_SOCKET,
	SOCKETS,
};

struct statsd_socket {
	uv_poll_t poll;
	struct statsd *statsd;
	int fd;	     /* -1 = none */
	bool polled; /* poll is a handle of the loop */
	uint32_t lost;
};

struct statsd {
	struct statsd_socket socket[SOCKETS];
	uv_timer_t sweep;
	uv_timer_t frames; /* runs while frames are open: there may be no further line */
	uv_idle_t rest;	   /* a timer of 0 ms would run again in the same iteration */
	unsigned handles;  /* not yet closed */
	bool closing;
	bool paused;	/* the rest of a batch waits */
	bool suspended; /* too many descriptors wait to be closed: until the next sweep */
	struct statsd_apps apps;
	struct statsd_batch batch;
};

static void on_readable(uv_poll_t *handle, int status, int events);

static void listen_to(struct statsd *statsd, bool on)
{
	for (size_t i = 0; i < SOCKETS; i++) {
		struct statsd_socket *socket = &statsd->socket[i];
		if (socket->fd >= 0 && on) {
			uv_poll_start(&socket->poll, UV_READABLE, on_readable);
		} else if (socket->fd >= 0) {
			uv_poll_stop(&socket->poll);
		}
	}
}

static void on_sweep(uv_timer_t *timer)
{
	struct statsd *statsd = timer->data;
	if (statsd->suspended) {
		statsd->suspended = false;
		listen_to(statsd, true);
	}
	if (statsd_apps_sweep(&statsd->apps, sysops()->now_ns()) == 0) {
		uv_timer_stop(timer);
	}
}

static void on_frames(uv_timer_t *timer)
{
	struct statsd *statsd = timer->data;
	if (!statsd->paused && statsd_apps_expire_frames(&statsd->apps, sysops()->now_ns())) {
		uv_timer_start(timer, on_frames, FRAMES_MS, 0);
	}
}

static void on_rest(uv_idle_t *idle);

/* Ends the work of an iteration: the rest of a batch goes on in the next one. */
static void end_iteration(struct statsd *statsd, bool all)
{
	if (all) {
		statsd_apps_drained(&statsd->apps);
	}
	if (statsd->apps.count > 0 && !uv_is_active((uv_handle_t *)&statsd->sweep)) {
		uv_timer_start(&statsd->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
	}
	if (all && statsd->apps.count > 0 && !uv_is_active((uv_handle_t *)&statsd->frames)) {
		uv_timer_start(&statsd->frames, on_frames, FRAMES_MS, 0);
	}
	if (all && statsd->paused) {
		statsd->paused = false;
		uv_idle_stop(&statsd->rest);
		listen_to(statsd, true);
	} else if (!all) {
		listen_to(statsd, false);
		statsd->paused = true;
		uv_idle_start(&statsd->rest, on_rest);
	}
}

static void on_rest(uv_idle_t *idle)
{
	struct statsd *statsd = idle->data;
	size_t budget = BUDGET;
	end_iteration(statsd, statsd_batch_process(&statsd->batch, &budget));
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
	struct statsd_socket *socket = handle->data;
	struct statsd *statsd = socket->statsd;
	size_t budget = BUDGET;
	bool all = true;
	(void)status; /* recvmmsg clears an error of the socket */
	(void)events;
	if (statsd->paused) { /* the other socket's batch came first in this iteration */
		return;
	}
	if (deferred_close_is_full(statsd->batch.deferred_close)) {
		listen_to(statsd, false);
		statsd->suspended = true;
		uv_timer_start(&statsd->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
		return;
	}
	size_t got;
	do {
		got = statsd_batch_read(&statsd->batch, socket->fd, &socket->lost);
		all = statsd_batch_process(&statsd->batch, &budget);
	} while (all && budget > 0 && got == STATSD_BATCH);
	end_iteration(statsd, all);
}

static int open_udp(struct statsd *statsd, const char *udp)
{
	struct statsd_address address;
	if (!udp || !udp[0]) {
		return 0;
	}
	int r = statsd_address_parse(udp, &address);
	if (r < 0) {
		return r == -EPERM ? -EINVAL : r;
	}
	r = statsd_bind_udp(&address);
	statsd->socket[UDP_SOCKET].fd = r < 0 ? -1 : r;
	return r < 0 ? r : 0;
}

static void handle_closed(struct statsd *statsd)
{
	if (--statsd->handles == 0) {
		statsd_batch_finish(&statsd->batch);
		free(statsd);
	}
}

static void on_poll_closed(uv_handle_t *handle)
{
	handle_closed(((struct statsd_socket *)handle->data)->statsd);
}

static void on_other_closed(uv_handle_t *handle)
{
	handle_closed(handle->data);
}

void statsd_close(struct statsd *statsd, enum process_end how)
{
	if (!statsd || statsd->closing) {
		return;
	}
	statsd->closing = true;
	while (statsd->batch.at < statsd->batch.count) { /* what was received is recorded */
		size_t budget = BUDGET;
		statsd_batch_process(&statsd->batch, &budget);
	}
	statsd_apps_drained(&statsd->apps);
	statsd_apps_finish(&statsd->apps, how, sysops()->now_ns());
	for (size_t i = 0; i < SOCKETS; i++) {
		if (statsd->socket[i].polled) {
			uv_close((uv_handle_t *)&statsd->socket[i].poll, on_poll_closed);
		}
	}
	uv_close((uv_handle_t *)&statsd->sweep, on_other_closed);
	uv_close((uv_handle_t *)&statsd->frames, on_other_closed);
	uv_close((uv_handle_t *)&statsd->rest, on_other_closed);
	if (statsd->socket[UDP_SOCKET].fd >= 0) {
		close(statsd->socket[UDP_SOCKET].fd);
	}
}

static int poll_sockets(struct statsd *statsd, uv_loop_t *loop)
{
	for (size_t i = 0; i < SOCKETS; i++) {
		struct statsd_socket *socket = &statsd->socket[i];
		int r = socket->fd < 0 ? 0 : uv_poll_init(loop, &socket->poll, socket->fd);
		if (r < 0) {
			return r;
		}
		if (socket->fd >= 0) {
			socket->poll.data = socket;
			socket->polled = true;
			statsd->handles++;
		}
	}
	listen_to(statsd, true);
	return 0;
}

int statsd_open(uv_loop_t *loop, struct core *core, const struct statsd_options *options,
	struct statsd **ret)
{
	struct statsd *statsd = mem_zalloc(sizeof(*statsd));
	if (!statsd) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < SOCKETS; i++) {
		statsd->socket[i].fd = -1;
		statsd->socket[i].statsd = statsd;
	}
	statsd->socket[UNIX_SOCKET].fd = options->fd;
	int r = statsd_apps_init(&statsd->apps, core);
	uv_timer_init(loop, &statsd->sweep);
	uv_timer_init(loop, &statsd->frames);
	uv_idle_init(loop, &statsd->rest);
	statsd->sweep.data = statsd->frames.data = statsd->rest.data = statsd;
	statsd->handles = 3;
	r = r < 0 ? r : statsd_batch_init(&statsd->batch, core, &statsd->apps);
	r = r < 0 ? r : open_udp(statsd, options->udp);
	r = r < 0 ? r : poll_sockets(statsd, loop);
	if (r < 0) {
		statsd_close(statsd, PROCESS_RELEASED);
		return r;
	}
	*ret = statsd;
	return 0;
}
