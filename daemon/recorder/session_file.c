/* SPDX-License-Identifier: Apache-2.0 */
/* session_file.c: appends to the file of a session, and rewrites it without some of its blocks when
 * it has become too large. */
#include "daemon/recorder/session_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/util/file.h"
#include "daemon/util/sysops.h"
#include "proto/json_write.h"
#include "proto/text.h"

enum { BLOCKS_MAX = 16384, COPY = 64 * 1024, FILE_NAME = PROTO_NAME_SIZE + 16 };

static const char block_start[] = "{\"block\":{", part_start[] = "{\"part\":{";

#define FIELD(name) JSON_FIELD(struct session_point, #name, name)
static const struct json_field fields[] = {FIELD(block), FIELD(from_us), FIELD(to_us),
	FIELD(from_mono_us), FIELD(mono_us), FIELD(history_us), FIELD(serial), FIELD(frames_done),
	FIELD(warmup_left), FIELD(lost), FIELD(measured_mono_us), FIELD(measured_us),
	FIELD(rate_mono_us), FIELD(total_s), FIELD(kept_s)};
#undef FIELD

size_t session_point_write(
	const struct session_point *point, bool is_block, char *line, size_t size)
{
	struct json json;
	json_init(&json, line, size - 1);
	json_open(&json, NULL, '{');
	json_open(&json, is_block ? "block" : "part", '{');
	JSON_FIELDS(&json, fields, point);
	json_close(&json, '}');
	json_close(&json, '}');
	line[json.length] = '\n';
	return json.length + 1;
}

bool session_point_read(const char *line, struct session_point *ret, bool *is_block)
{
	*is_block = text_starts_with(line, block_start);
	if (!*is_block && !text_starts_with(line, part_start)) {
		return false;
	}
	JSON_FIELDS_READ(line + sizeof("{\"part\":") - 1, fields, ret);
	return true;
}

void session_point_apply(const struct session_point *point, struct session *row)
{
	const double kept = point->total_s > 0 ? point->kept_s / point->total_s : 1;
	row->frames_done = point->frames_done;
	row->lost = point->lost;
	row->kept_share = kept > 1 ? 1 : kept;
	if (point->measured_mono_us > 0) {
		row->measured_us = (double)point->measured_us;
	}
}

double session_point_block_s(const struct session_point *point)
{
	return (double)(point->mono_us - point->from_mono_us) / 1e6;
}

static int open_file(struct session_file *file)
{
	char name[FILE_NAME];
	if (file->folder < 0) {
		file->folder = folder_open(file->dir, 0750);
	}
	if (file->folder < 0) {
		return file->folder;
	}
	snprintf(name, sizeof(name), "%s.jsonl", file->name);
	const int create = file->bytes == 0 ? O_CREAT | O_EXCL : 0;
	file->fd = openat(file->folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | create, 0640);
	return file->fd < 0 ? -errno : 0;
}

/* The blocks of the file, and in front of them what the session began with. */
static size_t find_blocks(FILE *stream, struct session_block *blocks)
{
	char *line = malloc(FILE_LINE_MAX);
	size_t count = 0;
	uint64_t offset = 0, begin = 0;
	while (line && count < BLOCKS_MAX && file_line(stream, line, FILE_LINE_MAX)) {
		struct session_point point;
		bool is_block;
		offset += strlen(line);
		if (session_point_read(line, &point, &is_block) && is_block) {
			blocks[count++] = (struct session_block){begin, offset - begin,
				(int64_t)point.from_mono_us, (int64_t)point.mono_us, false};
			begin = offset;
		}
	}
	free(line);
	return count;
}

static int copy(int from, int to, uint64_t offset, uint64_t length, char *buffer)
{
	while (length > 0) {
		ssize_t n = pread(from, buffer, length < COPY ? length : COPY, (off_t)offset);
		int r = n < 0 ? -errno : n == 0 ? -EIO : file_write_all(to, buffer, (size_t)n);
		if (r < 0) {
			return r;
		}
		offset += (uint64_t)n;
		length -= (uint64_t)n;
	}
	return 0;
}

