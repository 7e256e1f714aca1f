/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection.c: serves one peer. A frame is handled where it was read if it is complete; only what
 * is left is copied. The queue is what libuv could not write at once: over half of it full, the
 * peer's requests wait; without progress for the stall time it is closed. Work is done in slices of
 * a few frames so that no peer holds the loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/core/status/counters.h"
#include "daemon/util/deferred_close.h"
#include "daemon/util/file.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/server/peer.h"
#include "daemon/varlink/server/private.h"

enum { FRAMES_AT_ONCE = 8, LOCAL_CALL_MAX = 512 };

#define SLICE_NS 250000u /* then others come first */

static void on_deadline(uv_timer_t *timer);

void connection_arm(struct api_connection *connection)
{
	uint64_t times[] = {connection->first_frame_ms, connection->partial_ms,
		connection->stall_ms, connection->idle_ms};
	uint64_t nearest = 0;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (times[i] != 0 && (nearest == 0 || times[i] < nearest)) {
			nearest = times[i];
		}
	}
	if (nearest == 0) {
		uv_timer_stop(&connection->deadline);
		return;
	}
	uint64_t now = uv_now(connection->api->loop);
	uv_timer_start(&connection->deadline, on_deadline, nearest > now ? nearest - now : 0, 0);
}

uint64_t connection_time(struct api_connection *connection, uint64_t after_ns)
{
	return uv_now(connection->api->loop) + (after_ns + 999999) / 1000000 + 1;
}

static void on_deadline(uv_timer_t *timer)
{
	struct api_connection *connection = timer->data;
	uint64_t now = uv_now(connection->api->loop);
	const char *why = NULL;
	if (connection->first_frame_ms != 0 && connection->first_frame_ms <= now) {
		why = "no message in time";
	} else if (connection->partial_ms != 0 && connection->partial_ms <= now) {
		why = "half a message for too long";
	} else if (connection->idle_ms != 0 && connection->idle_ms <= now) {
		why = "idle for too long";
	} else if (connection->stall_ms != 0 && connection->stall_ms <= now) {
		size_t size = uv_stream_get_write_queue_size((uv_stream_t *)&connection->pipe);
		if (size >= connection->stall_size) {
			why = "does not read";
		}
		connection->stall_ms = 0;
	}
	if (why) {
		log_debug("varlink: closed a connection of uid %u: %s", (unsigned)connection->uid,
			why);
		connection->api->core->counters->api_errors++;
		connection_close(connection);
		return;
	}
	queue_watch(connection);
	connection_arm(connection);
}

static void end_stream(struct api_connection *connection)
{
	struct api_stream *stream = connection->stream;
	if (stream) {
		size_t charged = stream->charged;
		connection->stream = NULL;
		stream->ops->destroy(stream);
		queue_release(connection, charged);
	}
}

void connection_set_stream(struct api_connection *connection, struct api_stream *stream)
{
	end_stream(connection);
	stream->connection = connection;
	connection->stream = stream;
}

/* One step of the present stream. True when there may be more to do in this slice. */
static bool run_stream(struct api_connection *connection)
{
	struct api *api = connection->api;
	struct api_stream *stream = connection->stream;
	reply_begin(&api->out);
	enum api_result result = stream->ops->next(stream, &api->out);
	switch (result) {
	case API_WAIT:
		return false;
	case API_YIELD:
		connection_wake(connection);
		return false;
	case API_CHUNK:
		queue_reply(connection, true);
		return true;
	case API_LAST:
		break;
	}
	end_stream(connection);
	queue_reply(connection, false);
	return true;
}

static void protocol_error(struct api_connection *connection, const char *reason)
{
	log_debug("varlink: closed a connection of uid %u: %s", (unsigned)connection->uid, reason);
	connection->api->core->counters->api_errors++;
	connection_close(connection);
}

/* The next call of the daemon itself. False when there is none. */
static bool run_local(struct api_connection *connection)
{
	char message[LOCAL_CALL_MAX];
	const char *reason;
	size_t length = connection->local->next(connection->local_ctx, message, sizeof(message));
	return length > 0 && dispatch_frame(connection, message, length, &reason) == 0;
}

