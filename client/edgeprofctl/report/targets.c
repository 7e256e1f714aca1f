/* SPDX-License-Identifier: Apache-2.0 */
/* targets.c: lists performance targets, and compares a report with one. They come from
 * targets.conf, /etc/edgeprofd/targets.d, and what [sessions] targets names: sections with the keys
 * fps, latency and note. */
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/report/report_private.h"
#include "client/edgeprofctl/sessions/sessions.h"
#include "client/edgeprofctl/similar.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/verb.h"
#include "proto/name.h"

enum { LINE_SIZE = 512, LINES_MAX = 10000 };

/* "15-25", or "30" for both ends. */
static bool parse_range(cJSON *row, const char *least, const char *most, const char *text)
{
	double low = 0, high = 0;
	int used = 0;
	bool plain = text[strspn(text, "0123456789.- ")] == '\0';
	int count = sscanf(text, "%lf%n - %lf%n", &low, &used, &high, &used);
	high = count == 1 ? low : high;
	json_add_number(row, least, low);
	json_add_number(row, most, high);
	return plain && count > 0 && text[used] == '\0' && low > 0 && low <= high;
}

static cJSON *find(const cJSON *targets, const char *name)
{
	for (const cJSON *row = json_first(targets, "targets"); row; row = row->next) {
		if (strcmp(json_word(row, "target"), name) == 0) {
			return (cJSON *)(uintptr_t)row;
		}
	}
	return NULL;
}

/* A section replaces one of the same name. */
static cJSON *begin(cJSON *targets, const char *name, const char *source)
{
	cJSON *array = cJSON_GetObjectItemCaseSensitive(targets, "targets");
	cJSON_Delete(cJSON_DetachItemViaPointer(array, find(targets, name)));
	cJSON *row = report_add_row(array);
	cJSON_AddStringToObject(row, "target", name);
	cJSON_AddStringToObject(row, "source", source);
	return row;
}

/* What is wrong with the line; NULL: nothing. */
static const char *read_line(cJSON *targets, cJSON **row, char *line, const char *source)
{
	static const char *const keys[][3] = {{"fps", "fps_min", "fps_max"},
		{"latency", "latency_min_ms", "latency_max_ms"}, {"note", "note", NULL}};
	char *value = strchr(line, '=');
	if (line[0] == '\0' || line[0] == '#' || line[0] == ';') {
		return NULL;
	}
	if (line[0] == '[') {
		char *end = strchr(line, ']');
		bool good = end && end[1] == '\0';
		*(end ? end : line) = '\0';
		good = good && proto_path_valid(line + 1);
		*row = good ? begin(targets, line + 1, source) : NULL;
		return good ? NULL : "expected [DEVICE/MODEL]";
	}
	if (!value || !*row) {
		return *row ? "expected KEY = VALUE" : "expected [DEVICE/MODEL] first";
	}
	*value++ = '\0';
	const char *key = text_trim(line), *text = value = text_trim(value);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(key, keys[i][0]) != 0) {
			continue;
		}
		if (json_get(*row, keys[i][1])) {
			return "the key is there twice";
		}
		if (keys[i][2]) {
			bool good = parse_range(*row, keys[i][1], keys[i][2], text);
			return good ? NULL : "invalid range";
		}
		text_clean(value, true);
		cJSON_AddStringToObject(*row, keys[i][1], text);
		return NULL;
	}
	return "unknown key; expected fps, latency or note";
}

static int read_file(struct ctl *ctl, cJSON *targets, const char *path)
{
	char line[LINE_SIZE];
	const char *fault = NULL;
	int number = 0;
	cJSON *row = NULL;
	FILE *file = fopen(path, "re");
	if (!file) {
		return ctl_fail(ctl, CTL_NO_INPUT, "cannot read '%s': %s", path, strerror(errno));
	}
	while (!fault && number < LINES_MAX && fgets(line, sizeof(line), file)) {
		number++;
		size_t length = strlen(line);
		bool is_long = length == sizeof(line) - 1 && line[length - 1] != '\n';
		fault = is_long ? "line too long" : read_line(targets, &row, text_trim(line), path);
	}
	bool failed = ferror(file) != 0;
	fclose(file);
	return fault	? ctl_fail(ctl, CTL_NO_INPUT, "%s:%d: %s", path, number, fault)
	       : failed ? ctl_fail(ctl, CTL_NO_INPUT, "cannot read '%s'", path)
			: CTL_FINE;
}

