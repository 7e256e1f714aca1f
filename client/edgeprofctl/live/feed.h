/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h: makes calls to one daemon without waiting for their replies, which come in order, and are
 * taken when all of them are there. A lost connection is opened again once a second.
 */
#pragma once

#include "client/edgeprofctl/ctl.h"

enum { FEED_CALLS = 64 };

struct feed {
	struct ctl ctl; /* .failure is why the connection was lost */
	struct call {
		const char *method;
		int tag;
		cJSON *reply;	   /* the chunks so far; in the end NULL when the call failed */
		char failure[256]; /* why */
	} calls[FEED_CALLS];
	size_t count, answered;
	double retry_ms; /* not before */
	double heard_ms; /* the last reply, or the first call since */
};

/* Takes the connection of ctl, if there is one, and its options. */
void feed_init(struct feed *feed, struct ctl *ctl);
void feed_finish(struct feed *feed);

/* The descriptor to wait for, -1 without a connection. */
int feed_fd(const struct feed *feed);

/* Sends a call; deletes the parameters. The method is a constant. False: it was not sent. */
bool feed_call(struct feed *feed, int tag, const char *method, cJSON *parameters);

/* Reads what has arrived. True: all calls have been answered, and the caller takes the replies and
 * sets count and answered to 0. Without a connection all calls are lost. */
bool feed_read(struct feed *feed);
