/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tail.c: turns durations in a log into stage events. follow.c reads, pattern.c finds, and what was
 * found goes to the daemon as datagrams, those of one read together. Each event is sent, refused or
 * lost, and counted: a program that logs must not wait for a profiler, and a daemon may restart.
 */
#include "client/edgeprofctl/verb.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/edgeprofctl/datagram.h"
#include "client/edgeprofctl/tail/follow.h"
#include "client/edgeprofctl/tail/pattern.h"
#include "client/edgeprofctl/term/screen.h"
#include "client/edgeprofctl/term/when.h"
#include "proto/statsd/statsd.h"
#include "proto/utf8.h"

enum {
	LINE_SIZE = 8192, /* what is looked at of a line */
	READ_SIZE = 65536,
	SILENT_LINES = 100,
	FRAME_DIGITS = 19,
	SHOWN = 60, /* bytes of a line in a message */
};

struct tail {
	struct ctl *ctl;
	struct pattern patterns[OPTION_LIST_MAX];
	uint64_t lines, matched, sent, refused, lost;
	int fd;		/* of the daemon; -1: none */
	bool down, cut; /* cut: the rest of a line that was too long is still to come */
	size_t used;
	uint64_t pending; /* events in the datagram */
	struct text datagram;
	char bytes[READ_SIZE], buffer[DATAGRAM_SIZE];
};

/* Sends the datagram, after connecting again where the daemon restarted. */
static int deliver(struct tail *tail)
{
	const struct text *lines = &tail->datagram;
	int r = -EPIPE;
	for (int tries = 0; tries < 2 && r < 0 && r != -EAGAIN; tries++) {
		if (tail->fd < 0 && datagram_open(tail->ctl, NULL, &tail->fd) != CTL_FINE) {
			return r;
		}
		r = datagram_send(
			tail->fd, lines->data, lines->length, tail->down ? 0 : DATAGRAM_WAIT_MS);
		if (r < 0 && r != -EAGAIN) {
			close(tail->fd);
			tail->fd = -1;
		}
	}
	return r;
}

/* False: stop with *status. */
static bool flush(struct tail *tail, int *status)
{
	bool going = true, down = false;
	if (tail->pending == 0) {
		return true;
	}
	if (tail->ctl->options.dry_run) {
		fputs(tail->datagram.data, tail->ctl->output.stream);
		going = ctl_flush(tail->ctl, status);
	} else {
		int r = deliver(tail);
		down = r < 0;
		if (down != tail->down) {
			ctl_fail(tail->ctl, 0,
				down ? "edgeprofd is %s: events are lost"
				     : "edgeprofd is %s: events are sent again",
				!down	       ? "there"
				: r == -EAGAIN ? "busy"
					       : "gone");
		}
	}
	tail->down = down;
	*(down ? &tail->lost : &tail->sent) += tail->pending;
	tail->pending = 0;
	tail->datagram = TEXT_IN(tail->buffer);
	return going;
}

static void refuse(struct tail *tail, double ms)
{
	if (tail->refused++ == 0) {
		ctl_fail(tail->ctl, 0, "line %" PRIu64 ": a duration of %g ms is %s", tail->lines,
			ms, ms < 0 ? "negative" : "longer than the system is up");
	}
}

/* The daemon refuses what would have begun before the boot, too; it could not say which line. */
static bool add_event(struct tail *tail, const struct pattern_match *match, int *status)
{
	char name[STATSD_NAME_MAX + 1], value[32], frame[FRAME_DIGITS + 1] = "", line[1024];
	struct text text = TEXT_IN(line);
	if (match->ms < 0 || match->ms > when_mono_ms()) {
		refuse(tail, match->ms);
		return true;
	}
	snprintf(name, sizeof(name), "%.*s", (int)match->stage.length, match->stage.at);
	snprintf(value, sizeof(value), "%.15g", match->ms);
	if (match->frame.length <= FRAME_DIGITS) {
		memcpy(frame, match->frame.at ? match->frame.at : "", match->frame.length);
	}
	datagram_add_line(tail->ctl, &text, name, value, "ms", frame[0] ? frame : NULL);
	bool going = tail->datagram.length + text.length + 2 <= sizeof(tail->buffer) ||
		     flush(tail, status);
	text_add(&tail->datagram, "%s\n", line);
	tail->pending++;
	return going;
}

