/* SPDX-License-Identifier: Apache-2.0 */
/* apps.c: shows who is attached, the exact account of its events, and who was refused and why; and
 * report, an app's report as the daemon makes it: without a name that of the last app that ended,
 * else of the only one. */
#include "client/edgeprofctl/verb.h"

#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/text.h"
#include "proto/text.h"

static void add_pids(struct table *table, const cJSON *app)
{
	char pids[48];
	struct text text = TEXT_IN(pids);
	for (const cJSON *row = json_first(app, "processes"); row && !text.truncated;
		row = row->next) {
		int64_t pid = json_integer(row, "pid"), inside = json_integer(row, "ns_pid");
		text_join(&text, ",", pid > 0 ? "%lld" : "-", (long long)pid);
		if (inside > 0) {
			text_add(&text, "/%lld", (long long)inside);
		}
	}
	table_add(table, TONE_NONE, "%s", pids[0] == '\0' ? "-" : pids);
}

static void add_advice(struct table *table, const cJSON *app)
{
	const char *level = json_text(json_get(app, "advice"), "level");
	bool less = level && strcmp(level, "full") != 0;
	table_add(table, less ? TONE_WARN : TONE_NONE, "%s", level ? level : "-");
}

static enum tone dropped_tone(const cJSON *row)
{
	return json_number(row, "dropped") > 0 ? TONE_WARN : TONE_NONE;
}

static enum tone invalid_tone(const cJSON *row)
{
	return json_number(row, "invalid") > 0 ? TONE_WARN : TONE_NONE;
}

/* The advice to an app, unless it is to do all it can. */
static void show_advice(struct ctl *ctl, const cJSON *app)
{
	const cJSON *advice = json_get(app, "advice");
	const char *level = json_text(advice, "level");
	if (!level || strcmp(level, "full") == 0) {
		return;
	}
	listing_text(ctl, TONE_NONE, "{name}: advised ", app);
	listing_text(ctl, TONE_WARN, "{level}", advice);
	listing_text(ctl, TONE_NONE,
		" since {since_us:time}: {reason}; skip {skip_frames:0} of {of_frames:0} frames"
		"[{?target_fps}, or {target_fps:1} frames per second]\n",
		advice);
}

/* Stages that are open now, and what the last process was doing when it died. */
static void show_details(struct ctl *ctl, const cJSON *app)
{
	listing_text(ctl, TONE_NONE, "[{name}: last {last_fps:1} fps {idle_ms:ago}\n]", app);
	if (json_text(app, "last_words")) {
		listing_text(ctl, TONE_NONE, "{name}: ", app);
		listing_text(ctl, TONE_WARN, "{last_words}", app);
		fputc('\n', ctl->output.stream);
	}
	const cJSON *process = json_first(app, "processes");
	for (; process; process = process->next) {
		for (const cJSON *open = json_first(process, "open"); open; open = open->next) {
			if (json_number(open, "open_ms") > 1000) {
				listing_text(ctl, TONE_NONE, "{name}: ", app);
				listing_text(
					ctl, TONE_NONE, "in `{stage}` for {open_ms:ms}\n", open);
			}
		}
	}
}

static void show_refused(struct ctl *ctl, const cJSON *reply)
{
	for (const cJSON *row = json_first(reply, "refused"); row; row = row->next) {
		listing_text(ctl, TONE_WARN, "refused", row);
		listing_text(ctl, TONE_NONE,
			": [{app}|a process] ([pid {pid:0}, ]uid {uid:0}): {reason}; {count:count} "
			"tries, the last {last_us:time}\n",
			row);
	}
}

static void show_apps(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"APP", FIELD_LONG, "{name}", TONE_NONE, NULL, NULL},
		{"STATE", FIELD_TEXT, "{state}", TONE_NONE, listing_state, NULL},
		{"PID", FIELD_NUMBER, NULL, TONE_NONE, NULL, add_pids},
		{"UID", FIELD_NUMBER, "{uid:0}", TONE_NONE, NULL, NULL},
		{"STAGES", FIELD_NUMBER, "{stages:0}", TONE_NONE, NULL, NULL},
		{"FPS", FIELD_NUMBER, "{fps:1}", TONE_NONE, NULL, NULL},
		{"ADVICE", FIELD_TEXT, NULL, TONE_NONE, NULL, add_advice},
		{"SENT", FIELD_NUMBER, "{sent:count}", TONE_NONE, NULL, NULL},
		{"RECEIVED", FIELD_NUMBER, "{received:count}", TONE_NONE, NULL, NULL},
		{"DROPPED", FIELD_NUMBER, "{dropped:count}", TONE_NONE, dropped_tone, NULL},
		{"WAITING", FIELD_NUMBER, "{in_ring:count}", TONE_NONE, NULL, NULL},
		{"INVALID", FIELD_NUMBER, "{invalid:count}", TONE_NONE, invalid_tone, NULL},
		{"SINCE", FIELD_TEXT, "{since_us:time}", TONE_DIM, NULL, NULL},
	};
	listing_show(ctl, reply, "apps", fields, sizeof(fields) / sizeof(fields[0]));
	for (const cJSON *app = json_first(reply, "apps"); app; app = app->next) {
		show_advice(ctl, app);
		show_details(ctl, app);
	}
	show_refused(ctl, reply);
}

