/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c: maps keys to what they do. A key that needs a text asks for it; what changes the daemon
 * is a call whose reply becomes a message. */
#include "client/edgeprofctl/top/keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NCURSES_WIDECHAR 1
#include <ncurses.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/term/when.h"

enum { KEY_ESCAPE = 27, PAGE = 10 };

static void say(struct host *host, bool failed, const char *text)
{
	snprintf(host->message, sizeof(host->message), "%s", text);
	host->failed = failed;
}

static void done_filter(struct view *view, struct host *host, const char *text)
{
	(void)host;
	snprintf(view->filter, sizeof(view->filter), "%s", text);
}

static void done_mark(struct view *view, struct host *host, const char *text)
{
	bool of_app = view->tab == TAB_APPS && view->selected;
	cJSON *parameters = ctl_parameters("label", text);
	ctl_add_text(parameters, "app", of_app ? json_text(view->selected, "name") : NULL);
	host_act(host, "Mark", parameters, "marked");
}

static void done_time(struct view *view, struct host *host, const char *text)
{
	int64_t time_us, now_us = when_now_us();
	(void)view;
	if (when_parse_time(text, now_us, &time_us) < 0) {
		say(host, true, "invalid time; use 14:03, 5min (ago), 2026-01-31 14:30");
		return;
	}
	host_go(host, time_us + host->live.now_us - now_us);
}

/* The selected alert, else the first. */
static const cJSON *alert_of(const struct view *view, struct host *host)
{
	const cJSON *alert = view->selected;
	if (!json_text(alert, "rule")) {
		alert = model_first(&host->live, PART_ALERTS);
	}
	if (!alert) {
		say(host, true, "no alert is pending or firing");
	}
	return alert;
}

static cJSON *alert_parameters(const cJSON *alert)
{
	cJSON *parameters = ctl_parameters("rule", json_word(alert, "rule"));
	return ctl_add_text(parameters, "instance", json_text(alert, "instance"));
}

static void acknowledge(struct view *view, struct host *host)
{
	const cJSON *alert = alert_of(view, host);
	if (alert) {
		host_act(host, "AckAlert", alert_parameters(alert), "acknowledged");
	}
}

static void done_silence(struct view *view, struct host *host, const char *text)
{
	const cJSON *alert = alert_of(view, host);
	double seconds;
	if (when_parse_span(text, &seconds) < 0 || seconds < 1) {
		say(host, true, "invalid span; use 30min, 2h, 1d");
	} else if (alert) {
		cJSON *parameters = alert_parameters(alert);
		cJSON_AddNumberToObject(parameters, "seconds", seconds);
		host_act(host, "SilenceAlert", parameters, "silenced");
	}
}

static void ask(struct keyboard *keyboard, const char *label,
	void (*done)(struct view *view, struct host *host, const char *text))
{
	keyboard->prompt = (struct prompt){.label = label, .done = done};
}

static void edit(struct keyboard *keyboard, struct view *view, struct host *host, int key)
{
	struct prompt *prompt = &keyboard->prompt;
	size_t length = strlen(prompt->text);
	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		text_clean(prompt->text, view->canvas.style.utf8);
		prompt->label = NULL;
		if (prompt->text[0] != '\0' || prompt->done == done_filter) {
			prompt->done(view, host, prompt->text);
		}
	} else if (key == KEY_ESCAPE) {
		prompt->label = NULL;
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		const char *at = prompt->text, *last = at;
		while (*at != '\0') {
			last = at;
			text_decode(&at);
		}
		prompt->text[last - prompt->text] = '\0';
	} else if (key >= ' ' && key <= 0xff && length + 1 < sizeof(prompt->text)) {
		prompt->text[length] = (char)key;
	}
}

static void scroll_history(struct host *host, double seconds)
{
	int64_t from_us = host->wanted_us > 0 ? host->wanted_us : host->live.now_us;
	host_go(host, from_us + (int64_t)(seconds * 1e6));
}

/* Keys that move the cursor, in lines; 0: another key. */
static int step_of(int key, const struct cursor *cursor)
{
	switch (key) {
	case 'j':
	case KEY_DOWN:
		return 1;
	case 'k':
	case KEY_UP:
		return -1;
	case KEY_NPAGE:
		return PAGE;
	case KEY_PPAGE:
		return -PAGE;
	case 'g':
	case KEY_HOME:
		return -cursor->count;
	case 'G':
		return cursor->count;
	default:
		return 0;
	}
}

/* Seconds that a key goes in history; 0: another key. */
static double seconds_of(int key)
{
	switch (key) {
	case '[':
	case KEY_LEFT:
		return -10;
	case ']':
	case KEY_RIGHT:
		return 10;
	case '<':
	case '{':
		return -60;
	case '>':
	case '}':
		return 60;
	default:
		return 0;
	}
}

static void do_other(struct keyboard *keyboard, struct view *view, struct host *host, int key)
{
	switch (key) {
	case 'q':
	case 'Q':
		keyboard->quit = true;
		break;
	case '?':
	case KEY_F(1):
		view->help = true;
		break;
	case '\t':
		view->tab = (enum tab)((view->tab + 1) % TABS);
		break;
	case KEY_BTAB:
		view->tab = (enum tab)((view->tab + TABS - 1) % TABS);
		break;
	case 's':
		view->cursors[view->tab].sort++;
		break;
	case ' ':
		keyboard->paused = !keyboard->paused;
		break;
	case KEY_END:
		keyboard->paused = false;
		host_go(host, 0);
		break;
	case 'h':
		keyboard->next_host = true;
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		view->detail = !view->detail && view->selected;
		break;
	case KEY_ESCAPE:
		view->detail = false;
		view->filter[0] = '\0';
		break;
	case '/':
		ask(keyboard, "filter", done_filter);
		break;
	case 't':
		ask(keyboard, "time", done_time);
		break;
	case 'm':
		ask(keyboard, "mark", done_mark);
		break;
	case 'z':
		ask(keyboard, "silence for", done_silence);
		break;
	case 'a':
		acknowledge(view, host);
		break;
	case 'r':
		host_act(host, "RecordNow", ctl_parameters("label", "top"), "recording");
		break;
	default:
		break;
	}
}

void keys_press(struct keyboard *keyboard, struct view *view, struct host *host, int key)
{
	struct cursor *cursor = &view->cursors[view->tab];
	int step = step_of(key, cursor);
	double seconds = seconds_of(key);
	host->message[0] = '\0';
	if (keyboard->prompt.label) {
		edit(keyboard, view, host, key);
	} else if (view->help) {
		view->help = false;
	} else if (key >= '1' && key < '1' + TABS) {
		view->tab = (enum tab)(key - '1');
		view->detail = false;
	} else if (step != 0) {
		cursor->selected += step;
	} else if (seconds < 0 || seconds > 0) {
		scroll_history(host, seconds);
	} else {
		do_other(keyboard, view, host, key);
	}
}
