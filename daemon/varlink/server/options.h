/* SPDX-License-Identifier: Apache-2.0 */
/* options.h: configures a server, and says what its methods ask of the daemon. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/name.h"

struct api_methods;
struct session;
struct session_tags;

/* What RecordNow asks for. */
struct api_record {
	const char *label;	  /* NULL = none */
	double before_s, after_s; /* NAN = as configured */
	uint64_t now_ns;
	/* the answer */
	char name[PROTO_NAME_SIZE];
	bool joined; /* one was open already: its list of triggers has this one */
	char reason[128];
};

enum api_session_action { API_SESSION_START, API_SESSION_STOP, API_SESSION_DELETE };

/* What StartSession, StopSession and DeleteSession ask for. */
struct api_session {
	enum api_session_action action;
	const char *name;
	uid_t uid;
	bool privileged; /* root or the admin group */
	uint64_t now_ns;
	/* start */
	const char *app; /* NULL = the only one that runs, else the device alone */
	struct session_tags *tags, *environment; /* the tags become the row's */
	uint32_t warmup;
	double frames, seconds; /* NAN = none */
	bool automatic;
	/* stop */
	const char *error; /* NULL = none */
	/* the answer */
	const struct session *row; /* not of a deleted one */
	size_t limit;		   /* with -ENOSPC: how many of what reason says */
	char reason[400];
};

struct api_options {
	int listen_fd;		 /* a bound stream socket; the caller closes it after the server */
	const char *admin_group; /* may change things, in addition to root: "edgeprof" */
	const struct api_methods *methods;
	size_t max_connections;		 /* 128 */
	size_t max_per_uid;		 /* 32; root exempt */
	uint64_t first_frame_timeout_ns; /* 5 s */
	uint64_t frame_timeout_ns;	 /* 0 = 30 s: from a frame's first byte to its last */
	uint64_t stall_timeout_ns;	 /* 0 = 10 s: output waits and the peer reads nothing */
	uint64_t idle_timeout_ns;	 /* 0 = 10 min: a connection without an open call */
	/* Called before METHOD_FRESH methods; may be NULL. */
	void (*refresh)(void *ctx, uint64_t now_ns);
	/* A permitted caller requested a reload; 0, or -errno with a text. On success the text
	 * names the changed keys that need a restart. */
	int (*reload)(void *ctx, char *error, size_t size);
	/* A permitted caller requested a recording. 0; -ENOSPC: the limit of a day; else
	 * -errno with a reason. NULL: there is no recorder. */
	int (*record)(void *ctx, struct api_record *record);
	/* 0; -ENOENT: no such session, or not the user's; -ENOSPC: a limit; -EPERM; else -errno
	 * with a reason. NULL: there are no sessions. */
	int (*session)(void *ctx, struct api_session *session);
	void *ctx;
};