struct apps_options {
	bool all;
};

static int run_apps(struct ctl *ctl)
{
	const struct apps_options *options = ctl->verb_options;
	const char *empty =
		options->all ? "no app has attached yet; see edgeprof(3), or try: edgeprofctl emit "
			       "work 5ms --app test"
			     : "no app is running; see edgeprof(3), or use --all for those that "
			       "ended";
	return ctl_list(
		ctl, "ListApps", ctl_all(options->all, NULL), "apps", show_apps, "%s", empty);
}

static const struct option_spec apps_table[] = {
	{"all", 'a', NULL, "include apps that ended more than 10 s ago", option_flag,
		offsetof(struct apps_options, all)},
	{.name = NULL},
};

const struct verb verb_apps = {"apps", "",
	"Show attached applications and the counts of their events.", "apps", apps_table,
	sizeof(struct apps_options), run_apps};

enum { NAMES_SIZE = 400, LINE_SIZE = 512 };

/* "cam, detector" of ListApps. */
static void names_of(const cJSON *reply, char names[NAMES_SIZE])
{
	struct text text = text_in(names, NAMES_SIZE);
	for (const cJSON *app = json_first(reply, "apps"); app; app = app->next) {
		text_join(&text, ", ", "%s", json_word(app, "name"));
	}
}

static int several(struct ctl *ctl)
{
	char names[NAMES_SIZE];
	cJSON *reply;
	int status = ctl_call(ctl, "ListApps", ctl_all(true, NULL), true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	names_of(reply, names);
	cJSON_Delete(reply);
	return names[0] == '\0'
		       ? ctl_fail(ctl, CTL_NO_DATA, "no app has attached yet; see edgeprof(3)")
		       : ctl_fail(ctl, CTL_NO_DATA, "several apps are running; name one of %s",
				 names);
}

static void show_lines(struct ctl *ctl, const char *text)
{
	while (*text != '\0') {
		char line[LINE_SIZE];
		size_t length = strcspn(text, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)length, text);
		text_clean(line, ctl->style.utf8);
		fprintf(ctl->output.stream, "%s\n", line);
		text += length + (text[length] == '\n');
	}
}

/* The call; its text still has its newlines, so it is not clean for a terminal. */
static int ask_report(struct ctl *ctl, const char *app, cJSON **ret)
{
	bool quiet = ctl->quiet;
	enum json_mode json = ctl->options.json;
	ctl->quiet = quiet || !app; /* that nobody is meant gets an answer of its own */
	ctl->options.json = JSON_SHORT;
	int status =
		ctl_call(ctl, "GetReport", ctl_run_parameters(ctl->verb_options, app), false, ret);
	ctl->options.json = json;
	ctl->quiet = quiet;
	return status;
}

static int run_report(struct ctl *ctl)
{
	const char *app = ctl_word(ctl, 0);
	cJSON *reply;
	int status = ask_report(ctl, app, &reply);
	if (status == CTL_NO_DATA && !app) {
		return several(ctl);
	}
	if (status != CTL_FINE) {
		return !app ? ctl_fail(ctl, status, "%s", ctl->failure) : status;
	}
	if (!ctl_json(ctl, reply)) {
		show_lines(ctl, json_word(reply, "text"));
	}
	cJSON_Delete(reply);
	return status;
}

static const struct option_spec report_table[] = {
	{"run", 0, "0|-1|-2", "show the current or latest run (0), or an earlier one (-1 to -8)",
		option_run, offsetof(struct run_options, run)},
	{"all-runs", 0, NULL, "combine all runs that are kept", option_flag,
		offsetof(struct run_options, all_runs)},
	{.name = NULL},
};

const struct verb verb_report = {"report", "[APP]",
	"Show an app's report, as it is written when the app ends.", "report cam", report_table,
	sizeof(struct run_options), run_report};