int targets_read(struct ctl *ctl, cJSON **ret)
{
	cJSON *targets = cJSON_CreateObject();
	const char *own = ctl->options.config;
	glob_t files = {0};
	int status = CTL_FINE;
	cJSON_AddArrayToObject(targets, "targets");
	glob(own ? own : "/etc/edgeprofd/targets.d/*.conf", own ? GLOB_NOCHECK : 0, NULL, &files);
	if (!own && access(EDGEPROF_TARGETS, F_OK) == 0) {
		status = read_file(ctl, targets, EDGEPROF_TARGETS);
	}
	for (size_t i = 0; i < files.gl_pathc && status == CTL_FINE; i++) {
		status = read_file(ctl, targets, files.gl_pathv[i]);
	}
	globfree(&files);
	char *more = own || status != CTL_FINE ? NULL : session_setting(ctl, "targets");
	status = more ? read_file(ctl, targets, more) : status;
	free(more);
	if (status == CTL_FINE) {
		*ret = targets;
	} else {
		cJSON_Delete(targets);
	}
	return status;
}

static void show_targets(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"TARGET", FIELD_TEXT, "{target}"},
		{"FPS", FIELD_NUMBER, "[{fps_min:g}-{fps_max:g}|-]"},
		{"LATENCY ms", FIELD_NUMBER, "[{latency_min_ms:g}-{latency_max_ms:g}|-]"},
		{"NOTE", FIELD_LONG, "{~dim}{note}"},
	};
	listing_show(ctl, reply, "targets", fields, sizeof(fields) / sizeof(fields[0]));
}

static bool wanted(const cJSON *row, const char *glob)
{
	return !glob || proto_query_match(glob, json_word(row, "target"));
}

static int run(struct ctl *ctl)
{
	const char *glob = ctl_word(ctl, 0);
	cJSON *targets;
	int status = ctl_check_local(ctl);
	status = status == CTL_FINE ? targets_read(ctl, &targets) : status;
	if (status != CTL_FINE) {
		return status;
	}
	if (listing_narrow(targets, "targets", wanted, glob) == 0) {
		cJSON_Delete(targets);
		return glob ? ctl_fail(ctl, CTL_NO_DATA, "no target matches '%s'", glob)
			    : ctl_fail(ctl, CTL_NO_DATA, "no targets in " EDGEPROF_TARGETS);
	}
	if (ctl->options.json == JSON_OFF) {
		json_clean(targets, ctl->style.utf8);
	}
	return ctl_answer(ctl, targets, show_targets);
}

/* Adds the verdict on one number; more says that a larger one is better. */
static int judge(cJSON *verdicts, const char *what, double value, double min, double max, bool more)
{
	char bytes[160];
	struct text text = TEXT_IN(bytes);
	if (isnan(min)) {
		return CTL_FINE;
	}
	bool outside = !(more ? value >= min : value <= max);
	bool better = more ? value > max : value < min;
	cJSON *row = report_add_row(verdicts);
	cJSON_AddStringToObject(row, "what", what);
	json_add_number(row, "value", value);
	json_add_number(row, "min", min);
	json_add_number(row, "max", max);
	cJSON_AddBoolToObject(row, "outside", outside);
	cJSON_AddStringToObject(row, "verdict",
		isnan(value) ? "not measured, target"
		: outside    ? "outside"
		: better     ? "better than"
			     : "inside");
	template_add(&text, "{what} {value:1}: {verdict} {min:g} to {max:g}", row, true);
	cJSON_AddStringToObject(row, "text", bytes);
	return isnan(value) ? CTL_NO_DATA : outside ? CTL_BAD_NEWS : CTL_FINE;
}

int report_target(struct ctl *ctl, const char *name, cJSON *tree)
{
	cJSON *targets;
	int status = targets_read(ctl, &targets);
	if (status != CTL_FINE) {
		return status;
	}
	const cJSON *row = find(targets, name);
	if (!row) {
		char bytes[256];
		struct text text = TEXT_IN(bytes);
		struct similar similar = similar_to(name);
		for (row = json_first(targets, "targets"); row; row = row->next) {
			similar_add(&similar, json_word(row, "target"));
		}
		similar_ask(&similar, &text);
		cJSON_Delete(targets);
		return ctl_fail(ctl, CTL_NO_DATA, "unknown target '%s'%s", name,
			similar.name ? bytes : "; 'edgeprofctl targets' lists them");
	}
	cJSON *target = cJSON_AddObjectToObject(tree, "target");
	cJSON_AddStringToObject(target, "name", name);
	cJSON_AddStringToObject(target, "note", json_word(row, "note"));
	cJSON *verdicts = cJSON_AddArrayToObject(target, "verdicts");
	int fps = judge(verdicts, "fps", json_number(json_get(tree, "frames"), "fps"),
		json_number(row, "fps_min"), json_number(row, "fps_max"), true);
	int latency = judge(verdicts, "latency ms",
		1000 / json_number(json_get(tree, "summary"), "mean_fps"),
		json_number(row, "latency_min_ms"), json_number(row, "latency_max_ms"), false);
	cJSON_Delete(targets);
	return fps > latency ? fps : latency;
}

static const struct option_spec options[] = {
	{"targets", 0, "FILE", "read FILE in place of the installed targets", option_nonempty,
		offsetof(struct options, config)},
	{.name = NULL},
};

const struct verb verb_targets = {"targets", "[TARGET]",
	"List performance targets by device and model.", "targets rpi5", options, run};
