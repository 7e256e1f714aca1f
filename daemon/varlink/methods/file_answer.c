/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_answer.c: answers with a file: it is read on a thread, a part at a time, as the peer
 * consumes it. A thread that reads when the peer disconnects frees everything at its end.
 */
#include "daemon/varlink/methods/methods.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/util/offload/offload.h"
#include "proto/name.h"
#include "proto/utf8.h"

enum { PART = 24 * 1024 /* of a file; as a JSON string it still fits into a frame */ };

enum file_state { FILE_ASKED, FILE_READ, FILE_FAILED };

struct file_stream {
	struct api_stream base;
	struct offload *job; /* NULL: none is under way */
	enum file_state state;
	int fd;
	ssize_t result;
	int64_t at;
	bool begins;
	const char *what;
	char name[PROTO_NAME_SIZE];
	char path[256 + PROTO_NAME_SIZE];
	char part[PART + 1];
};

static void file_free(void *data)
{
	struct file_stream *stream = data;
	if (stream->fd >= 0) {
		close(stream->fd);
	}
	free(stream);
}

/* The next part, after the open before the first: its length, or -errno. */
static int read_part(void *data)
{
	struct file_stream *stream = data;
	if (stream->fd < 0) {
		stream->fd = open(stream->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	}
	if (stream->fd < 0 && errno == ENOENT && stream->begins) {
		return 0;
	}
	ssize_t n = stream->fd < 0 ? -1 : pread(stream->fd, stream->part, PART, stream->at);
	return n < 0 ? -errno : (int)n;
}

static void on_part(void *ctx, int result, void *data)
{
	struct file_stream *stream = data;
	(void)ctx;
	stream->job = NULL;
	stream->result = result;
	stream->state = result < 0 ? FILE_FAILED : FILE_READ;
	connection_wake(stream->base.connection);
}

static int ask(struct file_stream *stream)
{
	static const struct offload_ops ops = {
		.work = read_part, .done = on_part, .release = file_free};
	return offload_start(stream->base.connection->api->loop, &ops, stream, NULL, &stream->job);
}

/* Bytes up to the last complete character; all of them where there is none. */
static size_t complete_characters(const char *text, size_t length)
{
	size_t complete = proto_utf8_complete(text, length);
	return complete > 0 ? complete : length;
}

static enum api_result file_failed(struct file_stream *stream, struct json *out)
{
	if (stream->result == -ENOENT || stream->result == -ELOOP) {
		return reply_not_found(out, stream->what, stream->name);
	}
	reply_error(out, PROTO_INTERFACE_NAME ".RecordFailed");
	json_string(out, "text",
		stream->result == -EAGAIN ? "no thread could be started"
					  : strerror((int)-stream->result));
	return API_LAST;
}

static enum api_result file_next(struct api_stream *base, struct json *out)
{
	struct file_stream *stream = (struct file_stream *)base;
	enum api_result result = API_WAIT;
	if (stream->job) {
		return API_WAIT;
	}
	if (stream->state == FILE_FAILED) {
		return file_failed(stream, out);
	}
	if (stream->state == FILE_READ) {
		size_t length = (size_t)stream->result;
		/* at the end of the file half a character is what there is */
		size_t whole = length == PART ? complete_characters(stream->part, length) : length;
		stream->part[whole] = '\0';
		json_string(out, "text", stream->part);
		stream->at += (int64_t)whole;
		if (length < PART) {
			return API_LAST;
		}
		result = API_CHUNK;
	}
	stream->state = FILE_ASKED;
	int r = ask(stream);
	if (r < 0) {
		stream->state = FILE_FAILED;
		stream->result = r;
		return result == API_CHUNK ? API_CHUNK : file_failed(stream, out);
	}
	return result;
}

static void file_destroy(struct api_stream *base)
{
	struct file_stream *stream = (struct file_stream *)base;
	if (stream->job) {
		offload_detach(stream->job);
	} else {
		file_free(stream);
	}
}

enum api_result file_answer(
	struct api_call *call, const char *what, const char *dir, const char *name, bool begins)
{
	static const struct api_stream_ops ops = {.next = file_next, .destroy = file_destroy};
	struct file_stream *stream = stream_create(call, &ops, sizeof(*stream), 0);
	if (!stream) {
		return API_LAST;
	}
	stream->fd = -1;
	stream->what = what;
	stream->begins = begins;
	snprintf(stream->name, sizeof(stream->name), "%s", name);
	snprintf(stream->path, sizeof(stream->path), "%s/%s.jsonl", dir, name);
	connection_set_stream(call->connection, &stream->base);
	return API_YIELD;
}
