/* Shared by recorder.c (life of a recording), recorder_start.c (its begin) and recorder_triggers.c
 * (what starts one). */
#pragma once

#include "daemon/core/apps/apps.h"
#include "daemon/recorder/recorder.h"
#include "daemon/recorder/recording_file.h"

/* Why there is a recording. */
struct record_cause {
	enum record_kind kind;
	uint8_t flags; /* RECORD_ bits */
	uint64_t t_ns;
	uint64_t before_ns, after_ns;
	char subject[128];	      /* goes into the name */
	char text[RECORDING_TRIGGER]; /* is told */
	/* recorder.c's */
	char name[PROTO_NAME_SIZE];
	uint64_t joined; /* triggers, while it waits */
};

struct record_hangs {
	size_t count;
	struct {
		uint64_t since_ns, hangs;
		char name[PROTO_NAME_SIZE];
	} app[APPS_MAX];
};

struct recorder {
	uv_loop_t *loop;
	struct core *core;
	struct api *api;
	struct recorder_options options;
	struct record_memory *memory, own_memory;
	void (*announce)(void *ctx, const struct recording *recording);
	void *ctx;
	uv_async_t written;
	uv_thread_t thread;
	struct recording_job *job; /* while one is open */
	uint64_t to_ns;		   /* end of its span */
	struct record_cause next;  /* waits for its end */
	bool has_next, closing, refusal_told, apps_refusal_told, failure_told;
	struct recordings recordings;
	/* recorder_triggers.c */
	struct record_bursts bursts;
	struct record_hangs seen, before; /* of the last commit, of the one before */
};

/* A trigger: starts a recording, joins the open one, or waits for its end; cause->name is set then.
 * 0; -ENOSPC over the limit of a day; other -errno: could not be started. */
int recorder_trigger(struct recorder *recorder, struct record_cause *cause, bool *joined);
int recorder_start(struct recorder *recorder, const struct record_cause *cause);
void recording_job_free(struct recording_job *job);
/* The wall clock may be set while a recording is open. */
void recorder_tell_clock(const struct recorder *recorder, struct recording_job *job);

int recorder_observe(struct recorder *recorder); /* -ENOSPC */
void recorder_unobserve(struct recorder *recorder);
