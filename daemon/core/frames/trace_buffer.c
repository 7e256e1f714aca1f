/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_buffer.c: keeps the pool of chunks behind the trace logs. apps write each believable
 * record here as it is read; exports walk a log with a cursor. The pool is one allocation whose
 * pages the kernel gives when they are written.
 */
#include "daemon/core/frames/trace_buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/index.h"
#include "daemon/util/sysops.h"

#define NONE UINT32_MAX

enum { NAMES_AT_ONCE = 16 };

struct chunk {
	uint64_t first;	     /* number of its first event */
	uint32_t next;	     /* towards the newer; of free ones: the next free */
	uint32_t generation; /* how often it was taken; 0 = never */
};

struct trace_buffer {
	struct event *events;
	struct chunk *chunk;
	uint32_t chunks;
	uint32_t touched; /* chunks from here on were never used */
	uint32_t free;	  /* a list of those given back */
	size_t logs;
	LIST_HEAD(, trace_log) log;
};

int trace_buffer_create(size_t memory, struct trace_buffer **ret)
{
	size_t chunks = memory / (TRACE_CHUNK * sizeof(struct event));
	if (chunks == 0 || chunks >= NONE) {
		return -EINVAL;
	}
	struct trace_buffer *pool = mem_zalloc(sizeof(*pool));
	if (!pool) {
		return -ENOMEM;
	}
	pool->events = mem_calloc(chunks * TRACE_CHUNK, sizeof(*pool->events));
	pool->chunk = mem_calloc(chunks, sizeof(*pool->chunk));
	if (!pool->events || !pool->chunk) {
		trace_buffer_destroy(pool);
		return -ENOMEM;
	}
	pool->chunks = (uint32_t)chunks;
	pool->free = NONE;
	*ret = pool;
	return 0;
}

void trace_buffer_destroy(struct trace_buffer *pool)
{
	if (!pool) {
		return;
	}
	free(pool->events);
	free(pool->chunk);
	free(pool);
}

int trace_log_open(struct trace_buffer *pool, struct trace_log **ret)
{
	struct trace_log *log = mem_zalloc(sizeof(*log));
	if (!log) {
		return -ENOMEM;
	}
	log->first = log->last = NONE;
	log->pool = pool;
	LIST_INSERT_HEAD(&pool->log, log, entry);
	pool->logs++;
	*ret = log;
	return 0;
}

static void chunk_release(struct trace_buffer *pool, uint32_t index)
{
	pool->chunk[index].next = pool->free;
	pool->chunk[index].generation++; /* readers see that it is another one */
	pool->free = index;
}

/* Takes the oldest chunk off the log. */
static void give_oldest(struct trace_log *log)
{
	struct trace_buffer *pool = log->pool;
	uint32_t index = log->first;
	if (index == log->last) { /* the one it writes to */
		log->begun -= log->room;
		log->room = 0;
		log->at = NULL;
		log->last = NONE;
	}
	log->first = log->last == NONE ? NONE : pool->chunk[index].next;
	log->chunks--;
	chunk_release(pool, index);
}

void trace_log_close(struct trace_log *log)
{
	if (!log) {
		return;
	}
	struct trace_buffer *pool = log->pool;
	while (log->chunks > 0) {
		give_oldest(log);
	}
	LIST_REMOVE(log, entry);
	pool->logs--;
	for (size_t i = 0; i < sizeof(log->name) / sizeof(log->name[0]); i++) {
		free(log->name[i]);
	}
	index_finish(&log->index);
	free(log);
}

/* The log with the most chunks; the asking one when it is among them. */
static struct trace_log *largest(struct trace_log *asking)
{
	struct trace_log *max = asking;
	struct trace_log *log;
	LIST_FOREACH(log, &asking->pool->log, entry)
	{
		max = log->chunks > max->chunks ? log : max;
	}
	return max;
}

void trace_log_more(struct trace_log *log)
{
	struct trace_buffer *pool = log->pool;
	if (pool->free == NONE && pool->touched == pool->chunks) {
		give_oldest(largest(log)); /* somebody has one: all are taken */
	}
	uint32_t index = pool->free;
	if (index != NONE) {
		pool->free = pool->chunk[index].next;
	} else {
		index = pool->touched++;
	}
	pool->chunk[index].first = log->begun;
	pool->chunk[index].next = NONE;
	pool->chunk[index].generation++;
	if (log->last == NONE) {
		log->first = index;
	} else {
		pool->chunk[log->last].next = index;
	}
	log->last = index;
	log->chunks++;
	log->begun += TRACE_CHUNK;
	log->at = &pool->events[(size_t)index * TRACE_CHUNK];
	log->room = TRACE_CHUNK;
}

const char *trace_log_name_of(const struct trace_log *log, uint16_t number)
{
	return number < log->names ? log->name[number / NAMES_AT_ONCE][number % NAMES_AT_ONCE] : "";
}

static bool is_named(const void *table, uint32_t slot, const void *key)
{
	return strcmp(trace_log_name_of(table, (uint16_t)slot), key) == 0;
}

