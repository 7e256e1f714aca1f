/* The recorder's thread: asks, writes, renames. Touches nothing shared but what job->lock guards.
 */
#include "daemon/recorder/recording_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/recorder/recording_folder.h"
#include "daemon/recorder/recording_reply.h"
#include "daemon/util/sysops.h"
#include "proto/varlink.h"

enum {
	EVENTS_PAGE = 64,
	END_ROOM = RECORDING_END_MAX, /* kept for the last line */
};

/* Sensors and statistics, the ones that tell most first: at the limit the rest is left out. */
static const char *const series[] = {"temperature/*", "throttle/*", "cooling/*", "power/*",
	"frame/*/*", "stage/*/*/*", "cpu/*", "memory/*", "pressure/*/*", "cpu/*/*", "gpu/*",
	"emc/*", "engine/*/*", "fan/*", "headroom/*", "energy/*", "swap/*", "clock/*", "voltage/*",
	"app/*/*", "gauge/*/*", "counter/*/*", "process/*/*"};

struct peer {
	int fd;
	size_t length, taken; /* bytes in buffer; of them the frame that was given out */
	char buffer[PROTO_FRAME_MAX];
};

struct writer {
	struct recording_job *job;
	int fd;
	size_t size;
	bool over; /* something was left out for size */
	struct peer trace, ask;
};

size_t recording_before_bytes(size_t max_bytes, uint64_t before_ns, uint64_t after_ns)
{
	size_t records = max_bytes / 8 * 5;
	double share =
		before_ns + after_ns == 0 ? 1 : (double)before_ns / (double)(before_ns + after_ns);
	return (size_t)((double)records * (share > 0.5 ? share : 0.5));
}

static int send_call(struct peer *peer, const char *method, const char *parameters, bool more)
{
	char call[512];
	int n = snprintf(call, sizeof(call),
		"{\"method\":\"" PROTO_INTERFACE_NAME ".%s\",\"parameters\":{%s}%s}", method,
		parameters, more ? ",\"more\":true" : "");
	if (n < 0 || (size_t)n >= sizeof(call)) {
		return -EINVAL;
	}
	size_t length = (size_t)n + 1, at = 0; /* with its NUL */
	while (at < length) {
		ssize_t sent = write(peer->fd, call + at, length - at);
		if (sent < 0 && errno != EINTR) {
			return -errno;
		}
		at += sent > 0 ? (size_t)sent : 0;
	}
	return 0;
}

/* The next frame, without its NUL; valid until the next call. -EPIPE: the connection ended. */
static int receive(struct peer *peer, const char **frame, size_t *length)
{
	if (peer->taken > 0) {
		peer->length -= peer->taken;
		memmove(peer->buffer, peer->buffer + peer->taken, peer->length);
		peer->taken = 0;
	}
	size_t searched = 0;
	for (;;) {
		const char *end = memchr(peer->buffer + searched, '\0', peer->length - searched);
		if (end) {
			*frame = peer->buffer;
			*length = (size_t)(end - peer->buffer);
			peer->taken = *length + 1;
			return 0;
		}
		searched = peer->length;
		if (searched == sizeof(peer->buffer)) {
			return -EMSGSIZE;
		}
		ssize_t n =
			read(peer->fd, peer->buffer + searched, sizeof(peer->buffer) - searched);
		if (n == 0) {
			return -EPIPE;
		}
		if (n < 0 && errno != EINTR) {
			return errno == EAGAIN ? -ETIMEDOUT : errno == ECONNRESET ? -EPIPE : -errno;
		}
		peer->length += n > 0 ? (size_t)n : 0;
	}
}

static int write_all(struct writer *writer, struct iovec *part, int parts)
{
	while (parts > 0) {
		ssize_t n = writev(writer->fd, part, parts);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return n < 0 ? -errno : -EIO;
		}
		writer->size += (size_t)n;
		while (parts > 0 && (size_t)n >= part->iov_len) {
			n -= (ssize_t)part->iov_len;
			part++;
			parts--;
		}
		if (parts > 0) {
			part->iov_base = (char *)part->iov_base + n;
			part->iov_len -= (size_t)n;
		}
	}
	return 0;
}

static int write_text(struct writer *writer, const char *text)
{
	struct iovec part = {(void *)(uintptr_t)text, strlen(text)};
	return write_all(writer, &part, 1);
}

/* A reply as a line: its method becomes the first member. */
static int write_reply(struct writer *writer, const char *method, const char *frame, size_t length)
{
	char head[64];
	int n = snprintf(head, sizeof(head), "{\"call\":\"%s\",", method);
	struct iovec part[] = {{head, (size_t)n}, {(void *)(uintptr_t)(frame + 1), length - 1},
		{(char[]){'\n'}, 1}};
	return write_all(writer, part, 3);
}