/* Handles the next complete frame. False when there is none (or the connection closes). */
static bool run_frame(struct api_connection *connection)
{
	const char *frame, *reason = "no memory";
	size_t length;
	if (connection->local) {
		return run_local(connection);
	}
	int r = input_next(connection, &frame, &length);
	if (r == -ENODATA) {
		return false;
	}
	if (r < 0) {
		protocol_error(connection, "message too long");
		return false;
	}
	connection->first_frame_ms = 0;
	connection->partial_ms = 0;
	if (dispatch_frame(connection, frame, length, &reason) < 0) {
		protocol_error(connection, reason);
		return false;
	}
	return true;
}

/* Where the kernel lets descriptors through, a read consumes no more than was peeked at. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	(void)suggested;
	struct api_connection *connection = handle->data;
	struct api *api = connection->api;
	size_t size = sizeof(api->read_buffer);
	if (!api->descriptors_refused) {
		ssize_t n = peer_peek(connection->fd, api->read_buffer, size);
		connection->unsolicited_fds = n == -EPROTO;
		if (n == -EAGAIN || n == -EPROTO) {
			size = 0; /* nothing is read: on_read gets UV_ENOBUFS */
		} else if (n > 0) {
			size = (size_t)n;
		}
	}
	*buf = uv_buf_init(api->read_buffer, (unsigned)size);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct api_connection *connection = stream->data;
	if (n == 0 || connection->closing || (n == UV_ENOBUFS && !connection->unsolicited_fds)) {
		return;
	}
	if (n == UV_ENOBUFS) {
		protocol_error(connection, "sends descriptors");
		return;
	}
	if (n < 0) {
		connection->reading = false;
		if (n != UV_EOF || (connection->stream && connection->stream->ops->endless)) {
			connection_close(connection);
			return;
		}
		connection->end_of_input = true;
		uv_read_stop(stream);
		api_serve(connection->api, connection);
		return;
	}
	int r = 0;
	if (connection->input) {
		r = input_copy(connection, buf->base, (size_t)n);
	} else {
		connection->input = buf->base;
		connection->input_length = (size_t)n;
		connection->borrowed = true;
	}
	if (r == 0) {
		api_serve(connection->api, connection);
		if (!connection->closing) {
			r = input_copy(connection, NULL, 0);
		}
	}
	if (connection->closing) {
		input_drop(connection);
	} else if (r < 0) {
		protocol_error(connection, "too much unfinished input of this user");
		input_drop(connection);
	}
}

/* Reads while there is room for answers and for input. */
static void set_reading(struct api_connection *connection, bool reading)
{
	if (connection->end_of_input || connection->reading == reading) {
		return;
	}
	connection->reading = reading;
	if (!reading) {
		uv_read_stop((uv_stream_t *)&connection->pipe);
	} else if (uv_read_start((uv_stream_t *)&connection->pipe, on_alloc, on_read) < 0) {
		connection_close(connection);
	}
}

/* A connection without an open call has a limited time. */
static void watch_idle(struct api_connection *connection)
{
	bool busy = connection->stream || connection->ready || connection->blocked ||
		    connection->queued > 0;
	connection->idle_ms =
		busy ? 0 : connection_time(connection, connection->api->options.idle_timeout_ns);
}

/* A frame was begun and is not complete: from then on it has a limited time. */
static void watch_input(struct api_connection *connection)
{
	bool partial = input_partial(connection);
	if (partial && connection->partial_ms == 0) {
		connection->partial_ms =
			connection_time(connection, connection->api->options.frame_timeout_ns);
	} else if (!partial) {
		connection->partial_ms = 0;
	}
	watch_idle(connection);
	connection_arm(connection);
}

