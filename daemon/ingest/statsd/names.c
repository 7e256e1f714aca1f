/* From the name in a line to its declaration, for each line: a hash of the whole name, of which the
 * declaration keeps only the first 48 bytes. Equal hashes are the sender's own loss. */
#include "daemon/ingest/statsd/names.h"

#include <errno.h>
#include <string.h>

enum { SLOTS = sizeof(((struct statsd_names *)0)->slot) };

/* Eight bytes at a time; the multiplier is 2^64 / golden ratio, made odd. */
static uint64_t hash_of(struct statsd_text text)
{
	uint64_t hash = text.length, word;
	const char *at = text.at;
	size_t left = text.length;
	for (; left >= 8; left -= 8, at += 8) {
		memcpy(&word, at, 8);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	for (word = 0; left > 0; left--) {
		word = word << 8 | (unsigned char)*at++;
	}
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	hash ^= hash >> 29;
	return hash;
}

static void copy_text(char *ret, size_t size, struct statsd_text text)
{
	size_t length = text.length < size - 1 ? text.length : size - 1;
	if (length > 0) {
		memcpy(ret, text.at, length);
	}
}

static int add(struct statsd_names *names, size_t slot, uint64_t hash, struct apps *apps,
	struct app_process *process, const struct statsd_line *line)
{
	struct proto_declaration declaration = {0};
	if (names->count == STATSD_NAMES_MAX) {
		return -ENOSPC;
	}
	copy_text(declaration.name, sizeof(declaration.name), line->name);
	copy_text(declaration.unit, sizeof(declaration.unit), line->unit);
	copy_text(declaration.category, sizeof(declaration.category), line->category);
	size_t index = names->count++;
	names->name[index] =
		(struct statsd_name){.hash = hash, .length = (uint8_t)line->name.length};
	names->slot[slot] = (uint8_t)(index + 1);
	apps_declare(apps, process, (uint32_t)index, &declaration);
	return (int)index;
}

int statsd_names_find(struct statsd_names *names, struct apps *apps, struct app_process *process,
	const struct statsd_line *line)
{
	uint64_t hash = hash_of(line->name);
	size_t slot = hash % SLOTS;
	for (; names->slot[slot]; slot = (slot + 1) % SLOTS) {
		size_t index = names->slot[slot] - 1u;
		if (names->name[index].hash == hash &&
			names->name[index].length == line->name.length) {
			return (int)index;
		}
	}
	return add(names, slot, hash, apps, process, line);
}