static void show_silence(const struct tail *tail, const char *line, size_t length)
{
	char text[SHOWN + 1];
	length = length < SHOWN ? length : SHOWN;
	for (size_t i = 0; i < length; i++) {
		text[i] = line[i] != '\0' ? line[i] : '?';
	}
	text[proto_utf8_complete(text, length)] = '\0';
	proto_utf8_clean(text);
	ctl_fail(tail->ctl, 0, "nothing matches in the first %d lines; the last one: '%s'",
		SILENT_LINES, text);
}

/* Each pattern, as often as it occurs. */
static bool add_line(struct tail *tail, const char *line, size_t length, int *status)
{
	const char *end = line + (length < LINE_SIZE ? length : LINE_SIZE);
	bool matched = false, going = true;
	tail->lines++;
	for (size_t i = 0; i < tail->ctl->options.patterns.count; i++) {
		struct pattern_match match = {.end = line};
		while (going && pattern_find(&tail->patterns[i], line, match.end, end, &match)) {
			matched = true;
			going = add_event(tail, &match, status);
		}
	}
	tail->matched += matched;
	if (tail->lines == SILENT_LINES && tail->matched == 0) {
		show_silence(tail, line, (size_t)(end - line));
	}
	return going;
}

/* The complete lines that were read; what is left moves to the front. */
static bool add_lines(struct tail *tail, int *status)
{
	char *at = tail->bytes, *end = at + tail->used, *newline;
	bool going = true;
	while (going && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		going = tail->cut || add_line(tail, at, (size_t)(newline - at), status);
		tail->cut = false;
		at = newline + 1;
	}
	tail->used = (size_t)(end - at);
	memmove(tail->bytes, at, tail->used);
	if (going && tail->used >= LINE_SIZE) {
		going = tail->cut || add_line(tail, tail->bytes, tail->used, status);
		tail->cut = true;
		tail->used = 0;
	}
	return going;
}

/* A line without its end, of a file that was replaced or of the standard input. */
static bool add_rest(struct tail *tail, int *status)
{
	bool going =
		tail->cut || tail->used == 0 || add_line(tail, tail->bytes, tail->used, status);
	tail->cut = false;
	tail->used = 0;
	return going;
}

static int follow_lines(struct tail *tail, struct follow *follow)
{
	int status = CTL_FINE;
	bool going = true, restarted;
	ssize_t got = 1;
	while (going && got > 0) {
		got = follow_read(
			follow, tail->bytes + tail->used, READ_SIZE - tail->used, &restarted);
		if (got > 0 && restarted) {
			char *read = tail->bytes + tail->used;
			going = add_rest(tail, &status);
			memmove(tail->bytes, read, (size_t)got);
		}
		if (got > 0) {
			tail->used += (size_t)got;
			going = going && add_lines(tail, &status) && flush(tail, &status);
		}
	}
	if (going && !follow->path) {
		going = add_rest(tail, &status) && flush(tail, &status);
	}
	return got < 0 ? ctl_fail(tail->ctl, CTL_NO_INPUT, "cannot read the input: %s",
				 strerror((int)-got))
		       : status;
}

static int finish(const struct tail *tail, int status)
{
	bool dry = tail->ctl->options.dry_run;
	char refused[48] = "", lost[48] = "";
	if (tail->refused > 0) {
		snprintf(refused, sizeof(refused), ", %" PRIu64 " refused", tail->refused);
	}
	if (tail->lost > 0) {
		snprintf(lost, sizeof(lost), ", %" PRIu64 " lost", tail->lost);
	}
	ctl_fail(tail->ctl, 0, "%" PRIu64 " of %" PRIu64 " lines match; events: %" PRIu64 " %s%s%s",
		tail->matched, tail->lines, tail->sent, dry ? "printed" : "sent", refused, lost);
	return status != CTL_FINE   ? status
	       : tail->lost > 0	    ? CTL_UNREACHABLE
	       : tail->refused > 0  ? CTL_BAD_NEWS
	       : tail->matched == 0 ? CTL_NO_DATA
				    : CTL_FINE;
}

