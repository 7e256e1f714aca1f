/* SPDX-License-Identifier: Apache-2.0 */
/* session_folder.c: reads the folder of sessions when the daemon starts. The rows come from the
 * files themselves: the first line of each is the row as of its start, the last one the final row.
 */
#include "daemon/recorder/session_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/util/file.h"
#include "proto/json_write.h"
#include "proto/text.h"

enum {
	NAMES_MAX = 4096,
	FILE_NAME = PROTO_NAME_SIZE + 16,
	LAST_BYTES = 2 * SESSION_LINE_MAX /* a last line is shorter than half of it */
};

static const char suffix[] = ".jsonl", schema[] = "{\"schema\":\"edgeprof.session/1\"";

struct scan {
	void (*each)(void *ctx, struct session_found *found);
	void *ctx;
};

static bool read_header(const char *line, struct session_found *ret)
{
	const char *boot = strstr(line, "\"boot_id\":\""), *mono = strstr(line, "\"mono_us\":");
	if (!text_starts_with(line, schema) || !boot || !mono) {
		return false;
	}
	snprintf(ret->boot_id, sizeof(ret->boot_id), "%.*s", (int)strcspn(boot + 11, "\""),
		boot + 11);
	ret->begin_mono_us = strtoull(mono + 10, NULL, 10);
	ret->privileged = strstr(line, "\"privileged\":true") != NULL;
	return session_read(line, &ret->row) == 0; /* with bytes 0 */
}

/* Replaces the row of the start by the final one. */
static void read_end(const char *line, struct session_found *ret)
{
	struct session row;
	if (session_read(line, &row) == 0) {
		session_tags_clear(&ret->row.tags);
		session_tags_clear(&ret->row.environment);
		ret->row = row;
		ret->ended = true;
	}
}

/* Goes to the beginning of a line so far before the end of a long file, else to `at`. The bytes
 * that were skipped. */
static ssize_t skip(FILE *stream, uint64_t at, long back)
{
	int c;
	if (fseek(stream, -back, SEEK_END) < 0 || ftell(stream) <= (long)at) {
		return fseek(stream, (long)at, SEEK_SET);
	}
	while ((c = getc(stream)) != '\n' && c != EOF) {
	}
	return (ssize_t)ftell(stream) - (ssize_t)at;
}

/* The end of the last complete part after the header, or of the file; of the header where there is
 * none. Files may be long: ever more is read, from the end. */
static uint64_t read_last(
	FILE *stream, uint64_t header, char line[FILE_LINE_MAX], struct session_found *ret)
{
	ssize_t skipped = 1;
	uint64_t good = header;
	bool is_block;
	for (long back = LAST_BYTES; good == header && skipped > 0; back *= 8) {
		skipped = skip(stream, header, back);
		uint64_t at = header + (uint64_t)skipped;
		while (!ret->ended && file_line(stream, line, FILE_LINE_MAX)) {
			at += strlen(line);
			if (text_starts_with(line, "{\"end\":{")) {
				read_end(line, ret);
				good = at;
			} else if (session_point_read(line, &ret->last, &is_block)) {
				good = at;
				if (is_block) { /* the next one begins where it ends */
					ret->last.block++;
					ret->last.from_us = ret->last.to_us;
					ret->last.from_mono_us = ret->last.mono_us;
				}
			}
		}
	}
	return good;
}

/* What is good of it; 0: nothing. *blank: what a power cut leaves of a first line. */
static uint64_t read_lines(FILE *stream, struct session_found *ret, bool *blank)
{
	char *line = malloc(FILE_LINE_MAX);
	uint64_t good = 0;
	if (line && file_line(stream, line, FILE_LINE_MAX)) {
		const uint64_t header = strlen(line);
		good = read_header(line, ret) ? read_last(stream, header, line, ret) : 0;
	} else if (line) {
		const ssize_t n = pread(fileno(stream), line, FILE_LINE_MAX - 1, 0);
		const size_t length = n > 0 ? (size_t)n : 0;
		line[length] = '\0';
		/* a line that never ended, and was written here: nothing follows it, or zeros */
		const bool cut = strlen(line) < FILE_LINE_MAX - 1 && !memchr(line, '\n', length);
		*blank = cut && (!line[0] || text_starts_with(line, schema));
	}
	free(line);
	return good;
}

static void read_file(struct scan *scan, int folder, int fd, const char *file)
{
	struct stat st;
	struct session_found found = {.ended = false};
	FILE *stream = fdopen(fd, "r+");
	if (!stream) {
		close(fd);
		return;
	}
	char name[FILE_NAME];
	snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - strlen(suffix)), file);
	bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
	if (good) {
		bool blank = false;
		const uint64_t size = (uint64_t)st.st_size;
		const uint64_t end = read_lines(stream, &found, &blank);
		found.row.bytes = end;
		good = end > 0 && strcmp(found.row.name, name) == 0 &&
		       (end == size || ftruncate(fd, (off_t)end) == 0);
		if (blank) { /* it would keep the name from being used */
			unlinkat(folder, file, 0);
		}
	}
	fclose(stream);
	if (good) {
		scan->each(scan->ctx, &found);
	} else {
		session_tags_clear(&found.row.tags);
		session_tags_clear(&found.row.environment);
	}
}

static bool scan_name(void *ctx, int folder, const char *name)
{
	if (text_ends_with(name, ".jsonl.new")) {
		unlinkat(folder, name, 0);
	} else if (text_ends_with(name, suffix) && strlen(name) < FILE_NAME) {
		int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0) {
			read_file(ctx, folder, fd, name);
		}
	}
	return true;
}

void session_folder_scan(
	const char *dir, void (*each)(void *ctx, struct session_found *found), void *ctx)
{
	struct scan scan = {each, ctx};
	int folder = folder_open(dir, 0);
	if (folder >= 0) {
		folder_list(folder, NAMES_MAX, scan_name, &scan);
		close(folder);
	}
}

int session_folder_end(const char *dir, struct session *row)
{
	struct session_file file = {.folder = -1,
		.fd = -1,
		.bytes = row->bytes,
		.max_bytes =
			UINT64_MAX}; /* not .finish: the daemon starts, and would wait for a sync */
	char *line = malloc(SESSION_LINE_MAX);
	struct json json;
	int r = line ? 0 : -ENOMEM;
	if (line) {
		json_init(&json, line, SESSION_LINE_MAX - 1);
		json_open(&json, NULL, '{');
		session_write(&json, "end", row);
		json_close(&json, '}');
		line[json.length] = '\n';
		snprintf(file.dir, sizeof(file.dir), "%s", dir);
		memcpy(file.name, row->name, sizeof(file.name));
		r = json.overflow ? -ENOSPC : session_file_write(&file, line, json.length + 1);
		row->bytes = file.bytes;
	}
	session_file_close(&file);
	free(line);
	return r;
}

int session_folder_remove(const char *dir, const char *name)
{
	char file[FILE_NAME];
	int folder = folder_open(dir, 0);
	if (folder < 0) {
		return folder;
	}
	snprintf(file, sizeof(file), "%s%s", name, suffix);
	int r = unlinkat(folder, file, 0) < 0 ? -errno : 0;
	close(folder);
	return r;
}
