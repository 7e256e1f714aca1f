/* SPDX-License-Identifier: Apache-2.0 */
/* session_follow.c: stays with a session up to its end. The daemon records; this only looks at it,
 * so a daemon that restarts costs nothing but a gap in the display. Signals are read from a
 * descriptor (screen.h): Ctrl-C ends the session, and what was measured stays. */
#include "client/edgeprofctl/sessions/sessions.h"

#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/sessions/progress.h"
#include "client/edgeprofctl/term/screen.h"
#include "client/edgeprofctl/term/when.h"

enum { RETRY_MS = 250, PATIENCE_MS = 60000 };

struct follow {
	struct ctl *ctl;
	cJSON *session; /* the latest row */
	char *name;
	int64_t shown;	     /* frames, in lines */
	double lost_ms;	     /* when the daemon went away; 0 = it is there */
	struct screen *wait; /* of signals */
};

/* Takes the bar away. */
static void clear(struct ctl *ctl)
{
	if (ctl->style.tty && ctl->options.json == JSON_OFF) {
		fputs("\r\033[K", ctl->output.stream);
	}
}

/* What is new: lines, and on a terminal the bar below them. */
static bool draw(struct follow *follow, int *status)
{
	struct ctl *ctl = follow->ctl;
	FILE *out = ctl->output.stream;
	if (ctl->options.json != JSON_OFF) {
		return true;
	}
	clear(ctl);
	progress_lines(follow->session, &follow->shown, out);
	if (ctl->style.tty && session_is_active(follow->session)) {
		char bar[PROGRESS_SIZE];
		progress_bar(follow->session, &ctl->style, when_now_us(), bar);
		fputs(follow->lost_ms > 0 ? "waiting for the daemon" : bar, out);
	}
	return ctl_flush(ctl, status);
}

/* Reads the row again. An absent daemon is waited for: it keeps its sessions. */
static int refresh(struct follow *follow)
{
	struct ctl *ctl = follow->ctl;
	cJSON *session;
	ctl->quiet = true;
	int status = session_get(ctl, follow->name, &session);
	ctl->quiet = false;
	if (status == CTL_FINE) {
		cJSON_Delete(follow->session);
		follow->session = session;
		follow->lost_ms = 0;
	} else if (status == CTL_UNREACHABLE) {
		double now_ms = when_mono_ms();
		ctl_disconnect(ctl);
		follow->lost_ms = follow->lost_ms > 0 ? follow->lost_ms : now_ms;
		if (now_ms - follow->lost_ms < PATIENCE_MS) {
			return CTL_FINE;
		}
	}
	if (status != CTL_FINE) {
		clear(ctl);
		ctl_flush(ctl, &(int){0});
		ctl_fail(ctl, status, "%s", ctl->failure);
	}
	return status;
}

static int stop(struct follow *follow)
{
	cJSON *reply;
	int status = ctl_call(
		follow->ctl, "StopSession", ctl_parameters("name", follow->name), false, &reply);
	if (status == CTL_FINE) {
		cJSON_Delete(follow->session);
		follow->session = cJSON_DetachItemFromObjectCaseSensitive(reply, "session");
		cJSON_Delete(reply);
	}
	return status;
}

/* Up to the session's end, a signal's, or that of who reads our output. */
static int wait_for_end(struct follow *follow)
{
	int status = CTL_FINE;
	while (status == CTL_FINE && session_is_active(follow->session)) {
		if (!draw(follow, &status)) {
			int stopped = stop(follow);
			return status == CTL_FINE ? stopped : status;
		}
		uint64_t pause_ms =
			follow->lost_ms > 0 ? RETRY_MS : progress_pause_ms(follow->session);
		enum screen_event event = screen_wait(follow->wait, pause_ms);
		if (event == SCREEN_REDRAW) {
			style_resize(&follow->ctl->style);
		}
		status = event == SCREEN_QUIT ? stop(follow) : refresh(follow);
	}
	return status;
}

static int show_end(struct follow *follow)
{
	struct ctl *ctl = follow->ctl;
	bool none = json_integer(follow->session, "frames_done") == 0;
	bool failed = strcmp(json_word(follow->session, "state"), "failed") == 0;
	int status = CTL_FINE;
	if (!draw(follow, &status)) {
		return status;
	}
	cJSON *reply = cJSON_CreateObject();
	if (ctl->options.json == JSON_OFF) {
		json_clean(follow->session, ctl->style.utf8);
	}
	cJSON_AddItemToObject(reply, "session", follow->session);
	follow->session = NULL;
	ctl_answer(ctl, reply, session_show_end);
	return failed ? CTL_BAD_NEWS
	       : none ? ctl_fail(ctl, CTL_NO_DATA, "no frame was measured")
		      : CTL_FINE;
}

int session_follow(struct ctl *ctl, cJSON *reply)
{
	struct follow follow = {.ctl = ctl};
	follow.session = cJSON_DetachItemFromObjectCaseSensitive(reply, "session");
	follow.name = strdup(json_word(follow.session, "name"));
	cJSON_Delete(reply);
	int status = CTL_OUTPUT;
	if (!follow.name || screen_open(&follow.wait) < 0) {
		ctl_fail(ctl, status, "out of memory");
	} else {
		status = wait_for_end(&follow);
		status = status == CTL_FINE ? show_end(&follow) : status;
	}
	screen_close(follow.wait);
	cJSON_Delete(follow.session);
	free(follow.name);
	return status;
}
