/* SPDX-License-Identifier: Apache-2.0 */
/* events.c: shows the timeline, once or as it goes on. Following subscribes first and lists
 * afterwards over a second connection: nothing can fall between the two. */
#include "client/edgeprofctl/verbs/events.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/verb.h"
#include "proto/name.h"
#include "proto/varlink.h"

/* Entries have at most about 700 bytes: a page of them always fits into one reply. */
enum { PAGE = 64, DEFAULT_LINES = 50, AGAIN_MS = 500 };

void events_show(struct ctl *ctl, const cJSON *event, bool date)
{
	const char *severity = json_word(event, "severity");
	const char *subject = json_word(event, "subject");
	enum tone tone = style_of_state(severity);
	int64_t time_us = json_integer(event, "time_us");
	fprintf(ctl->output.stream, "%s%s%s  %-8s  %s%-8s%s  %s%s%s\n",
		style_on(&ctl->style, TONE_DIM),
		date ? format_time(time_us).text : format_clock(time_us).text,
		style_off(&ctl->style, TONE_DIM), json_word(event, "kind"),
		style_on(&ctl->style, tone), severity, style_off(&ctl->style, tone), subject,
		subject[0] == '\0' ? "" : ": ", json_word(event, "text"));
}

static int level_of(const char *word)
{
	return strcmp(word, "critical") == 0 ? 2 : strcmp(word, "warning") == 0 ? 1 : 0;
}

static bool is_wanted(const struct ctl *ctl, const cJSON *event)
{
	return (!ctl->options.kind || strcmp(json_word(event, "kind"), ctl->options.kind) == 0) &&
	       (!ctl->options.level ||
		       level_of(json_word(event, "severity")) >= level_of(ctl->options.level)) &&
	       (ctl->word_count == 0 ||
		       proto_query_match(ctl->words[0], json_word(event, "subject")));
}

/* Leaves those behind `serial` that are wanted; the last serial there was. */
static int64_t narrow(const struct ctl *ctl, cJSON *reply, int64_t serial)
{
	cJSON *events = cJSON_GetObjectItemCaseSensitive(reply, "events");
	int64_t last = serial;
	cJSON *next;
	for (cJSON *event = cJSON_IsArray(events) ? events->child : NULL; event; event = next) {
		int64_t number = json_integer(event, "serial");
		next = event->next;
		last = number > last ? number : last;
		if (number <= serial || !is_wanted(ctl, event)) {
			cJSON_Delete(cJSON_DetachItemViaPointer(events, event));
		}
	}
	return last;
}

static void show_events(struct ctl *ctl, const cJSON *reply)
{
	for (const cJSON *event = json_first(reply, "events"); event; event = event->next) {
		events_show(ctl, event, true);
	}
	double lost = json_number(reply, "lost");
	if (lost > 0) {
		fprintf(ctl->output.stream, "(%.0f events were lost: read too slowly)\n", lost);
	}
}

static int list_page(struct ctl *ctl, int64_t from, long limit, cJSON **ret)
{
	cJSON *parameters = ctl_parameters("", NULL);
	cJSON_AddItemToObject(parameters, "from_serial", proto_json_integer(from));
	cJSON_AddNumberToObject(parameters, "limit", (double)limit);
	return ctl_call(ctl, "ListEvents", parameters, false, ret);
}

/* Moves the events of the page that lie in the range to the others; returns the last serial. */
static int64_t join_page(cJSON *joined, cJSON *page, int64_t from_us, int64_t to_us)
{
	cJSON *to = cJSON_GetObjectItemCaseSensitive(joined, "events");
	cJSON *from = cJSON_GetObjectItemCaseSensitive(page, "events");
	int64_t last = 0;
	while (cJSON_IsArray(to) && cJSON_IsArray(from) && from->child) {
		cJSON *event = cJSON_DetachItemViaPointer(from, from->child);
		int64_t serial = json_integer(event, "serial");
		int64_t time_us = json_integer(event, "time_us");
		last = serial > last ? serial : last;
		if (time_us >= from_us && time_us <= to_us) {
			cJSON_AddItemToArray(to, event);
		} else {
			cJSON_Delete(event);
		}
	}
	return last;
}