uint16_t trace_log_name(struct trace_log *log, const char *name)
{
	uint32_t hash = hash_text(name);
	uint32_t known = index_find(&log->index, hash, is_named, log, name);
	if (known != INDEX_NONE) {
		return (uint16_t)known;
	}
	size_t block = log->names / NAMES_AT_ONCE;
	if (log->names == TRACE_NAMES_MAX) {
		return TRACE_NO_NAME;
	}
	if (!log->name[block]) {
		log->name[block] = mem_calloc(NAMES_AT_ONCE, sizeof(*log->name[block]));
	}
	if (!log->name[block] || index_add(&log->index, hash, (uint32_t)log->names) < 0) {
		return TRACE_NO_NAME;
	}
	char *slot = log->name[block][log->names % NAMES_AT_ONCE];
	memcpy(slot, name, strnlen(name, PROTO_NAME_SIZE - 1));
	return (uint16_t)log->names++;
}

static uint64_t oldest_position(const struct trace_log *log)
{
	return log->first == NONE ? log->begun - log->room : log->pool->chunk[log->first].first;
}

void trace_log_span(const struct trace_log *log, struct trace_usage *ret)
{
	const struct trace_buffer *pool = log->pool;
	uint64_t end = log->begun - log->room, oldest = oldest_position(log);
	size_t share = pool->chunks / (pool->logs > 0 ? pool->logs : 1);
	*ret = (struct trace_usage){.bytes = share * TRACE_CHUNK * sizeof(struct event),
		.used_bytes = log->chunks * TRACE_CHUNK * sizeof(struct event),
		.count = end - oldest,
		.overwritten = oldest};
	if (log->first == NONE) {
		return;
	}
	size_t filled = ret->count < TRACE_CHUNK ? (size_t)ret->count : TRACE_CHUNK;
	const struct event *event = &pool->events[(size_t)log->first * TRACE_CHUNK];
	for (size_t i = 0; i < filled; i++) {
		if (ret->oldest_ns == 0 || event[i].record.start_ns < ret->oldest_ns) {
			ret->oldest_ns = event[i].record.start_ns;
		}
	}
}

void trace_buffer_usage(const struct trace_buffer *pool, struct trace_usage *ret)
{
	*ret = (struct trace_usage){
		.bytes = (size_t)pool->chunks * TRACE_CHUNK * sizeof(struct event)};
	const struct trace_log *log;
	LIST_FOREACH(log, &pool->log, entry)
	{
		struct trace_usage one;
		trace_log_span(log, &one);
		ret->used_bytes += one.used_bytes;
		ret->count += one.count;
		ret->overwritten += one.overwritten;
		if (one.oldest_ns != 0 && (ret->oldest_ns == 0 || one.oldest_ns < ret->oldest_ns)) {
			ret->oldest_ns = one.oldest_ns;
		}
	}
}

struct span_end {
	uint64_t t_ns; /* start of a chunk's first event */
	uint32_t count;
};

static int newest_first(const void *a, const void *b)
{
	const struct span_end *left = a, *right = b;
	return (left->t_ns < right->t_ns) - (left->t_ns > right->t_ns);
}

int trace_buffer_since(const struct trace_buffer *pool, size_t count, uint64_t *ret)
{
	struct span_end *end = mem_calloc(pool->chunks, sizeof(*end));
	size_t ends = 0, sum = 0;
	if (!end) {
		return -ENOMEM;
	}
	const struct trace_log *log;
	LIST_FOREACH(log, &pool->log, entry)
	{
		for (uint32_t i = log->first; i != NONE; i = pool->chunk[i].next) {
			uint32_t filled = i == log->last ? TRACE_CHUNK - log->room : TRACE_CHUNK;
			end[ends].t_ns = pool->events[(size_t)i * TRACE_CHUNK].record.start_ns;
			end[ends].count = filled;
			ends += filled > 0;
		}
	}
	qsort(end, ends, sizeof(*end), newest_first);
	*ret = 0;
	for (size_t i = 0; i < ends; i++) {
		sum += end[i].count;
		if (sum > count) {
			*ret = i > 0 ? end[i - 1].t_ns : end[i].t_ns;
			break;
		}
	}
	free(end);
	return 0;
}

/* Brings the cursor to the chunk of its position. */
static void cursor_seek(const struct trace_log *log, struct trace_cursor *cursor)
{
	const struct trace_buffer *pool = log->pool;
	uint32_t index = log->first;
	while (cursor->position - pool->chunk[index].first >= TRACE_CHUNK &&
		pool->chunk[index].next != NONE) {
		index = pool->chunk[index].next;
	}
	cursor->chunk = index;
	cursor->generation = pool->chunk[index].generation;
}

const struct event *trace_log_next(
	const struct trace_log *log, struct trace_cursor *cursor, uint64_t *lost)
{
	const struct trace_buffer *pool = log->pool;
	uint64_t oldest = oldest_position(log);
	if (cursor->position < oldest) {
		if (lost && cursor->generation != 0) {
			*lost += oldest - cursor->position;
		}
		cursor->position = oldest;
	}
	if (cursor->position >= log->begun - log->room) {
		return NULL;
	}
	const struct chunk *chunk = &pool->chunk[cursor->chunk < pool->chunks ? cursor->chunk : 0];
	if (cursor->generation == 0 || chunk->generation != cursor->generation ||
		cursor->position - chunk->first >= TRACE_CHUNK) {
		cursor_seek(log, cursor);
		chunk = &pool->chunk[cursor->chunk];
	}
	size_t at = (size_t)cursor->chunk * TRACE_CHUNK + (size_t)(cursor->position - chunk->first);
	cursor->position++;
	return &pool->events[at];
}
