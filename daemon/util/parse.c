/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c: wraps strto* strictly: the complete text or nothing. */
#include "daemon/util/parse.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

int parse_u64(const char *text, uint64_t *ret)
{
	if (!isdigit((unsigned char)text[0])) {
		return -EINVAL;
	}
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (*end != '\0') {
		return -EINVAL;
	}
	if (errno == ERANGE) {
		return -ERANGE;
	}
	*ret = value;
	return 0;
}

int parse_i64(const char *text, int64_t *ret)
{
	bool negative = text[0] == '-';
	uint64_t value;
	int r = parse_u64(text + negative, &value);
	if (r == 0 && value > (uint64_t)INT64_MAX + negative) {
		r = -ERANGE;
	}
	if (r == 0) {
		*ret = (int64_t)(negative ? -value : value);
	}
	return r;
}

/* Reads a decimal number at the start of text; *rest is what follows. strtod would take hex, inf
 * and the locale's comma, so the alphabet is checked first; the daemon never calls setlocale(). */
static int number_prefix(const char *text, double *ret, const char **rest)
{
	size_t length = strspn(text, "+-0123456789.eE");
	char copy[64];
	if (length == 0 || length >= sizeof(copy)) {
		return -EINVAL;
	}
	memcpy(copy, text, length);
	copy[length] = '\0';
	char *end;
	double value = strtod(copy, &end);
	if (end == copy || !isfinite(value)) {
		return end == copy ? -EINVAL : -ERANGE;
	}
	*rest = text + (end - copy);
	*ret = value;
	return 0;
}

int parse_double(const char *text, double *ret)
{
	const char *rest;
	double value;
	int r = number_prefix(text, &value, &rest);
	if (r == 0 && *rest != '\0') {
		r = -EINVAL;
	}
	if (r == 0) {
		*ret = value;
	}
	return r;
}

int parse_bool(const char *text, bool *ret)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret = i % 2 == 1;
			return 0;
		}
	}
	return -EINVAL;
}

struct suffix {
	const char *text;
	double factor;
};

static int number_with_suffix(
	const char *text, const struct suffix *suffixes, size_t count, uint64_t *ret)
{
	const char *rest;
	double value;
	int r = number_prefix(text, &value, &rest);
	size_t i = 0;
	while (r == 0 && i < count && strcmp(rest, suffixes[i].text) != 0) {
		i++;
	}
	if (r < 0 || i == count || value < 0) {
		return r < 0 ? r : -EINVAL;
	}
	double scaled = value * suffixes[i].factor;
	if (scaled >= 9.2e18) {
		return -ERANGE;
	}
	*ret = (uint64_t)llround(scaled);
	return 0;
}

int parse_duration_ns(const char *text, uint64_t *ret)
{
	static const struct suffix units[] = {
		{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
	if (strcmp(text, "0") == 0) {
		*ret = 0;
		return 0;
	}
	return number_with_suffix(text, units, sizeof(units) / sizeof(units[0]), ret);
}

int parse_size(const char *text, uint64_t *ret)
{
	static const struct suffix units[] = {
		{"", 1}, {"K", 1024}, {"M", 1048576}, {"G", 1073741824}};
	return number_with_suffix(text, units, sizeof(units) / sizeof(units[0]), ret);
}

/* A group with thousands of members fits; the name service takes less than that. */
enum { GROUP_BYTES = 256 * 1024 };

/* 0, 1: found, or -errno. */
static int find_in_group_file(const char *name, char *buffer, gid_t *ret)
{
	struct group group, *line = NULL;
	FILE *file = fopen("/etc/group", "re");
	if (!file) {
		return errno == ENOENT ? 0 : -errno;
	}
	int r = 0;
	while (r == 0 && fgetgrent_r(file, &group, buffer, GROUP_BYTES, &line) == 0 && line) {
		if (strcmp(line->gr_name, name) == 0) {
			*ret = line->gr_gid;
			r = 1;
		}
	}
	fclose(file);
	return r;
}

/* /etc/group comes first, because glibc's name service crashes where it finds no memory (2.36: NULL
 * pointer and assertions in nss_database.c, an exit in libnss_systemd's thread-local data). */
int parse_group(const char *name, gid_t *ret)
{
	struct group group, *found = NULL;
	char *buffer = mem_zalloc(GROUP_BYTES);
	if (!buffer) {
		return -ENOMEM;
	}
	int r = find_in_group_file(name, buffer, ret);
	if (r == 0) {
		r = -getgrnam_r(name, &group, buffer, GROUP_BYTES, &found);
		if (found) {
			*ret = found->gr_gid;
			r = 1;
		}
	}
	free(buffer);
	return r == 0 ? -ENOENT : r > 0 ? 0 : r;
}
