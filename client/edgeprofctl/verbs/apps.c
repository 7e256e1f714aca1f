/* SPDX-License-Identifier: Apache-2.0 */
/* apps.c: shows who is attached, the exact account of its events, and who was refused and why. */
#include "client/edgeprofctl/verb.h"

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"

/* The advice, unless it is to do all that the app can; and the last words of its last process. */
static const char about_app[] =
	"[{?advice.level}{!advice.level=full}{name}: advised {~warn}{advice.level}{~none} since "
	"[{advice.since_us:time}|-]: [{advice.reason}]; skip [{advice.skip_frames:0}|-] of "
	"[{advice.of_frames:0}|-] frames"
	"[{?advice.target_fps}, or {advice.target_fps:1} frames per second]\n]"
	"[{name}: last {last_fps:1} fps {idle_ms:ago}\n]"
	"[{last_words:is}{name}: {~warn}{last_words}{~none}\n]";

static const char refused_app[] =
	"{~warn}refused{~none}: [{app}|a process] ([pid {pid:0}, ]uid {uid:0}): {reason}; "
	"[{?count>=2}{count:count} times, last ]at {last_us:time}\n";

/* Stages that are open now, for long. */
static void show_open(struct ctl *ctl, const cJSON *app)
{
	const cJSON *process = json_first(app, "processes");
	for (; process; process = process->next) {
		for (const cJSON *open = json_first(process, "open"); open; open = open->next) {
			if (json_number(open, "open_ms") > 1000) {
				listing_text(ctl, "{name}: ", app);
				listing_text(ctl, "in `{stage}` for {open_ms:ms}\n", open);
			}
		}
	}
}

static void show_apps(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"APP", FIELD_LONG, "{name}"},
		{"STATE", FIELD_TEXT, "{~:state}{state}"},
		{"PID", FIELD_NUMBER,
			"{~none}[{*processes,,}[{?pid}{pid:0}|-][{?ns_pid}/{ns_pid:0}]{/}|-]"},
		{"UID", FIELD_NUMBER, "{uid:0}"},
		{"STAGES", FIELD_NUMBER, "{stages:0}"},
		{"FPS", FIELD_NUMBER, "{fps:1}"},
		{"ADVICE", FIELD_TEXT,
			"{~none}[{advice.level:is}{!advice.level=full}{~warn}][{advice.level}|-]"},
		{"SENT", FIELD_NUMBER, "{sent:count}"},
		{"RECEIVED", FIELD_NUMBER, "{received:count}"},
		{"DROPPED", FIELD_NUMBER, "[{?dropped}{~warn}]{dropped:count}"},
		{"WAITING", FIELD_NUMBER, "{in_ring:count}"},
		{"INVALID", FIELD_NUMBER, "[{?invalid}{~warn}]{invalid:count}"},
		{"SINCE", FIELD_TEXT, "{~dim}{since_us:time}"},
	};
	listing_show(ctl, reply, "apps", fields, sizeof(fields) / sizeof(fields[0]));
	for (const cJSON *app = json_first(reply, "apps"); app; app = app->next) {
		listing_text(ctl, about_app, app);
		show_open(ctl, app);
	}
	listing_texts(ctl, refused_app, reply, "refused");
}

static int run_apps(struct ctl *ctl)
{
	const char *empty =
		ctl->options.all
			? "no app has attached yet; see edgeprof(3), or try: edgeprofctl emit "
			  "work 5ms --app test"
			: "no app is running; see edgeprof(3), or use --all for those that "
			  "ended";
	return ctl_list(ctl, "ListApps", ctl_add_flag(NULL, "all", ctl->options.all), "apps",
		show_apps, "%s", empty);
}

static const struct option_spec apps_table[] = {
	{"all", 'a', NULL, "include apps that ended more than 10 s ago", option_flag,
		offsetof(struct options, all)},
	{.name = NULL},
};

const struct verb verb_apps = {"apps", "",
	"Show attached applications and the counts of their events.", "apps", apps_table, run_apps};
