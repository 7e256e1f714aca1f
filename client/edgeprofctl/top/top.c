/* SPDX-License-Identifier: Apache-2.0 */
/* top.c: runs the live screen: waits for keys, signals, replies and the next update, and draws. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <ncurses.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/screen.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/term/when.h"
#include "client/edgeprofctl/top/view.h"
#include "client/edgeprofctl/top/keys.h"
#include "client/edgeprofctl/top/layout.h"
#include "client/edgeprofctl/top/plain.h"
#include "client/edgeprofctl/verb.h"

struct top {
	struct view view;
	struct keyboard keyboard;
	struct host hosts[REMOTE_MAX];
	size_t host_count, active; /* active is the one that is shown */
	struct screen *signals;
	double interval_ms, next_ms;
	long updates;
};

static void take_signals(struct top *top)
{
	enum screen_event event;
	while ((event = screen_next(top->signals)) != SCREEN_UPDATE) {
		if (event == SCREEN_REDRAW) {
			canvas_resize(&top->view.canvas);
		} else if (event == SCREEN_STOP) {
			canvas_suspend(&top->view.canvas);
		} else {
			top->keyboard.flags[FLAG_QUIT] = true;
		}
	}
}

/* What the header says at its right end; the ink of it. */
static int make_note(const struct top *top, char *ret, size_t size)
{
	const struct host *host = &top->hosts[top->active];
	bool utf8 = top->view.canvas.style.utf8;
	if (host->live.now_us == 0) {
		snprintf(ret, size, "connecting");
		return TONE_WARN;
	}
	if (host->lost) {
		double age_ms = when_mono_ms() - host->lost_ms;
		snprintf(ret, size, " daemon gone for %s ", format_span(age_ms / 1000).text);
		return INK_NOTICE;
	}
	if (host_is_past(host)) {
		struct label time = format_time(host->past.now_us);
		snprintf(ret, size, " history: %s, End: live ",
			top->view.canvas.width < 120 ? time.text + 11 : time.text);
		return INK_NOTICE;
	}
	if (top->keyboard.flags[FLAG_PAUSE]) {
		snprintf(ret, size, " paused ");
		return INK_NOTICE;
	}
	snprintf(ret, size, "%s%s", utf8 ? "●" : "*", top->view.canvas.width < 70 ? "" : " live");
	return TONE_GOOD;
}

static void draw_status(const struct top *top)
{
	const struct canvas *canvas = &top->view.canvas;
	const struct host *host = &top->hosts[top->active];
	const char *reason = json_word(top->view.selected, "reason");
	const char *prompt = keys_prompt(&top->keyboard);
	char text[512];
	int ink = TONE_WARN;
	if (prompt) {
		ink = TONE_BOLD;
		snprintf(text, sizeof(text), "%s: %s_", prompt, top->keyboard.text);
	} else if (host->message[0] != '\0') {
		ink = host->failed ? TONE_BAD : TONE_GOOD;
		snprintf(text, sizeof(text), "%s", host->message);
	} else if (host->lost) {
		ink = TONE_BAD;
		snprintf(text, sizeof(text), "%s; retrying", host->feed.ctl.failure);
	} else if (host_is_past(host) && host->past.ring_count == 0) {
		snprintf(text, sizeof(text), "history has nothing of this moment");
	} else if (reason[0] == '\0' && top->view.filter[0] != '\0') {
		snprintf(text, sizeof(text), "filter: %s (Esc: all)", top->view.filter);
	} else {
		ink = TONE_DIM;
		snprintf(text, sizeof(text), "%s",
			reason[0] != '\0' ? reason
					  : "? help  q quit  Tab view  / filter  [ ] history  "
					    "space pause  m mark  r record  a acknowledge  "
					    "z silence");
	}
	text_clean(text, canvas->style.utf8);
	canvas_text(canvas, canvas->height - 1, 1, canvas->width - 2, ink, text);
}

