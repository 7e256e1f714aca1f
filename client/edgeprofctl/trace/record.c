/* SPDX-License-Identifier: Apache-2.0 */
/* record.c: starts, lists, shows and exports recordings of the flight recorder. A name with a '/'
 * is that of a file, which needs no daemon. */
#include "client/edgeprofctl/trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/trace/replay.h"
#include "client/edgeprofctl/verb.h"
#include "client/edgeprofctl/term/when.h"

static int add_span(struct ctl *ctl, cJSON *parameters, const char *name, int word)
{
	double seconds;
	if (ctl->word_count <= word) {
		return CTL_FINE;
	}
	if (when_parse_span(ctl->words[word], &seconds) < 0) {
		return ctl_fail(ctl, CTL_USAGE,
			"invalid span '%s'; use a number with a unit, such as 30s",
			ctl->words[word]);
	}
	cJSON_AddNumberToObject(parameters, name, seconds);
	return CTL_FINE;
}

static void show_now(struct ctl *ctl, const cJSON *reply)
{
	fprintf(ctl->output.stream, "%s%s\n", json_word(reply, "name"),
		json_true(reply, "joined") ? " (was open already)" : "");
}

static int record_now(struct ctl *ctl)
{
	cJSON *parameters = ctl_parameters("label", ctl_word(ctl, 1));
	int status = add_span(ctl, parameters, "before_s", 2);
	status = status == CTL_FINE ? add_span(ctl, parameters, "after_s", 3) : status;
	if (status != CTL_FINE) {
		cJSON_Delete(parameters);
		return status;
	}
	return ctl_show(ctl, "RecordNow", parameters, false, show_now);
}

static void show_list(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"NAME", FIELD_TEXT, "{name}"},
		{"WHEN", FIELD_TEXT, "{time_us:time}"},
		{"SPAN", FIELD_NUMBER, "{span_s:1} s"},
		{"SIZE", FIELD_NUMBER, "{bytes:bytes}"},
		{"TRIGGER", FIELD_LONG, "{trigger}[ (+{also:0})]"},
		{"INCOMPLETE", FIELD_LONG, "[{?lost}lost {lost:count}[{?cut}; ]]{cut}"},
	};
	cJSON *row = NULL;
	cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, "recordings"))
	{
		double also = fmin(json_number(row, "triggers") - 1, 999);
		if (also >= 1) {
			cJSON_AddNumberToObject(row, "also", also);
		}
	}
	listing_show(ctl, reply, "recordings", fields, sizeof(fields) / sizeof(fields[0]));
	listing_text(ctl,
		"[{?open}in progress: {open}\n][{?refused}refused: {refused:count} (at most 12 in "
		"24 hours, 10 of them automatic)\n][{?failed}not written: {failed:count}; the "
		"last: "
		"[{reason}|written since]\n]",
		reply);
}

static int record_list(struct ctl *ctl)
{
	return ctl_list(ctl, "ListRecordings", NULL, "recordings", show_list,
		"no recordings yet; 'edgeprofctl record now' makes one");
}

static int with_recording(struct ctl *ctl, int (*use)(struct ctl *ctl))
{
	const char *name = ctl->words[1];
	int status = replay_load(ctl, name, strchr(name, '/') ? NULL : "GetRecording");
	if (status == CTL_FINE) {
		ctl->word_count = 0; /* no app */
		status = use(ctl);
	}
	replay_destroy(ctl->replay);
	ctl->replay = NULL;
	return status;
}

static int run(struct ctl *ctl)
{
	static const struct {
		const char *name;
		int least, most;
		int (*run)(struct ctl *ctl), (*use)(struct ctl *ctl);
	} verbs[] = {{"list", 1, 1, record_list, NULL}, {"now", 1, 4, record_now, NULL},
		{"show", 2, 2, NULL, record_show}, {"export", 2, 2, NULL, trace_command}};
	if (ctl->word_count == 0) {
		return record_list(ctl);
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(ctl->words[0], verbs[i].name) != 0) {
			continue;
		}
		if (ctl->word_count < verbs[i].least || ctl->word_count > verbs[i].most) {
			break;
		}
		return verbs[i].run ? verbs[i].run(ctl) : with_recording(ctl, verbs[i].use);
	}
	return ctl_fail(ctl, CTL_USAGE,
		"usage: edgeprofctl record list | now [LABEL [BEFORE [AFTER]]] | show RECORDING | "
		"export RECORDING");
}

static const struct option_spec options[] = {
	{"output", 'o', "FILE", "export: write to FILE; -: to standard output", option_nonempty,
		offsetof(struct options, output)},
	{"sensors", 0, "GLOB", "export: include the metrics that match; '': none", option_text,
		offsetof(struct options, sensors)},
	{"format", 0, "chrome|csv|json", "export: chrome, the default, opens in ui.perfetto.dev",
		option_word, offsetof(struct options, format)},
	{.name = NULL},
};

const struct verb verb_record = {"record",
	"[list] | now [LABEL [BEFORE [AFTER]]] | show RECORDING|FILE | export RECORDING|FILE",
	"List, start, show and export recordings of the flight recorder.",
	"record now 'slow start' 10s 5s", options, run};
