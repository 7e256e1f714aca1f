/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.c: writes lists. A list that ends in its first slice, as most do, allocates nothing; else a
 * stream continues it. A single reply that takes several slices holds its text in between.
 */
#include "daemon/varlink/methods/list.h"

#include <stdlib.h>

#include "daemon/util/sysops.h"
#include "daemon/varlink/server/api.h"

enum {
	ITEMS_PER_CHECK = 8, /* of the clock */
	TAIL_ROOM = 64,	     /* for the empty fields of a tail behind a full chunk */
};

#define LIST_SLICE_NS 400000u

struct list_stream {
	struct api_stream base;
	const struct list_ops *ops;
	struct list_cursor cursor;
	bool single;	 /* one reply */
	bool items_done; /* only the tail is missing */
	struct reply_held held;
};

void list_cursor_init(struct list_cursor *cursor, const struct api_call *call)
{
	*cursor = (struct list_cursor){
		.api = call->api,
		.core = call->core,
		.now_ns = call->now_ns,
		.uid = call->connection->uid,
		.permitted = call_permitted(call),
	};
}

static enum api_result list_end(struct list_stream *list, struct json *out)
{
	size_t mark;
	json_close(out, ']');
	mark = json_mark(out);
	if (list->ops->tail) {
		list->ops->tail(&list->cursor, out, true);
	}
	if (!out->overflow) {
		return API_LAST;
	}
	if (list->single) {
		return reply_too_large(out);
	}
	json_rollback(out, mark);
	list->ops->tail(&list->cursor, out, false);
	return API_CHUNK;
}

static enum api_result list_chunk(struct list_stream *list, struct json *out)
{
	json_close(out, ']');
	if (list->ops->tail) {
		list->ops->tail(&list->cursor, out, false);
	}
	return API_CHUNK;
}

/* Ends this slice: a chunk is sent when it holds something, a single reply waits. */
static enum api_result list_pause(struct list_stream *list, struct json *out, size_t start)
{
	if (!list->single) {
		return json_mark(out) > start ? list_chunk(list, out) : API_YIELD;
	}
	return reply_hold(&list->held, out, API_YIELD);
}

static bool full(const struct list_stream *list, const struct json *out)
{
	return out->overflow || (!list->single && list->ops->tail && json_room(out) < TAIL_ROOM);
}

static enum api_result list_run(struct list_stream *list, struct json *out)
{
	uint64_t started_ns = sysops()->now_ns();
	struct list_turn turn;
	for (size_t i = 0; i < LIST_RELATED; i++) {
		turn.related[i].of = SIZE_MAX;
	}
	list->cursor.turn = &turn;
	reply_resume(&list->held, out, list->ops->field);
	size_t start = json_mark(out);
	for (unsigned i = 1; !list->items_done; i++) {
		struct list_cursor before = list->cursor;
		size_t mark = json_mark(out);
		list->items_done = !list->ops->item(&list->cursor, out);
		if (full(list, out)) {
			if (list->single) {
				return reply_too_large(out);
			}
			json_rollback(out, mark);
			if (mark > start) {
				/* it starts the next chunk; an item larger than a frame is skipped
				 */
				list->cursor = before;
				list->items_done = false;
				return list_chunk(list, out);
			}
		}
		if (!list->items_done && (list->ops->heavy || i % ITEMS_PER_CHECK == 0) &&
			sysops()->now_ns() - started_ns > LIST_SLICE_NS) {
			return list_pause(list, out, start);
		}
	}
	return list_end(list, out);
}

static enum api_result list_next(struct api_stream *stream, struct json *out)
{
	return list_run((struct list_stream *)stream, out);
}

static void list_destroy(struct api_stream *stream)
{
	struct list_stream *list = (struct list_stream *)stream;
	free(list->held.text);
	free(list);
}

static const struct api_stream_ops list_stream_ops = {
	.next = list_next,
	.destroy = list_destroy,
};

enum api_result list_start(
	struct api_call *call, const struct list_ops *ops, const struct list_cursor *cursor)
{
	struct list_stream list = {.ops = ops, .cursor = *cursor, .single = !call->more};
	if (list.single && ops->least && ops->least(cursor) > PROTO_FRAME_MAX) {
		return reply_too_large(call->out);
	}
	enum api_result result = list_run(&list, call->out);
	if (result == API_LAST) {
		return API_LAST;
	}
	/* a single reply may come to hold a complete frame */
	struct list_stream *stored = stream_create(
		call, &list_stream_ops, sizeof(*stored), list.single ? PROTO_FRAME_MAX : 0);
	if (!stored) {
		free(list.held.text);
		return API_LAST;
	}
	list.base = stored->base;
	*stored = list;
	connection_set_stream(call->connection, &stored->base);
	return result;
}

enum api_result list_answer(struct api_call *call, const struct list_ops *ops)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	cursor.all = call->value[0].boolean;
	return list_start(call, ops, &cursor);
}
