/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_folder.c: keeps the folder of recordings. The rows of the list come from the files
 * themselves: the last line of each holds what is reported of it, so the list needs no file of its
 * own.
 */
#include "daemon/recorder/recording_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/util/file.h"
#include "daemon/util/sysops.h"
#include "proto/json_write.h"
#include "proto/text.h"

enum {
	FOLDER_READS = 4096, /* files with a name as ours that are opened */
};

static const char suffix[] = ".jsonl";
static const char temporary[] = ".jsonl.new";

uint64_t recording_last_number(const char *line, const char *key)
{
	uint64_t value = 0;
	for (const char *at = line; (at = strstr(at, key)); at += strlen(key)) {
		value = strtoull(at + strlen(key), NULL, 10);
	}
	return value;
}

uint64_t recording_count_rows(const char *line)
{
	const char *at = strstr(line, "\"kind\":[");
	uint64_t rows = 0;
	for (at = at ? at + 8 : ""; *at && *at != ']'; at++) {
		rows += *at == ',';
	}
	return *at == ']' && at[-1] != '[' ? rows + 1 : rows;
}

static double read_seconds(const char *line, const char *name)
{
	const char *at = json_member(line, name);
	return at ? strtod(at, NULL) : 0;
}

static void read_text(const char *line, const char *name, char *ret, size_t size)
{
	const char *at = json_member(line, name);
	size_t length = at && *at == '"' ? strcspn(at + 1, "\"\\\n") : 0;
	length = length < size ? length : size - 1;
	if (length > 0) {
		memcpy(ret, at + 1, length);
	}
	ret[length] = '\0';
}

int recording_end_read(const char *line, struct recording *ret)
{
	const char *time = json_member(line, "time_us");
	if (strncmp(line, "{\"end\":{", 8) != 0 || !time || !strchr(line, '\n')) {
		return -EBADMSG;
	}
	ret->time_us = strtoll(time, NULL, 10);
	ret->triggers = recording_last_number(line, "\"triggers\":");
	ret->records = recording_last_number(line, "\"records\":");
	ret->lost = recording_last_number(line, "\"lost\":");
	ret->span_s = read_seconds(line, "span_s");
	ret->before_s = read_seconds(line, "before_s");
	ret->after_s = read_seconds(line, "after_s");
	ret->flags = (uint8_t)recording_last_number(line, "\"flags\":");
	read_text(line, "trigger", ret->trigger, sizeof(ret->trigger));
	read_text(line, "cut", ret->cut, sizeof(ret->cut));
	return 0;
}

int recording_end_write(
	const struct recording *recording, const char *more, char *line, size_t size)
{
	char cut[RECORDING_CUT + 16] = "";
	if (recording->cut[0]) {
		snprintf(cut, sizeof(cut), ",\"cut\":\"%s\"", recording->cut);
	}
	int n = snprintf(line, size,
		"{\"end\":{\"time_us\":%" PRId64 ",\"trigger\":\"%s\",\"triggers\":%" PRIu64
		",\"span_s\":%.6f,\"before_s\":%.6f,\"after_s\":%.6f,\"records\":%" PRIu64
		",\"lost\":%" PRIu64 ",\"flags\":%u%s%s}}\n",
		recording->time_us, recording->trigger, recording->triggers, recording->span_s,
		recording->before_s, recording->after_s, recording->records, recording->lost,
		recording->flags, cut, more);
	return n < 0 || (size_t)n >= size ? -ENOSPC : n;
}

/* The row of a file; false: it is not one of ours. */
static bool read_row(int folder, const char *file, struct recording *ret, struct timespec *time)
{
	char tail[RECORDING_END_MAX + 1];
	struct stat st;
	int fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	ssize_t n = -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		off_t from = st.st_size > RECORDING_END_MAX ? st.st_size - RECORDING_END_MAX : 0;
		n = sysops()->pread(fd, tail, RECORDING_END_MAX, from);
	}
	close(fd);
	if (n <= 1) {
		return false;
	}
	tail[n] = '\0';
	char *line = tail + n - 1; /* its newline */
	while (line > tail && line[-1] != '\n') {
		line--;
	}
	*ret = (struct recording){.bytes = (uint64_t)st.st_size};
	memcpy(ret->name, file, strlen(file) - strlen(suffix));
	*time = st.st_mtim;
	return recording_end_read(line, ret) == 0 && proto_name_valid(ret->name);
}

bool recording_name_is_ours(const char *name)
{
	static const char form[] = "dddddddd-dddddd-";
	for (size_t i = 0; i < sizeof(form) - 1; i++) {
		bool digit = name[i] >= '0' && name[i] <= '9';
		if (form[i] == 'd' ? !digit : name[i] != form[i]) {
			return false;
		}
	}
	return true;
}

