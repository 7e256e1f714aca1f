/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c: maps keys to what they do, and lists them. A key that needs a text asks for it; what
 * changes the daemon is a call whose reply becomes a message. */
#include "client/edgeprofctl/top/keys.h"

#include <stdio.h>
#include <string.h>

#define NCURSES_WIDECHAR 1
#include <ncurses.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/term/when.h"

enum { KEY_ESCAPE = 27, PAGE = 10, ALL = 4 * VIEW_ROWS, HELP_WIDTH = 74 };
enum { ASK_FILTER, ASK_MARK, ASK_TIME, ASK_SILENCE };
static void say(struct host *host, const char *text)
{
	snprintf(host->message, sizeof(host->message), "%s", text);
	host->failed = true;
}

static void done_filter(struct keyboard *keyboard, const char *text)
{
	snprintf(keyboard->view->filter, sizeof(keyboard->view->filter), "%s", text);
}

static void done_mark(struct keyboard *keyboard, const char *text)
{
	bool of_app = keyboard->view->tab == TAB_APPS && keyboard->view->selected;
	cJSON *parameters = ctl_parameters("label", text);
	ctl_add_text(
		parameters, "app", of_app ? json_text(keyboard->view->selected, "name") : NULL);
	host_act(keyboard->host, "Mark", parameters, "marked");
}

static void done_time(struct keyboard *keyboard, const char *text)
{
	int64_t time_us;
	if (when_parse_time(text, keyboard->host->live.now_us, &time_us) < 0) {
		say(keyboard->host, "invalid time; use 14:03, 5min (ago), 2026-01-31 14:30");
		return;
	}
	host_go(keyboard->host, time_us);
}

/* The selected alert, else the first. */
static const cJSON *alert_of(const struct keyboard *keyboard)
{
	const cJSON *alert = keyboard->view->selected;
	if (!json_text(alert, "rule")) {
		alert = list_first(keyboard->view, PART_ALERTS);
	}
	if (!alert) {
		say(keyboard->host, "no alert is pending or firing");
	}
	return alert;
}

static cJSON *alert_parameters(const cJSON *alert)
{
	cJSON *parameters = ctl_parameters("rule", json_word(alert, "rule"));
	return ctl_add_text(parameters, "instance", json_text(alert, "instance"));
}

static void done_silence(struct keyboard *keyboard, const char *text)
{
	const cJSON *alert = alert_of(keyboard);
	double seconds;
	if (when_parse_span(text, &seconds) < 0 || seconds < 1) {
		say(keyboard->host, "invalid span; use 30min, 2h, 1d");
	} else if (alert) {
		cJSON *parameters = alert_parameters(alert);
		cJSON_AddNumberToObject(parameters, "seconds", seconds);
		host_act(keyboard->host, "SilenceAlert", parameters, "silenced");
	}
}

/* The questions in the status line, and what is done with the answers. */
static const struct prompt {
	const char *label;
	void (*done)(struct keyboard *keyboard, const char *text);
} prompts[] = {
	[ASK_FILTER] = {"filter", done_filter},
	[ASK_MARK] = {"mark", done_mark},
	[ASK_TIME] = {"time", done_time},
	[ASK_SILENCE] = {"silence for", done_silence},
};

const char *keys_prompt(const struct keyboard *keyboard)
{
	return keyboard->prompt ? keyboard->prompt->label : NULL;
}

static void edit(struct keyboard *keyboard, int key)
{
	const struct prompt *prompt = keyboard->prompt;
	char *text = keyboard->text;
	size_t length = strlen(text);
	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		text_clean(text, keyboard->view->canvas.style.utf8);
		keyboard->prompt = NULL;
		if (text[0] != '\0' || prompt->done == done_filter) {
			prompt->done(keyboard, text);
		}
	} else if (key == KEY_ESCAPE) {
		keyboard->prompt = NULL;
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		const char *at = text, *last = at;
		while (*at != '\0') {
			last = at;
			text_decode(&at);
		}
		text[last - text] = '\0';
	} else if (key >= ' ' && key <= 0xff && length + 1 < PROMPT_SIZE) {
		text[length] = (char)key;
		text[length + 1] = '\0';
	}
}

static void scroll_history(struct keyboard *keyboard, int seconds)
{
	struct host *host = keyboard->host;
	int64_t from_us = host->wanted_us > 0 ? host->wanted_us : host->live.now_us;
	host_go(host, from_us + seconds * INT64_C(1000000));
}

static void go_live(struct keyboard *keyboard, int unused)
{
	(void)unused;
	keyboard->flags[FLAG_PAUSE] = false;
	host_go(keyboard->host, 0);
}

static void go_tab(struct keyboard *keyboard, int tab)
{
	keyboard->view->tab = (enum tab)tab;
}

static void step_tab(struct keyboard *keyboard, int step)
{
	keyboard->view->tab = (enum tab)(((int)keyboard->view->tab + step) % TABS);
}

static void select_by(struct keyboard *keyboard, int lines)
{
	keyboard->view->cursors[keyboard->view->tab].selected += lines;
}

