/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c: reports what was found on this machine, what is missing and why, and the command that
 * fixes it. It is of most use when things do not work, so it needs no daemon. */
#include "client/edgeprofctl/doctor/doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "client/edgeprofctl/link/address.h"
#include "client/edgeprofctl/link/client.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/verb.h"
#include "client/edgeprofctl/term/when.h"
#include "proto/text.h"

static const char service_run_dir[] = "/run/edgeprofd";

/* What the daemon said, and what it is. */
struct visit {
	cJSON *replies; /* by method */
	bool reached;	/* GetStatus was answered */
	struct access_subject subject;
};

/* Every place that was tried and why it was not that one. */
static void add_unreachable(cJSON *checks, const struct address_list *list, int error)
{
	char text[400];
	struct text tried = TEXT_IN(text);
	const char *group = address_group(list);
	bool refused = error == -EACCES;
	for (size_t i = 0; i < list->count; i++) {
		text_join(&tried, "; ", "%s: %s", list->entries[i].path,
			strerror(list->entries[i].error));
	}
	char fix[160] = "sudo systemctl start edgeprofd";
	if (refused && !group) {
		snprintf(fix, sizeof(fix), "sudo edgeprofctl doctor");
	} else if (refused) {
		snprintf(fix, sizeof(fix), "sudo usermod -aG %.64s $USER # then log in again",
			group);
	}
	finding_add(checks, FINDING_PROBLEM, "daemon", fix, "%s: %s",
		refused ? "permission denied by edgeprofd" : "cannot connect to edgeprofd", text);
}

/* Like ctl_connect, but what went wrong becomes a finding. */
static int connect_daemon(struct ctl *ctl, cJSON *checks, struct address_list *list)
{
	int status = ctl_addresses(ctl, list);
	if (status != CTL_FINE) {
		return status;
	}
	int fd = address_connect(list, ctl->options.timeout_ms);
	if (fd < 0) {
		add_unreachable(checks, list, fd);
		return fd == -EACCES ? CTL_NOT_PERMITTED : CTL_UNREACHABLE;
	}
	return client_create(fd, &ctl->client) < 0 ? ctl_fail(ctl, CTL_OUTPUT, "out of memory")
						   : CTL_FINE;
}

/* The place that answered: those before it failed. */
static const char *connected_path(const struct address_list *list)
{
	size_t i = 0;
	while (i + 1 < list->count && list->entries[i].error != 0) {
		i++;
	}
	return list->entries[i].path;
}

/* Asks for everything. What an older daemon does not know stays NULL; when it stops answering,
 * that is a finding too. */
static int ask_daemon(struct ctl *ctl, cJSON *checks, struct visit *visit)
{
	static const struct {
		const char *method;
		bool more;
	} calls[] = {{"GetStatus", false}, {"GetSelf", false}, {"ListSources", true},
		{"ListMetrics", true}, {"ListApps", true}};
	struct address_list list;
	int status = connect_daemon(ctl, checks, &list);
	if (status != CTL_FINE) {
		return status;
	}
	ctl->quiet = true;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]) && status == CTL_FINE; i++) {
		cJSON *reply;
		int r = ctl_call(ctl, calls[i].method, NULL, calls[i].more, &reply);
		bool lost = r != CTL_FINE && (!ctl->client || i == 0);
		if (r == CTL_FINE) {
			cJSON_AddItemToObject(visit->replies, calls[i].method, reply);
		} else {
			finding_add(checks, lost ? FINDING_PROBLEM : FINDING_HINT, "daemon",
				lost ? "systemctl status edgeprofd; journalctl -u edgeprofd -e"
				     : "sudo systemctl restart edgeprofd",
				"%s", ctl->failure);
		}
		status = lost ? r : status;
	}
	ctl->quiet = false;
	const cJSON *answer = json_get(visit->replies, "GetStatus");
	visit->reached = answer;
	if (visit->reached) {
		finding_add(checks, FINDING_OK, "daemon", NULL, "edgeprofd %s answers at %s, up %s",
			json_word(answer, "version"), connected_path(&list),
			format_span(json_number(answer, "uptime_s")).text);
	}
	return status;
}

/* Who reads the sensors: the daemon when it can be looked at, else the person stands for it. */
static void identify(struct visit *visit)
{
	struct access_subject *subject = &visit->subject;
	char pid[24];
	long long number = json_integer(json_get(visit->replies, "GetSelf"), "pid");
	snprintf(pid, sizeof(pid), "%lld", number);
	subject->is_daemon = number > 0 && access_subject_read("", pid, subject) == 0;
	subject->service = strcmp(json_word(json_get(visit->replies, "GetStatus"), "run_dir"),
				   service_run_dir) == 0;
	if (!subject->is_daemon) {
		access_subject_read("", "self", subject);
	}
}

