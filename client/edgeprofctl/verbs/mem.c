/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c: shows the memory of the machine, of processes and at marks, on one page. */
#include "client/edgeprofctl/verb.h"

#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "proto/name.h"

static const double mib = 1 << 20;

static void show_memory(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"PID", FIELD_NUMBER, "{pid:0}"},
		{"NAME", FIELD_LONG, "{name}"},
		{"RSS", FIELD_NUMBER, "{rss_bytes:bytes}"},
		{"PEAK", FIELD_NUMBER, "{peak_rss_bytes:bytes}"},
		{"MEM %", FIELD_NUMBER, "{percent_used:1}"},
		{"PSS", FIELD_NUMBER, "{pss_bytes:bytes}"},
		{"VSZ", FIELD_NUMBER, "{vms_bytes:bytes}"},
		{"LIMIT", FIELD_NUMBER,
			"[{?threshold_exceeded}{~warn}|][{memory_limit_bytes:bytes}|-]"},
	};
	static const char mark[] =
		"\\[{label}\\] RSS: {rss_bytes:MB} (peak: {peak_rss_bytes:MB}) \\| "
		"System: [{system_percent_used:0}%|-] used ({system_available_bytes:MB0} free)"
		"[{~dim}  RSS {rss_delta_bytes:+MB}{~none}]\n";
	listing_text(ctl,
		"Memory: {memory_available_bytes:bytes} of {memory_total_bytes:bytes} available"
		"[, {percent_used:1} % used]\n\n",
		reply);
	listing_show(ctl, reply, "processes", fields, sizeof(fields) / sizeof(fields[0]));
	if (json_count(reply, "marks") > 0) {
		fputc('\n', ctl->output.stream);
		listing_texts(ctl, mark, reply, "marks");
	}
}

/* Of a process, or of a mark. */
static bool wanted(const cJSON *row, const char *what)
{
	size_t digits = strspn(what, "0123456789");
	bool is_pid =
		digits > 0 && what[digits] == '\0' && json_number(row, "pid") == strtod(what, NULL);
	return is_pid || proto_query_match(what, json_word(row, "name")) ||
	       proto_query_match(what, json_word(row, "app"));
}

/* The members of the guides' memory threshold, in MiB; percent_used is the share of all memory. */
static void complete_rows(cJSON *reply)
{
	double total = json_number(reply, "memory_total_bytes");
	double available = json_number(reply, "memory_available_bytes");
	cJSON *row;
	json_add_number(reply, "percent_used", 100 * (total - available) / total);
	cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, "processes"))
	{
		double rss = json_number(row, "rss_bytes");
		json_add_number(row, "current_mb", rss / mib);
		json_add_number(row, "peak_mb", json_number(row, "peak_rss_bytes") / mib);
		json_add_number(row, "available_mb", available / mib);
		json_add_number(row, "percent_used", 100 * rss / total);
	}
}

static int run(struct ctl *ctl)
{
	const char *what = ctl_word(ctl, 0);
	cJSON *reply, *marks;
	int status = ctl_call(ctl, "ListProcesses", NULL, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	status = ctl_call(ctl, "ListMarks", NULL, true, &marks);
	if (status != CTL_FINE) {
		cJSON_Delete(reply);
		return status;
	}
	int found = json_count(reply, "processes");
	if (what) {
		found = listing_narrow(reply, "processes", wanted, what);
		found += listing_narrow(marks, "marks", wanted, what);
	}
	cJSON *list = cJSON_DetachItemFromObjectCaseSensitive(marks, "marks");
	cJSON_AddItemToObject(reply, "marks", list ? list : cJSON_CreateArray());
	cJSON_Delete(marks);
	if (what && found == 0) {
		cJSON_Delete(reply);
		return ctl_fail(ctl, CTL_NO_DATA,
			"no watched process or mark matches '%s'; 'edgeprofctl ps --watch %s' "
			"watches it",
			what, what);
	}
	complete_rows(reply);
	return ctl_answer(ctl, reply, show_memory);
}

const struct verb verb_mem = {"mem", "[APP|PID]",
	"Show memory: the machine, watched processes, and marks with their deltas.", "mem cam",
	NULL, run};
