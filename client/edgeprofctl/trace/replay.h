/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h: replays a recording or a session in place of the daemon. It answers ExportTrace,
 * GetHistory and ListEvents (and whatever else it contains) from its lines, so that code for the
 * replies of a live daemon works on recordings.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "client/edgeprofctl/link/client.h"

struct replay;

/* Takes the text (free(3) it, also on failure). -EBADMSG: no recording, *reason says why; -ENOMEM.
 */
int replay_create(char *text, size_t length, struct replay **ret, const char **reason);
void replay_destroy(struct replay *replay);

/* The first and the last line; the end of a session may be absent (NULL). */
const cJSON *replay_header(const struct replay *replay);
const cJSON *replay_end(const struct replay *replay);

/* The number of the line that could not be replayed; 0: none. */
size_t replay_damaged_line(const struct replay *replay);

/* Times (CLOCK_MONOTONIC, ascending) behind which blocks of a session were dropped; known once
 * ExportTrace was called. */
size_t replay_gaps(const struct replay *replay, const uint64_t **ret);

/* Begins a call (a name without interface); replay_receive gives its replies. Of ExportTrace the
 * newest start first, then app by app; of GetHistory the series that match the glob. */
int replay_send(struct replay *replay, const char *method, const cJSON *parameters); /* -ENOMEM */
/* -ECONNRESET: there is no (further) reply; -EBADMSG, -ENOMEM. */
int replay_receive(struct replay *replay, struct reply *ret);

struct ctl;
/* From now on ctl queries what is in the file of that name instead of the daemon; with a method
 * (GetRecording, GetSession) what the daemon has under it. An exit status after a message. */
int replay_load(struct ctl *ctl, const char *name, const char *method);
