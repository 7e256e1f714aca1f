/* SPDX-License-Identifier: Apache-2.0 */
/* name.c: applies the rule for names, and compares globs with them. Every name of a peer (apps,
 * stages, zones, rails) passes here once at the border; rules, queries and topics then compare
 * clean names only. */
#include "proto/name.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == '-';
}

static bool wildcard(char c)
{
	return c == '*' || c == '?';
}

static bool only_dots(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] != '.') {
			return false;
		}
	}
	return length > 0;
}

static size_t segment_length(const char *text)
{
	return strcspn(text, "/");
}

void proto_name_clean(const char *text, size_t length, char ret[PROTO_NAME_SIZE])
{
	if (length > PROTO_NAME_MAX) {
		length = PROTO_NAME_MAX;
	}
	bool dots = only_dots(text, length);
	for (size_t i = 0; i < length; i++) {
		ret[i] = name_byte(text[i]) && !dots ? text[i] : '_';
	}
	if (length == 0) {
		ret[length++] = '_';
	}
	memset(ret + length, 0, PROTO_NAME_SIZE - length);
}

int proto_name_unique(const char *text, size_t length, bool (*taken)(void *ctx, const char *name),
	void *ctx, char ret[PROTO_NAME_SIZE])
{
	char clean[PROTO_NAME_SIZE];
	char name[PROTO_NAME_SIZE];
	proto_name_clean(text, length, clean);
	memcpy(name, clean, sizeof(name));
	size_t base = strlen(clean);
	for (unsigned i = 2; taken(ctx, name); i++) {
		if (i > 9999) {
			return -ENOSPC;
		}
		char suffix[8];
		size_t n = (size_t)snprintf(suffix, sizeof(suffix), ".%u", i);
		size_t keep = base + n > PROTO_NAME_MAX ? PROTO_NAME_MAX - n : base;
		memset(name, 0, sizeof(name));
		memcpy(name, clean, keep);
		memcpy(name + keep, suffix, n);
	}
	memcpy(ret, name, sizeof(name));
	return 0;
}

static bool segment_valid(const char *text, size_t length)
{
	if (length == 0 || length > PROTO_NAME_MAX || only_dots(text, length)) {
		return false;
	}
	for (size_t i = 0; i < length; i++) {
		if (!name_byte(text[i])) {
			return false;
		}
	}
	return true;
}

bool proto_name_valid(const char *text)
{
	return segment_valid(text, strlen(text));
}

bool proto_path_valid(const char *text)
{
	for (unsigned segments = 1; segments <= PROTO_GLOB_SEGMENTS; segments++) {
		size_t length = segment_length(text);
		if (!segment_valid(text, length)) {
			return false;
		}
		if (text[length] == '\0') {
			return true;
		}
		text += length + 1;
	}
	return false;
}

/* One segment against one segment. Only the last '*' is ever tried again: what was matched before
 * it can stay as it is, so the work is at most the product of two lengths of 48. */
static bool segment_match(const char *glob, size_t glob_length, const char *text, size_t length)
{
	size_t g = 0, t = 0;
	size_t star = SIZE_MAX, retry = 0;
	while (t < length) {
		if (g < glob_length && glob[g] == '*') {
			star = g++;
			retry = t;
		} else if (g < glob_length && (glob[g] == '?' || glob[g] == text[t])) {
			g++;
			t++;
		} else if (star != SIZE_MAX) {
			g = star + 1;
			t = ++retry;
		} else {
			return false;
		}
	}
	while (g < glob_length && glob[g] == '*') {
		g++;
	}
	return g == glob_length;
}

static bool rest_segment(const char *glob)
{
	return strcmp(glob, "**") == 0;
}

bool proto_glob_match(const char *glob, const char *path)
{
	for (;;) {
		size_t path_length = segment_length(path);
		if (path_length == 0) {
			return false;
		}
		if (rest_segment(glob)) {
			return true;
		}
		size_t glob_length = segment_length(glob);
		if (!segment_match(glob, glob_length, path, path_length)) {
			return false;
		}
		glob += glob_length;
		path += path_length;
		if (*glob == '\0' || *path == '\0') {
			return *glob == *path;
		}
		glob++;
		path++;
	}
}

bool proto_query_match(const char *query, const char *path)
{
	size_t length = strlen(query);
	bool plain = strcspn(query, "*?") == length;
	if (query[0] == '=') {
		return strcmp(query + 1, path) == 0;
	}
	if (plain && strncmp(path, query, length) == 0) {
		return true;
	}
	if (strchr(query, '/')) {
		return !plain && proto_glob_match(query, path);
	}
	for (;;) {
		size_t segment = segment_length(path);
		if (plain ? strncmp(path, query, length) == 0
			  : segment_match(query, length, path, segment)) {
			return true;
		}
		if (path[segment] == '\0') {
			return false;
		}
		path += segment + 1;
	}
}

int proto_glob_check(const char *glob)
{
	for (unsigned segments = 1; segments <= PROTO_GLOB_SEGMENTS; segments++) {
		size_t length = segment_length(glob);
		if (length == 0 || length > PROTO_NAME_MAX || only_dots(glob, length)) {
			return -EINVAL;
		}
		for (size_t i = 0; i < length; i++) {
			if (!name_byte(glob[i]) && !wildcard(glob[i])) {
				return -EINVAL;
			}
		}
		if (glob[length] == '\0') {
			return 0;
		}
		if (length == 2 && memcmp(glob, "**", 2) == 0) {
			return -EINVAL; /* any depth is only offered at the end */
		}
		glob += length + 1;
	}
	return -EINVAL;
}

int proto_glob_instance(const char *glob, const char *path, char *ret, size_t size)
{
	if (!proto_glob_match(glob, path)) {
		return -EINVAL;
	}
	char buf[PROTO_PATH_SIZE];
	size_t used = 0;
	bool rest = false;
	while (*path != '\0') {
		size_t path_length = segment_length(path);
		size_t glob_length = segment_length(glob);
		rest = rest || rest_segment(glob);
		if (rest || strcspn(glob, "*?") < glob_length) {
			if (used + (used > 0) + path_length >= sizeof(buf)) {
				return -ENAMETOOLONG;
			}
			if (used > 0) {
				buf[used++] = ':';
			}
			memcpy(buf + used, path, path_length);
			used += path_length;
		}
		path += path_length + (path[path_length] == '/');
		if (!rest) {
			glob += glob_length + (glob[glob_length] == '/');
		}
	}
	if (used == 0) {
		buf[used++] = '_';
	}
	if (used >= size) {
		return -ENAMETOOLONG;
	}
	memcpy(ret, buf, used);
	ret[used] = '\0';
	return 0;
}