/* A line with each host next to the others. */
static void draw_hosts(const struct top *top, int y)
{
	static const char *const line = "[{temperature_celsius:celsius}][ cpu {cpu_percent:0} %]"
					"[ {?alerts}{~bad}{alerts} alerts]";
	const struct canvas *canvas = &top->view.canvas;
	int each = (canvas->width - 1) / (int)top->host_count;
	for (size_t i = 0; i < top->host_count; i++) {
		const struct host *host = &top->hosts[i];
		int x = 1 + (int)i * each;
		const char *name = ctl_host(&host->feed.ctl, 0);
		x += 1 + canvas_text(canvas, y, x, each - 2,
				 i == top->active ? INK_TITLE : TONE_BOLD, name);
		int left = (int)(i + 1) * each - x;
		if (host->lost || host->live.now_us == 0) {
			canvas_text(canvas, y, x, left, host->lost ? TONE_BAD : TONE_DIM,
				host->lost ? host->feed.ctl.failure : "connecting");
		} else {
			canvas_template(canvas, y, x, left, line, host->live.parts[PART_STATUS]);
		}
	}
	canvas_select(canvas, y, (int)top->active * each, each);
}

static void draw(struct top *top)
{
	struct view *view = &top->view;
	struct canvas *canvas = &view->canvas;
	const struct host *host = &top->hosts[top->active];
	char note[128];
	int first = top->host_count > 1 ? 3 : 2;
	struct box area = {first, 0, canvas->height - first - 1, canvas->width};
	view->selected = NULL;
	view->model = host_model(host);
	erase();
	if (canvas->width < SCREEN_WIDTH_MIN || canvas->height < SCREEN_HEIGHT_MIN) {
		/* short enough for a small terminal */
		snprintf(note, sizeof(note), "top needs %dx%d; this is %dx%d", SCREEN_WIDTH_MIN,
			SCREEN_HEIGHT_MIN, canvas->width, canvas->height);
		canvas_text(canvas, 0, 0, canvas->width, TONE_NONE, note);
		refresh();
		return;
	}
	int ink = make_note(top, note, sizeof(note));
	canvas->dimmed = host->lost;
	draw_header(view, note, ink);
	if (view->model->now_us > 0) {
		draw_tab(view, area);
	}
	if (top->keyboard.flags[FLAG_HELP]) {
		keys_help(view, area);
	}
	canvas->dimmed = false;
	if (top->host_count > 1) {
		draw_hosts(top, 2);
	}
	draw_status(top);
	refresh();
}