static int add_pages(
	struct ctl *ctl, cJSON *joined, int64_t next, int64_t last, int64_t from_us, int64_t to_us)
{
	while (next <= last) {
		cJSON *page;
		int64_t left = last - next + 1;
		int status = list_page(ctl, next, left < PAGE ? (long)left : PAGE, &page);
		if (status != CTL_FINE) {
			return status;
		}
		int64_t seen = join_page(joined, page, from_us, to_us);
		cJSON_Delete(page);
		if (seen < next) {
			break;
		}
		next = seen + 1;
	}
	return CTL_FINE;
}

static void trim_to_last(cJSON *reply, long lines)
{
	cJSON *events = cJSON_GetObjectItemCaseSensitive(reply, "events");
	for (int extra = json_count(reply, "events") - (int)lines; extra > 0; extra--) {
		cJSON_Delete(cJSON_DetachItemViaPointer(events, events->child));
	}
}

int events_list(struct ctl *ctl, long lines, int64_t from_us, int64_t to_us, cJSON **ret)
{
	bool ranged = from_us > INT64_MIN || to_us < INT64_MAX;
	cJSON *joined;
	int status = list_page(ctl, INT32_MAX, 1, &joined);
	if (status != CTL_FINE) {
		return status;
	}
	int64_t last = json_integer(joined, "last_serial");
	int64_t next = !ranged && last > lines ? last - lines + 1 : 1;
	status = add_pages(ctl, joined, next, last, from_us, to_us);
	if (status != CTL_FINE) {
		cJSON_Delete(joined);
		return status;
	}
	trim_to_last(joined, lines);
	*ret = joined;
	return CTL_FINE;
}

static int show_past(struct ctl *ctl, int64_t *serial)
{
	int64_t from_us = INT64_MIN, to_us = INT64_MAX;
	bool ranged = ctl->options.since || ctl->options.until;
	bool narrowed = ctl->options.kind || ctl->options.level || ctl->word_count > 0;
	long lines = ctl->options.lines > 0 ? ctl->options.lines
		     : ranged		    ? INT32_MAX
					    : DEFAULT_LINES;
	int status = ctl_times(ctl, ctl->options.since, ctl->options.until, &from_us, &to_us);
	cJSON *reply;
	status = status == CTL_FINE
			 ? events_list(ctl, narrowed ? INT32_MAX : lines, from_us, to_us, &reply)
			 : status;
	if (status != CTL_FINE) {
		return status;
	}
	narrow(ctl, reply, INT64_MIN);
	trim_to_last(reply, lines);
	if (!ctl_json(ctl, reply)) {
		show_events(ctl, reply);
		if (json_count(reply, "events") == 0 && !ctl->options.follow) {
			fputs(narrowed || ranged
					? "No such events; without SUBJECT and options all are "
					  "listed.\n"
					: "No events yet; 'edgeprofctl mark LABEL' makes one.\n",
				ctl->output.stream);
		}
	}
	*serial = json_integer(reply, "last_serial");
	cJSON_Delete(reply);
	return CTL_FINE;
}

/* What came in between, after the daemon was away. One whose timeline starts over is shown from its
 * start. */
