/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statsd.h: parses DogStatsD datagrams, as far as a profiler understands them:
 *
 *     name:value[:value…]|type[|@rate][|#tag[:value],…][|c:container][|T timestamp][|…]
 *
 * Lines end with a newline or the datagram. Types: ms, h, d (all milliseconds), g, c. Tags that
 * mean something: app, frame, unit, category; other tags and sections are skipped. A line is
 * accepted or refused completely, and never affects its neighbours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	STATSD_NAME_MAX = 255,	  /* bytes of a name */
	STATSD_VALUES_MAX = 2048, /* of one line */
	STATSD_DATAGRAM_MAX = 65536,
};

#define STATSD_NO_FRAME UINT64_MAX

enum statsd_type {
	STATSD_TIME, /* ms, h, d */
	STATSD_GAUGE,
	STATSD_COUNTER,
};

/* A part of the datagram, not NUL-terminated. */
struct statsd_text {
	const char *at; /* NULL: it was not there */
	size_t length;
};

struct statsd_line {
	struct statsd_text name; /* 1 to STATSD_NAME_MAX bytes, no control characters */
	uint64_t name_hash;	 /* of all its bytes; not keyed */
	enum statsd_type type;
	double value;				/* finite */
	bool has_sign;				/* "+1", "-1": of a gauge, a difference */
	double rate;				/* above 0, up to 1 */
	uint64_t frame;				/* STATSD_NO_FRAME: no such tag, or not a number */
	struct statsd_text app, unit, category; /* of the last such tag; not empty */
	struct statsd_text values;		/* private: those that follow */
	struct statsd_text digits;		/* private: of the frame */
};

enum statsd_result {
	STATSD_END, /* no line is left */
	STATSD_LINE,
	STATSD_UNSUPPORTED, /* sets, events, service checks, unknown types */
	STATSD_BAD,
};

struct statsd_reader {
	const char *at, *end;
	const char *reason;	 /* of the last UNSUPPORTED or BAD, static */
	struct statsd_line line; /* after STATSD_LINE, until the next call */
	/* private: the bytes of that line from the type on, before and after the digits of the
	 * frame: most lines of a datagram repeat them */
	struct statsd_text head, rest;
};

void statsd_reader_init(struct statsd_reader *reader, const char *bytes, size_t length);
/* Goes on with another datagram. The bytes of those before must still be there. */
void statsd_reader_resume(struct statsd_reader *reader, const char *bytes, size_t length);

/* Reads the next line that is not empty into reader->line, which points into the datagram. */
enum statsd_result statsd_next(struct statsd_reader *reader);

/* The next of several values of the line goes into value and has_sign; false: that was the last. */
bool statsd_next_value(struct statsd_line *line);
