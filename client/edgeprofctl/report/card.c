/* SPDX-License-Identifier: Apache-2.0 */
/*
 * card.c: shows one page about a running app: rate, stages, processes, memory, deadlines and how it
 * is scheduled now, and suggests a drop-in for its unit. The rule: processors for 1.25 times the
 * CPU time in use, the last ones, because interrupts go to the first; a quota of twice that time
 * and memory of 1.5 times the peak, which only stop what runs away; a higher priority where it
 * waits.
 */
#include <math.h>
#include <string.h>

#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/report/report.h"
#include "client/edgeprofctl/verb.h"
#include "proto/name.h"

static const double HEADROOM = 1.25, QUOTA = 2, MEMORY = 1.5, WAITS_PERCENT = 5;

static const struct line lines[] = {
	{"{*apps}App", "{name}, [{state}], uid [{uid:0}], since {since_us:time}"},
	{"{*frames}Rate", "[{?fps}{fps:1} fps, frame time mean {frame_time_mean_ms:1}, p95 "
			  "{frame_time_p95_ms:1}, p99 {frame_time_p99_ms:1} ms]"},
	{"{*frames}Deadline", "[{deadline_ms:is}{deadline_ms:g4} ms, {misses:0} missed, at most "
			      "{longest_consecutive_misses:0} in a row]"},
	{"{*processes}PID {pid:0}",
		"CPU {cpu_percent:1} %[, waiting {wait_percent:1} %], {threads:0} "
		"[{?threads>=2}threads|thread]"
		"[, last on core {last_core:0}]; [{policy}|-][, nice {nice:0}][, priority "
		"{rt_priority:0}], CPUs "
		"[{affinity}|-][, quota {quota_percent:0} %]"},
	{"{*processes}Memory", "{rss_bytes:bytes}, peak {peak_rss_bytes:bytes}[, limit "
			       "{memory_limit_bytes:bytes}]"},
	{"{*processes}Threads", "[{*busiest,, }{comm} {cpu_percent:1} %{/}]"},
};

static const char suggestion[] =
	"\n[{suggestion.CPUQuota:is}Suggestion, from what it uses now; measure again with it:\n"
	"# /etc/systemd/system/UNIT.service.d/edgeprof.conf\n\\[Service\\]\n"
	"[CPUAffinity={suggestion.CPUAffinity}\n]CPUQuota={suggestion.CPUQuota}\n"
	"[Nice={suggestion.Nice}\n][MemoryHigh={suggestion.MemoryHigh}\n]|"
	"No suggestion: no CPU time of its processes was measured.\n]";

static bool is_of(const cJSON *row, const char *app)
{
	return strcmp(json_word(row, "name"), app) == 0;
}

/* Moves the arrays of the reply to the card. */
static int add(struct ctl *ctl, cJSON *card, const char *method, cJSON *parameters)
{
	cJSON *reply;
	int status = ctl_call(ctl, method, parameters, true, &reply);
	for (cJSON *one = status == CTL_FINE ? reply->child : NULL, *next; one; one = next) {
		next = one->next;
		if (cJSON_IsArray(one)) {
			cJSON_DetachItemViaPointer(reply, one);
			cJSON_AddItemToObject(card, one->string, one);
		}
	}
	if (status == CTL_FINE) {
		cJSON_Delete(reply);
	}
	return status;
}

static double sum(const cJSON *card, const char *member)
{
	double all = 0;
	for (const cJSON *row = json_first(card, "processes"); row; row = row->next) {
		double value = json_number(row, member);
		all += isnan(value) ? 0 : value;
	}
	return all;
}

static void suggest(cJSON *card, double cpus)
{
	cJSON *to = cJSON_AddObjectToObject(card, "suggestion");
	char text[64];
	double used = sum(card, "cpu_percent"), peak = sum(card, "peak_rss_bytes");
	double want = fmax(ceil(used * HEADROOM / 100), 1);
	bool waits = sum(card, "wait_percent") > WAITS_PERCENT ||
		     json_number(json_first(card, "frames"), "misses") > 0;
	if (used <= 0) {
		return;
	}
	if (want < cpus) {
		snprintf(
			text, sizeof(text), want > 1 ? "%.0f-%.0f" : "%.0f", cpus - want, cpus - 1);
		cJSON_AddStringToObject(to, "CPUAffinity", text);
	}
	snprintf(text, sizeof(text), "%.0f%%", fmax(ceil(used * QUOTA / 10) * 10, 20));
	cJSON_AddStringToObject(to, "CPUQuota", text);
	if (waits) {
		cJSON_AddStringToObject(to, "Nice", "-5");
	}
	if (peak > 0) {
		snprintf(text, sizeof(text), "%.0fM", ceil(peak * MEMORY / 1048576 / 16) * 16);
		cJSON_AddStringToObject(to, "MemoryHigh", text);
	}
}

static void show_card(struct ctl *ctl, const cJSON *card)
{
	listing_facts(ctl, card, lines, sizeof(lines) / sizeof(lines[0]));
	fputc('\n', ctl->output.stream);
	show_stages(ctl, card);
	listing_text(ctl, suggestion, card);
}

int report_card(struct ctl *ctl, const char *app)
{
	char name[PROTO_NAME_SIZE]; /* as the app itself was named */
	proto_name_clean(app, strlen(app), name);
	cJSON *card = ctl_parameters("name", name), *device = NULL;
	int status = add(ctl, card, "GetFrames", ctl_parameters("app", app));
	status = status != CTL_FINE ? status
				    : add(ctl, card, "ListApps", ctl_add_flag(NULL, "all", true));
	status = status != CTL_FINE
			 ? status
			 : add(ctl, card, "ListProcesses", ctl_add_flag(NULL, "threads", true));
	status = status != CTL_FINE ? status
				    : add(ctl, card, "ListStages", ctl_parameters("app", app));
	status = status != CTL_FINE ? status : ctl_call(ctl, "GetStatus", NULL, false, &device);
	if (status != CTL_FINE) {
		cJSON_Delete(card);
		return status;
	}
	listing_narrow(card, "apps", is_of, name);
	listing_narrow(card, "processes", is_of, name);
	suggest(card, json_number(device, "cpus"));
	cJSON_Delete(device);
	return ctl_answer(ctl, card, show_card);
}
