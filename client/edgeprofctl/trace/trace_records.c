/* SPDX-License-Identifier: Apache-2.0 */
/* trace_records.c: converts the columns of the daemon's records to events. A malformed cell reads
 * as empty. */
#include "client/edgeprofctl/trace/trace.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"

enum { NAMES_MAX = 512 };

enum {
	KIND,
	NAME,
	OF,
	PID,
	PROCESS,
	THREAD,
	MONO_US,
	MONO_NS,
	DURATION_US,
	DURATION_NS,
	FRAME,
	ID,
	VALUE,
	CPU_US,
	DEPTH,
	FAILED,
	THROTTLED,
	COLUMNS
};

static const char *const columns[COLUMNS] = {"kind", "name", "of", "pid", "process", "thread",
	"mono_us", "mono_ns", "duration_us", "duration_ns", "frame", "id", "value", "cpu_us",
	"depth", "failed", "throttled"};

struct chunk {
	const char *app;
	uint32_t app_index;
	const char *name[NAMES_MAX];
	const char *unit[NAMES_MAX], *category[NAMES_MAX]; /* of a stage of the name */
	size_t names;
	const cJSON *at[COLUMNS]; /* the present row's */
};

static uint64_t whole(const cJSON *item)
{
	double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
	return value > 0 && value < 9e15 ? (uint64_t)value : 0;
}

static int64_t whole_or_none(const cJSON *item)
{
	return cJSON_IsNumber(item) && item->valuedouble >= 0 ? (int64_t)whole(item) : -1;
}

static bool wide(const cJSON *item, uint64_t *ret)
{
	const char *text = cJSON_GetStringValue(item);
	size_t digits = !text ? 0 : strspn(text, "0123456789");
	if (digits == 0 || digits > 20 || text[digits] != '\0') {
		return false;
	}
	errno = 0;
	*ret = strtoull(text, NULL, 10);
	return errno == 0;
}

static const char *text_of(const struct chunk *chunk, const char *const *texts, const cJSON *item)
{
	double index = cJSON_IsNumber(item) ? item->valuedouble : -1;
	const char *text = index >= 0 && index < (double)chunk->names ? texts[(size_t)index] : NULL;
	return text ? text : "";
}

/* False: a kind that a newer daemon has. */
static bool read_row(const struct chunk *chunk, struct trace_event *ret)
{
	static const char *const words[] = {
		"complete", "begin", "end", "frame", "mark", "gauge", "counter", "attribute"};
	const cJSON *const *at = chunk->at;
	const char *word = cJSON_GetStringValue(at[KIND]);
	unsigned kind = 0;
	while (kind <= TRACE_ATTRIBUTE && (!word || strcmp(word, words[kind]) != 0)) {
		kind++;
	}
	if (kind > TRACE_ATTRIBUTE) {
		return false;
	}
	struct trace_event event = trace_event_of((enum trace_kind)kind, words[kind]);
	event.app = chunk->app;
	event.app_index = chunk->app_index;
	event.name = text_of(chunk, chunk->name, at[NAME]);
	event.of = text_of(chunk, chunk->name, at[OF]);
	if (event.kind <= TRACE_END) { /* runs of stages */
		event.unit = text_of(chunk, chunk->unit, at[NAME]);
		event.category = text_of(chunk, chunk->category, at[NAME]);
	}
	event.pid = (uint32_t)whole(at[PID]);
	event.process = (uint32_t)whole(at[PROCESS]);
	event.thread = (uint8_t)whole(at[THREAD]);
	event.start_ns = whole(at[MONO_US]) * 1000 + whole(at[MONO_NS]) % 1000;
	event.duration_ns = whole(at[DURATION_US]) * 1000 + whole(at[DURATION_NS]) % 1000;
	event.has_frame = wide(at[FRAME], &event.frame);
	wide(at[ID], &event.id);
	event.cpu_us = whole_or_none(at[CPU_US]);
	event.depth = (unsigned)whole(at[DEPTH]) & 15;
	event.failed = cJSON_IsTrue(at[FAILED]);
	event.throttled = event.kind == TRACE_COMPLETE ? (int)whole_or_none(at[THROTTLED]) : -1;
	bool valued = event.kind >= TRACE_MARK && event.kind <= TRACE_ATTRIBUTE;
	if (valued && cJSON_IsNumber(at[VALUE])) {
		event.value = at[VALUE]->valuedouble;
	}
	*ret = event;
	return true;
}

/* How many. Those beyond what is there are as they were. */
static size_t read_texts(const cJSON *reply, const char *member, const char *ret[NAMES_MAX])
{
	size_t count = 0;
	for (const cJSON *item = json_first(reply, member); item && count < NAMES_MAX;
		item = item->next) {
		ret[count++] = cJSON_IsString(item) ? item->valuestring : "";
	}
	return count;
}

/* How many rows all columns have. */
static int open_chunk(const struct trace *trace, const cJSON *reply, struct chunk *ret)
{
	const cJSON *records = json_get(reply, "records");
	int rows = INT_MAX;
	*ret = (struct chunk){.app = json_word(reply, "app")};
	ret->app_index = trace_app_index(trace, ret->app);
	ret->names = read_texts(reply, "names", ret->name);
	read_texts(reply, "units", ret->unit);
	read_texts(reply, "categories", ret->category);
	for (size_t i = 0; i < COLUMNS; i++) {
		int count = json_count(records, columns[i]);
		ret->at[i] = json_first(records, columns[i]);
		rows = count < rows ? count : rows;
	}
	return rows;
}

int trace_records(struct trace *trace, const cJSON *reply)
{
	struct chunk chunk;
	size_t count = 0;
	int rows = open_chunk(trace, reply, &chunk);
	struct trace_event *events = calloc((size_t)rows + 1, sizeof(*events));
	if (!events) {
		return ctl_fail(trace->ctl, CTL_OUTPUT, "out of memory");
	}
	for (int row = 0; row < rows; row++) {
		struct trace_event *event = &events[count];
		if (read_row(&chunk, event)) {
			count++;
			if (event->kind == TRACE_MARK) {
				trace->mark[trace->marks++ % TRACE_MARKS] = (struct trace_mark){
					event->app_index, event->start_ns / 1000};
			}
		}
		for (size_t i = 0; i < COLUMNS; i++) {
			chunk.at[i] = chunk.at[i]->next;
		}
	}
	trace_put(trace, events, count);
	trace->records += count;
	free(events);
	return CTL_FINE;
}
