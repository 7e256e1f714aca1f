/* SPDX-License-Identifier: Apache-2.0 */
/* report.c: reports about an app, a session or a recording. Of an app without further options it is
 * the daemon's own text, as it writes it when the app ends; all else is made of the records. */
#include "client/edgeprofctl/report/report.h"

#include <string.h>

#include "client/edgeprofctl/compare/document.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/template.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/verb.h"
#include "proto/text.h"

enum { NAMES_SIZE = 400, LINE_SIZE = 512 };

static int several(struct ctl *ctl)
{
	char names[NAMES_SIZE];
	struct text text = TEXT_IN(names);
	cJSON *reply;
	int status = ctl_call(ctl, "ListApps", ctl_add_flag(NULL, "all", true), true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	template_add(&text, "{*apps,, }{name}{/}", reply, ctl->style.utf8);
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
	enum json_mode json = ctl->options.json;
	ctl->options.json = JSON_SHORT;
	int status = ctl_try(ctl, "GetReport", ctl_run_parameters(ctl, app), ret);
	ctl->options.json = json;
	return status;
}

static bool is_session(struct ctl *ctl, const char *name)
{
	cJSON *reply;
	int status = ctl_try(ctl, "ListSessions", ctl_parameters("name", name), &reply);
	bool ret = status == CTL_FINE && json_count(reply, "sessions") > 0;
	cJSON_Delete(reply);
	return ret;
}

/* The word that a file's name asks for; NULL: none. */
static const char *format_of_name(const char *path)
{
	static const char *const formats[][2] = {{".html", "html"}, {".md", "markdown"},
		{".json", "json"}, {".xml", "junit"}, {".txt", "text"}};
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (text_ends_with(path, formats[i][0])) {
			return formats[i][1];
		}
	}
	return NULL;
}

static int write_report(struct ctl *ctl, const struct data *data, const char *format)
{
	FILE *out = ctl->output.stream;
	cJSON *tree = report_tree(data);
	int status = ctl->options.target ? report_target(ctl, ctl->options.target, tree) : CTL_FINE;
	if (status > CTL_NO_DATA) {
		cJSON_Delete(tree);
		return status;
	}
	if (strcmp(format, "profile") == 0) {
		cJSON_Delete(tree);
		tree = report_profile(data);
		format = "json";
	}
	if (strcmp(format, "json") == 0) {
		json_write(out, tree, ctl->options.json != JSON_SHORT);
	} else if (strcmp(format, "html") == 0) {
		report_html(data, tree, out);
	} else if (strcmp(format, "markdown") == 0) {
		report_markdown(data, tree, out);
	} else if (strcmp(format, "junit") == 0) {
		report_junit(tree, out);
	} else {
		report_text(ctl, tree);
	}
	cJSON_Delete(tree);
	return document_end(ctl, status);
}

static int report_data(struct ctl *ctl, const char *what, const char *format)
{
	struct data data;
	int status = data_read(ctl, what, ctl->options.app, &data);
	if (status != CTL_FINE) {
		return status;
	}
	document_begin(ctl);
	status = write_report(ctl, &data, format);
	if (status == CTL_FINE && data.frame_count == 0) {
		status = ctl_fail(ctl, CTL_NO_DATA, "no frames were measured in '%s'", what);
	}
	data_finish(&data);
	return status;
}

/* The text of the daemon. */
static int report_live(struct ctl *ctl, const char *app)
{
	cJSON *reply;
	int status = ask_report(ctl, app, &reply);
	if (status == CTL_NO_DATA) { /* a recording, perhaps */
		return app ? report_data(ctl, app, "text") : several(ctl);
	}
	if (status != CTL_FINE) {
		return ctl_fail(ctl, status, "%s", ctl->failure);
	}
	if (!ctl_json(ctl, reply)) {
		show_lines(ctl, json_word(reply, "text"));
	}
	cJSON_Delete(reply);
	return status;
}

/* The app that is meant without a name. */
static int only_app(struct ctl *ctl, char *ret, size_t size)
{
	cJSON *reply;
	int status = ask_report(ctl, NULL, &reply);
	snprintf(ret, size, "%s", json_word(reply, "app"));
	cJSON_Delete(reply);
	return status == CTL_NO_DATA ? several(ctl)
	       : status != CTL_FINE  ? ctl_fail(ctl, status, "%s", ctl->failure)
				     : CTL_FINE;
}

static int run(struct ctl *ctl)
{
	struct options *options = &ctl->options;
	char only[PROTO_NAME_SIZE];
	const char *what = ctl_word(ctl, 0), *format = options->format;
	bool is_file = what && data_is_file(what);
	int status = is_file ? CTL_FINE : ctl_connect(ctl);
	if (status != CTL_FINE) {
		return status;
	}
	if (options->card && (format || options->output || options->target || options->runs.run)) {
		return ctl_fail(ctl, CTL_USAGE,
			"--card cannot be combined with --format, --output, --target or --run");
	}
	if (options->output && strcmp(options->output, "-") == 0) {
		options->output = NULL;
	}
	if (!format && options->output && !(format = format_of_name(options->output))) {
		return ctl_fail(
			ctl, CTL_USAGE, "unknown file type of '%s'; use --format", options->output);
	}
	bool made = format || options->target || options->card;
	if (!made && !is_file && !(what && is_session(ctl, what))) {
		return report_live(ctl, what);
	}
	if (options->runs.all_runs) {
		return ctl_fail(ctl, CTL_USAGE,
			"--all-runs works with the plain report of an app only; use --run");
	}
	if (!what) {
		status = only_app(ctl, only, sizeof(only));
		what = only;
	}
	if (status != CTL_FINE || options->card) {
		return status != CTL_FINE ? status : report_card(ctl, what);
	}
	return report_data(ctl, what,
		format			    ? format
		: options->json != JSON_OFF ? "json"
					    : "text");
}

static const struct option_spec options[] = {
	{"format", 0, "text|json|markdown|junit|html|profile",
		"make the report of the records; profile: a short JSON", option_word,
		offsetof(struct options, format)},
	{"output", 'o', "FILE", "write to FILE, by its name .html, .md, .json, .xml or .txt",
		option_nonempty, offsetof(struct options, output)},
	{"target", 0, "TARGET", "compare with a target; see edgeprofctl targets", option_nonempty,
		offsetof(struct options, target)},
	{"targets", 0, "FILE", "read FILE in place of the installed targets", option_nonempty,
		offsetof(struct options, config)},
	{"card", 0, NULL, "show one page about a running app, with a drop-in for its unit",
		option_flag, offsetof(struct options, card)},
	{"app", 0, "APP", "the app of a recording; default: that with most frames", option_nonempty,
		offsetof(struct options, app)},
	{"run", 0, "0|-1|-2|-3|-4|-5|-6|-7|-8",
		"show the current or latest run (0), or an earlier one", option_run,
		offsetof(struct options, runs.run)},
	{"all-runs", 0, NULL, "combine all runs that are kept", option_flag,
		offsetof(struct options, runs.all_runs)},
	{.name = NULL},
};

const struct verb verb_report = {"report", "[APP|SESSION|FILE]",
	"Show the report of an app, a session or a recording, or write it to a file.",
	"report cam -o cam.md", options, run};
