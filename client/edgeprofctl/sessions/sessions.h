/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.h: declares what the files of the verb `session` share. Functions return an exit status,
 * after a message if not 0. */
#pragma once

#include "client/edgeprofctl/ctl.h"
#include "client/edgeprofctl/term/screen.h"

/* The session's row, as the daemon has it: not cleaned. The caller deletes it. */
int session_get(struct ctl *ctl, const char *name, cJSON **ret);
bool session_is_active(const cJSON *session);

/* Adds {name, value} to an array of tags. */
void session_add_tag(cJSON *tags, const char *name, const char *value);
/* Adds "environment": what limits the threads of the app (NULL: of the only one that runs). */
void session_add_environment(struct ctl *ctl, cJSON *parameters, const char *app);
/* Returns the path that [sessions] of edgeprofd.conf sets for "baseline" or "targets", to be freed
 * by the caller; NULL if it is not set, no daemon answers, or the daemon runs on another machine.
 */
char *session_setting(struct ctl *ctl, const char *name);
/* "K=V" is one of the tags. */
bool session_has_tag(const cJSON *session, const char *tag);

/* Follows a session that was started just now up to its end, showing its progress; Ctrl-C ends it.
 * signals: opened before the start. Deletes the reply of StartSession. */
int session_follow(struct ctl *ctl, cJSON *reply, struct screen *signals);
/* Writes "Frame i/N: x.x fps" for each 50 frames from *shown on; x = 1000 / mean of the last 50. A
 * session without a number of frames has no "/N". */
void session_progress(const cJSON *session, int64_t *shown, FILE *out);

/* Adds "stages" to the reply, with the frames' total as the last one, as far as its file is
 * readable. */
void session_add_stages(struct ctl *ctl, const char *name, cJSON *reply);

/* Views of ListSessions; of StartSession; of StopSession or a session that ended. */
void session_show_list(struct ctl *ctl, const cJSON *reply);
void session_show_start(struct ctl *ctl, const cJSON *reply);
void session_show_end(struct ctl *ctl, const cJSON *reply);
/* Of {"session","fingerprint","stages"}. */
void session_show_one(struct ctl *ctl, const cJSON *reply);
