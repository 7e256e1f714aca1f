/* Memory of a call that answers in several replies or turns, on its user's account. */
#pragma once

#include <stddef.h>

#include "daemon/varlink/server/connection.h"
#include "daemon/varlink/server/dispatch.h"

/* A zeroed structure of size bytes that begins with a struct api_stream, whose ops, connection and
 * charge are set; held: further bytes that it may come to hold. The caller fills in the rest and
 * gives it away by connection_set_stream; before that, free and queue_release(size + held). NULL:
 * refused, and the error is in call->out (answer API_LAST). */
void *stream_create(
	struct api_call *call, const struct api_stream_ops *ops, size_t size, size_t held);