/* Asks, and writes what comes up to `limit` bytes of file; what is more is read and left out.
 * last (may be NULL): the frame's last number behind key. 0 also when the daemon answers with an
 * error. */
static int ask(struct writer *writer, const char *method, const char *parameters, size_t limit,
	const char *key, uint64_t *last)
{
	const char *frame;
	size_t length;
	bool more = true;
	int r = send_call(&writer->ask, method, parameters, !key);
	while (r == 0 && more) {
		r = receive(&writer->ask, &frame, &length);
		if (r < 0) {
			break;
		}
		more = reply_continues(frame, length);
		if (key) {
			*last = reply_last_number(frame, key);
		}
		if (reply_starts(frame, length, "{\"error\"") ||
			reply_starts(frame, length, "{\"parameters\":{\"series\":[]}")) {
			continue; /* none of that name */
		}
		if (writer->size + length + 64 > limit) {
			writer->over = true;
		} else {
			r = write_reply(writer, method, frame, length);
		}
	}
	return r;
}

static double seconds_after(const struct recording_job *job)
{
	return (double)(sysops()->now_ns() - job->t_ns) / 1e9;
}

static void span_now(struct recording_job *job, int64_t *from_us, int64_t *to_us)
{
	pthread_mutex_lock(&job->lock);
	*from_us = job->from_us;
	*to_us = job->to_us;
	pthread_mutex_unlock(&job->lock);
}

/* Until the span's end, or until the daemon stops: sensors go on when records have no place. */
static void wait_for_end(const struct writer *writer)
{
	uint64_t now_ns;
	struct pollfd fd = {.fd = writer->ask.fd, .events = POLLIN};
	while ((now_ns = sysops()->now_ns()) < writer->job->to_ns) {
		int r = poll(&fd, 1, (int)((writer->job->to_ns - now_ns) / 1000000 + 1));
		if (r > 0 || (r < 0 && errno != EINTR)) {
			return; /* it ended: nothing was asked */
		}
	}
}

/* The raw records, as they come. Ends also when the place for them is used up. */
static int write_trace(struct writer *writer, size_t limit)
{
	struct recording_job *job = writer->job;
	const char *frame;
	size_t length;
	int r = 0;
	for (bool more = true; r == 0 && more;) {
		r = receive(&writer->trace, &frame, &length);
		if (r < 0) {
			break;
		}
		more = reply_continues(frame, length);
		if (reply_starts(frame, length, "{\"error\"")) {
			snprintf(job->row.cut, sizeof(job->row.cut), "no records");
			return 0;
		}
		if (writer->size + length + 64 > limit) {
			snprintf(job->row.cut, sizeof(job->row.cut),
				"records end %.1f s after it: max_size", seconds_after(job));
			return 0;
		}
		job->row.records += reply_count_rows(frame);
		job->row.lost = reply_last_number(frame, "\"lost\":");
		r = write_reply(writer, "ExportTrace", frame, length);
	}
	return r;
}

static int write_before(struct writer *writer)
{
	static const char *const calls[][2] = {{"GetStatus", ""}, {"GetThrottle", ""},
		{"ListAlerts", ""}, {"ListApps", ""}, {"ListStages", ""},
		{"GetFrames", "\"slow\":true,\"recent\":32"}};
	size_t limit = writer->job->max_bytes / 8;
	int r = 0;
	for (size_t i = 0; r == 0 && i < sizeof(calls) / sizeof(calls[0]); i++) {
		r = ask(writer, calls[i][0], calls[i][1], limit, NULL, NULL);
	}
	return r;
}

static int write_timeline(struct writer *writer, size_t limit)
{
	uint64_t next = writer->job->first_serial, newest = UINT64_MAX;
	int r = 0;
	while (r == 0 && next <= newest) {
		char parameters[96];
		uint64_t last = 0, told = 0;
		snprintf(parameters, sizeof(parameters), "\"from_serial\":%" PRIu64 ",\"limit\":%d",
			next, EVENTS_PAGE);
		r = ask(writer, "ListEvents", parameters, limit, "{\"serial\":", &last);
		told = reply_last_number(writer->ask.buffer, "\"last_serial\":");
		newest = told < newest ? told : newest;
		if (last < next) {
			break;
		}
		next = last + 1;
	}
	return r;
}

