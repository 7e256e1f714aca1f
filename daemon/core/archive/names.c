/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: keeps the table of series: hash chains by name and by number, and a list by the block
 * that last carried the name. The chains' heads are fixed, so that only a new series allocates. */
#include "daemon/core/archive/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/archive/bytes.h"
#include "daemon/util/sysops.h"
#include "proto/fnv.h"

static size_t hash(const char *text, size_t length)
{
	uint32_t value = fnv32(FNV32_BASIS, text, length);
	return (value ^ value >> 15) % ARCHIVE_NAME_BUCKETS;
}

size_t archive_name_size(const struct archive_name *name)
{
	return varint_size(name->id ? name->id : UINT32_MAX) + 2 + name->length;
}

void archive_names_finish(struct archive_names *names)
{
	for (size_t i = 0; i < ARCHIVE_NAME_BUCKETS; i++) {
		while (names->by_name[i]) {
			struct archive_name *name = names->by_name[i];
			names->by_name[i] = name->by_name;
			free(name);
		}
	}
	memset(names, 0, sizeof(*names));
}

struct archive_name *archive_names_find(
	const struct archive_names *names, const char *text, size_t length, enum unit unit)
{
	struct archive_name *name = names->by_name[hash(text, length)];
	while (name && (name->length != length || name->unit != unit ||
			       memcmp(name->text, text, length) != 0)) {
		name = name->by_name;
	}
	return name;
}

struct archive_name *archive_names_by_id(const struct archive_names *names, uint32_t id)
{
	struct archive_name *name = names->by_id[id % ARCHIVE_NAME_BUCKETS];
	while (name && name->id != id) {
		name = name->by_id;
	}
	return name;
}

int archive_names_add(struct archive_names *names, const char *text, size_t length, enum unit unit,
	struct archive_name **ret)
{
	if (names->count >= ARCHIVE_NAMES_MAX) {
		return -ENOSPC;
	}
	struct archive_name *name = mem_zalloc(sizeof(*name) + length + 1);
	if (!name) {
		return -ENOMEM;
	}
	memcpy(name->text, text, length);
	name->length = (uint8_t)length;
	name->unit = (uint8_t)unit;
	size_t b = hash(text, length);
	name->by_name = names->by_name[b];
	names->by_name[b] = name;
	names->count++;
	*ret = name;
	return 0;
}

void archive_names_number(struct archive_names *names, struct archive_name *name, uint32_t id)
{
	if (id >= names->next_id) {
		names->next_id = id + 1;
	}
	name->id = id;
	name->by_id = names->by_id[id % ARCHIVE_NAME_BUCKETS];
	names->by_id[id % ARCHIVE_NAME_BUCKETS] = name;
}

static void list_remove(struct archive_names *names, struct archive_name *name)
{
	if (name->copies == 0) {
		return;
	}
	*(name->older ? &name->older->newer : &names->oldest) = name->newer;
	*(name->newer ? &name->newer->older : &names->newest) = name->older;
}

void archive_names_written(struct archive_names *names, struct archive_name *name, uint64_t seq)
{
	if (name->written_seq == seq) {
		return;
	}
	list_remove(names, name);
	name->written_seq = name->written_seq > seq ? name->written_seq : seq;
	name->copies = name->copies < 2 ? (uint8_t)(name->copies + 1) : 2;
	/* At start blocks come in the order of pages: nearly sorted, the walk is short. */
	struct archive_name *before = names->newest;
	while (before && before->written_seq > name->written_seq) {
		before = before->older;
	}
	name->older = before;
	name->newer = before ? before->newer : names->oldest;
	*(before ? &before->newer : &names->oldest) = name;
	*(name->newer ? &name->newer->older : &names->newest) = name;
}

void archive_names_drop(struct archive_names *names, struct archive_name *name)
{
	list_remove(names, name);
	struct archive_name **at = &names->by_name[hash(name->text, name->length)];
	while (*at != name) {
		at = &(*at)->by_name;
	}
	*at = name->by_name;
	names->count--;
	if (name->id > 0) {
		at = &names->by_id[name->id % ARCHIVE_NAME_BUCKETS];
		while (*at != name) {
			at = &(*at)->by_id;
		}
		*at = name->by_id;
	}
	free(name);
}

struct archive_name *archive_names_next(
	const struct archive_names *names, const struct archive_name *name)
{
	if (name && name->by_name) {
		return name->by_name;
	}
	for (size_t b = name ? hash(name->text, name->length) + 1 : 0; b < ARCHIVE_NAME_BUCKETS;
		b++) {
		if (names->by_name[b]) {
			return names->by_name[b];
		}
	}
	return NULL;
}

void archive_names_evict(struct archive_names *names, uint64_t oldest_seq)
{
	struct archive_name *next = archive_names_next(names, NULL);
	while (next) {
		struct archive_name *name = next;
		next = archive_names_next(names, name);
		if (name->last_seq < oldest_seq) {
			archive_names_drop(names, name);
		}
	}
}
