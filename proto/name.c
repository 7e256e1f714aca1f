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

size_t proto_name_without_unit(const char *name, size_t length, const char **unit)
{
	static const struct {
		const char *suffix, *unit;
	} suffixes[] = {{"_coreml", "coreml"}, {"_onnx_cpu", "cpu"}};
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t size = strlen(suffixes[i].suffix);
		if (length > size && memcmp(name + length - size, suffixes[i].suffix, size) == 0) {
			if (unit) {
				*unit = suffixes[i].unit;
			}
			return proto_name_without_unit(name, length - size, NULL);
		}
	}
	return length;
}

int proto_name_unique(const char *text, size_t length, bool (*taken)(void *ctx, const char *name),
	void *ctx, char ret[PROTO_NAME_SIZE])
{
	char clean[PROTO_NAME_SIZE];
	char name[PROTO_NAME_SIZE];
	proto_name_clean(text, length, clean);
	memcpy(name, clean, sizeof(name));
	for (unsigned i = 2; taken(ctx, name); i++) {
		if (i > 9999) {
			return -ENOSPC;
		}
		char suffix[8];
		int n = snprintf(suffix, sizeof(suffix), ".%u", i);
		memset(name, 0, sizeof(name));
		snprintf(name, sizeof(name), "%.*s%s", PROTO_NAME_MAX - n, clean, suffix);
	}
	memcpy(ret, name, sizeof(name));
	return 0;
}

/* The length of the segment at text when it is one of name bytes and those in extra; else 0. */
static size_t valid_segment(const char *text, const char *extra)
{
	size_t length = segment_length(text);
	for (size_t i = 0; i < length; i++) {
		if (!name_byte(text[i]) && !strchr(extra, text[i])) {
			return 0;
		}
	}
	return length <= PROTO_NAME_MAX && !only_dots(text, length) ? length : 0;
}

static bool valid_path(const char *text, const char *extra)
{
	for (unsigned segments = 1; segments <= PROTO_GLOB_SEGMENTS; segments++) {
		size_t length = valid_segment(text, extra);
		if (length == 0 || text[length] == '\0') {
			return length > 0;
		}
		if (length == 2 && memcmp(text, "**", 2) == 0) {
			return false; /* any depth is only offered at the end */
		}
		text += length + 1;
	}
	return false;
}

bool proto_name_valid(const char *text)
{
	size_t length = valid_segment(text, "");
	return length > 0 && text[length] == '\0';
}

bool proto_path_valid(const char *text)
{
	return valid_path(text, "");
}

int proto_glob_check(const char *glob)
{
	return valid_path(glob, "*?") ? 0 : -EINVAL;
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
