/* SPDX-License-Identifier: Apache-2.0 */
/* past.h: makes a model of a moment in the past out of history. */
#pragma once

#include "client/edgeprofctl/live/feed.h"
#include "client/edgeprofctl/live/model.h"

/* Sends the calls for the minute before time_us. Their tags are PAST_TAG and the part of the model
 * that the reply is stored as. */
enum { PAST_TAG = 100 };
void past_request(struct feed *feed, int64_t time_us);

/* The metrics of which the live picture shows the last minute: calls that fill it at the start. */
void past_request_minute(struct feed *feed, int tag, int64_t now_us);

/* When all have come: makes apps, stages, processes and alerts of them. What history does not have
 * (deadlines, units, nesting, rules, the device) is that of the live model. */
void past_complete(struct model *past, const struct model *live);

/* The globs of the sensors, NULL at the end. */
extern const char *const past_sensor_globs[];
