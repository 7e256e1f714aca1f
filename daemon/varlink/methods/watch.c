/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c: answers WatchProcess: changes the list of watched processes. The process collector
 * notices by the list's serial number.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/metrics/processes.h"
#include "daemon/varlink/methods/methods.h"

enum {
	WATCH_PARAM_PID,
	WATCH_PARAM_PATTERN,
	WATCH_PARAM_UNIT,
	WATCH_PARAM_NAME,
	WATCH_PARAM_REMOVE
};

/* "camera*" -> camera, "/opt/bin/det?ctor" -> det_ctor */
static void name_of_pattern(const char *pattern, char name[PROTO_NAME_SIZE])
{
	const char *slash = strrchr(pattern, '/');
	const char *from = slash && slash[1] != '\0' ? slash + 1 : pattern;
	from += strspn(from, "*?");
	size_t length = strlen(from);
	while (length > 0 && strchr("*?", from[length - 1])) {
		length--;
	}
	proto_name_clean(from, length, name);
}

/* Copies the text to the watch's pattern. False when it is empty, too long or holds what no name of
 * a process or unit has. */
static bool take_pattern(struct watch *watch, const char *text, const char *suffix)
{
	size_t length = strlen(text), more = strlen(suffix);
	if (length == 0 || length + more >= sizeof(watch->pattern)) {
		return false;
	}
	for (const char *p = text; *p; p++) {
		if (iscntrl((unsigned char)*p)) {
			return false;
		}
	}
	memcpy(watch->pattern, text, length);
	memcpy(watch->pattern + length, suffix, more + 1);
	return true;
}

/* The parameter that is wrong, or NULL. */
static const char *read_watch(const struct value *value, struct watch *watch)
{
	if (value[WATCH_PARAM_PID].present) {
		watch->kind = WATCH_PID;
		watch->pid = (pid_t)value[WATCH_PARAM_PID].integer;
		snprintf(watch->name, sizeof(watch->name), "pid-%d", (int)watch->pid);
	} else if (value[WATCH_PARAM_PATTERN].present) {
		watch->kind = WATCH_PATTERN;
		if (!take_pattern(watch, value[WATCH_PARAM_PATTERN].string, "")) {
			return "pattern";
		}
		name_of_pattern(watch->pattern, watch->name);
	} else {
		const char *unit = value[WATCH_PARAM_UNIT].string;
		watch->kind = WATCH_UNIT;
		if (strchr(unit, '/') ||
			!take_pattern(watch, unit, strchr(unit, '.') ? "" : ".service")) {
			return "unit";
		}
		proto_name_clean(unit, strcspn(unit, "."), watch->name);
	}
	if (value[WATCH_PARAM_NAME].present) {
		const char *name = value[WATCH_PARAM_NAME].string;
		if (!proto_name_valid(name)) {
			return "name";
		}
		memcpy(watch->name, name, strlen(name) + 1); /* a valid one fits */
	}
	return NULL;
}

static enum api_result answer(struct api_call *call, const char *name, int count)
{
	json_string(call->out, "name", name);
	json_integer(call->out, "count", count);
	return API_LAST;
}

/* name is also looked for among patterns and units: who unwatches says what he has seen. */
static enum api_result remove_watches(struct api_call *call, const struct watch *watch)
{
	const struct value *value = call->value;
	bool by_name = value[WATCH_PARAM_NAME].present;
	const char *name = by_name ? value[WATCH_PARAM_NAME].string : watch->pattern;
	char pid[16];
	int count = processes_unwatch_runtime(
		call->core->processes, watch->pid, name[0] != '\0' ? name : NULL);
	if (count == 0) {
		snprintf(pid, sizeof(pid), "%d", (int)watch->pid);
		return reply_not_found(call->out, "watch", name[0] != '\0' ? name : pid);
	}
	return answer(call, name[0] != '\0' ? name : watch->name, count);
}

enum api_result method_watch_process(struct api_call *call)
{
	struct processes *processes = call->core->processes;
	const struct value *value = call->value;
	bool removal = value[WATCH_PARAM_REMOVE].boolean;
	int given = value[WATCH_PARAM_PID].present + value[WATCH_PARAM_PATTERN].present +
		    value[WATCH_PARAM_UNIT].present;
	struct watch watch = {.runtime = true};
	if (given > 1 || (given == 0 && !(removal && value[WATCH_PARAM_NAME].present))) {
		return reply_invalid_parameter(call->out, "pid");
	}
	const char *bad = given == 1 ? read_watch(value, &watch) : NULL;
	if (bad) {
		return reply_invalid_parameter(call->out, bad);
	}
	if (removal) {
		return remove_watches(call, &watch);
	}
	if (processes_runtime(processes) >= WATCHES_RUNTIME_MAX) {
		return reply_limit(call->out, "watches", WATCHES_RUNTIME_MAX);
	}
	int r = processes_watch(processes, &watch);
	if (r == -ENOSPC) {
		return reply_limit(call->out, "watches", WATCHES_MAX);
	}
	return answer(call, watch.name, r == -EEXIST ? 0 : 1);
}
