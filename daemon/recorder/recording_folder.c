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
	FOLDER_NAMES = 1 << 20, /* entries of the folder that are read */
	FOLDER_READS = 4096,	/* files with a name as ours that are opened */
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

#define FIELD(name) JSON_FIELD(struct recording, #name, name)
static const struct json_field fields[] = {FIELD(time_us), FIELD(trigger), FIELD(triggers),
	FIELD(span_s), FIELD(before_s), FIELD(after_s), FIELD(records), FIELD(lost), FIELD(flags),
	JSON_FIELD_AS(JSON_STRING_OPT, struct recording, "cut", cut)};
#undef FIELD

/* Reads a line of that kind, "part" or "end", as the row; -EBADMSG: it is another one. */
static int recording_row_read(const char *line, const char *kind, struct recording *ret)
{
	char start[32];
	snprintf(start, sizeof(start), "{\"%s\":{\"time_us\":", kind);
	if (!text_starts_with(line, start) || !strchr(line, '\n')) {
		return -EBADMSG;
	}
	JSON_FIELDS_READ(line, fields, ret);
	return 0;
}

int recording_row_write(const struct recording *recording, const char *kind, const char *joined,
	char *line, size_t size)
{
	struct json json;
	json_init(&json, line, size);
	json_open(&json, NULL, '{');
	json_open(&json, kind, '{');
	JSON_FIELDS(&json, fields, recording);
	struct text text = {line, size, json.length, json.overflow};
	text_add(&text, ",\"joined\":[%s]}}\n", joined);
	return text.truncated ? -ENOSPC : (int)text.length;
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
	return recording_row_read(line, "end", ret) == 0 && proto_name_valid(ret->name);
}

/* As record_name() begins them: other files in the folder are the user's own. */
static bool is_ours(const char *name)
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
	while (at > 0 && file_precedes(one->time, found[at - 1].time)) {
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
	if (!is_ours(name)) {
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

/* ---- what a killed daemon left: all lines but the last, which makes it a recording ---- */

/* Where the last complete part of a recording ends, with its row; 0: there is none. */
static off_t last_part(FILE *stream, struct recording *ret)
{
	char *line = malloc(FILE_LINE_MAX);
	off_t at = 0, end = 0;
	while (line && file_line(stream, line, FILE_LINE_MAX) &&
		(at > 0 || text_starts_with(line, "{\"schema\":\"edgeprof.recording/1\""))) {
		at += (off_t)strlen(line);
		end = recording_row_read(line, "part", ret) == 0 ? at : end;
	}
	free(line);
	return end;
}

static bool complete(FILE *stream, const struct stat *st)
{
	char line[RECORDING_END_MAX];
	struct recording row = {.bytes = 0};
	const int fd = fileno(stream);
	const off_t end = last_part(stream, &row);
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	snprintf(row.cut, sizeof(row.cut), "the daemon was killed");
	const int length = recording_row_write(&row, "end", "", line, sizeof(line));
	const bool written = end > 0 && length > 0 && ftruncate(fd, end) == 0 &&
			     pwrite(fd, line, (size_t)length, end) == length && fsync(fd) == 0;
	futimens(fd, times); /* in the list it keeps its age */
	return written;
}

static void recover(int folder, const char *file)
{
	char name[PROTO_NAME_SIZE + 8];
	struct stat st;
	int fd = openat(folder, file, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "r+");
	if (!stream) {
		if (fd >= 0) {
			close(fd);
		}
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - strlen(".new")), file);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		complete(stream, &st)) {
		renameat(folder, file, folder, name);
	}
	fclose(stream);
}

static bool find_begun(void *ctx, int folder, const char *name)
{
	char *begun = ctx;
	(void)folder;
	if (strlen(name) < PROTO_NAME_SIZE + strlen(".new") && is_ours(name) &&
		text_ends_with(name, temporary)) {
		memcpy(begun, name, strlen(name) + 1);
	}
	return !begun[0];
}

/* There is one at most; others are no recordings of ours, or were left by a crash long ago. */
void recording_folder_recover(int folder)
{
	char begun[PROTO_NAME_SIZE + sizeof(".new")] = "";
	folder_list(folder, FOLDER_NAMES, find_begun, begun);
	if (begun[0]) {
		recover(folder, begun);
	}
}
