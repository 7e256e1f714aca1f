/* apps: who is attached, the exact account of its events, and who was refused and why. */
#include "client/edgeprofctl/verbs.h"

#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"

static void add_pids(struct table *table, const cJSON *app)
{
	char pids[96] = "";
	size_t at = 0;
	for (const cJSON *process = json_first(app, "processes"); process != NULL && at < 40;
		process = process->next) {
		const char *comma = at > 0 ? "," : "";
		int64_t pid = json_integer(process, "pid"),
			inside = json_integer(process, "ns_pid");
		int length = pid > 0 ? snprintf(pids + at, sizeof(pids) - at, "%s%lld", comma,
					       (long long)pid)
				     : snprintf(pids + at, sizeof(pids) - at, "%s-", comma);
		at += (size_t)length;
		if (inside > 0) {
			length = snprintf(pids + at, sizeof(pids) - at, "/%lld", (long long)inside);
			at += (size_t)length;
		}
	}
	table_add(table, TONE_NONE, "%s", pids[0] == '\0' ? "-" : pids);
}

static void add_app(struct table *table, const cJSON *app)
{
	static const char *const counts[] = {"sent", "received", "dropped", "in_ring", "invalid"};
	const char *state = json_word(app, "state");
	table_add(table, TONE_NONE, "%s", json_word(app, "name"));
	table_add(table, style_of_state(state), "%s", state);
	add_pids(table, app);
	table_add_number(table, json_number(app, "uid"), 0);
	table_add_number(table, json_number(app, "stages"), 0);
	table_add_number(table, json_number(app, "fps"), 1);
	const char *level = json_text(cJSON_GetObjectItemCaseSensitive(app, "advice"), "level");
	bool less = level != NULL && strcmp(level, "full") != 0;
	table_add(table, less ? TONE_WARN : TONE_NONE, "%s", level != NULL ? level : "-");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		int64_t count = json_integer(app, counts[i]);
		bool bad = count > 0 && (i == 2 || i == 4);
		table_add(table, bad ? TONE_WARN : TONE_NONE, "%s", format_count(count).text);
	}
	table_add(table, TONE_DIM, "%s", format_time(json_integer(app, "since_us")).text);
}

/* What an app is told, when that is not to go on as it likes. */
static void show_advice(struct ctl *ctl, const cJSON *app)
{
	const cJSON *advice = cJSON_GetObjectItemCaseSensitive(app, "advice");
	const char *level = json_text(advice, "level");
	if (level == NULL || strcmp(level, "full") == 0) {
		return;
	}
	FILE *out = ctl->output.stream;
	fprintf(out, "%s: advised %s%s%s since %s: %s; skip %lld of %lld frames",
		json_word(app, "name"), style_on(&ctl->style, TONE_WARN), level,
		style_off(&ctl->style, TONE_WARN),
		format_time(json_integer(advice, "since_us")).text, json_word(advice, "reason"),
		(long long)json_integer(advice, "skip_frames"),
		(long long)json_integer(advice, "of_frames"));
	double fps = json_number(advice, "target_fps");
	if (fps > 0) {
		fprintf(out, " or make %.1f a second", fps);
	}
	fputc('\n', out);
}

/* Stages that are open now, and what the last process was doing when it died. */
static void show_details(struct ctl *ctl, const cJSON *app)
{
	FILE *out = ctl->output.stream;
	const char *name = json_word(app, "name");
	const char *words = json_text(app, "last_words");
	struct label last =
		format_last_fps(json_number(app, "last_fps"), json_number(app, "idle_ms"));
	if (last.text[0] != '\0') {
		fprintf(out, "%s: %s\n", name, last.text);
	}
	if (words != NULL) {
		fprintf(out, "%s: %s%s%s\n", name, style_on(&ctl->style, TONE_WARN), words,
			style_off(&ctl->style, TONE_WARN));
	}
	for (const cJSON *process = json_first(app, "processes"); process != NULL;
		process = process->next) {
		for (const cJSON *open = json_first(process, "open"); open != NULL;
			open = open->next) {
			double milliseconds = json_number(open, "open_ms");
			if (milliseconds > 1000) {
				fprintf(out, "%s: in `%s` for %s\n", name, json_word(open, "stage"),
					format_span(milliseconds / 1000).text);
			}
		}
	}
}

static void show_refused(struct ctl *ctl, const cJSON *reply)
{
	for (const cJSON *refusal = json_first(reply, "refused"); refusal != NULL;
		refusal = refusal->next) {
		const char *name = json_text(refusal, "app");
		double pid = json_number(refusal, "pid");
		char process[32] = "";
		if (pid == pid) {
			snprintf(process, sizeof(process), "pid %.0f, ", pid);
		}
		fprintf(ctl->output.stream,
			"%srefused%s: %s (%suid %lld): %s; %s tries, the last %s\n",
			style_on(&ctl->style, TONE_WARN), style_off(&ctl->style, TONE_WARN),
			name != NULL ? name : "a process", process,
			(long long)json_integer(refusal, "uid"), json_word(refusal, "reason"),
			format_count(json_integer(refusal, "count")).text,
			format_time(json_integer(refusal, "last_us")).text);
	}
}

static void show_apps(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"APP", false, true},
		{"STATE", false, false},
		{"PID", true, false},
		{"UID", true, false},
		{"STAGES", true, false},
		{"FPS", true, false},
		{"ADVICE", false, false},
		{"SENT", true, false},
		{"RECEIVED", true, false},
		{"DROPPED", true, false},
		{"WAITING", true, false},
		{"INVALID", true, false},
		{"SINCE", false, true},
	};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *app = json_first(reply, "apps"); app != NULL; app = app->next) {
		add_app(&table, app);
	}
	if (json_count(reply, "apps") > 0) {
		table_print(&table, &ctl->style, ctl->output.stream, 0);
	}
	table_finish(&table);
	for (const cJSON *app = json_first(reply, "apps"); app != NULL; app = app->next) {
		show_advice(ctl, app);
		show_details(ctl, app);
	}
	show_refused(ctl, reply);
}

int verb_apps(struct ctl *ctl)
{
	cJSON *reply;
	int status =
		ctl_call(ctl, "ListApps", ctl_all(ctl, ctl_parameters("", NULL)), true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		show_apps(ctl, reply);
	}
	if (json_count(reply, "apps") == 0) {
		status = ctl_fail(ctl, CTL_NO_DATA,
			ctl->options.given & OPTION_ALL
				? "no app has attached yet; see edgeprof(3), or try: edgeprofctl "
				  "emit work 5ms --app test"
				: "no app runs; see edgeprof(3), or --all for those that ended");
	}
	cJSON_Delete(reply);
	return status;
}
