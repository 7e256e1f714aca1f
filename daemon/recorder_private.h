/* Shared by recorder.c (life of a recording) and recorder_triggers.c (what starts one). */
#pragma once

#include "daemon/recorder.h"
#include "daemon/store/recording_file.h"

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
	bool closing, refusal_told, failure_told;
	struct recordings recordings;
	/* recorder_triggers.c */
	struct record_bursts bursts;
	struct {
		uint64_t since_ns, hangs;
		char name[PROTO_NAME_SIZE];
	} seen[APPS_MAX];
};

/* A trigger: starts a recording, or joins the open one. subject goes into the name, text is told.
 * record may be NULL. 0; -ENOSPC over the limit of a day; other -errno: could not be started. */
int recorder_trigger(struct recorder *recorder, enum record_kind kind, const char *subject,
	const char *text, uint64_t now_ns, struct api_record *record);

int recorder_observe(struct recorder *recorder); /* -ENOSPC */
void recorder_unobserve(struct recorder *recorder);
