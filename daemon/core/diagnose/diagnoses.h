/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnoses.h: keeps the latest diagnosis of every app that runs, made in turns: one app a second
 * at most, each every DIAGNOSES_EVERY_S, or half of it after a change, so that status, alerts and
 * MQTT have it without asking. What is published is what was the same twice in a row: state, and
 * cause and confidence of the first finding. The observer gets it when that changes. Memory is
 * allocated per app, when it is first diagnosed; that of an app that is gone is used again.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/core/diagnose/advise.h"
#include "daemon/core/diagnose/rules/diagnose.h"

enum { DIAGNOSES_EVERY_S = 10 };

struct app;
struct diagnoses;

/* diagnosis NULL: the app does not run any more, what was published of it no longer holds. */
typedef void diagnoses_observer(void *ctx, const char *app, const struct diagnosis *diagnosis);

/* core outlives it. -ENOMEM. */
int diagnoses_create(const struct core *core, struct diagnoses **ret);
void diagnoses_destroy(struct diagnoses *diagnoses);

/* Sets the limits of diagnoses_advise(). Accepts NULL. */
void diagnoses_configure(struct diagnoses *diagnoses, const struct diagnosis_limits *limits);

/* advise() with the configured limits. */
void diagnoses_advise(const struct diagnoses *diagnoses, const struct facts *facts,
	const struct diagnosis *diagnosis, struct improvements *ret);

/* Call once a second, and again in a later iteration of the loop when it returns true: it is half
 * of the work then. What asks in between for another diagnosis postpones this one by a second. */
bool diagnoses_tick(struct diagnoses *diagnoses, uint64_t now_ns);

/* The latest of this run of the app, for one line of text; NULL: none yet, or it is older than
 * three turns. Valid until the next tick. Accepts NULL. */
const struct diagnosis *diagnoses_find(
	const struct diagnoses *diagnoses, const struct app *app, uint64_t now_ns);

/* Its summary if a finding is above low; else NULL. */
const char *diagnoses_summary(
	const struct diagnoses *diagnoses, const struct app *app, uint64_t now_ns);

/* The same of the app that a metric is of: "frame/cam/fps" is of cam. Made now for one such app a
 * second at most: an alert may fire between two turns. */
const char *diagnoses_of_metric(struct diagnoses *diagnoses, const char *metric, uint64_t now_ns);

/* The latest with its facts, made now if it is older than max_age_ns. NULL: no memory. */
const struct diagnosis *diagnoses_ask(struct diagnoses *diagnoses, const struct app *app,
	uint64_t now_ns, uint64_t max_age_ns, const struct facts **facts);

/* What is published: the index-th; NULL past the end. */
const struct diagnosis *diagnoses_published(
	const struct diagnoses *diagnoses, size_t index, const char **app);

/* There is one observer. NULL: none any more, if it is that of ctx. */
void diagnoses_observe(struct diagnoses *diagnoses, diagnoses_observer *observer, void *ctx);