static int show_missed(struct ctl *ctl, int64_t *serial)
{
	cJSON *reply;
	int status = events_list(ctl, INT32_MAX, INT64_MIN, INT64_MAX, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	int64_t last = json_integer(reply, "last_serial");
	narrow(ctl, reply, last < *serial ? 0 : *serial);
	if (json_count(reply, "events") > 0 && !ctl_json(ctl, reply)) {
		show_events(ctl, reply);
	}
	*serial = last;
	cJSON_Delete(reply);
	return CTL_FINE;
}

/* Until the daemon goes or stdout closes; Ctrl-C ends the process. */
static int follow(struct ctl *ctl, int64_t *serial, bool *closed)
{
	for (;;) {
		cJSON *reply;
		int status;
		*closed = !ctl_flush(ctl, &status);
		if (*closed) {
			return status;
		}
		status = ctl_next(ctl, 3600 * 1000, &reply);
		if (status != CTL_FINE) {
			return status;
		}
		if (reply) {
			*serial = narrow(ctl, reply, *serial);
		}
		bool changed = reply &&
			       (json_count(reply, "events") > 0 || json_number(reply, "lost") > 0);
		if (changed && !ctl_json(ctl, reply)) {
			show_events(ctl, reply);
		}
		cJSON_Delete(reply);
	}
}

/* The first reply (what fires now) shows that the subscription stands. */
static int subscribe(struct ctl *ctl)
{
	cJSON *parameters = ctl_parameters("", NULL);
	cJSON_AddTrueToObject(parameters, "events");
	cJSON_AddFalseToObject(parameters, "metrics");
	cJSON *first = NULL;
	int status = ctl_subscribe(ctl, "Subscribe", parameters);
	if (status == CTL_FINE) {
		status = ctl_expect(ctl, ctl->options.timeout_ms, &first);
	}
	cJSON_Delete(first);
	return status;
}

/* Subscribes, lists over a second connection, goes on with the first. *attached: it stood. */
static int attend(struct ctl *ctl, int64_t *serial, bool again, bool *attached, bool *closed)
{
	*attached = *closed = false;
	int status = subscribe(ctl);
	if (status != CTL_FINE) {
		return status;
	}
	if (again) {
		fputs("edgeprofctl: the daemon is back\n", stderr);
	}
	struct client *subscription = ctl->client;
	ctl->client = NULL;
	status = again ? show_missed(ctl, serial) : show_past(ctl, serial);
	ctl_disconnect(ctl);
	ctl->client = subscription;
	*attached = status == CTL_FINE;
	ctl->quiet = ctl->quiet || *attached; /* run reports that it goes */
	return *attached ? follow(ctl, serial, closed) : status;
}

static int run(struct ctl *ctl)
{
	int64_t serial = 0;
	bool attached, closed;
	if (!ctl->options.follow) {
		return show_past(ctl, &serial);
	}
	int status = attend(ctl, &serial, false, &attached, &closed);
	while (status == CTL_UNREACHABLE && !closed && ctl->quiet) {
		if (attached) {
			fputs("edgeprofctl: the daemon is gone; waiting for it to come back\n",
				stderr);
		}
		ctl_disconnect(ctl);
		if (output_wait(-1, AGAIN_MS)) {
			return CTL_FINE;
		}
		status = attend(ctl, &serial, true, &attached, &closed);
	}
	return status;
}

static const struct option_spec options[] = {
	{"follow", 'f', NULL, "continue with new events until Ctrl-C", option_flag,
		offsetof(struct options, follow)},
	{"lines", 'n', "N", "show the last N events; default: 50, with a time: all", option_count,
		offsetof(struct options, lines)},
	{"since", 0, "TIME", "start: 5min (ago), 14:30, '2026-01-31 14:30' or @UNIX", option_text,
		offsetof(struct options, since)},
	{"until", 0, "TIME", "end; default: now", option_text, offsetof(struct options, until)},
	{"kind", 0, "alert|silenced|hold|mark|app|source|clock|daemon|throttle",
		"show only events of this kind", option_word, offsetof(struct options, kind)},
	{"level", 0, "info|warning|critical", "show events of this severity or worse", option_word,
		offsetof(struct options, level)},
	{.name = NULL},
};

const struct verb verb_events = {"events", "[SUBJECT]",
	"Show the timeline: alerts, marks, apps, throttling.", "events --follow --level warning",
	options, run};
