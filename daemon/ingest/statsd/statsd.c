/*
 * Datagrams come in by batches, are read line by line, and leave as records. A turn of the loop
 * takes a bounded amount of work; what is left of a batch waits for the next turn, and meanwhile
 * nothing is read from the sockets: senders that do not wait notice (EAGAIN) or the kernel counts.
 */
#include "daemon/ingest/statsd/statsd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/ingest/socket.h"
#include "daemon/ingest/statsd/batch.h"
#include "daemon/ingest/statsd/udp.h"
#include "daemon/util/deferred_close.h"
#include "daemon/util/sysops.h"

enum {
	BUDGET = 4096, /* work of a turn: about 0.4 ms, the longest line may add half of it */
	SWEEP_MS = 10000,
	SETTLE_MS = 300, /* frames are waited for a little shorter than this */
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
	uv_timer_t settle; /* runs while frames are open: no further line may come */
	uv_idle_t rest;	   /* a timer of 0 ms would run again in the same turn */
	unsigned handles;  /* not yet closed */
	bool closing;
	bool paused; /* a batch waits */
	bool deaf;   /* too many descriptors wait for being closed: until the next sweep */
	struct ingest_socket path;
	struct statsd_apps apps;
	struct statsd_batch batch;
};

static void on_readable(uv_poll_t *handle, int status, int events);

static void listen_to_all(struct statsd *statsd)
{
	for (size_t i = 0; i < SOCKETS; i++) {
		if (statsd->socket[i].fd >= 0) {
			uv_poll_start(&statsd->socket[i].poll, UV_READABLE, on_readable);
		}
	}
}

static void on_sweep(uv_timer_t *timer)
{
	struct statsd *statsd = timer->data;
	if (statsd->deaf) {
		statsd->deaf = false;
		listen_to_all(statsd);
	}
	if (statsd_apps_sweep(&statsd->apps, sysops()->now_ns()) == 0) {
		uv_timer_stop(timer);
	}
}

static void on_settle(uv_timer_t *timer)
{
	struct statsd *statsd = timer->data;
	if (!statsd->paused && statsd_apps_settle(&statsd->apps, sysops()->now_ns())) {
		uv_timer_start(timer, on_settle, SETTLE_MS, 0);
	}
}

static void on_rest(uv_idle_t *idle);

static void stop_listening(struct statsd *statsd)
{
	for (size_t i = 0; i < SOCKETS; i++) {
		if (statsd->socket[i].fd >= 0) {
			uv_poll_stop(&statsd->socket[i].poll);
		}
	}
}

/* The end of a turn: what is left of a batch goes on in the next one. */
static void end_turn(struct statsd *statsd, bool all)
{
	if (all) {
		statsd_apps_drained(&statsd->apps);
	}
	if (statsd->apps.count > 0 && !uv_is_active((uv_handle_t *)&statsd->sweep)) {
		uv_timer_start(&statsd->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
	}
	if (all && statsd->apps.count > 0 && !uv_is_active((uv_handle_t *)&statsd->settle)) {
		uv_timer_start(&statsd->settle, on_settle, SETTLE_MS, 0);
	}
	if (all && statsd->paused) {
		statsd->paused = false;
		uv_idle_stop(&statsd->rest);
		listen_to_all(statsd);
	} else if (!all) {
		stop_listening(statsd);
		statsd->paused = true;
		uv_idle_start(&statsd->rest, on_rest);
	}
}

static void on_rest(uv_idle_t *idle)
{
	struct statsd *statsd = idle->data;
	size_t budget = BUDGET;
	end_turn(statsd, statsd_batch_take(&statsd->batch, &budget));
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
	struct statsd_socket *socket = handle->data;
	struct statsd *statsd = socket->statsd;
	size_t budget = BUDGET;
	bool all = true;
	(void)status; /* an error of the socket is read away by recvmmsg */
	(void)events;
	if (statsd->paused) { /* the other socket's batch came first in this turn */
		return;
	}
	if (deferred_close_is_full(statsd->batch.deferred_close)) {
		stop_listening(statsd);
		statsd->deaf = true;
		uv_timer_start(&statsd->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
		return;
	}
	size_t got;
	do {
		got = statsd_batch_read(&statsd->batch, socket->fd, &socket->lost);
		all = statsd_batch_take(&statsd->batch, &budget);
	} while (all && budget > 0 && got == STATSD_BATCH);
	end_turn(statsd, all);
}

static int bind_sockets(struct statsd *statsd, const struct statsd_options *options)
{
	struct statsd_address address;
	bool udp = options->udp && options->udp[0];
	int r = udp ? statsd_address_parse(options->udp, &address) : 0;
	if (r < 0) {
		return r == -EPERM ? -EINVAL : r;
	}
	r = ingest_socket_open(&statsd->path, options->path, SOCK_DGRAM, options->group);
	if (r < 0) {
		return r;
	}
	statsd->socket[UNIX_SOCKET].fd = statsd->path.fd;
	r = udp ? statsd_bind_udp(&address) : -1;
	if (udp && r < 0) {
		return r;
	}
	statsd->socket[UDP_SOCKET].fd = r;
	return 0;
}

static void close_sockets(struct statsd *statsd)
{
	ingest_socket_close(&statsd->path);
	if (statsd->socket[UDP_SOCKET].fd >= 0) {
		close(statsd->socket[UDP_SOCKET].fd);
	}
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
	while (statsd->batch.at < statsd->batch.count) { /* what was received counts */
		size_t budget = BUDGET;
		statsd_batch_take(&statsd->batch, &budget);
	}
	statsd_apps_drained(&statsd->apps);
	statsd_apps_finish(&statsd->apps, how, sysops()->now_ns());
	for (size_t i = 0; i < SOCKETS; i++) {
		if (statsd->socket[i].polled) {
			uv_close((uv_handle_t *)&statsd->socket[i].poll, on_poll_closed);
		}
	}
	uv_close((uv_handle_t *)&statsd->sweep, on_other_closed);
	uv_close((uv_handle_t *)&statsd->settle, on_other_closed);
	uv_close((uv_handle_t *)&statsd->rest, on_other_closed);
	close_sockets(statsd);
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
	listen_to_all(statsd);
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
	statsd->path.fd = -1;
	int r = statsd_apps_init(&statsd->apps, core);
	uv_timer_init(loop, &statsd->sweep);
	uv_timer_init(loop, &statsd->settle);
	uv_idle_init(loop, &statsd->rest);
	statsd->sweep.data = statsd->settle.data = statsd->rest.data = statsd;
	statsd->handles = 3;
	r = r < 0 ? r : statsd_batch_init(&statsd->batch, core, &statsd->apps);
	r = r < 0 ? r : bind_sockets(statsd, options);
	r = r < 0 ? r : poll_sockets(statsd, loop);
	if (r < 0) {
		statsd_close(statsd, PROCESS_RELEASED);
		return r;
	}
	*ret = statsd;
	return 0;
}
