/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c: keeps the table of names. It lives in the process, so that stages can be declared before
 * there is a daemon, and is copied into the mapping. A lookup takes no lock: an entry is written
 * before process.declared covers it, and never changes.
 */
#include "client/libedgeprof/private.h"

#include <stdio.h>
#include <string.h>

#include "proto/fnv.h"

static struct proto_declaration table[PROTO_DECLARATIONS];
static uint64_t given[PROTO_DECLARATIONS]; /* hash of the name as it was given */

/* FNV-1a, 64 bits: two of 128 names collide once in 2^51 programs. */
static const uint64_t HASH_OF_NAMES = FNV64_BASIS;
static const uint64_t HASH_OF_LABELS = 0x84222325cbf29ce4u; /* as a name "a b" would be a_b */

static int find(uint64_t h)
{
	uint32_t count = __atomic_load_n(&process.declared, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < count; i++) {
		if (given[i] == h) {
			return (int)i;
		}
	}
	return -1;
}

static bool taken(void *ctx, const char *name)
{
	(void)ctx;
	for (uint32_t i = 0; i < process.declared; i++) {
		if (strcmp(table[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

static void copy_label(char ret[PROTO_LABEL_SIZE], const char *text)
{
	size_t length = text ? strnlen(text, PROTO_LABEL_SIZE - 1) : 0;
	memcpy(ret, length ? text : "", length);
	ret[length] = '\0';
}

/* As it is, but for what is too long: no character of UTF-8 is cut in two. */
static void copy_text(char ret[PROTO_NAME_SIZE], const char *text)
{
	size_t length = strnlen(text, PROTO_NAME_SIZE);
	if (length > PROTO_NAME_MAX) {
		length = PROTO_NAME_MAX;
		for (size_t back = 0; back < 3 && (text[length] & 0xc0) == 0x80; back++) {
			length--;
		}
	}
	memcpy(ret, text, length);
	ret[length] = '\0';
}

/* Under process.lock. */
static int add(
	uint64_t h, const char *name, const char *category, const char *unit, uint64_t deadline_ns)
{
	uint32_t index = process.declared;
	if (index >= PROTO_DECLARATIONS) {
		return -1;
	}
	struct proto_declaration *d = &table[index];
	bool is_label = h == fnv64_text(HASH_OF_LABELS, name);
	if (is_label) {
		copy_text(d->name, name);
	} else if (proto_name_unique(name, strlen(name), taken, NULL, d->name) < 0) {
		return -1;
	}
	/* `infer@gpu` names its compute unit */
	const char *at = is_label ? NULL : strrchr(name, '@');
	copy_label(d->category, category);
	copy_label(d->unit, unit || !at ? unit : at + 1);
	d->deadline_ns = deadline_ns;
	given[index] = h;
	struct proto_map_header *header = process.map;
	if (header) {
		proto_map_declarations(header)[index] = *d;
		__atomic_store_n(&header->declarations, index + 1, __ATOMIC_RELEASE);
	}
	process_set_stage(index, STAGE_PLAIN);
	__atomic_store_n(&process.declared, index + 1, __ATOMIC_RELEASE);
	return (int)index;
}

static int declare(
	uint64_t h, const char *name, const char *category, const char *unit, uint64_t deadline_ns)
{
	struct thread *t = &thread_self;
	int index = find(h);
	if (index >= 0 || t->busy) {
		return index;
	}
	thread_lock(t);
	pthread_mutex_lock(&process.lock);
	index = find(h);
	if (index < 0) {
		index = add(h, name, category, unit, deadline_ns);
	}
	pthread_mutex_unlock(&process.lock);
	thread_unlock(t);
	return index;
}

static int names_declare(
	const char *name, const char *category, const char *unit, uint64_t deadline_ns)
{
	return name && name[0]
		       ? declare(fnv64_text(HASH_OF_NAMES, name), name, category, unit, deadline_ns)
		       : -1;
}

int edgeprof_stage(const char *name)
{
	return names_declare(name, NULL, NULL, 0);
}

int edgeprof_gauge_declare(const char *name, const char *unit)
{
	return names_declare(name, NULL, unit, 0);
}

/* A name is another stage on each compute unit. */
int edgeprof_stage_declare(
	const char *name, const char *category, const char *unit, uint64_t deadline_ns)
{
	int index = names_declare(name, category, unit, deadline_ns);
	char label[PROTO_LABEL_SIZE] = "", both[PROTO_NAME_SIZE + PROTO_LABEL_SIZE];
	copy_label(label, unit);
	if (index < 0 || !label[0] || strcmp(label, table[index].unit) == 0) {
		return index;
	}
	snprintf(both, sizeof(both), "%.*s@%s", PROTO_NAME_SIZE - 1, name, label);
	return names_declare(both, category, unit, deadline_ns);
}

int edgeprof_label_(const char *label)
{
	if (!label || proto_name_valid(label)) {
		return edgeprof_stage(label);
	}
	return label[0] ? declare(fnv64_text(HASH_OF_LABELS, label), label, NULL, NULL, 0) : -1;
}

void names_copy(void *map)
{
	struct proto_map_header *header = map;
	uint32_t count = process.declared;
	memcpy(proto_map_declarations(map), table, count * sizeof(table[0]));
	__atomic_store_n(&header->declarations, count, __ATOMIC_RELEASE);
}

const char *names_label(uint32_t stage)
{
	return table[stage].name;
}
