/* SPDX-License-Identifier: Apache-2.0 */
/* feed.c: keeps the calls that were sent in a list; each reply belongs to the first without one. */
#include "client/edgeprofctl/live/feed.h"

#include <string.h>

#include "client/edgeprofctl/link/client.h"
#include "client/edgeprofctl/link/merge.h"
#include "client/edgeprofctl/term/when.h"

void feed_init(struct feed *feed, struct ctl *ctl)
{
	*feed = (struct feed){.ctl = *ctl};
	feed->ctl.quiet = true;
	ctl->client = NULL;
	ctl->remote = 0;
}

void feed_finish(struct feed *feed)
{
	ctl_disconnect(&feed->ctl);
	while (feed->count > 0) {
		cJSON_Delete(feed->calls[--feed->count].reply);
	}
	feed->answered = 0;
	feed->retry_ms = when_mono_ms() + 1000;
}

int feed_fd(const struct feed *feed)
{
	return feed->ctl.client ? client_fd(feed->ctl.client) : -1;
}

bool feed_call(struct feed *feed, int tag, const char *method, cJSON *parameters)
{
	bool ready = feed->ctl.client || when_mono_ms() >= feed->retry_ms;
	if (!ready || feed->count == FEED_CALLS) {
		cJSON_Delete(parameters);
		return false;
	}
	if (ctl_subscribe(&feed->ctl, method, parameters) != CTL_FINE) {
		feed_finish(feed);
		return false;
	}
	if (feed->count == feed->answered) {
		feed->heard_ms = when_mono_ms();
	}
	feed->calls[feed->count++] = (struct call){.method = method, .tag = tag};
	return true;
}

/* Replies come in order: silence is that of the first call. */
static bool is_late(const struct feed *feed)
{
	return when_mono_ms() - feed->heard_ms > (double)feed->ctl.options.timeout_ms;
}

bool feed_read(struct feed *feed)
{
	while (feed->ctl.client && feed->answered < feed->count) {
		struct call *call = &feed->calls[feed->answered];
		cJSON *reply;
		feed->ctl.subscribed = call->method;
		int status = ctl_next(&feed->ctl, 0, &reply);
		if (status == CTL_FINE && !reply && is_late(feed)) {
			ctl_fail(&feed->ctl, 0, "%s: no reply within %.1f s (see --timeout)",
				feed->ctl.subscribed, (double)feed->ctl.options.timeout_ms / 1000);
			ctl_disconnect(&feed->ctl);
		}
		if (!feed->ctl.client) {
			feed_finish(feed);
			return false;
		}
		if (status == CTL_FINE && !reply) {
			return false;
		}
		feed->heard_ms = when_mono_ms();
		if (status != CTL_FINE) {
			cJSON_Delete(call->reply);
			call->reply = NULL;
			memcpy(call->failure, feed->ctl.failure, sizeof(call->failure));
		} else if (call->reply) {
			merge_reply(call->reply, reply);
			cJSON_Delete(reply);
		} else {
			call->reply = reply;
		}
		feed->answered += status != CTL_FINE || !feed->ctl.continues;
	}
	return feed->count > 0 && feed->answered == feed->count;
}