static int write_after(struct writer *writer)
{
	struct recording_job *job = writer->job;
	int64_t from_us, to_us;
	span_now(job, &from_us, &to_us); /* the clock may have been set since the begin */
	size_t limit = job->max_bytes - END_ROOM;
	int r = write_timeline(writer, limit - job->max_bytes / 16);
	for (size_t i = 0; r == 0 && i < sizeof(series) / sizeof(series[0]); i++) {
		char parameters[160];
		snprintf(parameters, sizeof(parameters),
			"\"glob\":\"%s\",\"from_us\":%" PRId64 ",\"to_us\":%" PRId64, series[i],
			from_us, to_us);
		r = ask(writer, "GetHistory", parameters, limit, NULL, NULL);
	}
	return r < 0 ? r : ask(writer, "ListMarks", "", limit, NULL, NULL);
}

static int write_end(struct writer *writer)
{
	struct recording_job *job = writer->job;
	char line[RECORDING_END_MAX], more[RECORDING_MORE + 64];
	struct recording *row = &job->row;
	row->before_s = (double)(job->t_ns - job->from_ns) / 1e9;
	row->after_s = job->to_ns > job->t_ns ? (double)(job->to_ns - job->t_ns) / 1e9 : 0;
	row->span_s = row->before_s + row->after_s;
	if (writer->over && !row->cut[0]) {
		snprintf(row->cut, sizeof(row->cut), "sensors over max_size");
	}
	pthread_mutex_lock(&job->lock);
	snprintf(more, sizeof(more), ",\"joined\":[%s]", job->more[0] ? job->more + 1 : "");
	int n = recording_end_write(row, more, line, sizeof(line));
	pthread_mutex_unlock(&job->lock);
	return n < 0 ? n : write_text(writer, line);
}

/* All of the file. The daemon's end in between makes it a part of one, which is kept. */
static int write_content(struct writer *writer)
{
	struct recording_job *job = writer->job;
	char parameters[160];
	int64_t from_us, to_us;
	span_now(job, &from_us, &to_us);
	snprintf(parameters, sizeof(parameters),
		"\"from_us\":%" PRId64 ",\"to_us\":%" PRId64 ",\"follow\":true", from_us, to_us);
	int r = write_text(writer, job->header);
	/* first, so that the records of this moment are noted before they can be overwritten */
	r = r < 0 ? r : send_call(&writer->trace, "ExportTrace", parameters, true);
	r = r < 0 ? r : write_before(writer);
	r = r < 0 ? r : write_trace(writer, writer->size + job->max_bytes / 8 * 5);
	close(writer->trace.fd);
	writer->trace.fd = -1;
	if (r == 0) {
		wait_for_end(writer);
		r = write_after(writer);
	}
	if (r == -EPIPE && writer->size > strlen(job->header)) {
		uint64_t now_ns = sysops()->now_ns();
		snprintf(job->row.cut, sizeof(job->row.cut), "the daemon stopped");
		job->to_ns = now_ns < job->to_ns ? now_ns : job->to_ns;
		r = 0;
	}
	r = r < 0 ? r : write_end(writer);
	return r == 0 && fsync(writer->fd) < 0 ? -errno : r;
}

static int write_file(struct writer *writer, int folder)
{
	struct recording_job *job = writer->job;
	char file[PROTO_NAME_SIZE + 8], temporary[PROTO_NAME_SIZE + 16];
	snprintf(file, sizeof(file), "%s.jsonl", job->row.name);
	snprintf(temporary, sizeof(temporary), "%s.new", file);
	unlinkat(folder, temporary, 0);
	writer->fd = openat(
		folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (writer->fd < 0) {
		return -errno;
	}
	int r = write_content(writer);
	if (close(writer->fd) < 0 && r == 0) {
		r = -errno;
	}
	if (r == 0 && renameat(folder, temporary, folder, file) < 0) {
		r = -errno;
	}
	if (r < 0) {
		unlinkat(folder, temporary, 0);
	} else {
		fsync(folder); /* some cannot sync folders */
	}
	job->row.bytes = writer->size;
	return r;
}

void recording_write(struct recording_job *job)
{
	struct writer *writer = mem_zalloc(sizeof(*writer));
	int folder = recording_folder_open(job->dir, 1);
	job->result = folder < 0 ? folder : !writer ? -ENOMEM : 0;
	if (job->result == 0) {
		writer->job = job;
		writer->trace.fd = job->trace_fd;
		writer->ask.fd = job->ask_fd;
		job->result = write_file(writer, folder);
		job->trace_fd = writer->trace.fd;
	}
	if (folder >= 0) {
		recording_folder_scan(folder, job->keep, job->total_bytes, &job->kept);
		close(folder);
	}
	if (job->trace_fd >= 0) {
		close(job->trace_fd);
	}
	close(job->ask_fd);
	free(writer);
}
