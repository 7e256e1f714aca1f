/* SPDX-License-Identifier: Apache-2.0 */
/* host.h: follows one daemon: asks it for what a picture needs, and goes back into its history. */
#pragma once

#include "client/edgeprofctl/live/feed.h"
#include "client/edgeprofctl/live/model.h"
#include "client/edgeprofctl/top/view.h"

struct host {
	struct feed feed;
	struct model live, past;
	bool greeted;	/* this connection has replied */
	bool lost;	/* what is shown is as old as lost_ms */
	double lost_ms; /* on the monotonic clock */
	unsigned long ticks;
	int64_t wanted_us;  /* the moment to show; 0: now */
	struct model next;  /* of the moment that was asked for; now_us 0: of none */
	char message[256];  /* the result of the last action; "" = none */
	bool failed;	    /* it is an error */
	const char *action; /* what is said when it succeeds */
};

/* Takes the connection of ctl, if there is one. */
void host_init(struct host *host, struct ctl *ctl);
void host_finish(struct host *host);

/* The model to show, and whether it is that of a moment in the past. */
bool host_is_past(const struct host *host);
const struct model *host_model(const struct host *host);

/* Sends the calls for what the tab shows, unless replies are still to come. TABS: for a host that
 * is a line next to others. */
void host_tick(struct host *host, enum tab tab);

/* Takes what has arrived. True: the models have changed, and what was found in them is gone. */
bool host_read(struct host *host);

/* Shows that moment; 0, or one that is not past: now. */
void host_go(struct host *host, int64_t time_us);

/* Calls a method that changes something; `done` is the message when it worked. */
void host_act(struct host *host, const char *method, cJSON *parameters, const char *done);