static cJSON *make_report(struct ctl *ctl, int *status)
{
	struct visit visit = {.replies = cJSON_CreateObject()};
	struct utsname machine = {.release = ""};
	cJSON *report = cJSON_CreateObject();
	cJSON *checks = cJSON_AddArrayToObject(report, "checks");
	uname(&machine);
	*status = ask_daemon(ctl, checks, &visit);
	if (visit.reached) {
		doctor_daemon(checks, visit.replies);
	}
	identify(&visit);
	doctor_group(checks);
	doctor_access(checks, "", &visit.subject);
	doctor_kernel(checks, "", machine.release);
	doctor_clock(checks, when_is_synchronised(), visit.reached,
		json_true(json_get(visit.replies, "GetStatus"), "clock_synced"));
	const char *path = getenv("PATH");
	cJSON_AddItemToObject(
		report, "sources", doctor_sources(json_get(visit.replies, "ListSources")));
	cJSON_AddItemToObject(report, "tools", doctor_tools(!path ? "" : path));
	cJSON_Delete(visit.replies);
	return report;
}

static void show_checks(struct ctl *ctl, const cJSON *report)
{
	/* not cut: a command that is cut can't be pasted */
	static const struct column columns[] = {
		{NULL, false, false}, {NULL, false, false}, {NULL, false, false}};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *row = json_first(report, "checks"); row; row = row->next) {
		const char *state = json_word(row, "state");
		const char *fix = json_text(row, "fix");
		enum tone tone = strcmp(state, "problem") == 0 ? TONE_BAD
				 : strcmp(state, "hint") == 0  ? TONE_WARN
							       : TONE_GOOD;
		table_add(&table, tone, "%s", state);
		table_add(&table, TONE_NONE, "%s", json_word(row, "name"));
		table_add(&table, TONE_NONE, "%s", json_word(row, "text"));
		if (fix) {
			table_add(&table, TONE_NONE, "%s", "");
			table_add(&table, TONE_NONE, "%s", "");
			table_add(&table, TONE_BOLD, "to fix: %s", fix);
		}
	}
	ctl_table(ctl, &table);
}

static void show_sources(struct ctl *ctl, const cJSON *report)
{
	static const struct field fields[] = {
		{"SOURCE", FIELD_TEXT, "{name}"},
		{"STATE", FIELD_TEXT, "{~:state}{state}"},
		{"METRICS", FIELD_NUMBER, "{metrics:0}"},
		{"EVERY", FIELD_NUMBER, "[{us_per_s:is}{interval_ms:ms}|-]"},
		{"US EACH", FIELD_NUMBER, "[{us_per_s:is}{duration_us:0}|-]"},
		{"US A SECOND", FIELD_NUMBER, "{us_per_s:0}"},
		{"CPU %", FIELD_NUMBER, "{share_percent:3}"},
		{"WHY", FIELD_LONG, "{~dim}{reason}"},
	};
	if (json_count(report, "sources") > 0) {
		fputc('\n', ctl->output.stream);
		listing_show(ctl, report, "sources", fields, sizeof(fields) / sizeof(fields[0]));
	}
}

static void show_tools(struct ctl *ctl, const cJSON *report)
{
	static const struct field fields[] = {
		{"TOOL", FIELD_TEXT, "[{!path}{~dim}]{name}"},
		{"FOR", FIELD_TEXT, "{~dim}{use}"},
		{"PATH", FIELD_LONG, "[{path}|{~dim}not found]"},
	};
	fputc('\n', ctl->output.stream);
	listing_show(ctl, report, "tools", fields, sizeof(fields) / sizeof(fields[0]));
}

static int run(struct ctl *ctl)
{
	if (ctl_hosts(ctl) > 0) {
		return ctl_fail(ctl, CTL_USAGE, "doctor examines this machine; run it there");
	}
	int status;
	cJSON *report = make_report(ctl, &status);
	const cJSON *checks = json_get(report, "checks");
	int problems = findings_count(checks, FINDING_PROBLEM);
	int hints = findings_count(checks, FINDING_HINT);
	if (!ctl_json(ctl, report)) {
		json_clean(report, ctl->style.utf8);
		show_checks(ctl, report);
		show_sources(ctl, report);
		show_tools(ctl, report);
		fprintf(ctl->output.stream, "\n%d problem%s, %d hint%s\n", problems,
			problems == 1 ? "" : "s", hints, hints == 1 ? "" : "s");
	}
	cJSON_Delete(report);
	return status == CTL_FINE && problems > 0 ? CTL_BAD_NEWS : status;
}

const struct verb verb_doctor = {"doctor", "",
	"Report what is missing on this machine, why, and how to fix it.", "doctor", NULL, run};