void connection_run(struct api_connection *connection)
{
	connection->ready = false;
	connection->blocked = false;
	uint64_t start_ns = sysops()->now_ns();
	bool more = !connection->closing;
	for (int i = 0; more && !connection->closing; i++) {
		if (!queue_has_room(connection)) {
			connection->blocked = true;
			connection->api->some_blocked = true;
			break;
		}
		if (i >= FRAMES_AT_ONCE || sysops()->now_ns() - start_ns > SLICE_NS) {
			connection_wake(connection);
			break;
		}
		more = connection->stream ? run_stream(connection) : run_frame(connection);
	}
	if (connection->closing || connection->local) {
		return;
	}
	size_t left = input_left(connection);
	if (left == 0 && !connection->borrowed) {
		input_drop(connection); /* not only when the next bytes come */
	}
	if (connection->stream && connection->stream->ops->endless && left >= PROTO_FRAME_MAX) {
		protocol_error(connection, "requests during a subscription");
		return;
	}
	set_reading(connection, !connection->blocked && left < PROTO_FRAME_MAX);
	if (connection->closing) {
		return;
	}
	watch_input(connection);
	bool idle = !connection->stream && !connection->ready && !connection->blocked;
	if (connection->end_of_input && idle && connection->queued == 0) {
		connection_close(connection);
	}
}

void connection_wake(struct api_connection *connection)
{
	if (!connection->closing) {
		connection->ready = true;
		api_wake(connection->api);
	}
}

static void on_closed(uv_handle_t *handle)
{
	struct api_connection *connection = handle->data;
	if (--connection->handles > 0) {
		return;
	}
	api_connection_closed(connection->api, connection);
	free(connection);
}

void connection_close(struct api_connection *connection)
{
	if (connection->closing) {
		return;
	}
	connection->closing = true;
	end_stream(connection);
	uv_close((uv_handle_t *)&connection->tick, on_closed);
	if (connection->local) {
		return;
	}
	if (!connection->borrowed) {
		input_drop(connection);
	}
	struct api *api = connection->api;
	int last = api->descriptors_refused ? -1 : fcntl(connection->fd, F_DUPFD_CLOEXEC, 0);
	uv_close((uv_handle_t *)&connection->pipe, on_closed);
	if (last >= 0) { /* closes what nobody has read, without waiting */
		deferred_close_socket(api->core->deferred_close, connection->account, last);
	}
	uv_close((uv_handle_t *)&connection->deadline, on_closed);
}

int connection_open_local(
	struct api *api, const struct api_local_ops *ops, void *ctx, struct api_connection **ret)
{
	struct api_connection *connection = api->closing ? NULL : mem_zalloc(sizeof(*connection));
	if (!connection) {
		return api->closing ? -ESHUTDOWN : -ENOMEM;
	}
	connection->api = api;
	connection->account = &api->own;
	connection->local = ops;
	connection->local_ctx = ctx;
	connection->fd = -1;
	connection->uid = api->own.uid;
	uv_timer_init(api->loop, &connection->tick);
	connection->tick.data = connection;
	connection->handles = 1;
	api_connection_opened(api, connection);
	*ret = connection;
	return 0;
}

int connection_open(struct api *api, int fd, uid_t uid, struct account *account, uint64_t first_ns)
{
	struct api_connection *connection = mem_zalloc(sizeof(*connection));
	if (!connection) {
		close(fd);
		return -ENOMEM;
	}
	connection->api = api;
	connection->account = account;
	connection->fd = fd;
	connection->uid = uid;
	uv_pipe_init(api->loop, &connection->pipe, 0);
	uv_timer_init(api->loop, &connection->deadline);
	uv_timer_init(api->loop, &connection->tick);
	connection->pipe.data = connection->deadline.data = connection->tick.data = connection;
	connection->handles = 3;
	api_connection_opened(api, connection);

	int r = file_watch(uv_backend_fd(api->loop), fd);
	r = r < 0 ? r : uv_pipe_open(&connection->pipe, fd);
	if (r < 0) {
		close(fd);
		connection_close(connection);
		return r;
	}
	connection->first_frame_ms = first_ns > 0 ? connection_time(connection, first_ns) : 0;
	connection_arm(connection);
	set_reading(connection, true);
	return 0;
}