static int parse_patterns(struct tail *tail)
{
	const struct option_list *texts = &tail->ctl->options.patterns;
	int status = texts->count > 0 ? CTL_FINE
				      : ctl_fail(tail->ctl, CTL_USAGE, "tail requires a --pattern");
	for (size_t i = 0; status == CTL_FINE && i < texts->count; i++) {
		struct pattern *pattern = &tail->patterns[i];
		size_t position;
		const char *error = pattern_parse(texts->items[i], pattern, &position);
		if (error) {
			return ctl_fail(tail->ctl, CTL_USAGE,
				"invalid pattern '%s', at byte %zu: %s", texts->items[i],
				position + 1, error);
		}
		char name[STATSD_NAME_MAX + 2] = "x", line[STATSD_NAME_MAX + 512];
		struct text text = TEXT_IN(line);
		if (pattern->stage.at) {
			snprintf(name, sizeof(name), "%.*s", (int)pattern->stage.length,
				pattern->stage.at);
		}
		datagram_add_line(tail->ctl, &text, name, "0", "ms", NULL);
		status = datagram_check(tail->ctl, name, &text);
	}
	return status;
}

static int run(struct ctl *ctl)
{
	const char *path = ctl_word(ctl, 0);
	struct follow follow = {.fd = -1, .changes = -1};
	struct screen *signals = NULL;
	struct tail *tail = ctl_memory(1, sizeof(*tail));
	tail->ctl = ctl;
	tail->fd = -1;
	tail->datagram = TEXT_IN(tail->buffer);
	path = path && strcmp(path, "-") == 0 ? NULL : path;
	int status = parse_patterns(tail);
	if (status == CTL_FINE && !ctl->options.dry_run) {
		status = datagram_open(ctl, stderr, &tail->fd);
	}
	if (status == CTL_FINE && screen_open(&signals) < 0) {
		status = ctl_fail(ctl, CTL_OUTPUT, "cannot wait for signals");
	}
	if (status == CTL_FINE) {
		int r = follow_open(&follow, path, ctl->options.from_start, signals);
		if (r < 0) {
			status = ctl_fail(ctl, CTL_NO_INPUT, "cannot read '%s': %s", path,
				r == -EINVAL ? "not a regular file" : strerror(-r));
		} else if (follow.fd < 0) {
			ctl_fail(ctl, 0, "waiting for '%s'", path);
		}
	}
	if (status == CTL_FINE) {
		status = finish(tail, follow_lines(tail, &follow));
	}
	follow_close(&follow);
	screen_close(signals);
	if (tail->fd >= 0) {
		close(tail->fd);
	}
	free(tail);
	return status;
}

static const struct option_spec options[] = {
	{"pattern", 0, "PATTERN",
		"a line with a duration, such as 'infer: {ms} ms'; may be repeated", option_append,
		offsetof(struct options, patterns)},
	{"app", 0, "APP", "the app that the stages belong to; default: statsd", option_nonempty,
		offsetof(struct options, app)},
	{"unit", 0, "UNIT", "their compute unit, such as gpu", option_nonempty,
		offsetof(struct options, unit)},
	{"category", 0, "CATEGORY", "their category, such as model", option_nonempty,
		offsetof(struct options, category)},
	{"from-start", 0, NULL, "read what FILE holds already, too", option_flag,
		offsetof(struct options, from_start)},
	{"dry-run", 0, NULL, "print what would be sent", option_flag,
		offsetof(struct options, dry_run)},
	{.name = NULL},
};

const struct verb verb_tail = {"tail", "[FILE]", "Turn durations in a log into stage events.",
	"tail app.log --pattern 'infer: {ms} ms' --app cam", options, run};