/* Waits for what comes first. True: draw. */
static bool wait_for(struct top *top)
{
	struct pollfd fds[2 + REMOTE_MAX] = {
		{.fd = screen_fd(top->signals), .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
	};
	for (size_t i = 0; i < top->host_count; i++) {
		fds[2 + i] = (struct pollfd){.fd = feed_fd(&top->hosts[i].feed), .events = POLLIN};
	}
	double left = ceil(fmax(top->next_ms - when_mono_ms(), 0));
	if (poll(fds, 2 + top->host_count, (int)fmin(left, INT_MAX)) < 0 && errno != EINTR) {
		top->keyboard.flags[FLAG_QUIT] = true;
		return false;
	}
	bool changed = false;
	if ((fds[0].revents & POLLIN) != 0) {
		take_signals(top);
		changed = true;
	}
	if ((fds[1].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
		top->keyboard.flags[FLAG_QUIT] = true; /* the terminal is gone */
	}
	top->keyboard.view = &top->view;
	top->keyboard.host = &top->hosts[top->active];
	for (int key; (fds[1].revents & POLLIN) != 0 && (key = getch()) != ERR;) {
		keys_press(&top->keyboard, key);
		changed = true;
	}
	/* after the keys, which act on what is drawn */
	for (size_t i = 0; i < top->host_count; i++) {
		struct host *host = &top->hosts[i];
		bool new = host_read(host);
		top->updates += new &&i == top->active && host->greeted && host->ticks > 0;
		changed = new || changed;
	}
	return changed && !top->keyboard.flags[FLAG_QUIT];
}

static void tick(struct top *top)
{
	for (size_t i = 0; i < top->host_count; i++) {
		struct host *host = &top->hosts[i];
		bool shown = i == top->active;
		if (!shown || !top->keyboard.flags[FLAG_PAUSE] || host->lost) {
			host_tick(host, shown ? top->view.tab : TABS);
		}
	}
}

static void run_screen(struct top *top, long count)
{
	bool changed = true;
	while (!top->keyboard.flags[FLAG_QUIT] && (count <= 0 || top->updates < count)) {
		double now_ms = when_mono_ms();
		if (top->keyboard.flags[FLAG_HOST]) {
			top->keyboard.flags[FLAG_HOST] = false;
			top->active = (top->active + 1) % top->host_count;
			top->next_ms = now_ms;
		}
		struct host *host = &top->hosts[top->active];
		if (now_ms >= top->next_ms || (host->greeted && host->ticks == 0)) {
			tick(top);
			changed = changed || host->lost;
			top->next_ms = now_ms + top->interval_ms;
		}
		if (changed) {
			draw(top);
		}
		changed = wait_for(top);
	}
}

/* Connects before the screen is there, where that can fail at once. */
static int open_hosts(struct top *top, struct ctl *ctl)
{
	top->host_count = ctl_hosts(ctl);
	if (top->host_count < 2) {
		top->host_count = 1;
		cJSON *reply = NULL;
		/* ssh may ask for a password: before the screen is there */
		int status = ctl_hosts(ctl) > 0 ? ctl_call(ctl, "GetStatus", NULL, false, &reply)
						: ctl_connect(ctl);
		cJSON_Delete(reply);
		if (status == CTL_FINE) {
			host_init(&top->hosts[0], ctl);
		}
		return status;
	}
	for (size_t i = 0; i < top->host_count; i++) {
		struct ctl one;
		ctl_init_host(ctl, i, &one);
		host_init(&top->hosts[i], &one);
	}
	return CTL_FINE;
}

static int run_terminal(struct ctl *ctl)
{
	struct top *top = ctl_memory(1, sizeof(*top));
	const char *glob = ctl_word(ctl, 0);
	int status = open_hosts(top, ctl);
	if (status != CTL_FINE) {
		free(top);
		return status;
	}
	top->interval_ms = ctl->options.interval_ms > 0 ? ctl->options.interval_ms : 1000;
	snprintf(top->view.filter, sizeof(top->view.filter), "%s", glob ? glob : "");
	int r = screen_open(&top->signals);
	if (r == 0) {
		r = canvas_open(&top->view.canvas, &ctl->style);
	}
	if (r == 0) {
		run_screen(top, ctl->options.count);
		canvas_close(&top->view.canvas);
	}
	for (size_t i = 0; i < top->host_count; i++) {
		host_finish(&top->hosts[i]);
	}
	screen_close(top->signals);
	free(top);
	if (r == -ENOTTY) {
		return ctl_fail(ctl, CTL_USAGE, "top needs a terminal; see 'top --plain'");
	}
	return r == 0 ? CTL_FINE
		      : ctl_fail(ctl, CTL_USAGE,
				"the terminal type '%s' is %s; set TERM, or use 'top --plain'",
				getenv("TERM") ? getenv("TERM") : "",
				r == -ENODEV ? "unknown" : "too simple");
}

static int run_top(struct ctl *ctl)
{
	return ctl->options.plain || ctl->options.json != JSON_OFF ? plain_run(ctl)
								   : run_terminal(ctl);
}

static int run_watch(struct ctl *ctl)
{
	bool plain = ctl->options.plain || !ctl->style.tty || ctl->options.json != JSON_OFF;
	return plain ? plain_run(ctl) : run_terminal(ctl);
}

static const struct option_spec options[] = {
	{"interval", 'd', "SPAN", "time between updates, such as 500ms; default: 1s", option_ms,
		offsetof(struct options, interval_ms)},
	{"count", 'n', "N", "stop after N updates", option_count, offsetof(struct options, count)},
	{"plain", 'b', NULL, "print one block of text for each update", option_flag,
		offsetof(struct options, plain)},
	{"all", 'a', NULL, "include apps that ended more than 10 s ago", option_flag,
		offsetof(struct options, all)},
	{.name = NULL},
};

const struct verb verb_top = {"top", "[GLOB]", "Show the live screen; ? lists its keys.",
	"top --interval 500ms", options, run_top};
const struct verb verb_watch = {"watch", "[GLOB]", "Like top; without a terminal like top --plain.",
	"watch temperature --interval 500ms", options, run_watch};
