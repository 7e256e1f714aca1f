/* SPDX-License-Identifier: Apache-2.0 */
/* private.h: declares what recorder.c (the life of recordings), capture.c (one that is being made)
 * and triggers.c (what starts one) share. */
#pragma once

#include "daemon/core/apps/apps.h"
#include "daemon/core/status/recordings.h"
#include "daemon/recorder/recorder.h"

struct capture;

/* Why there is a recording. */
struct record_cause {
	enum record_kind kind;
	uint8_t flags; /* RECORD_ bits */
	uint64_t t_ns;
	uint64_t before_ns, after_ns;
	char subject[128];	      /* goes into the name */
	char text[RECORDING_TRIGGER]; /* of the trigger */
	/* set by recorder.c */
	char name[PROTO_NAME_SIZE];
	uint64_t joined; /* triggers, while it waits */
};

struct recorder {
	uv_loop_t *loop;
	struct core *core;
	struct api *api;
	struct recorder_options options;
	struct record_memory *memory, own_memory;
	void (*announce)(void *ctx, const struct recording *recording);
	void *ctx;
	uv_timer_t timer;	  /* of the capture */
	struct capture *capture;  /* while one is open */
	struct record_cause next; /* waits for its end */
	bool has_next, closing, refusal_logged, apps_refusal_logged, failure_logged;
	struct recordings recordings;
	struct record_bursts bursts; /* triggers.c */
};

/* A trigger: starts a recording, joins the open one, or waits for its end; cause->name is set then.
 * 0; -ENOSPC over the limit of a day; other -errno: could not be started. */
int recorder_trigger(struct recorder *recorder, struct record_cause *cause, bool *joined);
/* The capture has ended; row and list (rows only) are of its files. result: 0 or -errno. */
void recorder_on_captured(struct recorder *recorder, const struct recording *row, int result,
	const struct recordings *list);

int recorder_observe(struct recorder *recorder); /* -ENOSPC */
void recorder_unobserve(struct recorder *recorder);

/* Starts to capture the recording cause->name; recorder_on_captured() follows. -errno. */
int capture_start(struct recorder *recorder, const struct record_cause *cause);
/* One more trigger of the open recording; false: it is past its span. */
bool capture_join(struct capture *capture, const struct record_cause *cause);
/* The wall clock may be set while a recording is open. */
void capture_update_clock(struct capture *capture);
/* The daemon stops: ends the recording with what it has. */
void capture_stop(struct capture *capture);
