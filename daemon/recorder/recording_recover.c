/* SPDX-License-Identifier: Apache-2.0 */
/* recording_recover.c: completes a recording whose daemon was killed. A recording is written line
 * by line, and its last line makes it one. A killed daemon leaves all lines but that: the header
 * says what it was to be, the replies what became of it. */
#include "daemon/recorder/recording_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/util/file.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"
#include "proto/varlink.h"

enum { LINE = PROTO_FRAME_MAX + 128 /* a reply with its method */ };

static const char suffix[] = ".new";

struct recovery {
	struct recording row;
	double after_s; /* that it was to have */
	size_t replies;
	off_t end; /* of the last complete line */
	char line[LINE];
};

/* The next complete line; what a power cut left of one is none. */
static bool read_line(FILE *stream, char line[LINE])
{
	if (!fgets(line, LINE, stream)) {
		return false;
	}
	size_t length = strlen(line);
	return length > 2 && line[0] == '{' && strcmp(line + length - 2, "}\n") == 0;
}

static bool read_header(struct recovery *recovery)
{
	const char *line = recovery->line;
	struct recording *row = &recovery->row;
	if (!text_starts_with(line, "{\"schema\":\"edgeprof.recording/1\"")) {
		return false;
	}
	const char *text = strstr(line, "\"text\":\"");
	snprintf(row->trigger, sizeof(row->trigger), "%.*s",
		text ? (int)strcspn(text + 8, "\"") : 0, text ? text + 8 : "");
	const double at = (double)recording_last_number(line, "\"mono_us\":");
	row->time_us = (int64_t)recording_last_number(line, "\"time_us\":");
	row->flags = (uint8_t)recording_last_number(line, "\"flags\":");
	row->before_s = (at - (double)recording_last_number(line, "\"from_mono_us\":")) / 1e6;
	recovery->after_s = ((double)recording_last_number(line, "\"to_mono_us\":") - at) / 1e6;
	row->triggers = 1;
	return row->before_s >= 0 && recovery->after_s >= 0;
}

static void read_reply(struct recovery *recovery)
{
	const char *line = recovery->line;
	recovery->replies++;
	if (text_starts_with(line, "{\"call\":\"ExportTrace\"")) {
		recovery->row.records += recording_count_rows(line);
		recovery->row.lost = recording_last_number(line, "\"lost\":");
	}
}

static bool read_all(struct recovery *recovery, FILE *stream)
{
	bool header = false;
	while (read_line(stream, recovery->line)) {
		if (!header && !read_header(recovery)) {
			return false;
		}
		if (text_starts_with(recovery->line, "{\"end\":")) {
			break; /* killed before it had its name */
		}
		if (header) {
			read_reply(recovery);
		}
		header = true;
		recovery->end = ftello(stream);
	}
	return recovery->replies > 0;
}

/* What was recorded after the trigger ends with the last write, as far as the clock can tell. */
static int finish(struct recovery *recovery, int fd, const struct stat *st)
{
	char line[RECORDING_END_MAX];
	struct recording *row = &recovery->row;
	const double after_s = (double)st->st_mtim.tv_sec + (double)st->st_mtim.tv_nsec / 1e9 -
			       (double)row->time_us / 1e6;
	row->after_s = after_s < 0 ? 0 : after_s < recovery->after_s ? after_s : recovery->after_s;
	row->span_s = row->before_s + row->after_s;
	snprintf(row->cut, sizeof(row->cut), "the daemon was killed");
	int length = recording_end_write(row, ",\"joined\":[]", line, sizeof(line));
	if (length < 0) {
		return length;
	}
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	const bool written = ftruncate(fd, recovery->end) == 0 &&
			     pwrite(fd, line, (size_t)length, recovery->end) == length &&
			     fsync(fd) == 0;
	futimens(fd, times); /* in the list it keeps its age */
	return written ? 0 : -EIO;
}

static void recover(int folder, const char *file, struct recovery *recovery)
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
	*recovery = (struct recovery){.replies = 0};
	snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - strlen(suffix)), file);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		read_all(recovery, stream) && finish(recovery, fd, &st) == 0) {
		renameat(folder, file, folder, name);
	}
	fclose(stream);
}

static bool find_begun(void *ctx, int folder, const char *name)
{
	char *begun = ctx;
	(void)folder;
	if (strlen(name) < PROTO_NAME_SIZE + strlen(suffix) && recording_name_is_ours(name) &&
		text_ends_with(name, ".jsonl.new")) {
		memcpy(begun, name, strlen(name) + 1);
	}
	return !begun[0];
}

/* There is one at most; others are no recordings of ours, or were left by a crash long ago. */
void recording_folder_recover(int folder)
{
	char begun[PROTO_NAME_SIZE + sizeof(suffix)] = "";
	folder_list(folder, FOLDER_NAMES, find_begun, begun);
	struct recovery *recovery = begun[0] ? mem_zalloc(sizeof(*recovery)) : NULL;
	if (recovery) {
		recover(folder, begun, recovery);
	}
	free(recovery);
}
