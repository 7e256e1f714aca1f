/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h: runs the flight recorder. An alert, a burst of missed deadlines, a hang or RecordNow
 * freezes the last seconds before and some after into one file.
 */
#pragma once

#include <uv.h>

#include "daemon/varlink/server/options.h"

struct api;
struct core;
struct record_memory;
struct recorder;
struct recording;

enum recorder_trigger { RECORDER_ALERTS = 1, RECORDER_MISSES = 2, RECORDER_HANGS = 4 };

struct recorder_options {
	uint64_t before_ns, after_ns;
	uint64_t max_size, total_size; /* of a file, of all */
	uint64_t keep;		       /* files; 0 = none are made */
	unsigned triggers;	       /* enum recorder_trigger */
};

/* dir: files go to DIR/recordings; it must be there when the first is made. memory: of
 * record_memory, outlives the process. announce: a recording is there; on the loop's thread.
 * -ENOMEM, -ENOSPC. */
int recorder_open(uv_loop_t *loop, struct core *core, const char *dir,
	const struct recorder_options *options, struct record_memory *memory,
	const uint8_t boot_id[16], void (*announce)(void *ctx, const struct recording *recording),
	void *ctx, struct recorder **ret);

/* Until then nothing is recorded. */
void recorder_set_api(struct recorder *recorder, struct api *api);
void recorder_configure(struct recorder *recorder, const struct recorder_options *options);

/* RecordNow: as api_options.record. */
int recorder_now(struct recorder *recorder, struct api_record *record);

/* What is open is finished with what it has; closing finishes when the loop has run empty: before
 * that the api must close its connections. NULL is fine. */
void recorder_close(struct recorder *recorder);
/* After the loop ran empty. NULL is fine. */
void recorder_destroy(struct recorder *recorder);
