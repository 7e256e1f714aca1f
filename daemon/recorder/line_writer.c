/* SPDX-License-Identifier: Apache-2.0 */
/* line_writer.c: collects lines of JSON and has them written; a thread has one buffer while the
 * other is being filled. */
#include "daemon/recorder/line_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/core.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/facts.h"
#include "daemon/recorder/recording_folder.h"
#include "daemon/util/file.h"
#include "daemon/util/offload/offload.h"
#include "proto/text.h"

enum { EVENTS_PAGE = 64 };

_Static_assert(PROTO_FRAME_MAX + LINE_MORE <= FILE_LINE_MAX, "lines can be read again");

void line_writer_init(
	struct line_writer *lines, uv_loop_t *loop, const struct line_writer_ops *ops, void *owner)
{
	lines->loop = loop;
	lines->ops = ops;
	lines->owner = owner;
	lines->filling = lines->buffer[0];
}

bool line_writer_have_room(const struct line_writer *lines)
{
	return lines->length + PROTO_FRAME_MAX + LINE_MORE + LINE_END_MAX <= LINE_BUFFER_BYTES;
}

void line_writer_add(struct line_writer *lines, const char *bytes, size_t length)
{
	memcpy(lines->filling + lines->length, bytes, length);
	lines->length += length;
	lines->size += length;
}

void line_writer_json(struct line_writer *lines, struct json *ret)
{
	json_init(ret, lines->filling + lines->length, PROTO_FRAME_MAX);
	json_open(ret, NULL, '{');
}

bool line_writer_json_end(struct line_writer *lines, struct json *json)
{
	json_close(json, '}');
	if (!json->overflow) {
		lines->length += json->length;
		lines->size += json->length;
		line_writer_add(lines, "\n", 1);
	}
	return !json->overflow;
}

void line_writer_add_reply(
	struct line_writer *lines, const char *method, const char *reply, size_t length)
{
	char head[LINE_MORE];
	int n = snprintf(head, sizeof(head), "{\"call\":\"%s\",", method);
	line_writer_add(lines, head, (size_t)n);
	line_writer_add(lines, reply + 1, length - 1);
	line_writer_add(lines, "\n", 1);
}

static int work(void *data)
{
	struct line_writer *lines = data;
	return lines->ops->write(lines->owner, lines->full, lines->full_length);
}

static void on_done(void *ctx, int result, void *data)
{
	struct line_writer *lines = data;
	(void)ctx;
	lines->writing = NULL;
	lines->ops->written(lines->owner, result);
}

static void swap(struct line_writer *lines)
{
	lines->filling = lines->buffer[lines->filling == lines->buffer[0]];
	lines->length = 0;
}

int line_writer_flush(struct line_writer *lines)
{
	static const struct offload_ops ops = {.work = work, .done = on_done};
	if (lines->writing) {
		return 0;
	}
	lines->full = lines->filling;
	lines->full_length = lines->length;
	int r = offload_start(lines->loop, &ops, lines, NULL, &lines->writing);
	if (r == 0) {
		swap(lines);
	}
	return r;
}

void line_writer_write_now(struct line_writer *lines)
{
	int r = lines->ops->write(lines->owner, lines->filling, lines->length);
	swap(lines);
	lines->ops->written(lines->owner, r);
}

size_t line_writer_call(char *message, size_t size, const char *method, const char *parameters, ...)
{
	struct text text = text_in(message, size);
	va_list arguments;
	text_add(&text, "{\"method\":\"" PROTO_INTERFACE_NAME ".%s\",\"parameters\":{", method);
	va_start(arguments, parameters);
	text_vadd(&text, parameters, arguments);
	va_end(arguments);
	text_add(&text, "},\"more\":true}");
	return text.truncated ? 0 : text.length;
}

/* "@" stands for the name of an app. */
static const char *const series[LINE_SPAN_STEPS - 1] = {"temperature/*", "throttle/*", "cooling/*",
	"power/*", "frame/@/*", "stage/@/*/*", "cpu/*", "memory/*", "pressure/*/*", "cpu/*/*",
	"gpu/*", "emc/*", "engine/*/*", "fan/*", "headroom/*", "energy/*", "swap/*", "clock/*",
	"voltage/*", "app/@/*", "gauge/@/*", "counter/@/*", "process/*/*"};

size_t line_span_call(const struct line_span *span, unsigned step, char *message, size_t size,
	const char **method)
{
	if (step == 0) {
		*method = "ListEvents";
		return line_writer_call(message, size, *method,
			"\"from_serial\":%" PRIu64 ",\"limit\":%d", span->serial, EVENTS_PAGE);
	}
	char glob[PROTO_QUERY_SIZE];
	const char *name = series[step - 1], *at = strchr(name, '@');
	snprintf(glob, sizeof(glob), "%.*s%s%s", at ? (int)(at - name) : 0, name,
		!at	       ? name
		: span->app[0] ? span->app
			       : "*",
		at ? at + 1 : "");
	*method = "GetHistory";
	return line_writer_call(message, size, *method,
		"\"glob\":\"%s\",\"from_us\":%" PRId64 ",\"to_us\":%" PRId64, glob, span->from_us,
		span->to_us);
}

bool line_span_next_page(struct line_span *span, const char *reply)
{
	const uint64_t last = recording_last_number(reply, "{\"serial\":");
	const bool more = last >= span->serial && last < span->last_serial;
	span->serial = (last >= span->serial ? last : span->last_serial) + 1;
	return more;
}

bool line_span_is_empty(const char *reply)
{
	return text_starts_with(reply, "{\"parameters\":{\"series\":[]}") ||
	       text_starts_with(reply, "{\"parameters\":{\"events\":[]");
}

void line_writer_origin(
	struct json *json, const struct core *core, int64_t time_us, uint64_t mono_ns)
{
	json_string(json, "version", core->facts->version);
	json_string(json, "hostname", core->facts->hostname);
	json_string(json, "boot_id", core->facts->boot_id);
	json_string(json, "clock", "CLOCK_MONOTONIC");
	json_bool(json, "clock_synced", wallclock_synced(core->wall));
	json_integer(json, "time_us", time_us);
	json_unsigned(json, "mono_us", mono_ns / 1000);
}
