/* SPDX-License-Identifier: Apache-2.0 */
/* host.c: sends the calls of one update together, so that a slow link costs one round trip, and
 * shows the picture when all have been answered. */
#include "client/edgeprofctl/top/host.h"

#include <stdio.h>

#include "client/edgeprofctl/link/json.h"
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

static void drop_arrived(struct host *host)
{
	while (host->arrived_count > 0) {
		cJSON_Delete(host->arrived[--host->arrived_count].reply);
	}
}

void host_finish(struct host *host)
{
	drop_arrived(host);
	feed_finish(&host->feed);
	model_finish(&host->live);
	model_finish(&host->past);
	model_finish(&host->next);
}

const struct model *host_model(const struct host *host)
{
	return host->past_us > 0 ? &host->past : &host->live;
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
	if (!host->lost) {
		host->lost_ms = when_mono_ms();
	}
	host->lost = true;
	host->greeted = false;
	host->ticks = 0;
	host->past_left = 0;
	host->wanted_us = 0;
	model_finish(&host->next);
	drop_arrived(host);
}

static void start_past(struct host *host, int64_t time_us)
{
	model_finish(&host->next);
	host->next.now_us = time_us;
	host->past_left = past_request(&host->feed, time_us);
	host->wanted_us = 0;
}

static void finish_past(struct host *host)
{
	past_complete(&host->next, &host->live);
	model_finish(&host->past);
	host->past = host->next;
	host->next = (struct model){0};
	host->past_us = host->past.now_us;
	if (host->wanted_us > 0) {
		start_past(host, host->wanted_us);
	}
}

static void take_past(struct host *host, int tag, cJSON *reply)
{
	host->past_left--;
	if (reply && host->next.now_us > 0) {
		past_store(&host->next, tag, reply);
	} else {
		cJSON_Delete(reply);
	}
	if (host->past_left == 0 && host->next.now_us > 0) {
		finish_past(host);
	} else if (host->past_left == 0 && host->wanted_us > 0) {
		start_past(host, host->wanted_us);
	}
}

static void take(struct host *host, int tag, cJSON *reply)
{
	if (tag >= PAST_TAG) {
		take_past(host, tag, reply);
	} else if (reply) {
		model_store(&host->live, (enum part)tag, reply);
	}
	if (tag == PART_STATUS && reply && !host->greeted) {
		host->greeted = true;
		host->lost = false;
		host->live.next_serial = 0;
		past_request_minute(&host->feed, PART_SERIES, host->live.now_us);
	}
}

static void take_action(struct host *host, cJSON *reply)
{
	host->failed = !reply;
	snprintf(host->message, sizeof(host->message), "%s",
		reply ? host->action : host->feed.ctl.failure);
	cJSON_Delete(reply);
}

bool host_read(struct host *host)
{
	cJSON *reply;
	int tag;
	bool any = false;
	while (feed_next(&host->feed, &tag, &reply)) {
		any = true;
		if (tag == FEED_LOST) {
			lose(host);
		} else if (tag == TAG_ACTION) {
			take_action(host, reply);
		} else if (host->arrived_count < FEED_CALLS) {
			host->arrived[host->arrived_count].tag = tag;
			host->arrived[host->arrived_count++].reply = reply;
		} else {
			cJSON_Delete(reply);
		}
	}
	if (!host->lost && !host->feed.ctl.client && host->feed.ctl.failure[0] != '\0') {
		lose(host);
		any = true;
	}
	if (!any || host->feed.count > 0) {
		return false;
	}
	size_t count = host->arrived_count;
	host->arrived_count = 0;
	for (size_t i = 0; i < count; i++) {
		take(host, host->arrived[i].tag, host->arrived[i].reply);
	}
	model_join(&host->live);
	return true;
}

void host_go(struct host *host, int64_t time_us)
{
	if (time_us <= 0 || time_us >= host->live.now_us) {
		host->past_us = 0;
		host->wanted_us = 0;
		host->next.now_us = 0; /* what still comes is not shown */
	} else if (host->past_left > 0) {
		host->wanted_us = time_us;
	} else {
		start_past(host, time_us);
	}
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
