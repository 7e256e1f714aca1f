/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnoses.h: keeps the latest diagnosis of every app that runs, made in turns: one app a second
 * at most, each every DIAGNOSES_EVERY_S, so that status, alerts and MQTT have it without asking.
 * Observers get it when what it says has changed and has been so twice in a row.
 */
#pragma once

#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/core/diagnose/diagnose.h"

enum { DIAGNOSES_EVERY_S = 10, DIAGNOSES_OBSERVERS = 2 };

struct app;
struct diagnoses;

/* diagnosis NULL: the app ended or was retired, what was said of it no longer holds. */
typedef void diagnoses_observer(
	void *ctx, const struct app *app, const struct diagnosis *diagnosis);

/* core outlives it. -ENOMEM. */
int diagnoses_create(const struct core *core, struct diagnoses **ret);
void diagnoses_destroy(struct diagnoses *diagnoses);

/* Call once a second. */
void diagnoses_tick(struct diagnoses *diagnoses, uint64_t now_ns);

/* The latest of the app, for one line of text; NULL: none yet, or it is older than three turns.
 * Valid until the next tick. */
const struct diagnosis *diagnoses_find(
	const struct diagnoses *diagnoses, const struct app *app, uint64_t now_ns);

/* The same, made now unless it is younger than a second, with its facts. */
const struct diagnosis *diagnoses_ask(struct diagnoses *diagnoses, const struct app *app,
	uint64_t now_ns, const struct facts **facts);

int diagnoses_observe(
	struct diagnoses *diagnoses, diagnoses_observer *observer, void *ctx); /* -ENOSPC */