/* Writes what stays to a new file, which replaces the old one. */
static int rewrite(struct session_file *file, const struct session_block *blocks, size_t count)
{
	char old[FILE_NAME], new[FILE_NAME], *buffer = malloc(COPY);
	snprintf(old, sizeof(old), "%s.jsonl", file->name);
	snprintf(new, sizeof(new), "%s.jsonl.new", file->name);
	unlinkat(file->folder, new, 0);
	int fd =
		openat(file->folder, new, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	int r = fd < 0 ? -errno : buffer ? 0 : -ENOMEM;
	uint64_t bytes = 0, end = 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		end = blocks[i].offset + blocks[i].length;
		if (!blocks[i].dropped) {
			r = copy(file->fd, fd, blocks[i].offset, blocks[i].length, buffer);
			bytes += blocks[i].length;
		}
	}
	r = r < 0 ? r : copy(file->fd, fd, end, file->bytes - end, buffer); /* no block yet */
	free(buffer);
	if (r == 0 && (fdatasync(fd) < 0 || renameat(file->folder, new, file->folder, old) < 0)) {
		r = -errno;
	}
	if (r < 0) {
		unlinkat(file->folder, new, 0);
		if (fd >= 0) {
			close(fd);
		}
		return r;
	}
	close(file->fd);
	file->fd = fd;
	file->bytes = bytes + file->bytes - end;
	return 0;
}

/* A quarter of the size is freed at once: each time costs three quarters of it as writes. */
static int thin(struct session_file *file)
{
	struct session_block *blocks = mem_calloc(BLOCKS_MAX, sizeof(*blocks));
	int fd = blocks ? dup(file->fd) : -1;
	FILE *stream = fd >= 0 && lseek(fd, 0, SEEK_SET) == 0 ? fdopen(fd, "r") : NULL;
	if (!stream) {
		int r = blocks ? -errno : -ENOMEM;
		free(blocks);
		if (fd >= 0) {
			close(fd);
		}
		return r;
	}
	size_t count = find_blocks(stream, blocks);
	fclose(stream);
	int r = 0;
	if (count > 2) { /* the first is what the session began with */
		session_thin(blocks + 1, count - 1,
			file->max_bytes / 4 * 3 > blocks[0].length
				? file->max_bytes / 4 * 3 - blocks[0].length
				: 0);
		r = rewrite(file, blocks, count);
	}
	if (r == 0 && count > 2) {
		file->thinned = true;
		file->kept_s = 0;
		for (size_t i = 1; i < count; i++) {
			file->kept_s +=
				blocks[i].dropped
					? 0
					: (double)(blocks[i].to_us - blocks[i].from_us) / 1e6;
		}
	}
	free(blocks);
	return r;
}

static int append(struct session_file *file, const char *bytes, size_t length)
{
	int r = lseek(file->fd, (off_t)file->bytes, SEEK_SET) < 0 ? -errno : 0;
	r = r < 0 ? r : file_write_all(file->fd, bytes, length);
	if (r < 0 && ftruncate(file->fd, (off_t)file->bytes) < 0) { /* no half of a line */
		session_file_close(file);
	}
	return r;
}

/* No room: the last line is worth more than what precedes it. Cuts 64 KiB, or half of a short file,
 * at the end of a line and appends nothing else. */
static int append_end(struct session_file *file, const char **bytes, size_t *length)
{
	char *part = malloc(COPY);
	const uint64_t before = file->bytes > 2 * COPY ? file->bytes - COPY : file->bytes / 2;
	const uint64_t from = before > COPY ? before - COPY : 0;
	ssize_t n = part ? pread(file->fd, part, (size_t)(before - from), (off_t)from) : -1;
	const char *end = n > 0 ? memrchr(part, '\n', (size_t)n) : NULL;
	const char *line = *length > 1 ? memrchr(*bytes, '\n', *length - 1) : NULL;
	*length -= line ? (size_t)(line + 1 - *bytes) : 0;
	*bytes = line ? line + 1 : *bytes;
	int r = end ? 0 : -ENOSPC;
	if (end) {
		file->bytes = from + (uint64_t)(end + 1 - part);
		r = ftruncate(file->fd, (off_t)file->bytes) < 0 ? -errno
								: append(file, *bytes, *length);
	}
	free(part);
	return r;
}

int session_file_write(struct session_file *file, const char *bytes, size_t length)
{
	int r = file->fd < 0 ? open_file(file) : 0;
	if (r == 0 && !file->finish && file->bytes + length > file->max_bytes) {
		r = thin(file);
	}
	r = r < 0 ? r : append(file, bytes, length);
	if (r < 0 && file->torn && file->finish && file->fd >= 0) { /* for the second time */
		r = append_end(file, &bytes, &length);
	}
	if (r == 0) {
		file->bytes += length;
		file->kept_s += file->torn ? 0 : file->block_s;
	}
	file->torn = r < 0 || (file->torn && file->block_s == 0);
	if (r == 0 && file->finish) {
		r = fsync(file->fd) < 0 ? -errno : 0;
	}
	if (file->finish) {
		session_file_close(file);
	}
	return r;
}

void session_file_close(struct session_file *file)
{
	if (file->fd >= 0) {
		close(file->fd);
	}
	if (file->folder >= 0) {
		close(file->folder);
	}
	file->fd = file->folder = -1;
}
