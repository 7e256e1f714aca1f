/* SPDX-License-Identifier: Apache-2.0 */
/* session_follow.c: stays with a session up to its end. The daemon records; this only looks at it,
 * so a daemon that restarts costs nothing but a gap in the display. Signals are read from a
 * descriptor (screen.h): Ctrl-C ends the session, and what was measured stays. */
#include "client/edgeprofctl/sessions/sessions.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/template.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/term/when.h"

enum {
	LINE_FRAMES = 50,
	PAUSE_MIN_MS = 20,
	PAUSE_MAX_MS = 250,
	RETRY_MS = 250,
	PATIENCE_MS = 60000,
	ABSENT_MS = 5000, /* before an app that does not run is mentioned */
	BAR_COLUMNS = 10,
};

struct follow {
	struct ctl *ctl;
	cJSON *session; /* the latest row */
	char *name;
	int64_t shown;	/* frames, in lines */
	double lost_ms; /* when the daemon went away; 0 = it is there */
	double ask_ms;	/* when to check that the app runs; 0 = done */
	struct screen *signals;
};

void session_progress(const cJSON *session, int64_t *shown, FILE *out)
{
	int64_t done = json_integer(session, "frames_done");
	int64_t all = json_integer(session, "frames");
	double fps = 1000 / json_number(session, "progress_mean_ms");
	for (; *shown + LINE_FRAMES <= done; fputc('\n', out)) {
		*shown += LINE_FRAMES;
		fprintf(out, "Frame %" PRId64, *shown);
		if (all > 0) {
			fprintf(out, "/%" PRId64, all);
		}
		fprintf(out, isfinite(fps) ? ": %.1f fps" : ": - fps", fps);
	}
}

/* A bar, where there is an end to reach. */
static void add_bar(struct text *text, const cJSON *session, bool utf8)
{
	double seconds = json_number(session, "seconds");
	double share = fmax(json_number(session, "frames_done") / json_number(session, "frames"),
		(seconds - json_number(session, "left_s")) / seconds); /* one of them may be NAN */
	for (int i = 0; !isnan(share) && i < BAR_COLUMNS; i++) {
		const char *full = utf8 ? "█" : "#", *rest = utf8 ? "░" : ".";
		text_add(text, "%s%s", i + 0.5 < share * BAR_COLUMNS ? full : rest,
			i + 1 == BAR_COLUMNS ? " " : "");
	}
}

/* How far it is, in a line that fits the terminal. */
static void draw_status(struct follow *follow)
{
	static const char template[] =
		"[{?state=warmup}warm-up|{state}: {frames_done:count}[{?frames} of {frames:count}] "
		"[{?frames>=2}frames|{?frames_done>=2}frames|{?frames_done}frame|frames] in "
		"{elapsed_s:s}][, "
		"{left_s:s} left]";
	const struct style *style = &follow->ctl->style;
	char line[256];
	struct text text = TEXT_IN(line);
	if (follow->lost_ms > 0) {
		text_add(&text, "waiting for the daemon");
	} else {
		add_bar(&text, follow->session, style->utf8);
		template_add(&text, template, follow->session, style->utf8);
	}
	line[style->width > 0 ? text_fit(line, style->width - 1) : strlen(line)] = '\0';
	fputs(line, follow->ctl->output.stream);
}

/* Until the next line is due. */
static uint64_t session_pause_ms(const cJSON *session)
{
	int64_t done = json_integer(session, "frames_done");
	double due_ms =
		(double)(LINE_FRAMES - done % LINE_FRAMES) * json_number(session, "recent_mean_ms");
	return isnan(due_ms) ? PAUSE_MAX_MS
			     : (uint64_t)fmin(fmax(due_ms, PAUSE_MIN_MS), PAUSE_MAX_MS);
}

/* Takes the line of the status away. */
static void clear(struct ctl *ctl)
{
	if (ctl->style.tty && ctl->options.json == JSON_OFF) {
		fputs("\r\033[K", ctl->output.stream);
	}
}

/* What is new: lines, and on a terminal how far it is below them. */
static bool draw(struct follow *follow, int *status)
{
	struct ctl *ctl = follow->ctl;
	if (ctl->options.json != JSON_OFF) {
		return true;
	}
	clear(ctl);
	session_progress(follow->session, &follow->shown, ctl->output.stream);
	if (ctl->style.tty && session_is_active(follow->session)) {
		draw_status(follow);
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

/* The session has not begun for a while: the app's name may be mistyped. */
static void report_absent(struct follow *follow)
{
	struct ctl *ctl = follow->ctl;
	const char *app = json_word(follow->session, "app");
	cJSON *reply;
	ctl_try(ctl, "ListApps", NULL, &reply);
	const cJSON *row = json_first(reply, "apps");
	while (row && (strcmp(json_word(row, "name"), app) != 0 || json_get(row, "until_us"))) {
		row = row->next;
	}
	bool absent = reply && !row && app[0] != '\0';
	cJSON_Delete(reply);
	if (absent) {
		clear(ctl);
		ctl_flush(ctl, &(int){0});
		ctl_unknown(ctl, 0, "app", app, "waiting for app '%s', which is not running", app);
	}
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
			follow->lost_ms > 0 ? RETRY_MS : session_pause_ms(follow->session);
		enum screen_event event = screen_wait(follow->signals, pause_ms);
		if (event == SCREEN_REDRAW) {
			style_resize(&follow->ctl->style);
		}
		status = event == SCREEN_QUIT ? stop(follow) : refresh(follow);
		bool waits = strcmp(json_word(follow->session, "state"), "warmup") == 0;
		if (follow->ask_ms > 0 && waits && when_mono_ms() > follow->ask_ms) {
			follow->ask_ms = 0;
			report_absent(follow);
		}
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

int session_follow(struct ctl *ctl, cJSON *reply, struct screen *signals)
{
	struct follow follow = {
		.ctl = ctl, .signals = signals, .ask_ms = when_mono_ms() + ABSENT_MS};
	follow.session = cJSON_DetachItemFromObjectCaseSensitive(reply, "session");
	follow.name = strdup(json_word(follow.session, "name"));
	cJSON_Delete(reply);
	int status = CTL_OUTPUT;
	if (!follow.name) {
		ctl_fail(ctl, status, "out of memory");
	} else {
		status = wait_for_end(&follow);
		status = status == CTL_FINE ? show_end(&follow) : status;
	}
	cJSON_Delete(follow.session);
	free(follow.name);
	return status;
}
