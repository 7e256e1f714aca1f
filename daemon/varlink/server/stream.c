#include "daemon/varlink/server/stream.h"

#include "daemon/util/sysops.h"
#include "daemon/varlink/server/queue.h"
#include "daemon/varlink/server/state.h"

void *stream_create(
	struct api_call *call, const struct api_stream_ops *ops, size_t size, size_t held)
{
	if (!queue_charge(call->connection, size + held)) {
		reply_limit(call->out, "bytes of this user", call->api->options.max_queue_uid);
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
