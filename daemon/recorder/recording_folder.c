/* The rows of the list come from the files themselves: the last line of each holds what is told of
 * it, so that the table needs no file of its own. */
#include "daemon/recorder/recording_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/util/sysops.h"

enum {
	FOLDER_LOOKS = 4096, /* of them, with a name as ours, that are opened */
};

static const char suffix[] = ".jsonl";
static const char temporary[] = ".jsonl.new";

int recording_folder_open(const char *dir, int make)
{
	struct stat st;
	if (make && mkdir(dir, 0750) < 0 && errno != EEXIST) {
		return -errno;
	}
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		return -errno;
	}
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && (st.st_uid != geteuid() || (st.st_mode & 022) != 0)) {
		r = -EPERM;
	}
	if (r < 0) {
		close(fd);
	}
	return r < 0 ? r : fd;
}

/* The value behind "name": in our own line; NULL when it is not there. */
static const char *member(const char *line, const char *name)
{
	char key[40];
	snprintf(key, sizeof(key), "\"%s\":", name);
	const char *at = strstr(line, key);
	return at ? at + strlen(key) : NULL;
}

static uint64_t read_u64(const char *line, const char *name)
{
	const char *at = member(line, name);
	return at ? strtoull(at, NULL, 10) : 0;
}

static double read_seconds(const char *line, const char *name)
{
	const char *at = member(line, name);
	return at ? strtod(at, NULL) : 0;
}

static void read_text(const char *line, const char *name, char *ret, size_t size)
{
	const char *at = member(line, name);
	size_t length = at && *at == '"' ? strcspn(at + 1, "\"\\\n") : 0;
	length = length < size ? length : size - 1;
	if (length > 0) {
		memcpy(ret, at + 1, length);
	}
	ret[length] = '\0';
}

int recording_end_read(const char *line, struct recording *ret)
{
	const char *time = member(line, "time_us");
	if (strncmp(line, "{\"end\":{", 8) != 0 || !time || !strchr(line, '\n')) {
		return -EBADMSG;
	}
	ret->time_us = strtoll(time, NULL, 10);
	ret->triggers = read_u64(line, "triggers");
	ret->records = read_u64(line, "records");
	ret->lost = read_u64(line, "lost");
	ret->span_s = read_seconds(line, "span_s");
	ret->before_s = read_seconds(line, "before_s");
	ret->after_s = read_seconds(line, "after_s");
	ret->flags = (uint8_t)read_u64(line, "flags");
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

/* The row of a file; false: it is none of ours. */
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

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);
	return length > tail && strcmp(name + length - tail, end) == 0;
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

/* One goes from the list and from the folder: the oldest minor one, else the oldest, but never the
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

/* Sorts it in, oldest first; of more than keep one goes. There is room for one more than keep. */
static size_t keep_one(
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

static size_t scan(int folder, size_t keep, struct found *found)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	size_t count = 0, names = 0, looks = 0;
	struct dirent *entry;
	if (!list) {
		if (fd >= 0) {
			close(fd);
		}
		return 0;
	}
	while (names++ < FOLDER_NAMES && looks < FOLDER_LOOKS && (entry = readdir(list))) {
		struct found one;
		if (!recording_name_is_ours(entry->d_name)) {
			continue;
		}
		looks++;
		if (ends_with(entry->d_name, temporary)) {
			unlinkat(folder, entry->d_name, 0);
		} else if (ends_with(entry->d_name, suffix) &&
			   strlen(entry->d_name) < PROTO_NAME_SIZE + strlen(suffix) &&
			   read_row(folder, entry->d_name, &one.row, &one.time)) {
			count = keep_one(folder, found, count, keep, &one);
		}
	}
	closedir(list);
	return count;
}

void recording_folder_scan(int folder, size_t keep, uint64_t total_bytes, struct recordings *ret)
{
	keep = keep < 1 ? 1 : keep > RECORDINGS_MAX ? RECORDINGS_MAX : keep;
	struct found *found = mem_calloc(keep + 1, sizeof(*found));
	if (!found) {
		return;
	}
	uint64_t bytes = 0;
	size_t count = scan(folder, keep, found);
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