static void sort(struct keyboard *keyboard, int step)
{
	keyboard->view->cursors[keyboard->view->tab].sort += step;
}

static void ask(struct keyboard *keyboard, int prompt)
{
	keyboard->prompt = &prompts[prompt];
	keyboard->text[0] = '\0';
}

static void clear_filter(struct keyboard *keyboard, int unused)
{
	(void)unused;
	keyboard->view->filter[0] = '\0';
}

static void record(struct keyboard *keyboard, int unused)
{
	(void)unused;
	host_act(keyboard->host, "RecordNow", ctl_parameters("label", "top"), "recording");
}

static void acknowledge(struct keyboard *keyboard, int unused)
{
	const cJSON *alert = alert_of(keyboard);
	(void)unused;
	if (alert) {
		host_act(keyboard->host, "AckAlert", alert_parameters(alert), "acknowledged");
	}
}

static void switch_flag(struct keyboard *keyboard, int flag)
{
	keyboard->flags[flag] = !keyboard->flags[flag];
}

/* What keys do, with an argument for each; the texts are the help. */
static const struct key {
	const char *name, *help;
	void (*act)(struct keyboard *keyboard, int argument);
	struct {
		int code, argument;
	} codes[9];
} keys[] = {
	{"1 to 5, Tab", "overview, sensors, apps, processes, events", go_tab,
		{{'1', 0}, {'2', 1}, {'3', 2}, {'4', 3}, {'5', 4}}},
	{NULL, NULL, step_tab, {{'\t', 1}, {KEY_BTAB, TABS - 1}}},
	{"arrows, j k", "select; Page Up and Down, g G: first, last", select_by,
		{{'j', 1}, {KEY_DOWN, 1}, {'k', -1}, {KEY_UP, -1}, {KEY_NPAGE, PAGE},
			{KEY_PPAGE, -PAGE}, {'g', -ALL}, {KEY_HOME, -ALL}, {'G', ALL}}},
	{"s", "sort by the next column", sort, {{'s', 1}}},
	{"/", "filter: lines that contain a text; empty, Esc: all", ask, {{'/', ASK_FILTER}}},
	{NULL, NULL, clear_filter, {{KEY_ESCAPE, 0}}},
	{"space", "pause", switch_flag, {{' ', FLAG_PAUSE}}},
	{"[ ]  < >", "back and forward in history: 10 s, 1 min; Left, Right", scroll_history,
		{{'[', -10}, {KEY_LEFT, -10}, {']', 10}, {KEY_RIGHT, 10}, {'<', -60}, {'{', -60},
			{'>', 60}, {'}', 60}}},
	{"t", "go to a time: 14:03, 5min (ago)", ask, {{'t', ASK_TIME}}},
	{"End", "back to now", go_live, {{KEY_END, 0}}},
	{"m", "mark this moment on the timeline", ask, {{'m', ASK_MARK}}},
	{"r", "record now: the last seconds and the next", record, {{'r', 0}}},
	{"a", "acknowledge the alert", acknowledge, {{'a', 0}}},
	{"z", "silence the alert's notifications for a while", ask, {{'z', ASK_SILENCE}}},
	{"h", "the next host", switch_flag, {{'h', FLAG_HOST}}},
	{"q", "quit", switch_flag, {{'q', FLAG_QUIT}, {'Q', FLAG_QUIT}}},
	{NULL, NULL, switch_flag, {{'?', FLAG_HELP}, {KEY_F(1), FLAG_HELP}}},
};

void keys_press(struct keyboard *keyboard, int key)
{
	keyboard->host->message[0] = '\0';
	if (keyboard->prompt) {
		edit(keyboard, key);
		return;
	}
	if (keyboard->flags[FLAG_HELP]) {
		keyboard->flags[FLAG_HELP] = false;
		return;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		for (size_t j = 0; j < sizeof(keys[i].codes) / sizeof(keys[i].codes[0]); j++) {
			if (keys[i].codes[j].code == key && key != 0) {
				keys[i].act(keyboard, keys[i].codes[j].argument);
				return;
			}
		}
	}
}

void keys_help(const struct view *view, struct box area)
{
	int count = 0, line = 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		count += keys[i].name != NULL;
	}
	int width = area.width < HELP_WIDTH ? area.width - 2 : HELP_WIDTH;
	int height = area.height < count + 2 ? area.height : count + 2;
	struct box box = {area.y + (area.height - height) / 2, area.x + (area.width - width) / 2,
		height, width};
	canvas_fill(&view->canvas, box, TONE_NONE);
	struct box inside = canvas_frame(&view->canvas, box, "keys (any key: close)");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && line < inside.height; i++) {
		if (keys[i].name) {
			int y = inside.y + line++;
			canvas_text(&view->canvas, y, inside.x, 14, TONE_BOLD, keys[i].name);
			canvas_text(&view->canvas, y, inside.x + 14, inside.width - 14, TONE_NONE,
				keys[i].help);
		}
	}
}
