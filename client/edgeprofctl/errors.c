/* SPDX-License-Identifier: Apache-2.0 */
/* errors.c: explains the daemon's errors, and for a name that it does not know suggests a similar
 * one, what is kept of it, or the command that lists the names. */
#include "client/edgeprofctl/ctl.h"

#include <stdarg.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/similar.h"
#include "client/edgeprofctl/template.h"
#include "proto/text.h"

/* What a Varlink error means for a person: templates of its parameters and `asked`, the method. */
static const struct {
	const char *name;
	enum ctl_exit status;
	const char *text;
} errors[] = {
	{"NotFound", CTL_NO_DATA,
		"[{?name=worst}no frame to explain yet|{?name=then}no frame of that time is kept|"
		"there is no {what} '[{name}|]']"},
	{"NotPermitted", CTL_NOT_PERMITTED,
		"{asked} [{?asked=StartSession}of another user's app ]is permitted for root and "
		"group [{group}|edgeprof] only; join it: sudo usermod -aG [{group}|edgeprof] "
		"$USER, then log in again"},
	{"ReloadFailed", CTL_BAD_NEWS, "reload rejected: {text}"},
	{"ConfigurationInvalid", CTL_UNREACHABLE,
		"edgeprofd cannot start: invalid configuration ('sudo edgeprofd "
		"--check-config' shows all errors)[: {text}]"},
	{"RecordFailed", CTL_BAD_NEWS, "recording failed: {text}"},
	{"SessionFailed", CTL_BAD_NEWS, "{asked}: {text}"},
	{"LimitReached", CTL_BAD_NEWS, "{asked}: limit of {limit:0} {what} reached"},
	{"TooLarge", CTL_USAGE, "{asked}: reply too large; ask for less"},
	{"InvalidParameter", CTL_USAGE,
		"[{limits}|{asked}: the daemon rejects the value of '{parameter}']"},
	{"MethodNotFound", CTL_UNREACHABLE,
		"the daemon does not support {asked}; it may be older than edgeprofctl"},
	{"MethodNotImplemented", CTL_UNREACHABLE,
		"the daemon does not support {asked}; it may be older than edgeprofctl"},
};

/* Which values the daemon takes for a parameter, by the option or argument that it comes from. */
static const struct {
	const char *parameter, *text;
} limits[] = {
	{"all_runs", "--run and --all-runs exclude each other"},
	{"before_s", "BEFORE is at most 10min"},
	{"after_s", "AFTER is at most 10min"},
	{"deadline_ms", "--deadline is from 0.001 ms to 1d"},
	{"fps", "--fps is from 0.001 to 100000"},
	{"frames", "--frames is from 1 to 1000000"},
	{"from_us", "the span begins in the future, or ends before it begins"},
	{"glob", "invalid GLOB; metrics have the characters A-Z a-z 0-9 _ . - with / between "
		 "segments, a GLOB also * and ?"},
	{"instance", "INSTANCE is not empty, and has no /"},
	{"interval_ms", "--interval is from 50ms to 1h"},
	{"label", "LABEL has up to 96 bytes"},
	{"max_points", "--max-points is from 1 to 100000"},
	{"name", "--name has up to 48 characters of A-Z a-z 0-9 _ . -"},
	{"note", "--note has up to 128 bytes, without control characters"},
	{"pattern", "PATTERN has up to 127 bytes, without control characters"},
	{"pid", "PID is from 1 to 4194304"},
	{"recent", "--recent is from 1 to 128"},
	{"rule", "RULE has up to 48 characters of A-Z a-z 0-9 _ . -"},
	{"seconds", "--duration is from 1ms to 1d"},
	{"step_ms", "--step is from 1ms to 7d"},
	{"tags", "--tag NAME=VALUE has up to 48 and 256 bytes, no control characters, and each "
		 "NAME once"},
	{"text", "--note has from 1 to 200 bytes, without control characters"},
	{"unit", "UNIT has up to 127 bytes, without control characters"},
	{"warmup", "--warmup is from 0 to 100000"},
};

/* What may not be found, where its names are, and the command that lists them. */
static const struct list {
	const char *what, *method, *array, *name, *command;
} lists[] = {
	{"app", "ListApps", "apps", "name", "apps"},
	{"metric", "ListMetrics", "metrics", "name", "sensors --all"},
	{"frame", NULL, NULL, NULL, "frames APP --recent"},
	{"source", "ListSources", "sources", "name", "source list"},
	{"recording", "ListRecordings", "recordings", "name", "record list"},
	{"session", "ListSessions", "sessions", "name", "session list"},
	{"watch", NULL, NULL, NULL, "ps"},
	{"silence", NULL, NULL, NULL, "silence"},
	{"alert rule", "ListRules", "rules", "rule", "rules"},
};

