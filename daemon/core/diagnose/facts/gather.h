/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.h: measures the facts of a diagnosis (facts.h) from raw records, history and the current
 * values. Bounded: at most PAST_EVENTS records and FACTS_SEGMENTS points of each series are read.
 */
#pragma once

#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/core/diagnose/facts/facts.h"

struct app;
struct gatherer; /* scratch, about 1 MiB */

int gatherer_create(struct gatherer **ret); /* -ENOMEM */
void gatherer_destroy(struct gatherer *gatherer);

/* The two halves of it, each about half of the time: the gatherer keeps the frames that the first
 * one reads, until it is used again, for the second one, with the same app and time. */
void facts_read_frames(
	struct gatherer *gatherer, const struct core *core, const struct app *app, uint64_t now_ns);
void facts_measure(struct gatherer *gatherer, const struct core *core, const struct app *app,
	uint64_t now_ns, struct facts *ret);
