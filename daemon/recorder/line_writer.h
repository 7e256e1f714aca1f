/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_writer.h: collects lines of JSON for a file, and hands them to a thread, one of two buffers
 * after the other; what recordings and sessions share. While both buffers are full, nothing more is
 * added. Everything but write() runs on the loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "proto/json_write.h"
#include "proto/name.h"
#include "proto/varlink.h"

enum {
	LINE_END_MAX = 4096, /* that is kept free for a last line */
	LINE_MORE = 64,	     /* what a line has in addition to its reply, at most */
	LINE_BUFFER_BYTES = 2 * PROTO_FRAME_MAX + LINE_END_MAX,
	LINE_RETRY_MS = 100,	  /* while the system refuses a thread */
	LINE_SPAN_STEPS = 1 + 23, /* of a span: the events, and each series of metrics */
};

struct core;

struct line_writer_ops {
	/* Writes them to the file; on a thread, which owns what the file needs. 0 or -errno. */
	int (*write)(void *owner, const char *bytes, size_t length);
	/* They are written, or not; further ones may be flushed. */
	void (*written)(void *owner, int result);
};

struct line_writer {
	const struct line_writer_ops *ops;
	void *owner;
	uv_loop_t *loop;
	struct offload *writing; /* NULL: no thread has the other buffer */
	size_t size;		 /* bytes that were ever added */
	size_t length;
	char *filling; /* one of buffer */
	const char *full;
	size_t full_length;
	char buffer[2][LINE_BUFFER_BYTES];
};

/* Into zeroed storage, which stays where it is. */
void line_writer_init(
	struct line_writer *lines, uv_loop_t *loop, const struct line_writer_ops *ops, void *owner);
/* One more reply fits. */
bool line_writer_have_room(const struct line_writer *lines);
void line_writer_add(struct line_writer *lines, const char *bytes, size_t length);
/* Where a line of at most a frame is written, when there is room for it; then its newline is added.
 * False: it did not fit, and is not there. */
void line_writer_json(struct line_writer *lines, struct json *ret);
bool line_writer_json_end(struct line_writer *lines, struct json *json);
/* A reply as a line: its method becomes the first member. */
void line_writer_add_reply(
	struct line_writer *lines, const char *method, const char *reply, size_t length);
/* Hands the buffer to a thread, also an empty one. 0, also while the one before is being written:
 * written() is called for that. -errno: no thread. */
int line_writer_flush(struct line_writer *lines);
/* The same here and now, with written(). No thread has the other buffer. */
void line_writer_write_now(struct line_writer *lines);

/* The message of a call; parameters without brackets. Its length; 0: it does not fit. */
__attribute__((format(printf, 4, 5))) size_t line_writer_call(
	char *message, size_t size, const char *method, const char *parameters, ...);

/* What happened in a span: events page by page, then metrics, the most telling ones first. */
struct line_span {
	const char *app;	      /* whose metrics; "" = of all */
	uint64_t serial, last_serial; /* of the timeline: the next one, the newest */
	int64_t from_us, to_us;
};
/* The message of that step; its length, or 0. */
size_t line_span_call(const struct line_span *span, unsigned step, char *message, size_t size,
	const char **method);
/* After a reply to step 0: the next serial. False: it was the last page. */
bool line_span_next_page(struct line_span *span, const char *reply);
/* A reply without any event or metric. */
bool line_span_is_empty(const char *reply);

/* Where and when: version, hostname, boot and clock, as members of a first line. */
void line_writer_origin(
	struct json *json, const struct core *core, int64_t time_us, uint64_t mono_ns);
