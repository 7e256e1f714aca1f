/* SPDX-License-Identifier: Apache-2.0 */
/* name.h: defines the rule for names: a metric path is segments joined by '/'; a segment is
 * [A-Za-z0-9_.-]{1,48}. Every name that comes from outside passes proto_name_clean once, at the
 * border. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
	PROTO_NAME_MAX = 48,		/* bytes of a segment */
	PROTO_NAME_SIZE = 49,		/* with NUL */
	PROTO_PATH_SIZE = 3 * 49 + 32,	/* a whole metric path with NUL */
	PROTO_QUERY_SIZE = 3 * 49 + 33, /* "=" and a path */
	PROTO_GLOB_SEGMENTS = 8,
};

/* Writes the segment made of text[0..length): other bytes become '_', what is longer is cut, an
 * empty text becomes "_". A name of dots only keeps none of them ("." and ".." become "_", "__").
 */
void proto_name_clean(const char *text, size_t length, char ret[PROTO_NAME_SIZE]);

/* Like proto_name_clean, then ".2", ".3" … until taken(ctx, name) is false. Gives up past ".9999"
 * with -ENOSPC. The suffix fits into the 48 bytes (the name is cut further for it). */
int proto_name_unique(const char *text, size_t length, bool (*taken)(void *ctx, const char *name),
	void *ctx, char ret[PROTO_NAME_SIZE]);

/* How long a stage's name of this length is without the suffixes that name its unit by custom
 * ("pose_coreml"). unit: becomes what the last of them says; NULL: nobody asks. */
size_t proto_name_without_unit(const char *name, size_t length, const char **unit);

/* True when text is already one valid segment. */
bool proto_name_valid(const char *text);

/* True when text is one to PROTO_GLOB_SEGMENTS valid segments joined by '/'. */
bool proto_path_valid(const char *text);

/*
 * Glob over paths: segment by segment; in a segment '*' matches any run of bytes, '?' one byte;
 * neither crosses '/'. The number of segments must be equal, except that a last segment "**"
 * matches one or more. Linear time in the worst case per segment pair (no backtracking blow-up).
 */
bool proto_glob_match(const char *glob, const char *path);

/* 0 when glob is a usable pattern (segments of name bytes, '*', '?'), else -EINVAL. */
int proto_glob_check(const char *glob);

/*
 * What people ask for, as GLOB of edgeprofctl and glob of the queries: a pattern with '/' is a
 * glob; one without is compared with each segment, and "*" and "**" match everything; text without
 * wildcards matches as a prefix of the path, or of any segment when it has no '/'. "=NAME" is NAME
 * and nothing else.
 */
bool proto_query_match(const char *query, const char *path);

/* The instance of a match: the path's segments whose pattern segment holds a wildcard, joined with
 * ':'; "_" when there are none. 0, or -ENAMETOOLONG, -EINVAL when it does not match. */
int proto_glob_instance(const char *glob, const char *path, char *ret, size_t size);
