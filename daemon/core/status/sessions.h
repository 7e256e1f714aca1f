/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.h: lists measurement sessions, writes and reads a row as JSON, and holds the rules for
 * them: how many at one time, how large, which goes first. Plain data and pure functions;
 * daemon/recorder writes the files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/name.h"

struct json;

enum {
	SESSIONS_MAX = 256,    /* rows; past it the oldest finished one of who has most goes */
	SESSIONS_ACTIVE = 8,   /* at one time */
	SESSIONS_RESERVED = 2, /* of them, for root and the admin group */
	SESSIONS_OF_USER = 2,  /* active ones of an ordinary user */
	SESSION_TAGS = 32,     /* that a client gives, of each kind */
	SESSION_TAG_VALUE = 256,
	SESSION_TAGS_BYTES = 12 * 1024, /* of all together */
	SESSION_LINE_MAX = 60 * 1024,	/* a row as JSON is shorter */
	SESSION_ERROR = 256,
	SESSION_WARMUP_MAX = 100000,
	SESSION_FRAMES_MAX = 1000000,
	SESSION_SECONDS_MAX = 86400,
};

enum session_state {
	SESSION_WARMUP, /* also before the app's first frame */
	SESSION_RUNNING,
	SESSION_FINISHED,    /* has the frames or seconds that were asked for */
	SESSION_STOPPED,     /* earlier: by request, or the app ended */
	SESSION_FAILED,	     /* the client reported an error */
	SESSION_INTERRUPTED, /* by a reboot */
	SESSION_STATES
};

/* Names and values: NUL-terminated strings one after the other. Zeroed = none. */
struct session_tags {
	char *text;
	size_t length, count;
	uint32_t hash; /* of the pairs, in any order */
};

/* Copies them; the name and value of a tag may not contain hidden characters. -EINVAL, -EEXIST: the
 * name is there already; -ENOSPC: too many bytes; -ENOMEM. */
int session_tags_add(struct session_tags *tags, const char *name, const char *value);
/* The value of a name, or NULL. */
const char *session_tags_find(const struct session_tags *tags, const char *name);
void session_tags_clear(struct session_tags *tags);

/* A row. A double that is NAN is not known, or does not apply. */
struct session {
	char name[PROTO_NAME_SIZE];
	char app[PROTO_NAME_SIZE]; /* "" = of the device alone */
	uint32_t uid;		   /* whose it is */
	enum session_state state;
	struct session_tags tags, environment;
	uint32_t warmup;	/* frames that do not count */
	double frames, seconds; /* that it shall have; NAN = until it is stopped */
	int64_t started_us;
	double measured_us; /* the end of the warm-up */
	double ended_us;
	uint64_t frames_done; /* after the warm-up */
	double elapsed_s;     /* likewise */
	double left_s;
	double recent_mean_ms;	   /* of the last 50 frames */
	double progress_mean_ms;   /* of the 50 up to the last multiple of 50 */
	double fps;		   /* from the first frame to the last one */
	char error[SESSION_ERROR]; /* "" = none */
	uint64_t bytes;		   /* of the file */
	double kept_share;	   /* of the time that was measured */
	uint64_t lost;		   /* records overwritten before they were written */
	char cut[96];		   /* why it is not complete; "" = it is */
	bool automatic;
	uint64_t ended_ns; /* in this process; 0: not yet, or in an earlier one */
	bool writing;	   /* its file is not complete yet; not a member of the JSON */
};

struct sessions {
	char dir[200];			  /* where the files are */
	char baseline[200], targets[200]; /* as configured, for edgeprofctl; "" = none */
	size_t count;			  /* in the order of their starts */
	struct session *row[SESSIONS_MAX];
	uint64_t bytes, limit_bytes; /* of all files */
	uint64_t evictions, expired; /* deleted to make room; automatic ones for their age */
	uint64_t hits, misses;	     /* sessions that ended: fingerprint known, new */
};

bool session_is_active(const struct session *session);
struct session *sessions_find(const struct sessions *sessions, const char *name);
/* Appends the row, which belongs to the list then. -ENOSPC. */
int sessions_append(struct sessions *sessions, struct session *row);
/* The row is the caller's then. */
void sessions_remove(struct sessions *sessions, const struct session *row);
void session_destroy(struct session *session); /* NULL is fine */

/* Counts a session that ended: a hit if another finished session has the same fingerprint (equal
 * tags and environment), else a miss. */
void sessions_on_end(struct sessions *sessions, const struct session *session);

/* The name, with .2, .3 … when it is taken. -ENOSPC. */
int sessions_name(const struct sessions *sessions, const char *wanted, char ret[PROTO_NAME_SIZE]);

/* Whether one more may start. privileged: root or the admin group; automatic ones are counted apart
 * from those that a user starts. NULL, or what there is too many of, and *limit. */
const char *sessions_refusal(
	const struct sessions *sessions, uid_t uid, bool privileged, bool automatic, size_t *limit);

struct session_limits {
	uint64_t max_size, total_size; /* of a file, of all */
	int64_t ttl_us;		       /* of automatic ones */
	uid_t own;		       /* the daemon's user; it and root are no ordinary users */
};
/* The size that an active session's file may have. */
uint64_t sessions_file_limit(const struct sessions *sessions, const struct session *session,
	const struct session_limits *limits);
/* The finished session that has to go next, or NULL: automatic ones that are too old, then over
 * the limits (of all, and of a user, who may use half) the oldest automatic one, then the oldest.
 * *expired: for its age. */
struct session *sessions_victim(const struct sessions *sessions,
	const struct session_limits *limits, int64_t now_us, bool *expired);

/* The row as an object of that name; NULL: of an array. */
void session_write(struct json *out, const char *name, const struct session *session);
/* Reads what session_write() wrote from a line; ret is zeroed before. -EBADMSG: it is not a row;
 * -ENOMEM. */
int session_read(const char *line, struct session *ret);

/* A block of a file, in the order of the file. */
struct session_block {
	uint64_t offset, length;
	int64_t from_us, to_us; /* CLOCK_MONOTONIC */
	bool dropped;
};
/* Drops blocks until those that stay have wanted bytes at most, where they are densest, the oldest
 * first: every second one from the oldest on, then every second of the rest; never the last.
 * Returns the bytes. */
uint64_t session_thin(struct session_block *blocks, size_t count, uint64_t wanted);
