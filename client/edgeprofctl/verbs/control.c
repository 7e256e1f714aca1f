/* SPDX-License-Identifier: Apache-2.0 */
/* control.c: controls the daemon: source lists sensor sources and switches them, reload reads the
 * configuration again, version compares both sides. */

#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/verb.h"

static const struct field source_fields[] = {
	{"SOURCE", FIELD_TEXT, "{name}"},
	{"STATE", FIELD_TEXT, "{~:state}{state}"},
	{"EVERY", FIELD_NUMBER, "[{?interval_ms}{interval_ms:ms}|-]"},
	{"METRICS", FIELD_NUMBER, "{metrics:0}"},
	{"TICKS", FIELD_NUMBER, "{ticks:0}"},
	{"ERRORS", FIELD_NUMBER, "[{?errors}{~warn}][{errors:0}|0]"},
	{"COST us", FIELD_NUMBER, "{duration_us:0}"},
	{"AGE", FIELD_NUMBER, "{~dim}{age_ms:ms}"},
	{"NOTE", FIELD_LONG, "{~dim}{reason}[{!enabled}{!reason}disabled]"},
};

enum { SOURCE_FIELDS = sizeof(source_fields) / sizeof(source_fields[0]) };

static void show_sources(struct ctl *ctl, const cJSON *reply)
{
	listing_show(ctl, reply, "sources", source_fields, SOURCE_FIELDS);
}

static void show_source(struct ctl *ctl, const cJSON *reply)
{
	struct listing listing;
	listing_begin(&listing, ctl, source_fields, SOURCE_FIELDS);
	listing_add(&listing, json_get(reply, "source"));
	listing_end(&listing);
}

static int run_source(struct ctl *ctl)
{
	const char *action = ctl->word_count > 0 ? ctl->words[0] : "list";
	bool disable = strcmp(action, "disable") == 0;
	if (strcmp(action, "list") == 0 && ctl->word_count <= 1) {
		return ctl_show(ctl, "ListSources", NULL, true, show_sources);
	}
	if ((!disable && strcmp(action, "enable") != 0) || ctl->word_count != 2) {
		return ctl_fail(ctl, CTL_USAGE,
			"usage: edgeprofctl source list | enable SOURCE [--interval SPAN] | "
			"disable SOURCE");
	}
	cJSON *parameters = ctl_parameters("name", ctl->words[1]);
	cJSON_AddBoolToObject(parameters, "enabled", !disable);
	if (ctl->options.interval_ms > 0) {
		cJSON_AddNumberToObject(parameters, "interval_ms", ctl->options.interval_ms);
	}
	return ctl_show(ctl, "SetSource", parameters, false, show_source);
}

static const struct option_spec source_table[] = {
	{"interval", 0, "SPAN", "enable: read the source this often, such as 500ms", option_ms,
		offsetof(struct options, interval_ms)},
	{.name = NULL},
};

const struct verb verb_source = {"source", "[list] | enable SOURCE | disable SOURCE",
	"List sensor sources; enable or disable one.", "source disable tegrastats", source_table,
	run_source};

static void show_reload(struct ctl *ctl, const cJSON *reply)
{
	listing_text(ctl,
		"Configuration reloaded.\n[{~warn}Takes effect after a restart: {restart}\n]",
		reply);
}

static int run_reload(struct ctl *ctl)
{
	return ctl_show(ctl, "Reload", NULL, false, show_reload);
}

const struct verb verb_reload = {
	"reload", "", "Reload the configuration, all or nothing.", "reload", NULL, run_reload};

static void show_version(struct ctl *ctl, const cJSON *reply)
{
	fprintf(ctl->output.stream, "%s %s\n", json_word(reply, "product"),
		json_word(reply, "version"));
}

static int run_version(struct ctl *ctl)
{
	if (ctl->options.json == JSON_OFF) {
		fputs("edgeprofctl " EDGEPROF_VERSION "\n", ctl->output.stream);
	}
	return ctl_show(ctl, "org.varlink.service.GetInfo", NULL, false, show_version);
}

const struct verb verb_version = {"version", "", "Show the versions of edgeprofctl and edgeprofd.",
	"version", NULL, run_version};
