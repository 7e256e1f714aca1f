/* SPDX-License-Identifier: Apache-2.0 */
/* feed.c: keeps the calls that were sent in a queue; each reply belongs to the first. */
#include "client/edgeprofctl/live/feed.h"

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

static void drop_calls(struct feed *feed)
{
	for (; feed->count > 0; feed->count--) {
		cJSON_Delete(feed->calls[feed->first].joined);
		feed->calls[feed->first].joined = NULL;
		feed->first = (feed->first + 1) % FEED_CALLS;
	}
	feed->retry_ms = when_mono_ms() + 1000;
}

void feed_finish(struct feed *feed)
{
	drop_calls(feed);
	ctl_disconnect(&feed->ctl);
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
		ctl_disconnect(&feed->ctl);
		drop_calls(feed);
		return false;
	}
	feed->heard_ms = feed->count == 0 ? when_mono_ms() : feed->heard_ms;
	size_t last = (feed->first + feed->count++) % FEED_CALLS;
	feed->calls[last].method = method;
	feed->calls[last].tag = tag;
	return true;
}

/* Replies come in order: silence is that of the first call. */
static bool is_late(const struct feed *feed)
{
	return when_mono_ms() - feed->heard_ms > (double)feed->ctl.options.timeout_ms;
}

bool feed_next(struct feed *feed, int *tag, cJSON **ret)
{
	while (feed->ctl.client && feed->count > 0) {
		cJSON *reply, **joined = &feed->calls[feed->first].joined;
		feed->ctl.subscribed = feed->calls[feed->first].method;
		int status = ctl_next(&feed->ctl, 0, &reply);
		*ret = NULL;
		if (status == CTL_FINE && !reply && is_late(feed)) {
			ctl_fail(&feed->ctl, 0, "%s: no reply within %.1f s (see --timeout)",
				feed->ctl.subscribed, (double)feed->ctl.options.timeout_ms / 1000);
			ctl_disconnect(&feed->ctl);
		}
		if (!feed->ctl.client) {
			drop_calls(feed);
			*tag = FEED_LOST;
			return true;
		}
		if (status == CTL_FINE && !reply) {
			return false;
		}
		feed->heard_ms = when_mono_ms();
		if (*joined && reply) {
			merge_reply(*joined, reply);
			cJSON_Delete(reply);
		} else if (reply) {
			*joined = reply;
		}
		if (status != CTL_FINE || !feed->ctl.continues) {
			*ret = *joined;
			*joined = NULL;
			*tag = feed->calls[feed->first].tag;
			feed->first = (feed->first + 1) % FEED_CALLS;
			feed->count--;
			return true;
		}
	}
	return false;
}
