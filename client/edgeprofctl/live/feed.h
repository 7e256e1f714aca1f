/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h: makes calls to one daemon without waiting for their replies, which come in order. A lost
 * connection is opened again once a second.
 */
#pragma once

#include "client/edgeprofctl/ctl.h"

enum { FEED_CALLS = 64, FEED_LOST = -1 };

struct feed {
	struct ctl ctl; /* .failure is the reason of what failed last */
	struct {
		const char *method;
		int tag;
		cJSON *joined; /* the chunks so far */
	} calls[FEED_CALLS];
	size_t first, count; /* calls without a reply */
	double retry_ms;     /* not before */
	double heard_ms;     /* the last reply, or the first call since */
};

/* Takes the connection of ctl, if there is one, and its options. */
void feed_init(struct feed *feed, struct ctl *ctl);
void feed_finish(struct feed *feed);

/* The descriptor to wait for, -1 without a connection. */
int feed_fd(const struct feed *feed);

/* Sends a call; deletes the parameters. The method is a constant. False: it was not sent. */
bool feed_call(struct feed *feed, int tag, const char *method, cJSON *parameters);

/* The next complete reply that has arrived: true, with the tag of its call. *ret, which is the
 * caller's, is NULL when the call failed. The tag FEED_LOST: the connection is lost, and all calls
 * with it. */
bool feed_next(struct feed *feed, int *tag, cJSON **ret);
