/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c: answers RecordNow, ListRecordings and GetRecording. The list is core's; a file is read
 * on a thread, a part at a time, as the peer consumes it. A thread that reads when the peer
 * disconnects frees everything at its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/status/recordings.h"
#include "daemon/util/offload.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "proto/utf8.h"

enum {
	ARG_LABEL = 0,
	ARG_BEFORE,
	ARG_AFTER,
	LABEL_MAX = 96,
	PART = 24 * 1024, /* of a file; as a JSON string it still fits into a frame */
};

static double seconds_of(const struct value *value)
{
	return value->present ? value->number : (double)NAN;
}

enum api_result method_record_now(struct api_call *call)
{
	const struct api_options *options = &call->api->options;
	const struct value *value = call->value;
	if (value[ARG_LABEL].present && strlen(value[ARG_LABEL].string) > LABEL_MAX) {
		return reply_invalid_parameter(call->out, "label");
	}
	struct api_record record = {
		.label = value[ARG_LABEL].present ? value[ARG_LABEL].string : NULL,
		.before_s = seconds_of(&value[ARG_BEFORE]),
		.after_s = seconds_of(&value[ARG_AFTER]),
		.now_ns = call->now_ns,
	};
	int r = options->record ? options->record(options->ctx, &record) : -ENOTSUP;
	if (r == -ENOSPC) {
		return reply_limit(call->out, "recordings in 24 hours", RECORDINGS_A_DAY);
	}
	if (r < 0) {
		reply_error(call->out, PROTO_INTERFACE_NAME ".RecordFailed");
		json_string(call->out, "text", record.reason[0] ? record.reason : strerror(-r));
		return API_LAST;
	}
	json_string(call->out, "name", record.name);
	json_bool(call->out, "joined", record.joined);
	return API_LAST;
}

static bool recording_item(struct list_cursor *cursor, struct json *out)
{
#define FIELD(name) JSON_FIELD(struct recording, #name, name)
	static const struct json_field fields[] = {FIELD(name), FIELD(time_us), FIELD(trigger),
		FIELD(triggers), FIELD(span_s), FIELD(before_s), FIELD(after_s), FIELD(bytes),
		FIELD(records), FIELD(lost),
		JSON_FIELD_AS(JSON_STRING_OPT, struct recording, "cut", cut)};
#undef FIELD
	const struct recordings *recordings = cursor->core->recordings;
	if (!recordings || cursor->first >= recordings->count) {
		return false;
	}
	const struct recording *row = &recordings->row[cursor->first++];
	json_open(out, NULL, '{');
	JSON_FIELDS(out, fields, row);
	json_close(out, '}');
	return true;
}

static void recording_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
#define FIELD(name) JSON_FIELD(struct recordings, #name, name)
#define OPT(name) JSON_FIELD_AS(JSON_STRING_OPT, struct recordings, #name, name)
	static const struct json_field fields[] = {
		FIELD(dir), OPT(open), FIELD(refused), FIELD(failed), OPT(reason)};
#undef FIELD
#undef OPT
	const struct recordings *recordings = cursor->core->recordings;
	if (!recordings || !last) {
		return;
	}
	JSON_FIELDS(out, fields, recordings);
}

enum api_result method_list_recordings(struct api_call *call)
{
	static const struct list_ops ops = {
		.field = "recordings", .item = recording_item, .tail = recording_tail};
	return list_answer(call, &ops);
}

enum file_state { FILE_ASKED, FILE_READ, FILE_FAILED };

struct file_stream {
	struct api_stream base;
	struct offload *job; /* NULL: none is under way */
	enum file_state state;
	int fd;
	ssize_t result;
	int64_t at;
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
		return reply_not_found(out, "recording", stream->name);
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

enum api_result method_get_recording(struct api_call *call)
{
	static const struct api_stream_ops ops = {.next = file_next, .destroy = file_destroy};
	const struct recordings *recordings = call->core->recordings;
	const char *name = call->value[0].string;
	/* only what is in the table: no name of a path gets any further */
	const struct recording *row = recordings ? recordings_find(recordings, name) : NULL;
	if (!row) {
		return reply_not_found(call->out, "recording", name);
	}
	struct file_stream *stream = stream_create(call, &ops, sizeof(*stream), 0);
	if (!stream) {
		return API_LAST;
	}
	stream->fd = -1;
	memcpy(stream->name, row->name, sizeof(stream->name));
	snprintf(stream->path, sizeof(stream->path), "%s/%s.jsonl", recordings->dir, row->name);
	connection_set_stream(call->connection, &stream->base);
	return API_YIELD;
}
