/* SPDX-License-Identifier: Apache-2.0 */
/* host.c: sends the calls of one update together, so that a slow link costs one round trip, and
 * shows the picture when all have been answered. */
#include "client/edgeprofctl/top/host.h"

#include <stdio.h>

#include "client/edgeprofctl/term/when.h"
#include "client/edgeprofctl/live/past.h"
#include "proto/varlink.h"

enum { TAG_ACTION = PARTS, RULES_EVERY = 30 };

/* What the tabs show in addition to status, metrics and alerts. */
static const struct {
	enum part part;
	const char *method;
	unsigned tabs;
	bool ended; /* it can have apps that ended */
} calls[] = {
	{PART_APPS, "ListApps", 1 << TAB_OVERVIEW | 1 << TAB_APPS, true},
	{PART_FRAMES, "GetFrames", 1 << TAB_OVERVIEW | 1 << TAB_APPS, true},
	{PART_STAGES, "ListStages", 1 << TAB_OVERVIEW | 1 << TAB_APPS, true},
	{PART_PROCESSES, "ListProcesses", 1 << TAB_OVERVIEW | 1 << TAB_PROCESSES, false},
	{PART_ALERTS, "ListAlerts", ~0U, false},
};

void host_init(struct host *host, struct ctl *ctl)
{
	*host = (struct host){.lost_ms = when_mono_ms()};
	feed_init(&host->feed, ctl);
}

void host_finish(struct host *host)
{
	feed_finish(&host->feed);
	model_finish(&host->live);
	model_finish(&host->past);
	model_finish(&host->next);
}

bool host_is_past(const struct host *host)
{
	return host->wanted_us > 0 && host->past.now_us > 0;
}

const struct model *host_model(const struct host *host)
{
	return host_is_past(host) ? &host->past : &host->live;
}

void host_tick(struct host *host, enum tab tab)
{
	struct feed *feed = &host->feed;
	if (feed->count > 0) {
		return;
	}
	feed_call(feed, PART_STATUS, "GetStatus", NULL);
	if (!host->greeted || tab == TABS) {
		return; /* its clock is needed first */
	}
	for (const char *const *glob = past_sensor_globs; *glob; glob++) {
		feed_call(feed, PART_METRICS, "ListMetrics", ctl_parameters("glob", *glob));
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if ((calls[i].tabs >> tab & 1) != 0) {
			bool all = calls[i].ended && feed->ctl.options.all;
			cJSON *parameters = all ? ctl_add_flag(NULL, "all", true) : NULL;
			feed_call(feed, (int)calls[i].part, calls[i].method, parameters);
		}
	}
	cJSON *from = cJSON_CreateObject();
	if (host->live.next_serial > 0) {
		cJSON_AddItemToObject(
			from, "from_serial", proto_json_integer(host->live.next_serial));
	}
	feed_call(feed, PART_EVENTS, "ListEvents", from);
	if (host->ticks++ % RULES_EVERY == 0) {
		feed_call(feed, PART_RULES, "ListRules", NULL);
	}
}

static void lose(struct host *host)
{
	host->lost = true;
	host->lost_ms = when_mono_ms();
	host->greeted = false;
	host->ticks = 0;
	model_finish(&host->next);
}

/* Asks for the moment that is wanted, unless it is there, or another one still comes. */
static void request_past(struct host *host)
{
	if (host->greeted && host->wanted_us > 0 && host->next.now_us == 0 &&
		host->past.now_us != host->wanted_us) {
		host->next.now_us = host->wanted_us;
		past_request(&host->feed, host->wanted_us);
	}
}

static void finish_past(struct host *host)
{
	past_complete(&host->next, &host->live);
	model_finish(&host->past);
	host->past = host->next;
	host->next = (struct model){0};
}

static void take(struct host *host, const struct call *call)
{
	if (call->tag == TAG_ACTION) {
		host->failed = !call->reply;
		snprintf(host->message, sizeof(host->message), "%s",
			call->reply ? host->action : call->failure);
		cJSON_Delete(call->reply);
	} else if (call->reply && call->tag >= PAST_TAG) {
		model_store(&host->next, (enum part)(call->tag - PAST_TAG), call->reply);
	} else if (call->reply) {
		model_store(&host->live, (enum part)call->tag, call->reply);
	}
}

bool host_read(struct host *host)
{
	struct feed *feed = &host->feed;
	bool complete = feed_read(feed);
	if (!feed->ctl.client && feed->ctl.failure[0] != '\0' && !host->lost) {
		lose(host);
		return true;
	}
	if (!complete) {
		return false;
	}
	bool greeted = false;
	for (size_t i = 0; i < feed->count; i++) {
		greeted = greeted || (feed->calls[i].tag == PART_STATUS && feed->calls[i].reply);
		take(host, &feed->calls[i]);
	}
	feed->count = 0;
	feed->answered = 0;
	model_join(&host->live);
	if (!host->greeted && greeted) {
		host->greeted = true;
		host->lost = false;
		host->live.next_serial = 0;
		past_request_minute(feed, PART_SERIES, host->live.now_us);
	}
	if (host->next.now_us > 0) {
		finish_past(host);
	}
	request_past(host);
	return true;
}

void host_go(struct host *host, int64_t time_us)
{
	bool past = time_us > 0 && time_us < host->live.now_us;
	host->wanted_us = past ? time_us : 0;
	host->past.now_us = past ? host->past.now_us : 0; /* it is out of date */
	request_past(host);
}

void host_act(struct host *host, const char *method, cJSON *parameters, const char *done)
{
	host->action = done;
	if (!feed_call(&host->feed, TAG_ACTION, method, parameters)) {
		host->failed = true;
		snprintf(host->message, sizeof(host->message), "%s: not connected to the daemon",
			method);
	}
}
