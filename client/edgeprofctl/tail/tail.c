/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tail.c: turns durations in a log into stage events. What pattern.c finds in the lines of a file
 * that grows goes to the daemon as datagrams, those of one read together. Each event is sent,
 * refused or lost, and counted: a program that logs must not wait for a profiler, and a daemon may
 * restart.
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
#include "proto/utf8.h"

enum {
	LINE_SIZE = 8192, /* what is looked at of a line */
	READ_SIZE = 65536,
	EVENT_SIZE = 1024, /* more than a line of a datagram takes */
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
	bool stopped;	/* the reader of --dry-run is gone */
	int status;
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

static void flush(struct tail *tail)
{
	int r = 0;
	if (tail->pending > 0 && tail->ctl->options.dry_run) {
		fputs(tail->datagram.data, tail->ctl->output.stream);
		tail->stopped = !ctl_flush(tail->ctl, &tail->status);
	} else if (tail->pending > 0) {
		r = deliver(tail);
		if (r < 0 && !tail->down) {
			ctl_fail(tail->ctl, 0, "edgeprofd is %s: events are lost",
				r == -EAGAIN ? "busy" : "gone");
		} else if (r == 0 && tail->down) {
			ctl_fail(tail->ctl, 0, "edgeprofd is there: events are sent again");
		}
		tail->down = r < 0;
	}
	*(r < 0 ? &tail->lost : &tail->sent) += tail->pending;
	tail->pending = 0;
	tail->datagram = TEXT_IN(tail->buffer);
}

/* The daemon refuses what would have begun before the boot, too; it could not say which line. */
static void add_event(struct tail *tail, const struct pattern_match *match)
{
	char name[STATSD_NAME_MAX + 1], value[32], frame[FRAME_DIGITS + 1] = "";
	const char *bad = datagram_bad_duration(match->ms);
	if (bad) {
		if (tail->refused++ == 0) {
			ctl_fail(tail->ctl, 0, "line %" PRIu64 ": a duration of %g ms is %s",
				tail->lines, match->ms, bad);
		}
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)match->stage.length, match->stage.at);
	snprintf(value, sizeof(value), "%.15g", match->ms);
	if (match->frame.length <= FRAME_DIGITS) {
		snprintf(frame, sizeof(frame), "%.*s", (int)match->frame.length, match->frame.at);
	}
	datagram_add_line(tail->ctl, &tail->datagram, name, value, "ms", frame[0] ? frame : NULL);
	text_add(&tail->datagram, "\n");
	tail->pending++;
	if (tail->datagram.length + EVENT_SIZE > sizeof(tail->buffer)) {
		flush(tail);
	}
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

/* Each pattern, as often as it occurs; of a line that is too long the beginning. */
static void add_line(struct tail *tail, const char *line, size_t length)
{
	const char *end = line + (length < LINE_SIZE ? length : LINE_SIZE);
	bool matched = false;
	if (tail->cut) {
		return;
	}
	tail->lines++;
	for (size_t i = 0; i < tail->ctl->options.patterns.count; i++) {
		struct pattern_match match = {.end = line};
		while (!tail->stopped &&
			pattern_find(&tail->patterns[i], line, match.end, end, &match)) {
			matched = true;
			add_event(tail, &match);
		}
	}
	tail->matched += matched;
	if (tail->lines == SILENT_LINES && tail->matched == 0) {
		show_silence(tail, line, (size_t)(end - line));
	}
}

/* The complete lines that were read; what is left moves to the front. */
static void add_lines(struct tail *tail)
{
	char *at = tail->bytes, *end = at + tail->used, *newline;
	while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
		add_line(tail, at, (size_t)(newline - at));
		tail->cut = false;
		at = newline + 1;
	}
	tail->used = (size_t)(end - at);
	memmove(tail->bytes, at, tail->used);
	if (tail->used >= LINE_SIZE) {
		add_line(tail, tail->bytes, tail->used);
		tail->cut = true;
		tail->used = 0;
	}
	flush(tail);
}

/* Nothing else will: what follows is another file, or nothing. */
static void end_line(struct tail *tail)
{
	if (tail->used > 0 || tail->cut) {
		tail->bytes[tail->used++] = '\n';
	}
}

static void follow_lines(struct tail *tail, struct follow *follow)
{
	ssize_t got;
	do {
		got = follow_read(follow, tail->bytes + tail->used, READ_SIZE - tail->used);
		if (got > 0) {
			tail->used += (size_t)got;
		} else if (got == -ESTALE || !follow->path) {
			end_line(tail);
		}
		add_lines(tail);
	} while ((got > 0 || got == -ESTALE) && !tail->stopped);
	if (got < 0 && got != -ESTALE) {
		tail->status = ctl_fail(
			tail->ctl, CTL_NO_INPUT, "cannot read the input: %s", strerror((int)-got));
	}
}

static int finish(const struct tail *tail)
{
	char buffer[160];
	struct text text = TEXT_IN(buffer);
	text_add(&text, "%" PRIu64 " of %" PRIu64 " lines match; events: %" PRIu64 " %s",
		tail->matched, tail->lines, tail->sent,
		tail->ctl->options.dry_run ? "printed" : "sent");
	if (tail->refused > 0) {
		text_add(&text, ", %" PRIu64 " refused", tail->refused);
	}
	if (tail->lost > 0) {
		text_add(&text, ", %" PRIu64 " lost", tail->lost);
	}
	return ctl_fail(tail->ctl,
		tail->status != CTL_FINE ? tail->status
		: tail->lost > 0	 ? CTL_UNREACHABLE
		: tail->refused > 0	 ? CTL_BAD_NEWS
		: tail->matched == 0	 ? CTL_NO_DATA
					 : CTL_FINE,
		"%s", buffer);
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
	struct follow follow = {.path = path && strcmp(path, "-") != 0 ? path : NULL,
		.output = ctl->options.dry_run ? STDOUT_FILENO : -1};
	struct tail *tail = ctl_memory(1, sizeof(*tail));
	tail->ctl = ctl;
	tail->fd = -1;
	tail->datagram = TEXT_IN(tail->buffer);
	int status = parse_patterns(tail);
	if (status == CTL_FINE && !ctl->options.dry_run) {
		status = datagram_open(ctl, stderr, &tail->fd);
	}
	if (status == CTL_FINE) {
		status = follow_open(&follow, ctl);
		if (status == CTL_FINE) {
			follow_lines(tail, &follow);
			status = finish(tail);
		}
		follow_close(&follow);
	}
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
