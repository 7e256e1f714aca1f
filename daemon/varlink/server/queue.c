/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c: sends replies, and accounts for the memory that a user makes us hold. A reply goes to
 * the socket at once; only what the socket does not take is copied, in one allocation with its
 * request, and charged to the connection, the user and the server.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/core/status/counters.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/server/private.h"

struct write_request {
	uv_write_t request;
	struct api_connection *connection;
	size_t length;
	char bytes[];
};

bool queue_charge(struct api_connection *connection, size_t bytes)
{
	struct api *api = connection->api;
	size_t total = QUEUE_TOTAL_MAX;
	if (connection->uid == 0) {
		/* others cannot lock root out */
		total += QUEUE_UID_MAX;
	} else if (connection->account->api_bytes + bytes > QUEUE_UID_MAX) {
		return false;
	}
	if (api->bytes + bytes > total) {
		return false;
	}
	connection->account->api_bytes += bytes;
	api->bytes += bytes;
	api->core->counters->api_bytes_queued = api->bytes;
	return true;
}

void queue_release(struct api_connection *connection, size_t bytes)
{
	struct api *api = connection->api;
	struct limit *answers = &api->core->counters->limits[LIMIT_ANSWERS];
	limit_use(answers, api->bytes); /* the most is what there was before some of it goes */
	connection->account->api_bytes -= bytes;
	api->bytes -= bytes;
	limit_use(answers, api->bytes);
	api->core->counters->api_bytes_queued = api->bytes;
	if (api->some_blocked && bytes > 0) {
		api_wake(api);
	}
}

void *stream_create(
	struct api_call *call, const struct api_stream_ops *ops, size_t size, size_t held)
{
	if (!queue_charge(call->connection, size + held)) {
		reply_limit(call->out, "bytes of this user", QUEUE_UID_MAX);
		return NULL;
	}
	struct api_stream *stream = mem_zalloc(size);
	if (!stream) {
		queue_release(call->connection, size + held);
		reply_limit(call->out, "memory", 0);
		return NULL;
	}
	stream->ops = ops;
	stream->connection = call->connection;
	stream->charged = size + held;
	return stream;
}

/* The memory that lacks is none that a peer's reading, or its end, would give back: requests and
 * streams would wait for each other for ever. */
static bool nothing_will_go(const struct api_connection *connection)
{
	const struct account *account = connection->account;
	bool own = connection->uid != 0 && account->api_bytes + PROTO_FRAME_MAX > QUEUE_UID_MAX;
	return (own ? account->api_queued : connection->api->queued) == 0;
}

bool queue_has_room(struct api_connection *connection)
{
	if (connection->local) {
		return !connection->stream || connection->local->has_room(connection->local_ctx);
	}
	if (connection->queued > QUEUE_CONNECTION_MAX / 2) {
		return false;
	}
	/* charged and released: the question and the limit stay in one place */
	struct api *api = connection->api;
	if (!queue_charge(connection, PROTO_FRAME_MAX)) {
		return connection->queued == 0 && nothing_will_go(connection);
	}
	connection->account->api_bytes -= PROTO_FRAME_MAX;
	api->bytes -= PROTO_FRAME_MAX;
	api->core->counters->api_bytes_queued = api->bytes;
	return true;
}

void queue_watch(struct api_connection *connection)
{
	if (connection->queued == 0) {
		if (connection->stall_ms != 0) {
			connection->stall_ms = 0;
			connection_arm(connection);
		}
		return;
	}
	if (connection->stall_ms == 0) {
		connection->stall_size =
			uv_stream_get_write_queue_size((uv_stream_t *)&connection->pipe);
		connection->stall_ms =
			connection_time(connection, connection->api->options.stall_timeout_ns);
		connection_arm(connection);
	}
}

static void count_queued(struct api_connection *connection, size_t more)
{
	connection->queued += more;
	connection->account->api_queued += more;
	connection->api->queued += more;
}

static void on_written(uv_write_t *request, int status)
{
	struct write_request *write = (struct write_request *)request;
	struct api_connection *connection = write->connection;
	count_queued(connection, 0 - write->length);
	/* progress: the stall time starts again */
	connection->stall_ms = 0;
	queue_release(connection, write->length);
	free(write);
	if (connection->closing) {
		return;
	}
	if (status < 0) {
		connection_close(connection);
		return;
	}
	queue_watch(connection);
	connection_wake(connection);
}

static void send_bytes(struct api_connection *connection, const char *bytes, size_t length)
{
	uv_stream_t *stream = (uv_stream_t *)&connection->pipe;
	uv_buf_t buf = uv_buf_init((char *)bytes, (unsigned)length);
	int n = uv_try_write(stream, &buf, 1);
	if (n < 0 && n != UV_EAGAIN) {
		connection_close(connection);
		return;
	}
	size_t written = n > 0 ? (size_t)n : 0;
	if (written == length) {
		return;
	}
	size_t rest = length - written;
	struct write_request *write = mem_zalloc(sizeof(*write) + rest);
	if (!write || !queue_charge(connection, rest)) {
		free(write);
		connection_close(connection);
		return;
	}
	write->connection = connection;
	write->length = rest;
	memcpy(write->bytes, bytes + written, rest);
	buf = uv_buf_init(write->bytes, (unsigned)rest);
	count_queued(connection, rest);
	int r = uv_write(&write->request, stream, &buf, 1, on_written);
	if (r < 0) {
		count_queued(connection, 0 - rest);
		queue_release(connection, rest);
		free(write);
		connection_close(connection);
		return;
	}
	queue_watch(connection);
}

void queue_reply(struct api_connection *connection, bool continues)
{
	struct json *out = &connection->api->out;
	const struct api_local_ops *local = connection->local;
	bool failed = reply_is_error(out);
	connection->api->core->counters->api_errors += failed;
	reply_finish(out, continues);
	if (connection->closing) {
		return;
	}
	if (local) {
		local->reply(
			connection->local_ctx, out->buffer, out->length - 1, continues, failed);
	} else {
		send_bytes(connection, out->buffer, out->length);
	}
}