struct found {
	struct recording row;
	struct timespec time;
};

static bool older(const struct found *a, const struct found *b)
{
	if (a->time.tv_sec != b->time.tv_sec) {
		return a->time.tv_sec < b->time.tv_sec;
	}
	return a->time.tv_nsec < b->time.tv_nsec;
}

static void drop(int folder, const struct recording *row)
{
	char file[PROTO_NAME_SIZE + sizeof(suffix)];
	snprintf(file, sizeof(file), "%s%s", row->name, suffix);
	unlinkat(folder, file, 0);
}

/* Evicts one from the list and the folder: the oldest minor one, else the oldest, but never the
 * newest. */
static size_t drop_one(int folder, struct found *found, size_t count)
{
	size_t at = 0;
	while (at + 1 < count && !record_is_minor(found[at].row.flags)) {
		at++;
	}
	at = at + 1 < count ? at : 0;
	drop(folder, &found[at].row);
	memmove(&found[at], &found[at + 1], (count - at - 1) * sizeof(*found));
	return count - 1;
}

/* Inserts it, oldest first; past keep one is evicted. There is room for one more than keep. */
static size_t insert(
	int folder, struct found *found, size_t count, size_t keep, const struct found *one)
{
	size_t at = count;
	while (at > 0 && older(one, &found[at - 1])) {
		at--;
	}
	memmove(&found[at + 1], &found[at], (count - at) * sizeof(*found));
	found[at] = *one;
	return count < keep ? count + 1 : drop_one(folder, found, count + 1);
}

struct scan {
	struct found *found;
	size_t keep, count, reads;
};

static bool scan_name(void *ctx, int folder, const char *name)
{
	struct scan *scan = ctx;
	struct found one;
	if (!recording_name_is_ours(name)) {
		return true;
	}
	if (text_ends_with(name, temporary)) {
		unlinkat(folder, name, 0);
	} else if (text_ends_with(name, suffix) &&
		   strlen(name) < PROTO_NAME_SIZE + strlen(suffix) &&
		   read_row(folder, name, &one.row, &one.time)) {
		scan->count = insert(folder, scan->found, scan->count, scan->keep, &one);
	}
	return ++scan->reads < FOLDER_READS;
}

void recording_folder_scan(int folder, size_t keep, uint64_t total_bytes, struct recordings *ret)
{
	keep = keep < 1 ? 1 : keep > RECORDINGS_MAX ? RECORDINGS_MAX : keep;
	struct found *found = mem_calloc(keep + 1, sizeof(*found));
	if (!found) {
		return;
	}
	uint64_t bytes = 0;
	struct scan scan = {.found = found, .keep = keep};
	folder_list(folder, FOLDER_NAMES, scan_name, &scan);
	size_t count = scan.count;
	do {
		bytes = 0;
		for (size_t i = 0; i < count; i++) {
			bytes += found[i].row.bytes;
		}
	} while (count > 1 && bytes > total_bytes && (count = drop_one(folder, found, count)));
	ret->count = count;
	for (size_t i = 0; i < count; i++) {
		ret->row[i] = found[i].row;
	}
	free(found);
}

static int open_file(struct recording_file *file, const char *name)
{
	file->folder = folder_open(file->dir, 0750);
	if (file->folder < 0) {
		return file->folder;
	}
	unlinkat(file->folder, name, 0);
	file->fd = openat(
		file->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	return file->fd < 0 ? -errno : 0;
}

static int close_file(struct recording_file *file, const char *from, int result)
{
	char name[PROTO_NAME_SIZE + sizeof(suffix)];
	snprintf(name, sizeof(name), "%s%s", file->name, suffix);
	int r = result == 0 && fsync(file->fd) < 0 ? -errno : result;
	if (file->fd >= 0 && close(file->fd) < 0 && r == 0) {
		r = -errno;
	}
	if (r == 0 && renameat(file->folder, from, file->folder, name) < 0) {
		r = -errno;
	}
	if (r < 0 && file->fd >= 0) {
		unlinkat(file->folder, from, 0);
	} else if (r == 0) {
		fsync(file->folder); /* some cannot sync folders */
	}
	if (file->folder >= 0) {
		recording_folder_scan(file->folder, file->keep, file->total_bytes, &file->list);
		close(file->folder);
	}
	return r;
}

int recording_file_write(struct recording_file *file)
{
	char name[PROTO_NAME_SIZE + sizeof(temporary)];
	snprintf(name, sizeof(name), "%s%s", file->name, temporary);
	int r = file->folder < 0 ? open_file(file, name) : 0;
	r = r < 0 ? r : file->result;
	r = r < 0 ? r : file_write_all(file->fd, file->bytes, file->length);
	return r < 0 || file->finish ? close_file(file, name, r) : 0;
}
