/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.c: finds frames in what a connection has received. Bytes are scanned where they were read;
 * only what is left over, for want of a complete frame or of room for its answer, is copied and
 * charged to the user.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"
#include "daemon/varlink/server/private.h"

int input_next(struct api_connection *connection, const char **ret, size_t *length)
{
	size_t have = connection->input_length - connection->input_at;
	size_t from = connection->input_scanned;
	if (have == from) {
		return have >= PROTO_FRAME_MAX ? -EMSGSIZE : -ENODATA;
	}
	const char *start = connection->input + connection->input_at;
	const char *end = memchr(start + from, '\0', have - from);
	if (!end) {
		connection->input_scanned = have;
		return have >= PROTO_FRAME_MAX ? -EMSGSIZE : -ENODATA;
	}
	*ret = start;
	*length = (size_t)(end - start);
	connection->input_at += *length + 1;
	connection->input_scanned = 0;
	return *length < PROTO_FRAME_MAX ? 0 : -EMSGSIZE;
}

size_t input_left(const struct api_connection *connection)
{
	return connection->input_length - connection->input_at;
}

bool input_partial(const struct api_connection *connection)
{
	size_t left = input_left(connection);
	return left > 0 && connection->input_scanned == left;
}

void input_drop(struct api_connection *connection)
{
	if (connection->input && !connection->borrowed) {
		queue_release(connection, connection->input_length);
		free(connection->input);
	}
	connection->input = NULL;
	connection->input_length = connection->input_at = connection->input_scanned = 0;
	connection->borrowed = false;
}

int input_copy(struct api_connection *connection, const char *more, size_t more_length)
{
	size_t left = connection->input_length - connection->input_at;
	if (left + more_length == 0) {
		input_drop(connection);
		return 0;
	}
	if (!connection->borrowed && more_length == 0 && connection->input_at == 0) {
		return 0;
	}
	if (!queue_charge(connection, left + more_length)) {
		return -ENOSPC;
	}
	char *copy = mem_calloc(left + more_length, 1);
	if (!copy) {
		queue_release(connection, left + more_length);
		return -ENOMEM;
	}
	if (left > 0) {
		memcpy(copy, connection->input + connection->input_at, left);
	}
	if (more_length > 0) {
		memcpy(copy + left, more, more_length);
	}
	size_t scanned = connection->input_scanned;
	input_drop(connection);
	connection->input = copy;
	connection->input_length = left + more_length;
	connection->input_scanned = scanned;
	return 0;
}
