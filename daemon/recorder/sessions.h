/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.h: runs measurement sessions: raw records, metrics and events of an app, from a request
 * until its frames, its time or its life is over, each in a file of its own. */
#pragma once

#include <uv.h>

#include "daemon/varlink/server/options.h"

struct api;
struct core;
struct session_recorder;

struct session_options {
	uint64_t max_size, total_size;	  /* of a file, of all */
	uint64_t ttl_ns;		  /* of automatic sessions */
	bool automatic;			  /* each run of an app becomes one */
	char baseline[200], targets[200]; /* files that edgeprofctl reads; "" = none */
};

enum { SESSIONS_RUN_BYTES = 8 << 20 /* of all files in the run directory, which is memory */ };

/* dir: files go to DIR/sessions, made for the first. boot_id: of now, as text. -ENOMEM. */
int session_recorder_open(uv_loop_t *loop, struct core *core, const char *dir,
	const struct session_options *options, struct session_recorder **ret);
/* Before the loop runs: reads the folder; sessions that a restart of the daemon interrupted go on.
 */
void session_recorder_set_api(struct session_recorder *recorder, struct api *api);
void session_recorder_configure(
	struct session_recorder *recorder, const struct session_options *options);

/* StartSession, StopSession, DeleteSession: as api_options.session. */
int session_recorder_request(struct session_recorder *recorder, struct api_session *request);

/* What is active goes on after a restart; closing finishes when the loop has run empty. NULL is
 * fine. */
void session_recorder_close(struct session_recorder *recorder);
/* After the loop ran empty. NULL is fine. */
void session_recorder_destroy(struct session_recorder *recorder);