/* A word without a '/' may be any segment of a metric's name. */
static void compare(struct similar *similar, const struct list *list, const cJSON *row)
{
	char *rest = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, list->name));
	bool whole = strcmp(list->what, "metric") != 0 || strchr(similar->word, '/');
	while (rest) {
		similar_add(similar, whole ? rest : strsep(&rest, "/"));
		rest = whole ? NULL : rest;
	}
}

void ctl_hint(struct ctl *ctl, struct text *text, const char *what, const char *name)
{
	const struct list *list = lists, *end = lists + sizeof(lists) / sizeof(lists[0]);
	const char *command = NULL;
	struct similar similar = similar_to(name);
	cJSON *replies = cJSON_CreateArray(); /* similar.name is in one of them */
	for (; list < end; list++) {
		if (!strstr(what, list->what)) {
			continue;
		}
		cJSON *reply = NULL;
		bool apps = list == lists;
		if (list->method) {
			ctl_try(ctl, list->method, ctl_add_flag(NULL, "all", apps), &reply);
		}
		for (const cJSON *row = json_first(reply, list->array); row; row = row->next) {
			compare(&similar, list, row);
		}
		cJSON_AddItemToArray(replies, reply);
		command = command ? command : list->command;
	}
	similar_ask(&similar, text);
	if (command && !similar.name) {
		text_add(text, "; 'edgeprofctl %s' lists them", command);
	}
	cJSON_Delete(replies);
}

int ctl_unknown(
	struct ctl *ctl, int status, const char *what, const char *name, const char *format, ...)
{
	char bytes[sizeof(ctl->failure)];
	struct text text = TEXT_IN(bytes);
	va_list arguments;
	va_start(arguments, format);
	text_vadd(&text, format, arguments);
	va_end(arguments);
	ctl_hint(ctl, &text, what, name);
	return ctl_fail(ctl, status, "%s", bytes);
}

/* The daemon keeps reports of runs that it has not seen itself. */
static bool add_report(struct ctl *ctl, struct text *text, const char *what, const char *name)
{
	cJSON *reply = NULL;
	bool kept = strcmp(what, "app") == 0 &&
		    ctl_try(ctl, "GetReport", ctl_parameters("app", name), &reply) == CTL_FINE;
	if (kept) {
		text_add(text, " any more; 'edgeprofctl report %s' shows its last run", name);
	}
	cJSON_Delete(reply);
	return kept;
}

int ctl_refused(struct ctl *ctl, const char *method, const char *error, cJSON *parameters)
{
	char bytes[sizeof(ctl->failure)];
	struct text text = TEXT_IN(bytes);
	static const char *const interfaces[] = {"io.edgeprof.", "org.varlink.service."};
	const char *name = error;
	for (size_t i = 0; i < sizeof(interfaces) / sizeof(interfaces[0]); i++) {
		name += text_starts_with(name, interfaces[i]) ? strlen(interfaces[i]) : 0;
	}
	json_clean(parameters, ctl->style.utf8);
	cJSON_AddStringToObject(parameters, "asked", method);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (strcmp(limits[i].parameter, json_word(parameters, "parameter")) == 0) {
			cJSON_AddStringToObject(parameters, "limits", limits[i].text);
		}
	}
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (strcmp(errors[i].name, name) == 0) {
			/* only who gets no connection has not reached the daemon */
			bool unreached =
				strcmp(name, "LimitReached") == 0 &&
				text_starts_with(json_word(parameters, "what"), "connections");
			template_add(&text, errors[i].text, parameters, ctl->style.utf8);
			const char *what = json_word(parameters, "what"),
				   *unknown = json_word(parameters, "name");
			if (strcmp(name, "NotFound") == 0 && !ctl->quiet &&
				!add_report(ctl, &text, what, unknown)) {
				ctl_hint(ctl, &text, what, unknown);
			}
			return ctl_fail(
				ctl, unreached ? CTL_UNREACHABLE : errors[i].status, "%s", bytes);
		}
	}
	return ctl_fail(ctl, CTL_UNREACHABLE, "%s: the daemon replied with %s", method, error);
}
