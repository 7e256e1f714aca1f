/* events: the timeline, once or as it goes on. Following subscribes first and lists afterwards
 * over a second connection: nothing can fall between the two. */
#include "client/edgeprofctl/events.h"

#include <stdint.h>
#include <string.h>

#include "client/edgeprofctl/format.h"
#include "client/edgeprofctl/history_views.h"
#include "client/edgeprofctl/json.h"
#include "client/edgeprofctl/verbs.h"
#include "proto/varlink.h"

/* Entries have at most about 700 bytes: so many always fit into one reply. */
enum { PAGE = 64, DEFAULT_LINES = 50 };

void events_show(struct ctl *ctl, const cJSON *event, bool date)
{
	const char *severity = json_word(event, "severity");
	const char *subject = json_word(event, "subject");
	enum tone tone = style_of_state(severity);
	int64_t time_us = json_integer(event, "time_us");
	fprintf(ctl->output.stream, "%s%s%s  %-6s  %s%-8s%s  %s%s%s\n",
		style_on(&ctl->style, TONE_DIM),
		date ? format_time(time_us).text : format_clock(time_us).text,
		style_off(&ctl->style, TONE_DIM), json_word(event, "kind"),
		style_on(&ctl->style, tone), severity, style_off(&ctl->style, tone), subject,
		subject[0] == '\0' ? "" : ": ", json_word(event, "text"));
}

/* Shows those of a reply behind `serial`; returns the last serial. */
static int64_t show_events(struct ctl *ctl, const cJSON *reply, int64_t serial)
{
	for (const cJSON *event = json_first(reply, "events"); event != NULL; event = event->next) {
		int64_t its = json_integer(event, "serial");
		if (its > serial) {
			events_show(ctl, event, true);
			serial = its;
		}
	}
	double lost = json_number(reply, "lost");
	if (lost > 0) {
		fprintf(ctl->output.stream, "(%.0f events were lost: read too slowly)\n", lost);
	}
	return serial;
}

static int list_page(struct ctl *ctl, int64_t from, long limit, cJSON **ret)
{
	cJSON *parameters = ctl_parameters("", NULL);
	cJSON_AddItemToObject(parameters, "from_serial", proto_json_integer(from));
	cJSON_AddNumberToObject(parameters, "limit", (double)limit);
	return ctl_call(ctl, "ListEvents", parameters, false, ret);
}

/* Moves the events of the page that lie in the range to the others; returns the last serial. */
static int64_t join_page(cJSON *whole, cJSON *page, int64_t from_us, int64_t to_us)
{
	cJSON *to = cJSON_GetObjectItemCaseSensitive(whole, "events");
	cJSON *from = cJSON_GetObjectItemCaseSensitive(page, "events");
	int64_t last = 0;
	while (cJSON_IsArray(to) && cJSON_IsArray(from) && from->child != NULL) {
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
	struct ctl *ctl, cJSON *whole, int64_t next, int64_t last, int64_t from_us, int64_t to_us)
{
	while (next <= last) {
		cJSON *page;
		int64_t left = last - next + 1;
		int status = list_page(ctl, next, left < PAGE ? (long)left : PAGE, &page);
		if (status != CTL_FINE) {
			return status;
		}
		int64_t seen = join_page(whole, page, from_us, to_us);
		cJSON_Delete(page);
		if (seen < next) {
			break;
		}
		next = seen + 1;
	}
	return CTL_FINE;
}

int events_list(struct ctl *ctl, long lines, int64_t from_us, int64_t to_us, cJSON **ret)
{
	bool ranged = from_us > INT64_MIN || to_us < INT64_MAX;
	cJSON *whole;
	int status = list_page(ctl, INT32_MAX, 1, &whole);
	if (status != CTL_FINE) {
		return status;
	}
	int64_t last = json_integer(whole, "last_serial");
	int64_t next = !ranged && last > lines ? last - lines + 1 : 1;
	status = add_pages(ctl, whole, next, last, from_us, to_us);
	if (status != CTL_FINE) {
		cJSON_Delete(whole);
		return status;
	}
	cJSON *events = cJSON_GetObjectItemCaseSensitive(whole, "events");
	for (int extra = json_count(whole, "events") - (int)lines; extra > 0; extra--) {
		cJSON_Delete(cJSON_DetachItemViaPointer(events, events->child));
	}
	*ret = whole;
	return CTL_FINE;
}

static int show_past(struct ctl *ctl, int64_t *serial)
{
	const struct options *options = &ctl->options;
	int64_t from_us = INT64_MIN, to_us = INT64_MAX;
	bool ranged = options->since != NULL || options->until != NULL;
	long lines = options->given & OPTION_LINES ? options->lines
		     : ranged			   ? INT32_MAX
						   : DEFAULT_LINES;
	int status = options->since ? history_time(ctl, options->since, &from_us) : CTL_FINE;
	if (status == CTL_FINE && options->until) {
		status = history_time(ctl, options->until, &to_us);
	}
	cJSON *reply;
	status = status == CTL_FINE ? events_list(ctl, lines, from_us, to_us, &reply) : status;
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		show_events(ctl, reply, 0);
	}
	*serial = json_integer(reply, "last_serial");
	cJSON_Delete(reply);
	return CTL_FINE;
}

/* Until the daemon goes or stdout closes; Ctrl-C ends the process. */
static int follow(struct ctl *ctl, int64_t serial)
{
	for (;;) {
		cJSON *reply;
		int status;
		if (!ctl_flush(ctl, &status)) {
			return status;
		}
		status = ctl_next(ctl, 3600 * 1000, &reply);
		if (status != CTL_FINE) {
			return status;
		}
		if (reply != NULL && json_count(reply, "events") > 0 && !ctl_json(ctl, reply)) {
			serial = show_events(ctl, reply, serial);
		}
		cJSON_Delete(reply);
	}
}

int verb_events(struct ctl *ctl)
{
	int64_t serial = 0;
	if (!(ctl->options.given & OPTION_FOLLOW)) {
		return show_past(ctl, &serial);
	}
	cJSON *parameters = ctl_parameters("", NULL);
	cJSON_AddTrueToObject(parameters, "events");
	cJSON_AddFalseToObject(parameters, "metrics");
	int status = ctl_subscribe(ctl, "Subscribe", parameters);
	if (status != CTL_FINE) {
		return status;
	}
	/* The first reply (what fires now) shows that the subscription stands. */
	cJSON *first;
	status = ctl_next(ctl, ctl->options.timeout_ms, &first);
	if (status != CTL_FINE) {
		return status;
	}
	if (first == NULL) {
		return ctl_fail(ctl, CTL_UNREACHABLE,
			"Subscribe: no answer within %.1f s (--timeout)",
			(double)ctl->options.timeout_ms / 1000);
	}
	cJSON_Delete(first);
	struct client *subscription = ctl->client;
	ctl->client = NULL;
	status = show_past(ctl, &serial);
	ctl_disconnect(ctl);
	ctl->client = subscription;
	return status == CTL_FINE ? follow(ctl, serial) : status;
}
